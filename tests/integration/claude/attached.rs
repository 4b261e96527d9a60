//! What the host attaches to results and hands to no plugin goes through a compaction all the same.

use std::fs;

use compactd_tests::harness::eventually;
use compactd_tests::harness::host::scenario::long_work;
use compactd_tests::harness::host::{Call, Host, Session, Step, wire};
use serde_json::{Value, json};

use super::kit::{Stage, assert_no_summary, last, notes};
use super::{Pipe, SMALL_WINDOW};

/// How often something stands in the messages.
fn count(body: &Value, text: &str) -> usize {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages.map(|message| wire::all_text(message).matches(text).count()).sum()
}

/// The person types while a tool runs: the host keeps it for the next request.
fn type_meanwhile(session: &mut Session, tool: &str, pipe: &mut Pipe, text: &str) {
    session.until("the call", |event| event["message"]["content"][0]["id"] == tool);
    session.send(text);
    let transcript = session.transcript();
    eventually("the prompt is queued", || {
        fs::read_to_string(&transcript).is_ok_and(|rows| rows.contains(text)).then_some(())
    });
    pipe.write("late");
}

fn waits(pipe: &Pipe) -> Step {
    Step::tools([Call::new("Bash", json!({"command": pipe.reader()})).id("toolu_waits")])
}

/// Compacts and goes on, and resumes: the text is there as often as before.
#[track_caller]
fn assert_stays(stage: &Stage, host: &Host, mut session: Session, text: &str) {
    let before = count(&last(&session), text);
    assert!(before > 0, "{text} never came");
    let events = session.prompt("/compact");
    assert!(events.iter().any(|event| event["compact_result"] == "success"), "{events:?}");
    session.prompt("What now?");
    let live = last(&session);
    assert!(!notes(&live).is_empty());
    assert_eq!(count(&live, text), before, "{}", wire::outline(&live));
    // Once more: it is a message like any other now.
    stage.api.script(long_work(host, "z", 4).steps);
    session.prompt("Mend the next ones.");
    session.prompt("/compact");
    session.prompt("What now?");
    let live = last(&session);
    assert_eq!(count(&live, text), before, "{}", wire::outline(&live));
    let id = session.id.clone();
    assert_no_summary(&session.finish());
    let resumed = host.run_resumed(&id, &["And on it goes."]);
    wire::assert_continues("the resumed session", &live, resumed.last());
}

#[test]
fn what_the_person_typed_while_a_tool_ran() {
    let Some(stage) = Stage::new() else { return };
    let mut pipe = Pipe::new(&stage.home, "slow");
    let text = "QUEUED: be quick, and never touch vendor/.";
    stage.api.script([waits(&pipe), Step::text("Done.")]);
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    let mut session = stage.host.start();
    session.send("Start.");
    type_meanwhile(&mut session, "toolu_waits", &mut pipe, text);
    session.result();
    session.prompt("Mend all of it.");
    assert_stays(&stage, &stage.host, session, text);
}

/// The automatic compaction comes before the model has seen it.
#[test]
fn what_the_person_typed_just_before_an_automatic_compaction() {
    let Some(stage) = Stage::new() else { return };
    let host = stage.host.clone().with_env(SMALL_WINDOW.0, SMALL_WINDOW.1);
    let mut pipe = Pipe::new(&stage.home, "slow");
    let text = "QUEUED: stop at once, do not deploy.";
    let mut work = long_work(&host, "a", 6);
    work.steps.pop();
    stage.api.script(work.steps);
    stage.api.script([waits(&pipe).tokens(75_000), Step::text("I stop.")]);
    let mut session = host.start();
    session.send("Mend all of it.");
    type_meanwhile(&mut session, "toolu_waits", &mut pipe, text);
    session.result();
    let after = last(&session);
    assert!(!notes(&after).is_empty(), "{}", wire::outline(&after));
    assert_eq!(count(&after, text), 1, "{}", wire::outline(&after));
    assert_no_summary(&session.finish());
}

#[test]
fn the_body_of_a_skill() {
    let Some(stage) = Stage::new() else { return };
    let skill = "---\nname: foo\ndescription: does foo\n---\nSKILL-BODY: do things.\n";
    stage.host.put(".claude/skills/foo/SKILL.md", skill);
    let call = Call::new("Skill", json!({"skill": "foo"}));
    stage.api.script([Step::text("Ready."), Step::tools([call]), Step::text("Done.")]);
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    let mut session = stage.host.start();
    for prompt in ["Get ready.", "Use foo.", "Mend all of it."] {
        session.prompt(prompt);
    }
    assert_stays(&stage, &stage.host, session, "SKILL-BODY");
}

#[test]
fn the_rules_of_a_folder() {
    let Some(stage) = Stage::new() else { return };
    stage.host.put("sub/CLAUDE.md", "NESTED-RULE: use no tabs.\n");
    let file = stage.host.put("sub/x.txt", "alpha\n");
    let read = Step::tool("Read", json!({"file_path": file}));
    stage.api.script([Step::text("Ready."), read, Step::text("Read.")]);
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    let mut session = stage.host.start();
    for prompt in ["Get ready.", "Read it.", "Mend all of it."] {
        session.prompt(prompt);
    }
    assert_stays(&stage, &stage.host, session, "NESTED-RULE");
}

#[test]
fn what_another_hook_said_about_a_result() {
    let Some(stage) = Stage::new() else { return };
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse",
        "additionalContext": "OTHER-CONTEXT: mind the gap."}});
    let says = stage.host.put("says.json", answer.to_string());
    let hooks = json!({"hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": [
        {"type": "command", "command": format!("cat {}", says.display())}]}]}});
    stage.host.put(".claude/settings.json", hooks.to_string());
    stage.api.script([Step::text("Ready.")]);
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    let mut session = stage.host.start();
    session.prompt("Get ready.");
    session.prompt("Mend all of it.");
    let before = count(&last(&session), "OTHER-CONTEXT");
    assert_eq!(before, 4, "one for each edit");
    session.prompt("/compact");
    session.prompt("What now?");
    assert_eq!(count(&last(&session), "OTHER-CONTEXT"), before);
    assert_no_summary(&session.finish());
}
