//! Every kind of result and of history, through a compaction and a resume.

use std::fs;

use compactd_tests::harness::host::scenario::{PICTURE, long_work};
use compactd_tests::harness::host::{Call, Gate, Session, Step, wire};
use serde_json::{Value, json};

use super::Pipe;
use super::kit::{Stage, assert_no_summary, last, notes};

/// Ends a session and goes on with it: what is sent begins with what was sent live.
#[track_caller]
fn assert_resumes(stage: &Stage, session: Session) {
    let (live, id) = (last(&session), session.id.clone());
    assert_no_summary(&session.finish());
    let resumed = stage.host.run_resumed(&id, &["And on it goes."]);
    wire::assert_continues("the resumed session", &live, resumed.last());
}

#[test]
fn rows_of_one_message_that_stand_apart() {
    let Some(stage) = Stage::new() else { return };
    let file = stage.host.put("a.txt", "alpha\n");
    let (mut slow, gate) = (Pipe::new(&stage.home, "slow"), Gate::new());
    stage.api.script([
        Step::tools([
            Call::new("Bash", json!({"command": slow.reader()})).id("toolu_slow"),
            Call::new("Read", json!({"file_path": file})).id("toolu_fast"),
            Call::new("Bash", json!({"command": "echo last"})).id("toolu_last"),
        ])
        .say("All three at once.")
        .think("In parallel.")
        .hold_after(4, &gate),
        Step::text("Done."),
    ]);
    let mut session = stage.host.start();
    session.send("Look at all three.");
    let is_result = |event: &Value, id: &str| event["message"]["content"][0]["tool_use_id"] == id;
    session.until("the fast result", |event| is_result(event, "toolu_fast"));
    gate.open();
    session.until("the last result", |event| is_result(event, "toolu_last"));
    slow.write("late\n");
    session.result();
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    session.prompt("Mend the rest.");
    let compacted = stage.compact(&mut session);
    assert!(!compacted.assert_exact().is_empty());
    assert_resumes(&stage, session);
}

#[test]
fn pictures_binaries_long_outputs_and_failures() {
    let Some(stage) = Stage::new() else { return };
    let host = &stage.host;
    let picture = host.put("dot.png", PICTURE);
    let binary = host.put("blob.bin", [0, 159, 146, 150].repeat(500));
    let odd = host.put(
        "odd.txt",
        "caf\u{e9} \u{1f980} \u{1f468}\u{200d}\u{1f469}\r\nna\u{ef}ve\n".repeat(40),
    );
    stage.api.script([
        Step::text("Ready."),
        Step::tools([
            Call::new("Read", json!({"file_path": picture})).id("toolu_picture"),
            Call::new("Read", json!({"file_path": binary})).id("toolu_binary"),
        ]),
        Step::tools([
            Call::new("Bash", json!({"command": "seq 1 20000"})).id("toolu_long"),
            Call::new("Bash", json!({"command": "echo bad >&2; exit 3"})).id("toolu_failed"),
            Call::new("Bash", json!({"command": format!("sort {}", odd.display())}))
                .id("toolu_odd"),
            Call::new("Bash", json!({"command": "true"})).id("toolu_silent"),
        ]),
    ]);
    stage.api.script(long_work(host, "a", 4).steps);
    let mut session = host.start();
    session.prompt("Get ready.");
    session.prompt("Look at everything and mend it.");
    let compacted = stage.compact(&mut session);
    let gone = compacted.assert_exact();
    assert!(gone.contains(&"toolu_odd".to_owned()), "{gone:?}");
    let picture = wire::result(&compacted.after, "toolu_picture");
    assert!(picture.text.ends_with("re-run the call to see it]"), "{picture:?}");
    assert!(wire::result(&compacted.after, "toolu_failed").is_error);
    // The second compaction finds the first one's notes, the picture's among them.
    stage.api.script(long_work(&stage.host, "b", 4).steps);
    session.prompt("Mend the next ones.");
    let again = stage.compact(&mut session);
    again.assert_exact();
    let (before, after) = (notes(&compacted.after), notes(&again.after));
    for (id, note) in before {
        assert_eq!(after.get(&id), Some(&note), "{id}");
    }
    assert_resumes(&stage, session);
}

fn agent_step() -> Step {
    let task = json!({"description": "Look", "prompt": "What is in the files?",
        "subagent_type": "general-purpose", "run_in_background": false});
    Step::tools([Call::new("Agent", task).id("toolu_agent")])
}

