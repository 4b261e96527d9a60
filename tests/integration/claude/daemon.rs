//! The real host and the real daemon in one home.

use std::fs;

use compactd_tests::harness::host::{Host, MockApi, claude, scenario, wire};
use compactd_tests::harness::{Home, Process, eventually};

use super::plugin;

/// The decision for a result in an explanation.
fn decision<'a>(explain: &'a serde_json::Value, id: &str) -> &'a str {
    let mut results = explain["results"].as_array().unwrap().iter();
    let result = results.find(|result| result["id"] == id);
    result.unwrap_or_else(|| panic!("no {id} in {explain}"))["decision"].as_str().unwrap()
}

#[test]
fn the_daemon_decides_a_session_while_it_runs() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let daemon = Process::start(&home, &[]);
    let link = home.join(".local/state/compactd/api.sock");
    assert_eq!(fs::canonicalize(link).unwrap(), fs::canonicalize(home.socket()).unwrap());
    let host = Host::new(&claude, &home, &api);
    let work = scenario::long_work(&host, "core", 6);
    api.script(work.steps.clone());
    let mut session = host.start();
    session.prompt("Mend all parts.");
    assert_eq!(api.left(), 0);
    daemon.client.indexed(&session.id);
    let explain = daemon.client.explain(&session.id, "");
    for (expected, ids) in [("drop", &work.removed), ("keep", &work.kept)] {
        for id in ids {
            assert_eq!(decision(&explain, id), expected, "{id} in {explain}");
        }
    }
    // Its index has the texts that the host sent.
    let run = session.finish();
    let sent = wire::results(run.last());
    assert_eq!(sent.len(), work.calls.len());
    for result in explain["results"].as_array().unwrap() {
        let text = &wire::result(run.last(), result["id"].as_str().unwrap()).text;
        assert_eq!(result["chars"], text.chars().count(), "{result}");
    }
    daemon.stop();
}

#[test]
fn the_hooks_of_the_plugin_reach_the_daemon() {
    let Some(claude) = claude() else { return };
    for is_installed in [false, true] {
        let (home, api) = (Home::new(), MockApi::start([]));
        let daemon = Process::start(&home, &[]);
        home.put_shim();
        let mut host = Host::new(&claude, &home, &api);
        if is_installed {
            host.install_plugin(plugin(&home).parent().unwrap(), "compactd@compactd");
        } else {
            host = host.with_plugin(&plugin(&home));
        }
        let run = host.run(&["Say hello."]);
        let session = eventually("the daemon knows the session", || daemon.client.session(&run.id));
        assert_eq!(session["path"], run.transcript.to_str().unwrap());
        let hooks = &daemon.client.stats()["hooks"];
        let came = hooks["silent"].as_u64().unwrap() + hooks["text"].as_u64().unwrap();
        assert!(came >= 2, "installed {is_installed}: SessionStart and UserPromptSubmit: {hooks}");
        daemon.stop();
    }
}
