//! Compactions that the host starts: at its threshold in mid turn, and after the API refused.

use compactd_tests::harness::host::scenario::long_work;
use compactd_tests::harness::host::{Request, Run, Step, wire};
use serde_json::{Value, json};

use super::kit::{Compacted, Stage, assert_no_summary, notes};

/// The place of the first request behind the compaction of a session that has one.
fn behind(turns: &[&Request]) -> usize {
    turns.iter().position(|request| !notes(&request.body).is_empty()).expect("a note")
}

/// A step's blocks as the session says them, with the results as they are in the transcript.
fn answered(step: &[(&str, &str)], text: &str, run: &Run) -> Vec<Value> {
    let rows = run.rows();
    let blocks = || rows.iter().flat_map(|row| wire::blocks(&row["message"]));
    let call = |id: &str| blocks().find(|block| block["id"] == id).unwrap();
    let result = |id: &str| blocks().find(|block| block["tool_use_id"] == id).unwrap();
    let mut out = vec![json!({"kind": "text", "role": "assistant", "text": text})];
    out.extend(step.iter().map(|(id, name)| {
        json!({"kind": "call", "id": id, "text": {"name": name, "input": call(id)["input"]}})
    }));
    out.extend(step.iter().map(|(id, _)| {
        json!({"kind": "result", "id": id, "is_error": false,
            "text": wire::result_text(&result(id)["content"])})
    }));
    out
}

#[test]
fn at_the_threshold_in_mid_turn() {
    let Some(stage) = Stage::new() else { return };
    // The smallest window that the host takes: it compacts above 67,000 tokens.
    let host = stage.host.clone().with_env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let mut work = long_work(&host, "a", 6);
    let steps = work.steps.len();
    // Full before the last result is answered: the turn is not over.
    work.steps[steps - 2] = work.steps[steps - 2].clone().tokens(75_000);
    stage.api.script(work.steps);
    let run = host.run(&["Mend all of it.", "And now?"]);
    assert_eq!(run.compactions(), ["success"]);
    assert_no_summary(&run);
    let turns = run.turns();
    let at = behind(&turns);
    let after = turns[at].body.clone();
    let step = [("toolu_a5_whole", "Read"), ("toolu_a5_edit", "Edit")];
    let between = answered(&step, "That is incident_a5; mending it.", &run);
    let before = turns[at - 1].body.clone();
    let compacted = Compacted { decisions: stage.decisions(&run.id), before, after, between };
    let gone = compacted.assert_exact();
    for id in &work.removed {
        assert!(gone.contains(id), "{id} stays");
    }
    let resumed = host.run_resumed(&run.id, &["What did you do?"]);
    wire::assert_continues("the resumed session", run.last(), resumed.last());
}

#[test]
fn after_a_refusal_the_request_goes_through() {
    let Some(stage) = Stage::new() else { return };
    let mut work = long_work(&stage.host, "a", 6);
    let last = work.steps.pop().unwrap();
    stage.api.script(work.steps);
    stage.api.script([Step::prompt_too_long(), last]);
    let run = stage.host.run(&["Mend all of it.", "And now?"]);
    assert_eq!(run.compactions(), ["success"]);
    assert_no_summary(&run);
    let turns = run.turns();
    let at = behind(&turns);
    let (before, after) = (turns[at - 1].body.clone(), turns[at].body.clone());
    let decisions = stage.decisions(&run.id);
    let compacted = Compacted { decisions, before, after, between: Vec::new() };
    assert!(!compacted.assert_exact().is_empty());
    assert_eq!(stage.api.left(), 0, "the retried request took the next step");
    let resumed = stage.host.run_resumed(&run.id, &["What did you do?"]);
    wire::assert_continues("the resumed session", run.last(), resumed.last());
}
