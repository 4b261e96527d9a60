//! The host on a screen.

use compactd_tests::harness::Home;
use compactd_tests::harness::host::{Host, Kind, MockApi, Step, claude, wire};
use serde_json::json;

#[test]
fn an_interactive_session_answers_compacts_and_goes_on() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api);
    let file = host.put("a.txt", "alpha 4711\n");
    api.script([
        Step::tool("Read", json!({"file_path": file})),
        Step::text("It says alpha."),
        Step::text("Going on then."),
    ]);
    let Some(terminal) = host.terminal() else { return };
    terminal.type_line("What is in the file?");
    terminal.wait_for("It says alpha.");
    terminal.type_line("/compact keep the numbers");
    terminal.wait_for("Compacted");
    terminal.type_line("What now?");
    terminal.wait_for("Going on then.");
    terminal.type_line("/exit");
    terminal.wait_for_end();
    assert_eq!(api.left(), 0);
    let asked = api.of_kind(Kind::Summary);
    assert_eq!(asked.len(), 1);
    assert!(wire::has(&asked[0].body, "keep the numbers"), "{}", wire::outline(&asked[0].body));
    let last = &api.last_turn().body;
    assert!(wire::has(last, "MOCK-SUMMARY"), "{}", wire::outline(last));

    // A session that was on a screen goes on without one.
    api.script([Step::text("As before.")]);
    let resumed = host.run_resumed(&terminal.id, &["Go on."]);
    wire::assert_continues("resumed", last, resumed.last());
}
