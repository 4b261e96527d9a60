//! Compactions that the host starts: at its threshold in mid turn, and after the API refused.

use compactd_tests::harness::host::scenario::long_work;
use compactd_tests::harness::host::{Kind, Run, Step, wire};

use super::kit::{Stage, assert_no_summary, notes, skeleton};

/// What was sent just before and just behind the compaction of a session that has one.
fn around(run: &Run) -> (serde_json::Value, serde_json::Value) {
    let turns = run.turns();
    let behind = turns.iter().position(|request| !notes(&request.body).is_empty()).unwrap();
    (turns[behind - 1].body.clone(), turns[behind].body.clone())
}

/// Every block of the request before, in order, as it was or as one of our notes.
#[track_caller]
fn assert_rewritten(before: &serde_json::Value, after: &serde_json::Value) {
    let notes = notes(after);
    assert!(!notes.is_empty());
    let (before, mut now) = (skeleton(before), skeleton(after));
    assert!(now.len() >= before.len(), "{}", wire::outline(after));
    now.truncate(before.len());
    for (was, is) in before.iter().zip(&now) {
        let is_note = is["kind"] == "result" && notes.contains_key(is["id"].as_str().unwrap());
        if is_note {
            assert_eq!((&was["id"], &was["is_error"]), (&is["id"], &is["is_error"]));
        } else {
            assert_eq!(was, is);
        }
    }
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
    let (before, after) = around(&run);
    assert_rewritten(&before, &after);
    for id in &work.removed {
        assert!(notes(&after).contains_key(id), "{id} has no note");
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
    let turns = run.of_kind(Kind::Turn);
    let refused = turns.iter().position(|request| !notes(&request.body).is_empty()).unwrap() - 1;
    assert_rewritten(&turns[refused].body, &turns[refused + 1].body);
    assert_eq!(stage.api.left(), 0, "the retried request took the next step");
    let resumed = stage.host.run_resumed(&run.id, &["What did you do?"]);
    wire::assert_continues("the resumed session", run.last(), resumed.last());
}