#[test]
fn a_sub_agents_report_stays() {
    let Some(stage) = Stage::new() else { return };
    let file = stage.host.put("a.txt", "alpha 4711\n");
    stage.api.script([
        Step::text("Ready."),
        agent_step(),
        Step::tools([Call::new("Read", json!({"file_path": file}))]).for_agent(),
        Step::text("The report_of_the_agent says alpha.").for_agent(),
        Step::text("So the report_of_the_agent is in."),
    ]);
    let mut session = stage.host.start();
    session.prompt("Get ready.");
    session.prompt("Have it looked at.");
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    session.prompt("Mend the rest.");
    let compacted = stage.compact(&mut session);
    assert!(!compacted.assert_exact().is_empty());
    let report = wire::result(&compacted.after, "toolu_agent").text;
    assert_eq!(report, wire::result(&compacted.before, "toolu_agent").text);
    assert_resumes(&stage, session);
}

/// A sub-agent fills its own context: its own transcript is compacted, the session's is not.
#[test]
fn a_sub_agents_own_compaction() {
    let Some(stage) = Stage::new() else { return };
    let host = stage.host.clone().with_env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let work = long_work(&host, "a", 6);
    let steps = work.steps.len();
    stage.api.script([agent_step()]);
    stage.api.script(work.steps.into_iter().enumerate().map(|(at, step)| {
        if at == steps - 2 { step.tokens(75_000).for_agent() } else { step.for_agent() }
    }));
    stage.api.script([Step::text("The agent is done.")]);
    let run = host.run(&["Have it mended.", "And now?"]);
    assert_no_summary(&run);
    assert_eq!(stage.api.left(), 0);
    let inner: Vec<_> = run.requests.iter().filter(|request| request.agent.is_some()).collect();
    let rewritten = notes(&inner.last().unwrap().body);
    for id in &work.removed {
        assert!(rewritten.contains_key(id), "{id} has no note");
    }
    assert!(notes(run.last()).is_empty(), "the session itself is as it was");
    let agent = inner[0].agent.clone().unwrap();
    let decisions = stage.decisions(&agent);
    assert!(work.removed.iter().all(|id| decisions[id] == "drop"), "{decisions:?}");
}

#[test]
fn after_clear_another_session_is_compacted() {
    let Some(stage) = Stage::new() else { return };
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    let mut session = stage.host.start();
    session.prompt("Mend all of it.");
    let cleared = session.prompt("/clear");
    let id = cleared.iter().rev().find_map(|event| event["session_id"].as_str()).unwrap();
    assert_ne!(id, session.id, "a session of its own");
    session.id = id.to_owned();
    stage.api.script(long_work(&stage.host, "b", 4).steps);
    session.prompt("Mend the others.");
    let compacted = stage.compact(&mut session);
    assert!(!compacted.assert_exact().is_empty());
    assert!(!wire::has(&compacted.after, "Mend all of it."));
    assert_resumes(&stage, session);
}

#[test]
fn a_fork_is_compacted_and_its_origin_is_not() {
    let Some(stage) = Stage::new() else { return };
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    let origin = stage.host.run(&["Mend all of it."]);
    let bytes = fs::read(&origin.transcript).unwrap();
    let mut fork = stage.host.clone().with_flags(["--fork-session"]).resume(&origin.id);
    let events = fork.prompt("Go on elsewhere.");
    let id = events.iter().rev().find_map(|event| event["session_id"].as_str()).unwrap();
    assert_ne!(id, origin.id);
    fork.id = id.to_owned();
    let compacted = stage.compact(&mut fork);
    assert!(!compacted.assert_exact().is_empty());
    assert_resumes(&stage, fork);
    assert!(fs::read(&origin.transcript).unwrap() == bytes, "the origin's transcript changed");
}

/// The person went back to an earlier answer: what came behind it is no part of the context.
#[test]
fn a_rewound_conversation() {
    let Some(stage) = Stage::new() else { return };
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    let mut session = stage.host.start();
    session.prompt("Mend all of it.");
    stage.api.script([
        Step::tool("Bash", json!({"command": "echo abandoned_branch_output"})),
        Step::text("That was wrong."),
    ]);
    session.prompt("Now something else.");
    let run = session.finish();
    let rows = run.rows();
    let back = rows.iter().find(|row| {
        row["type"] == "assistant" && row["message"]["content"][0]["text"] == "All of it is mended."
    });
    let back = back.unwrap()["uuid"].as_str().unwrap();
    let rewound = stage.host.clone().with_flags(["--resume-session-at", back]);
    let mut session = rewound.resume(&run.id);
    stage.api.script([Step::text("Here then.")]);
    session.prompt("Another way.");
    assert!(!wire::has(&last(&session), "abandoned_branch_output"));
    let compacted = stage.compact(&mut session);
    assert!(!compacted.assert_exact().is_empty());
    assert!(!wire::has(&compacted.after, "abandoned_branch_output"));
    assert_resumes(&stage, session);
}
