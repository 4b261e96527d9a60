//! The daemon's answers, shown; and the ways in which there is none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kit;

use std::fs;
use std::os::unix::net::UnixListener;

use kit::{Fake, Home, ONE, Ran, TWO, golden, refusal, session_list, two_sessions};

#[test]
fn status_of_a_daemon_and_of_none() {
    let home = Home::new();
    let none = home.run(&["status"]);
    none.fails(3, "no daemon is running", "compactd &");
    assert_eq!(home.run(&["status", "--json"]).status, 3);
    home.run(&["stats"]).fails(1, "no daemon is running", "compactctl watch");
    let _daemon = home.daemon(two_sessions);
    let ran = home.run(&["status"]);
    assert!(ran.good().contains("420 known, 37 indexed"), "{ran:?}");
    assert!(ran.out.contains("problem   2 folders cannot be watched"), "{ran:?}");
    assert_eq!(home.run(&["status", "--json"]).json()["pid"], 4242);
    assert!(home.run(&["stats"]).good().contains("12 applied"));
    assert_eq!(home.run(&["stats", "--json"]).json()["requests"], 1200);
}

#[test]
fn sessions_and_explain_ask_the_daemon() {
    let home = Home::new();
    let daemon = home.daemon(two_sessions);
    let ran = home.run(&["sessions", "--host", "claude", "--limit", "2"]);
    assert!(ran.good().contains(ONE) && ran.out.contains("/w/api"), "{ran:?}");
    assert_eq!(daemon.asked(), ["GET /v1/sessions?host=claude&limit=2"]);
    let ran = home.run(&["explain", "3f2a", "--profile", "reference", "--history", "whole"]);
    assert!(ran.good().starts_with("3 results, 1 cut, 1 dropped: "), "{ran:?}");
    assert!(ran.err.is_empty(), "{ran:?}");
    let last = daemon.asked().pop().unwrap();
    let expected = format!("GET /v1/sessions/{ONE}/explain?history=whole&profile=reference");
    assert_eq!(last, expected);
    let json = home.run(&["explain", ONE, "--json"]).json();
    let mut golden: serde_json::Value = serde_json::from_str(&golden("explain.json")).unwrap();
    assert_eq!(home.run(&["explain", ONE, "--now", "--json"]).json(), golden);
    // A daemon that keeps no passes knows of none.
    golden["pass"] = serde_json::Value::Null;
    assert_eq!(json, golden);
    home.run(&["explain", ONE, "--pass", "last"]).fails(1, "has no pass last", "--now");
    home.run(&["explain", "3f2"]).fails(1, "2 sessions have an id", "type more of it");
    home.run(&["explain", "3f2c91c0"]).fails(1, "no session 3f2c91c0 is known", ONE);
    home.run(&["explain", "no/id"]).fails(1, "no session no/id is known", "compactctl sessions");
}

