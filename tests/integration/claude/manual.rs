//! `/compact` answered by the mod, and sessions that go on from it.

use std::collections::BTreeMap;

use compactd_tests::harness::host::scenario::long_work;
use compactd_tests::harness::host::{Call, Session, Step, wire};
use serde_json::json;

use super::kit::{Stage, assert_no_summary, last, notes};

#[test]
fn the_next_request_holds_exactly_the_rewrite() {
    let Some(stage) = Stage::new() else { return };
    let work = long_work(&stage.host, "a", 6);
    stage.api.script(work.steps);
    let mut session = stage.host.start();
    session.prompt("Mend all of it.");
    let explained = stage.daemon.as_ref().unwrap().client.explain(&session.id, "");
    let compacted = stage.compact(&mut session);
    let gone = compacted.assert_exact();
    let foretold = explained["results"].as_array().unwrap().iter();
    for result in foretold {
        assert_eq!(compacted.decisions[result["id"].as_str().unwrap()], result["decision"]);
    }
    for id in &work.removed {
        assert!(gone.contains(id), "{id} stays");
        assert!(notes(&compacted.after).contains_key(id), "{id} has no note");
    }
    for id in &work.kept {
        assert_eq!(wire::result(&compacted.before, id), wire::result(&compacted.after, id));
    }
    let run = session.finish();
    assert!(run.status.success(), "{}", run.stderr);
    assert_no_summary(&run);
}

#[test]
fn a_resume_goes_on_where_the_session_was_after_one_two_and_three_compactions() {
    let Some(stage) = Stage::new() else { return };
    let mut before: BTreeMap<String, String> = BTreeMap::new();
    let mut session = stage.host.start();
    let id = session.id.clone();
    for round in ["a", "b", "c"] {
        stage.api.script(long_work(&stage.host, round, 5).steps);
        session.prompt("Mend the next ones.");
        let compacted = stage.compact(&mut session);
        let gone = compacted.assert_exact();
        assert!(!gone.is_empty(), "nothing goes in round {round}");
        let now = notes(&compacted.after);
        for (id, note) in &before {
            assert_eq!(now.get(id), Some(note), "the note of {id} changed in round {round}");
        }
        let new: Vec<&String> = now.keys().filter(|id| !before.contains_key(*id)).collect();
        assert_eq!(new, gone.iter().collect::<Vec<_>>(), "new notes are those of what went now");
        before = now;
        let live = last(&session);
        let run = session.finish();
        assert_no_summary(&run);
        session = stage.host.resume(&id);
        session.prompt("And on it goes.");
        wire::assert_continues("the resumed session", &live, &last(&session));
    }
}

#[test]
fn a_large_transcript_is_resumed_as_it_was() {
    let Some(stage) = Stage::new() else { return };
    let mut session = stage.host.start();
    let id = session.id.clone();
    for part in 0..10 {
        look_at_much(&stage, &mut session, part);
    }
    let size = std::fs::metadata(session.transcript()).unwrap().len();
    assert!(size > 6 << 20, "{size} bytes are too few for this test");
    for pass in 0..3 {
        let compacted = stage.compact(&mut session);
        assert!(!compacted.assert_exact().is_empty(), "nothing went");
        let live = last(&session);
        assert_no_summary(&session.finish());
        session = stage.host.resume(&id);
        session.prompt("And on it goes.");
        wire::assert_continues("the resumed session", &live, &last(&session));
        look_at_much(&stage, &mut session, 100 + pass);
    }
}

/// A turn of 11 outputs that say nothing twice, each just short enough to stay in the transcript,
/// where it stands two times: as content and as the tool's own record.
fn look_at_much(stage: &Stage, session: &mut Session, part: usize) {
    let calls = (0..11).map(|number| {
        let of = part * 100 + number;
        let line = |line| format!("{of} entry {line} holds value_{of}_{line} and no more\n");
        let text: String = (0..600).map(line).collect();
        let path = stage.host.put(&format!("data/{of}.txt"), text);
        Call::new("Bash", json!({"command": format!("cat {}", path.display())}))
    });
    stage.api.script([Step::tools(calls), Step::text("Seen.")]);
    session.prompt("Look at the next ones.");
}
