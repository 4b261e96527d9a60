//! Tool results of every kind, as the host sends them and as its transcript holds them.

use std::fs;

use compactd_tests::harness::Home;
use compactd_tests::harness::host::{Call, Gate, Host, MockApi, Run, Step, claude, scenario, wire};
use serde_json::{Value, json};

use super::Pipe;

/// Ids of the calls and results in a transcript, in the order of its rows.
fn calls_and_results(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    let rows = run.rows().into_iter();
    for row in rows.filter(|row| row["type"] == "user" || row["type"] == "assistant") {
        for block in row["message"]["content"].as_array().into_iter().flatten() {
            let ids = [&block["id"], &block["tool_use_id"]].into_iter().filter_map(Value::as_str);
            let kind = if block["type"] == "tool_use" { "call" } else { "result" };
            found.extend(ids.map(|id| format!("{kind} {}", id.trim_start_matches("toolu_"))));
        }
    }
    found
}

fn is_result(event: &Value, id: &str) -> bool {
    event["message"]["content"][0]["tool_use_id"] == id
}

#[test]
fn rows_of_one_message_interleave_and_its_results_are_sent_together() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api);
    let file = host.put("a.txt", "alpha\n");
    let (mut slow, gate) = (Pipe::new(&home, "slow"), Gate::new());
    api.script([
        Step::tools([
            Call::new("Bash", json!({"command": slow.reader()})).id("toolu_slow"),
            Call::new("Read", json!({"file_path": file})).id("toolu_fast"),
            Call::new("Bash", json!({"command": "echo last"})).id("toolu_last"),
        ])
        .hold_after(2, &gate),
        Step::text("Done."),
    ]);
    let mut session = host.start();
    session.send("Look at all three.");
    session.until("the fast result", |event| is_result(event, "toolu_fast"));
    gate.open();
    session.until("the last result", |event| is_result(event, "toolu_last"));
    slow.write("late");
    session.result();
    let run = session.finish();
    assert_eq!(
        calls_and_results(&run),
        ["call slow", "call fast", "result fast", "call last", "result last", "result slow"]
    );
    let body = run.last();
    let sent: Vec<String> = wire::results(body).into_iter().map(|sent| sent.id).collect();
    assert_eq!(sent, ["toolu_fast", "toolu_last", "toolu_slow"], "in the order of completion");
    let messages = wire::plain(body);
    let calls = messages.iter().filter(|message| message["role"] == "assistant").count();
    assert_eq!(calls, 1, "{}", wire::outline(body));
    assert_eq!(wire::result(body, "toolu_slow").text, "late");
}

#[test]
fn a_picture_is_sent_and_another_binary_is_an_error() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api);
    let picture = host.put("dot.png", scenario::PICTURE);
    let binary = host.put("blob.bin", [0, 159, 146, 150].repeat(500));
    api.script([
        Step::tools([
            Call::new("Read", json!({"file_path": picture})).id("toolu_picture"),
            Call::new("Read", json!({"file_path": binary})).id("toolu_binary"),
        ]),
        Step::text("Done."),
    ]);
    let run = host.run(&["Look at both."]);
    let picture = wire::result(run.last(), "toolu_picture");
    assert_eq!(picture.text, "[image]");
    assert_eq!(picture.content[0]["source"]["media_type"], "image/png");
    assert!(!picture.is_error);
    let binary = wire::result(run.last(), "toolu_binary");
    assert!(binary.is_error && binary.text.starts_with("<tool_use_error>"), "{binary:?}");
}

#[test]
fn a_long_output_is_kept_in_a_file_beside_the_transcript() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api);
    let call = Call::new("Bash", json!({"command": "seq 1 20000"})).id("toolu_seq");
    api.script([Step::tools([call]), Step::text("Done.")]);
    let run = host.run(&["Count."]);
    let sent = wire::result(run.last(), "toolu_seq").text;
    assert!(sent.starts_with("<persisted-output>"), "{sent}");
    assert!(sent.len() < 4000, "{}", sent.len());
    let folder = run.transcript.with_extension("").join("tool-results");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(sent.contains(files[0].to_str().unwrap()), "{sent}");
    let lines = fs::read_to_string(&files[0]).unwrap();
    assert_eq!(lines.lines().last(), Some("20000"));
}

#[test]
fn a_sub_agent_has_a_transcript_of_its_own() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api);
    let file = host.put("a.txt", "alpha 4711\n");
    let task = json!({"description": "Look", "prompt": "What is in the file?",
        "subagent_type": "general-purpose", "run_in_background": false});
    api.script([
        Step::tools([Call::new("Agent", task).id("toolu_agent")]),
        Step::text("Done."),
        Step::tools([Call::new("Read", json!({"file_path": file})).id("toolu_inner")]).for_agent(),
        Step::text("It says alpha.").for_agent(),
    ]);
    let run = host.run(&["Have it looked at."]);
    assert_eq!(api.left(), 0);
    let inner = run.requests.iter().filter(|request| request.agent.is_some()).collect::<Vec<_>>();
    assert_eq!(inner.len(), 2);
    assert_eq!(wire::result(&inner[1].body, "toolu_inner").text, "1\talpha 4711\n2\t");
    assert_eq!(inner[0].session.as_ref(), Some(&run.id), "under the parent's id");
    assert!(wire::result(run.last(), "toolu_agent").text.contains("It says alpha."));
    assert!(!wire::has(run.last(), "4711"), "{}", wire::outline(run.last()));
    let agent = inner[0].agent.as_ref().unwrap();
    let own = run.transcript.with_extension("").join(format!("subagents/agent-{agent}.jsonl"));
    let rows = fs::read_to_string(&own).unwrap_or_else(|error| panic!("{own:?}: {error}"));
    assert!(rows.contains("toolu_inner"), "{rows}");
}
