//! The host alone: what it does without a plugin of ours, as far as the other tests build on it.

use compactd_tests::harness::Home;
use compactd_tests::harness::host::{Host, Kind, MockApi, Step, claude, wire};
use serde_json::json;

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
    let asked = run.of_kind(Kind::Summary);
    assert_eq!(asked.len(), 1);
    assert!(wire::has(&asked[0].body, "keep the numbers"), "{}", wire::outline(&asked[0].body));
    assert!(wire::has(run.last(), "MOCK-SUMMARY"), "{}", wire::outline(run.last()));
    assert_eq!(api.left(), 0);
}