#[test]
fn pins_go_through_the_daemon() {
    let home = Home::new();
    home.run(&["pins", ONE]).fails(1, "no daemon is running", "compactd &");
    let daemon = home.daemon(two_sessions);
    let ran = home.run(&["pins", ONE]);
    assert!(ran.good().is_empty() && ran.err.contains("nothing is pinned"), "{ran:?}");
    let ran = home.run(&["pin", "3f2a", "--id", "toolu_1"]);
    assert_eq!(ran.good(), "result  toolu_1\n");
    let last = daemon.asked().pop().unwrap();
    assert_eq!(last, format!(r#"POST /v1/sessions/{ONE}/pins {{"id":"toolu_1"}}"#));
    assert_eq!(home.run(&["pin", ONE, "--file", "a b.rs"]).good(), "file    a b.rs\n");
    home.run(&["unpin", ONE, "--file", "a b.rs"]).good();
    let last = daemon.asked().pop().unwrap();
    assert_eq!(last, format!(r#"DELETE /v1/sessions/{ONE}/pins {{"file":"a b.rs"}}"#));
}

#[test]
fn watch_prints_once_where_there_is_no_terminal() {
    let home = Home::new();
    let daemon = home.daemon(two_sessions);
    let ran = home.run(&["watch"]);
    let out = ran.good();
    assert!(out.starts_with("2 sessions on this machine\n"), "{out}");
    assert!(out.contains("3f2a91c0-1111 ") && out.contains("/w/api"), "{out}");
    assert!(out.contains("would free") && out.contains("3 results, 1 cut, 1 dropped"), "{out}");
    assert!(ran.err.is_empty() && !out.contains('\u{1b}'), "{ran:?}");
    let explained = |id: &str| {
        daemon.asked().iter().filter(|ask| ask.contains(&format!("{id}/explain"))).count()
    };
    assert_eq!((explained(ONE), explained(TWO)), (1, 1));
    home.run(&["watch", "3f2b", "--once"]).good();
    home.run(&["watch", "zzz"]).fails(1, "no session zzz is known", "compactctl sessions");
}

#[test]
fn a_session_that_cannot_be_read_hides_no_other() {
    let home = Home::new();
    let _daemon = home.daemon(|request, body| {
        if request.contains(&format!("{ONE}/explain")) {
            let text = refusal("session_unreadable", "cannot open it: permission denied", "h");
            return Some((422, text));
        }
        two_sessions(request, body)
    });
    let ran = home.run(&["watch"]);
    assert!(ran.good().contains("unreadable") && ran.out.contains("permission denied"), "{ran:?}");
    home.run(&["explain", ONE]).fails(1, "cannot open it: permission denied", "h");
}

#[test]
fn a_daemon_without_sessions_leads_to_the_sample() {
    let home = Home::new();
    let _daemon = home.daemon(|request, body| {
        if request.starts_with("GET /v1/sessions") {
            return Some((200, session_list(&[])));
        }
        two_sessions(request, body)
    });
    assert!(home.run(&["watch"]).good().contains("this is a sample"));
    assert!(home.run(&["sessions"]).good().is_empty());
}

#[test]
fn a_newer_daemon_is_told() {
    let home = Home::new();
    let newer = || golden("status.json").replace("\"protocol\": 1", "\"protocol\": 2");
    let _daemon = home.daemon(move |request, _| match request {
        "GET /v1/status" => Some((200, newer())),
        "GET /v1/sessions?limit=20" => Some((200, r#"{"threads":[]}"#.to_owned())),
        _ => None,
    });
    let ran = home.run(&["status"]);
    assert!(
        ran.status == 0 && ran.err.contains("warning: the daemon speaks protocol 2"),
        "{ran:?}"
    );
    assert!(ran.err.contains("hint: update compactctl"), "{ran:?}");
    // Another shape, and a route that is gone.
    home.run(&["sessions"]).fails(1, "speaks protocol 2, this compactctl speaks 1", "newer");
    home.run(&["explain", ONE]).fails(1, "speaks protocol 2, this compactctl speaks 1", "newer");
}

#[test]
fn an_older_daemon_and_an_odd_answer_are_told() {
    let home = Home::new();
    let _daemon = home.daemon(|request, _| match request {
        "GET /v1/stats" => Some((426, refusal("upgrade_required", "too new", "restart it"))),
        "GET /v1/status" => Some((200, golden("status.json"))),
        _ => Some((200, "[]".to_owned())),
    });
    home.run(&["stats"]).fails(1, "too new", "restart it");
    home.run(&["sessions"]).fails(1, "cannot understand the answer", "compactctl version");
}

#[test]
fn what_is_no_socket_of_ours_is_told() {
    let home = Home::new();
    let at = |path: &str, args: &[&str]| {
        Ran::of(home.command(args).env("COMPACTD_SOCKET", path).output().unwrap())
    };
    let file = home.put("file", "x");
    let file = file.to_str().unwrap();
    for command in [&["status"][..], &["sessions"], &["explain", ONE], &["watch"]] {
        at(file, command).fails(1, "file is not a socket", "COMPACTD_SOCKET");
    }
    at("relative.sock", &["status"]).fails(1, "not an absolute path", "COMPACTD_SOCKET");
    let long = format!("/{}", "x".repeat(200));
    at(&long, &["status"]).fails(1, "201 bytes long", "shorter");
    at("/nowhere/s", &["status"]).fails(3, "nothing listens at /nowhere/s", "compactd &");
    // Something else listens there.
    let path = home.path().join("ssh");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        use std::io::Write as _;
        for stream in listener.incoming() {
            let _gone = stream.unwrap().write_all(b"SSH-2.0-OpenSSH_9.6\r\n");
        }
    });
    at(path.to_str().unwrap(), &["status"]).fails(1, "is not compactd", "COMPACTD_SOCKET");
}

#[test]
fn a_socket_of_another_user_is_refused() {
    let home = Home::new();
    let path = home.path().join("s");
    let _daemon = Fake::at(&path, two_sessions);
    // Only root can give a socket away; others are covered by the unit test of `socket`.
    if std::os::unix::fs::chown(&path, Some(12_345), None).is_err() {
        return;
    }
    let run =
        |args: &[&str]| Ran::of(home.command(args).env("COMPACTD_SOCKET", &path).output().unwrap());
    run(&["status"]).fails(1, "belongs to another user (uid 12345)", "daemon of their own");
    run(&["explain", ONE]).fails(1, "belongs to another user", "daemon of their own");
}

#[test]
fn a_link_that_leads_nowhere_is_no_daemon() {
    let home = Home::new();
    let dir = home.path().join(".local/state/compactd");
    fs::create_dir_all(&dir).unwrap();
    std::os::unix::fs::symlink("/nowhere/api.sock", dir.join("api.sock")).unwrap();
    home.run(&["status"]).fails(3, "no daemon is running", "compactd &");
}
