//! `forks --prune` beside the real host: what it has used or opened, or has built on, stays.

use std::collections::BTreeMap;

use compactd_tests::harness::Home;
use compactd_tests::harness::host::codex;
use compactd_tests::harness::host::codex::{Codex, Responses, Step, rollout};
use serde_json::{Value, json};

use super::kit::{Fork, compactctl, hashes, resumes};

/// Removes what can go, at any age: the reason for which each fork stays, nothing of one that went.
fn prune(home: &Home, host: &Codex) -> BTreeMap<String, Value> {
    let output = compactctl(home, host, &["forks", "--prune", "--older-than", "0", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = answer["forks"].as_array().unwrap().iter();
    rows.map(|row| (row["thread_id"].as_str().unwrap().to_owned(), row["stays"].clone())).collect()
}

#[test]
fn what_the_host_needs_stays() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    api.script([Step::shell("ls"), Step::text("Seen.").tokens(9_000)]);
    let thread = host.exec("Look around.").good().thread;
    let [unused, used, parent, opened] = [(); 4].map(|()| Fork::of(&home, &host, &thread, &[]));
    resumes(&host, &used);
    api.script([Step::text("Here as well.")]);
    let child = host.fork(&parent.thread, "Go on elsewhere.").good().thread;
    // Not one turn; but the host writes to what it loads, so it is not as we wrote it.
    let mut server = host.app_server();
    server.resume(&opened.thread);
    let before = hashes(&host);
    let reasons = [
        (&unused, Value::Null),
        (&used, json!("was gone on with: it is a session of yours")),
        (&parent, json!("another thread was made from it")),
        (&opened, json!("was gone on with: it is a session of yours")),
    ];
    let expected = reasons.map(|(fork, reason)| (fork.thread.clone(), reason));
    assert_eq!(prune(&home, &host), BTreeMap::from(expected));
    let mut left = before;
    assert!(left.remove(&unused.path).is_some());
    assert_eq!(hashes(&host), left);
    server.finish();
    assert!(prune(&home, &host).into_values().all(|stays| stays.is_string()));
    assert_eq!(rollout::all(&host.codex_home()).len(), left.len());
    // What was made from one of them can be gone on with.
    api.script([Step::text("And on.")]);
    drop(host.resume(&child, "And on.").good());
}
