//! The real host and a daemon in one home.

use compactd_tests::harness::host::codex;
use compactd_tests::harness::host::codex::scenario::{Tools, codex_work};
use compactd_tests::harness::host::codex::{Codex, Responses, wire};
use compactd_tests::harness::{Daemon, Home};
use serde_json::Value;

/// The decision for a result in an explanation.
fn decision<'a>(explain: &'a Value, id: &str) -> &'a str {
    let mut results = explain["results"].as_array().unwrap().iter();
    let result = results.find(|result| result["id"] == id);
    result.unwrap_or_else(|| panic!("no {id} in {explain}"))["decision"].as_str().unwrap()
}

#[test]
fn the_daemon_decides_a_thread_while_it_runs() {
    let Some(codex) = codex() else { return };
    for tools in Tools::ALL {
        let (home, api) = (Home::new(), Responses::start([]));
        let host = Codex::set_up(&codex, &home, &api, &tools.config());
        let daemon = Daemon::start(&home);
        let work = codex_work(&host, tools, "core", 6);
        api.script(work.steps.clone());
        let mut server = host.app_server();
        let thread = server.new_thread(&serde_json::json!({}));
        server.turn(&thread, "Mend all parts.");
        assert_eq!(api.left(), 0);
        daemon.client.indexed(&thread);
        let explain = daemon.client.explain(&thread, "");
        for (expected, ids) in [("drop", &work.removed), ("keep", &work.kept)] {
            for id in ids {
                assert_eq!(decision(&explain, id), expected, "{tools:?} {id} in {explain}");
            }
        }
        // Its index has the texts that the host sent.
        let sent = wire::results(&api.last_turn().body);
        assert_eq!(sent.len(), work.calls.len());
        for (result, sent) in explain["results"].as_array().unwrap().iter().zip(&sent) {
            assert_eq!(result["id"], sent.id.as_str());
            assert_eq!(result["chars"], sent.text.chars().count(), "{result}");
        }
        server.finish();
    }
}
