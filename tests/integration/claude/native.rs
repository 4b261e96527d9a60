//! The host alone: what it does without a plugin of ours, as far as the other tests build on it.

use compactd_tests::harness::host::{Call, Host, Kind, MockApi, Step, claude, wire};
use compactd_tests::harness::{Claude, Home};
use serde_json::json;

use super::{SMALL_WINDOW, kinds, three_reads};

#[test]
fn a_manual_compaction_asks_for_one_summary() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api);
    let file = host.put("src/part1.py", "WIDGET_LIMIT = 48213\n");
    api.script([
        Step::tool("Read", json!({"file_path": file})).say("Reading."),
        Step::text("It is 48213."),
        Step::text("I remember."),
    ]);
    let mut session = host.start();
    session.prompt("What is the limit?");
    assert_eq!(api.of_kind(Kind::Summary).len(), 0);
    let events = session.prompt("/compact keep the numbers");
    assert!(events.iter().any(|event| event["compact_result"] == "success"), "{events:?}");
    session.prompt("What now?");
    let run = session.finish();
    assert!(run.status.success(), "{}", run.stderr);
    assert_eq!(kinds(&run), [Kind::Turn, Kind::Turn, Kind::Summary, Kind::Turn]);
    let asked = &run.requests[2].body;
    assert!(wire::has(asked, "keep the numbers"), "{}", wire::outline(asked));
    assert!(wire::has(asked, "WIDGET_LIMIT"), "{}", wire::outline(asked));
    assert!(wire::has(run.last(), "MOCK-SUMMARY"), "{}", wire::outline(run.last()));
    assert_eq!(api.left(), 0);
    assert!(run.rows().iter().any(|row| row["subtype"] == "compact_boundary"));
}

#[test]
fn above_the_threshold_it_compacts_in_mid_turn() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api).with_env(SMALL_WINDOW.0, SMALL_WINDOW.1);
    api.script(three_reads(&host, [20_000, 66_000, 75_000]));
    api.script([Step::text("All read.")]);
    let run = host.run(&["Read all parts."]);
    let turn = Kind::Turn;
    assert_eq!(kinds(&run), [turn, turn, turn, Kind::Summary, turn]);
    assert_eq!(run.compactions(), ["success"]);
    assert!(wire::has(run.last(), "MOCK-SUMMARY"), "{}", wire::outline(run.last()));
    let boundary = run.rows().into_iter().find(|row| row["subtype"] == "compact_boundary");
    assert_eq!(boundary.expect("a boundary")["compactMetadata"]["trigger"], "auto");
}

#[test]
fn a_prompt_that_is_too_long_is_sent_again_after_a_compaction() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api);
    api.script(three_reads(&host, [1000, 1000, 1000]));
    api.script([Step::prompt_too_long(), Step::text("Recovered.")]);
    let run = host.run(&["Read all parts."]);
    let turn = Kind::Turn;
    assert_eq!(kinds(&run), [turn, turn, turn, turn, Kind::Summary, turn]);
    assert!(wire::has(run.last(), "MOCK-SUMMARY"), "{}", wire::outline(run.last()));
    let result = run.events.last().unwrap();
    assert_eq!(result["result"], "Recovered.", "{result}");
}

#[test]
fn a_resumed_session_sends_the_same_messages() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api);
    api.script(three_reads(&host, [1000, 1000, 1000]));
    api.script([Step::text("All read."), Step::text("Nothing more.")]);
    let whole = host.run(&["Read all parts.", "Anything else?"]);
    api.script([Step::text("As before.")]);
    let resumed = host.run_resumed(&whole.id, &["Go on."]);
    assert_eq!(resumed.transcript, whole.transcript);
    wire::assert_continues("before a compaction", whole.last(), resumed.last());
    assert_eq!(wire::results(resumed.last()).len(), 3);

    api.script([Step::text("From the summary.")]);
    let compacted = host.run_resumed(&whole.id, &["/compact", "What do you know?"]);
    assert_eq!(compacted.of_kind(Kind::Summary).len(), 1);
    api.script([Step::text("As before.")]);
    let resumed = host.run_resumed(&whole.id, &["Go on."]);
    wire::assert_continues("after a compaction", compacted.last(), resumed.last());
    assert!(wire::has(resumed.last(), "MOCK-SUMMARY"), "{}", wire::outline(resumed.last()));
    assert_eq!(api.left(), 0);
}

#[test]
fn a_transcript_that_was_written_for_it_is_resumed() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([Step::text("Going on.")]));
    let host = Host::new(&claude, &home, &api);
    let id = "0000abcd-0000-4000-8000-000000000001";
    let rounds = 20;
    let text = Claude::new(id).prompt("Do all of it.").work(rounds).take();
    let path = host.put_transcript(id, &text);
    let run = host.run_resumed(id, &["Go on."]);
    assert_eq!(run.transcript, path);
    assert_eq!(wire::results(run.last()).len(), 2 * rounds);
    assert!(wire::has(run.last(), "Do all of it."), "{}", wire::outline(run.last()));
    let rows = std::fs::read_to_string(path).unwrap();
    assert!(rows.starts_with(&text), "the host only appends");
}

#[test]
fn a_sub_agent_compacts_its_own_context() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api).with_env(SMALL_WINDOW.0, SMALL_WINDOW.1);
    let task = json!({"description": "Read all", "prompt": "Read all parts for me.",
        "subagent_type": "general-purpose", "run_in_background": false});
    api.script(three_reads(&host, [20_000, 30_000, 75_000]).into_iter().map(Step::for_agent));
    api.script([
        Step::tools([Call::new("Agent", task).id("toolu_agent")]),
        Step::text("Three limits.").for_agent(),
        Step::text("Done."),
    ]);
    let run = host.run(&["Have it read."]);
    let agent = run.requests[1].agent.clone().expect("a sub-agent's request");
    let of_agent: Vec<Kind> = run
        .requests
        .iter()
        .filter(|request| request.agent.as_ref() == Some(&agent))
        .map(|request| request.kind)
        .collect();
    let turn = Kind::Turn;
    assert_eq!(of_agent, [turn, turn, turn, Kind::Summary, turn]);
    assert_eq!(run.turns().len(), 2);
    assert!(!wire::has(run.last(), "MOCK-SUMMARY"), "{}", wire::outline(run.last()));
    let report = wire::result(run.last(), "toolu_agent");
    assert!(report.text.contains("Three limits."), "{report:?}");
    assert_eq!(api.left(), 0);
}
