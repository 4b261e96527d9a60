//! The memory budget: what is not wanted goes to disk, and comes back when it is asked for.

use compactd_tests::harness::{Claude, Daemon, Home, Process, eventually};
use serde_json::Value;

use super::id;

fn sessions(home: &Home, count: u32, rounds: usize) -> Vec<String> {
    (0..count)
        .map(|number| {
            let id = id(number);
            let mut session = Claude::new(&id);
            session.prompt(&format!("Session {number}.")).work(rounds);
            home.put(&home.claude(&id), session.take());
            id
        })
        .collect()
}

fn memory(status: &Value) -> u64 {
    status["memory"]["index_bytes"].as_u64().unwrap()
}

#[test]
fn over_the_budget_sessions_go_to_disk_and_still_answer() {
    let home = Home::new();
    let ids = sessions(&home, 12, 500);
    let unbounded = Daemon::start_with(&home, |settings| settings.index.snapshot = false);
    for id in &ids {
        unbounded.client.indexed(id);
    }
    let all = memory(&unbounded.client.status());
    let before: Vec<Value> = ids.iter().map(|id| unbounded.client.explain(id, "")).collect();
    unbounded.stop();
    assert!(all > 2 << 20, "{all}");
    // The smallest unit of the setting.
    let daemon = Daemon::start_with(&home, |settings| settings.index.memory_mb = 1);
    eventually("the queue is done", || {
        let status = daemon.client.status();
        let known = status["sessions"]["known"] == ids.len();
        (known && status["sessions"]["bulk_queue"] == 0).then_some(())
    });
    // The upkeep that the queue asks for runs on another thread.
    let status = eventually("the budget holds", || {
        let status = daemon.client.status();
        (memory(&status) <= 1 << 20).then_some(status)
    });
    let indexed = status["sessions"]["indexed"].as_u64().unwrap();
    assert!(indexed < ids.len() as u64, "{status}");
    assert!(daemon.client.stats()["snapshots_saved"].as_u64().unwrap() > 0);
    for _ in 0..2 {
        for (id, expected) in ids.iter().zip(&before) {
            assert_eq!(&daemon.client.explain(id, ""), expected, "{id}");
        }
    }
    let loaded = daemon.client.stats()["snapshots_loaded"].as_u64().unwrap();
    assert!(loaded > 0, "{loaded}");
    // Asking brings them back; the budget holds again without anything else happening.
    eventually("the budget holds again", || {
        (memory(&daemon.client.status()) <= 1 << 20).then_some(())
    });
    daemon.stop();
}

#[test]
fn a_session_that_alone_is_over_the_budget_answers() {
    let home = Home::new();
    let ids = sessions(&home, 2, 300);
    let daemon = Daemon::start_with(&home, |settings| settings.index.memory_mb = 0);
    let mut session = Claude::new(&ids[0]);
    session.prompt("Session 0.").work(300);
    for _ in 0..20 {
        for id in &ids {
            let explain = daemon.client.explain(id, "");
            assert_eq!(explain["results"].as_array().unwrap().len(), 600);
        }
        let answer = daemon.client.compact(&session.request(&home.claude(&ids[0]), "auto"));
        assert_eq!(answer["outcome"], "apply", "{}", answer["reason"]);
        home.append(&home.claude(&ids[0]), session.say("More.").take());
    }
    daemon.stop();
}

#[test]
fn the_real_daemon_takes_its_budget_from_the_command_line() {
    let home = Home::new();
    let ids = sessions(&home, 2, 20);
    let daemon = Process::start(&home, &["--set", "index.memory_mb=16"]);
    let status = daemon.client.status();
    assert_eq!(status["memory"]["budget_bytes"], 16 << 20);
    for id in &ids {
        daemon.client.indexed(id);
    }
    daemon.stop();
}
