//! Which hooks the host runs around compactions, and in which order.

use compactd_tests::harness::host::codex::hooks::event;
use compactd_tests::harness::host::codex::{Call, Codex, Kind, Responses, Step};
use compactd_tests::harness::host::{Gate, codex};
use compactd_tests::harness::{Home, eventually};
use serde_json::{Value, json};

/// Hooks that tell where a compaction is among turns and prompts.
pub(super) const EVENTS: &[&str] = &[
    "PreCompact",
    "PostCompact",
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "SubagentStart",
    "SubagentStop",
    "Stop",
];

#[test]
fn a_manual_compaction() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([Step::shell("ls"), Step::text("Seen.")]));
    let host = Codex::new(&codex, &home, &api);
    let log = host.log_hooks(EVENTS);
    let first = host.exec("Look around.").good();
    assert_eq!(first.kinds(), [Kind::Turn; 2]);
    let begin = ["SessionStart startup", "UserPromptSubmit", "PreToolUse Bash", "PostToolUse Bash"];
    assert_eq!(log.events(), [&begin[..], &["Stop"]].concat());
    log.clear();

    let mut server = host.app_server();
    server.resume(&first.thread);
    server.compact(&first.thread);
    // Nothing tells the model before the next turn begins.
    assert_eq!(log.events(), ["PreCompact manual", "PostCompact manual"]);
    api.script([Step::text("And on.")]);
    server.turn(&first.thread, "Go on.");
    let after = ["SessionStart resume", "SessionStart compact", "UserPromptSubmit", "Stop"];
    assert_eq!(log.events()[2..], after);
    log.clear();
    server.compact(&first.thread);
    server.turn(&first.thread, "Go on.");
    let again = ["PreCompact manual", "PostCompact manual"];
    let after = ["SessionStart compact", "UserPromptSubmit", "Stop"];
    assert_eq!(log.events(), [&again[..], &after].concat());
    server.finish();
    for input in log.inputs() {
        assert_eq!(input["session_id"], first.thread.as_str(), "{input}");
        assert!(input["transcript_path"].as_str().unwrap().contains(&first.thread), "{input}");
    }
    assert_eq!(api.of_kind(Kind::CompactLocal).len(), 2);
}

#[test]
fn a_compaction_before_a_turn() {
    let Some(codex) = codex() else { return };
    let steps = [Step::text("Much.").tokens(30_000), Step::text("More.").tokens(9_000)];
    let (home, api) = (Home::new(), Responses::start(steps));
    let host = Codex::new(&codex, &home, &api);
    let log = host.log_hooks(EVENTS);
    let first = host.exec("Look around.").good();
    log.clear();
    // A resume that compacts at once: the session starts twice.
    let resumed = host.compacting_at(20_000).resume(&first.thread, "Go on.").good();
    assert_eq!(resumed.kinds(), [Kind::CompactLocal, Kind::Turn]);
    let expected = [
        "PreCompact auto",
        "PostCompact auto",
        "SessionStart resume",
        "SessionStart compact",
        "UserPromptSubmit",
        "Stop",
    ];
    assert_eq!(log.events(), expected);
}

#[test]
fn a_compaction_in_the_middle_of_a_turn() {
    let Some(codex) = codex() else { return };
    let steps = [Step::shell("ls").tokens(30_000), Step::text("Done.").tokens(9_000)];
    let (home, api) = (Home::new(), Responses::start(steps));
    let host = Codex::new(&codex, &home, &api).compacting_at(20_000);
    let log = host.log_hooks(EVENTS);
    let run = host.exec("Look around.").good();
    assert_eq!(run.kinds(), [Kind::Turn, Kind::CompactLocal, Kind::Turn]);
    let expected = [
        "SessionStart startup",
        "UserPromptSubmit",
        "PreToolUse Bash",
        "PostToolUse Bash",
        "PreCompact auto",
        "PostCompact auto",
        "SessionStart compact",
        "Stop",
    ];
    assert_eq!(log.events(), expected);
}

#[test]
fn a_sub_agent_that_compacts() {
    let Some(codex) = codex() else { return };
    let counted = Gate::new();
    let steps = [
        Step::calls([Call::spawn("Count the files.")]),
        Step::text("Counted.").gate(&counted),
        Step::shell("ls").tokens(30_000).for_agent(),
        Step::shell("pwd").tokens(9_000).for_agent(),
        Step::text("None.").tokens(9_000).for_agent(),
    ];
    let (home, api) = (Home::new(), Responses::start(steps));
    let host = Codex::new(&codex, &home, &api).compacting_at(20_000);
    let log = host.log_hooks(EVENTS);
    let exec = host.start("Let somebody count.");
    eventually("the sub-agent stops", || {
        log.events().iter().any(|event| event == "SubagentStop").then_some(())
    });
    counted.open();
    let run = exec.finish().good();
    let inputs = log.inputs();
    let (own, agents): (Vec<&Value>, Vec<&Value>) =
        inputs.iter().partition(|input| input.get("agent_id").is_none());
    let events = |inputs: &[&Value]| inputs.iter().map(|input| event(input)).collect::<Vec<_>>();
    let begin = ["SessionStart startup", "UserPromptSubmit"];
    let spawned = ["PreToolUse spawn_agent", "PostToolUse spawn_agent", "Stop"];
    assert_eq!(events(&own), [&begin[..], &spawned].concat());
    let expected = [
        "SubagentStart",
        "UserPromptSubmit",
        "PreToolUse Bash",
        "PostToolUse Bash",
        "PreCompact auto",
        "PostCompact auto",
        // No start of a session and no prompt: the next that reaches it is a tool.
        "PreToolUse Bash",
        "PostToolUse Bash",
        "SubagentStop",
    ];
    assert_eq!(events(&agents), expected);
    let agent = agents[0]["agent_id"].as_str().unwrap();
    for input in agents {
        assert_eq!((&input["session_id"], &input["agent_id"]), (&json!(run.thread), &json!(agent)));
        let is_stop = input["hook_event_name"] == "SubagentStop";
        let own = if is_stop { "agent_transcript_path" } else { "transcript_path" };
        assert!(input[own].as_str().unwrap().contains(agent), "{input}");
    }
}
