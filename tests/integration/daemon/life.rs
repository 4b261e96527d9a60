//! The real daemon's life: one a home, its socket, its end, what it leaves on disk and finds again.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;

use compactd_tests::harness::{Claude, Client, Codex, Daemon, Home, Process, binaries, eventually};
use serde_json::{Value, json};

use super::id;

/// Sessions of both hosts; gives their ids.
fn some_sessions(home: &Home) -> Vec<String> {
    for name in ["native-compact", "rewrite-safe", "auto-compact"] {
        home.recorded_claude(name);
    }
    home.recorded_codex("revert-segment");
    let (one, thread) = (id(1), id(2));
    let mut session = Claude::new(&one);
    home.put(&home.claude(&one), session.prompt("Go.").work(40).take());
    let mut codex = Codex::new(&thread);
    for at in 0..30 {
        codex.shell(&format!("call_{at}"), "git status", &format!("M src/{at}.rs\n").repeat(40));
    }
    home.put(&home.codex(&thread), codex.take());
    let daemon = Daemon::start_with(home, |settings| settings.index.snapshot = false);
    let known = eventually("all are found", || {
        let sessions = daemon.client.sessions();
        (sessions.len() >= 9).then_some(sessions)
    });
    known.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// What is decided of all, with texts.
fn explained(client: &Client, ids: &[String]) -> Vec<Value> {
    ids.iter()
        .flat_map(|id| {
            ["?profile=standard", "?profile=reference", "?history=whole"]
                .map(|query| client.explain(id, query))
        })
        .collect()
}

fn loaded(client: &Client) -> usize {
    client.stats()["snapshots_loaded"].as_u64().unwrap().try_into().unwrap()
}

fn bytes_read(client: &Client) -> u64 {
    client.stats()["bytes_read"].as_u64().unwrap()
}

#[test]
fn one_daemon_a_home() {
    let home = Home::new();
    let first = Process::start(&home, &[]);
    let second = home.compactd(&[]);
    assert_eq!(second.code, Some(1), "{second:?}");
    let pid = first.pid().to_string();
    assert!(second.err.contains("another compactd is running"), "{second:?}");
    assert!(second.err.contains(&pid), "{pid}: {second:?}");
    assert_eq!(first.client.status()["pid"], first.pid());
    let other = Home::new();
    let beside = Process::start(&other, &[]);
    beside.stop();
    let folder = home.socket().parent().unwrap().to_path_buf();
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(home.socket()).unwrap().permissions().mode() & 0o777, 0o600);
    let link = home.join(".local/state/compactd/api.sock");
    assert_eq!(fs::read_link(&link).unwrap(), home.socket());
    let ran = home.compactctl(&["status", "--json"]);
    assert_eq!(ran.json()["pid"], first.pid());
    first.stop();
    assert!(fs::symlink_metadata(&link).is_err() && !home.socket().exists());
    assert_eq!(home.compactctl(&["status"]).code, Some(3));
}

#[test]
fn a_killed_daemon_is_no_hindrance() {
    let home = Home::new();
    let one = id(1);
    let mut session = Claude::new(&one);
    home.put(&home.claude(&one), session.prompt("Go.").work(3).take());
    let first = Process::start(&home, &[]);
    first.client.has_lines(&one, session.lines());
    first.kill();
    assert!(fs::metadata(home.socket()).unwrap().file_type().is_socket(), "left behind");
    let second = Process::start(&home, &[]);
    second.client.has_lines(&one, session.lines());
    second.stop();
}

#[test]
fn a_restart_finds_everything_again_without_reading_it() {
    let home = Home::new();
    let ids = some_sessions(&home);
    let first =
        Process::start(&home, &["--set", "rules.recent_results=1", "--set", "rules.pin_last=1"]);
    let before = explained(&first.client, &ids);
    let read = bytes_read(&first.client);
    assert!(read > 200_000, "{read}");
    assert_eq!(first.client.stats()["snapshots_loaded"], 0);
    first.stop();
    assert_eq!(home.snapshots().len(), ids.len(), "{:?}", home.snapshots());
    for snapshot in home.snapshots() {
        assert_eq!(fs::metadata(&snapshot).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let second =
        Process::start(&home, &["--set", "rules.recent_results=1", "--set", "rules.pin_last=1"]);
    assert_eq!(explained(&second.client, &ids), before);
    // Some are loaded twice, when one is asked for while it is being loaded.
    assert!(loaded(&second.client) >= ids.len(), "{}", second.client.stats());
    assert_eq!(bytes_read(&second.client), 0, "nothing is new");
    // Then something is.
    let one = id(1);
    let mut more = Claude::new(&one);
    more.prompt("x").take();
    let line = more.bash("toolu_late", "true", "late").take();
    home.append(&home.claude(&one), &line);
    eventually("the new lines are there", || {
        (bytes_read(&second.client) == line.len() as u64).then_some(())
    });
    let log = second.stop();
    assert!(!log.contains("cut off at the end"), "{log}");
    // Other settings make another index.
    let third = Process::start(&home, &[]);
    let whole = third.client.explain(&one, "?history=whole");
    assert_eq!(whole, home.offline(&home.claude(&one), &["--history", "whole"]));
    third.stop();
}

#[test]
fn a_snapshot_that_cannot_be_used_is_made_anew() {
    let home = Home::new();
    let ids = some_sessions(&home);
    let before = {
        let daemon = Daemon::start(&home);
        let before = explained(&daemon.client, &ids);
        daemon.stop();
        before
    };
    let paths = home.snapshots();
    assert_eq!(paths.len(), ids.len());
    let good: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 8] = [
        ("empty", |bytes| bytes.clear()),
        ("cut in its head", |bytes| bytes.truncate(20)),
        ("cut in the middle", |bytes| bytes.truncate(bytes.len() / 2)),
        ("one byte short", |bytes| bytes.truncate(bytes.len() - 1)),
        ("longer", |bytes| bytes.extend_from_slice(b"more")),
        ("a bit in the head", |bytes| bytes[30] ^= 1),
        ("a bit in the index", |bytes| {
            let at = bytes.len() - 40;
            bytes[at] ^= 0x10;
        }),
        ("another format", |bytes| {
            // The head is JSON with its checksum before it: a format of a later version.
            let end = 8 + bytes[8..].iter().position(|byte| *byte == b'\n').unwrap();
            let head = String::from_utf8(bytes[8..=end].to_vec()).unwrap();
            let other = head.replace("\"format\":1", "\"format\":9");
            assert_ne!(head, other);
            let sum = compactd_core::hash::hash(other.as_bytes()).to_le_bytes();
            let index = bytes[end + 1..].to_vec();
            *bytes = [&sum[..], other.as_bytes(), &index].concat();
        }),
    ];
    for (what, damage) in damages {
        for (path, bytes) in paths.iter().zip(&good) {
            let mut bytes = bytes.clone();
            damage(&mut bytes);
            fs::write(path, bytes).unwrap();
        }
        let daemon = Daemon::start(&home);
        assert_eq!(explained(&daemon.client, &ids), before, "{what}");
        assert_eq!(daemon.client.stats()["snapshots_loaded"], 0, "{what}");
        daemon.stop();
    }
    // They were written again, whole.
    let daemon = Daemon::start(&home);
    assert_eq!(explained(&daemon.client, &ids), before);
    assert!(loaded(&daemon.client) >= ids.len(), "{}", daemon.client.stats());
    daemon.stop();
    // A link or a folder in the place of one is not used.
    fs::remove_file(&paths[0]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &paths[0]).unwrap();
    fs::remove_file(&paths[1]).unwrap();
    fs::create_dir(&paths[1]).unwrap();
    let daemon = Daemon::start(&home);
    assert_eq!(explained(&daemon.client, &ids), before);
    daemon.stop();
    assert!(fs::read("/etc/passwd").unwrap().starts_with(b"root"));
}

#[test]
fn a_transcript_that_was_rewritten_since_is_read_anew() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let long = |word: &str| {
        let mut session = Claude::new(&one);
        session.prompt(word).work(6);
        session.take()
    };
    type Rewrite = fn(&Home, &Path, &str);
    let rewrites: [(&str, Rewrite); 5] = [
        ("in place", |home, file, text| home.put(file, text)),
        ("by rename", |home, file, text| home.replace(file, text)),
        ("cut", |home, file, text| home.truncate(file, text.find('\n').unwrap() as u64 + 1)),
        ("the same bytes in a new file", |home, file, _| {
            let bytes = fs::read(file).unwrap();
            home.replace(file, bytes);
        }),
        ("grown", |home, file, text| {
            home.append(file, text.lines().next().unwrap().to_owned() + "\n");
        }),
    ];
    for (what, rewrite) in rewrites {
        home.put(&file, long("First."));
        let daemon = Daemon::start(&home);
        daemon.client.indexed(&one);
        daemon.stop();
        assert_eq!(home.snapshots().len(), 1);
        rewrite(&home, &file, &long("Other!"));
        let daemon = Daemon::start(&home);
        daemon.client.indexed(&one);
        let expected = home.offline(&file, &[]);
        assert_eq!(daemon.client.explain(&one, ""), expected, "{what}");
        let loaded = u64::from(what == "grown");
        assert_eq!(daemon.client.stats()["snapshots_loaded"], loaded, "{what}");
        daemon.stop();
        fs::remove_dir_all(home.join(".cache")).unwrap();
    }
}

#[test]
fn snapshots_of_forgotten_sessions_go() {
    let home = Home::new();
    let (one, two) = (id(1), id(2));
    for id in [&one, &two] {
        home.put(&home.claude(id), Claude::new(id).prompt("Go.").work(1).take());
    }
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&one);
    daemon.client.indexed(&two);
    daemon.stop();
    assert_eq!(home.snapshots().len(), 2);
    home.remove(&home.claude(&two));
    let daemon = Daemon::start(&home);
    let left = eventually("one goes", || Some(home.snapshots()).filter(|left| left.len() < 2));
    assert!(left.len() == 1 && left[0].to_str().unwrap().contains(&one), "{left:?}");
    daemon.stop();
}

#[test]
fn a_socket_from_a_service_manager_is_used() {
    let home = Home::new();
    let one = id(1);
    let mut session = Claude::new(&one);
    home.put(&home.claude(&one), session.prompt("Go.").work(1).take());
    let folder = home.join("run");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let socket = folder.join("api.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    // A request that comes before the daemon waits in the queue.
    let early = std::thread::spawn({
        let socket = socket.clone();
        move || Client::new(&socket).status()
    });
    let mut command = home.command(Path::new("/bin/sh"));
    command
        .args(["-c", "LISTEN_PID=$$ exec \"$0\" 3<&0 </dev/null"])
        .arg(&binaries().compactd)
        .env("LISTEN_FDS", "1")
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener.try_clone().unwrap())));
    let daemon = Process::spawn(command, &socket);
    assert_eq!(early.join().unwrap()["pid"], daemon.pid());
    daemon.client.has_lines(&one, session.lines());
    assert_eq!(daemon.client.status()["socket"], socket.to_str().unwrap());
    let link = home.join(".local/state/compactd/api.sock");
    assert_eq!(fs::read_link(&link).unwrap(), socket, "callers that know HOME alone find it");
    daemon.stop();
    assert!(socket.exists(), "the socket is the service manager's");
}

#[test]
fn a_bad_configuration_is_told() {
    let home = Home::new();
    let path = home.join(".config/compactd/config.toml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "[index]\nmemory_mbs = 64\n").unwrap();
    let ran = home.compactd(&[]);
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.err.contains("did you mean") && ran.err.contains("memory_mb"), "{ran:?}");
    fs::write(&path, "[index\n").unwrap();
    assert_eq!(home.compactd(&[]).code, Some(78));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(home.compactd(&[]).code, Some(78));
    fs::remove_dir(&path).unwrap();
    assert_eq!(home.compactd(&["--config", "/nowhere.toml"]).code, Some(78));
    assert_eq!(home.compactd(&["--frobnicate"]).code, Some(2));
    // A bad value is one warning and the default.
    fs::write(&path, "[index]\nmemory_mb = 1\n").unwrap();
    let daemon = Process::start(&home, &[]);
    assert_eq!(daemon.client.status()["memory"]["budget_bytes"], 256 << 20);
    assert!(daemon.log().contains("memory_mb"), "{}", daemon.log());
    daemon.stop();
}

#[test]
fn a_full_disk_loses_nothing() {
    let home = Home::new();
    let ids = some_sessions(&home);
    // No file can grow over 512 bytes; the signal that would come with it is ignored.
    let mut command = home.command(Path::new("/bin/sh"));
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\""])
        .arg(&binaries().compactd)
        .stdin(Stdio::null());
    let daemon = Process::spawn(command, &home.socket());
    let before = explained(&daemon.client, &ids);
    let one = &id(1);
    let pins = format!("/v1/sessions/{one}/pins");
    let pinned = daemon.client.post(&pins, &json!({"id": "toolu_read000001"})).good();
    assert_eq!(pinned["pins"], json!([{"id": "toolu_read000001"}]), "small enough");
    let long = "x".repeat(4_000);
    let refused = daemon.client.post(&pins, &json!({"id": long}));
    assert_eq!(refused.status, 500, "{refused:?}");
    assert_eq!(daemon.client.get(&pins).good(), pinned, "what was there stays");
    assert_eq!(
        daemon.client.delete(&pins, &json!({"id": "toolu_read000001"})).good()["pins"],
        json!([])
    );
    assert_eq!(explained(&daemon.client, &ids), before);
    let log = daemon.stop();
    assert!(log.contains("snapshot could not be written"), "{log}");
    assert!(home.snapshots().is_empty(), "nothing half: {:?}", home.snapshots());
    let daemon = Process::start(&home, &[]);
    assert_eq!(explained(&daemon.client, &ids), before);
    daemon.stop();
    assert_eq!(home.snapshots().len(), ids.len());
}

#[test]
fn a_cache_that_cannot_be_written_is_only_a_warning() {
    let home = Home::new();
    let ids = some_sessions(&home);
    // A file in the place of the folder: no user can write there, not even root.
    fs::write(home.join(".cache"), "").unwrap();
    let daemon = Process::start(&home, &[]);
    let before = explained(&daemon.client, &ids);
    let log = daemon.stop();
    assert!(log.contains("snapshot could not be written"), "{log}");
    let daemon = Process::start(&home, &[]);
    assert_eq!(explained(&daemon.client, &ids), before);
    daemon.stop();
}

#[test]
fn the_log_holds_no_content() {
    const CANARY: &str = "canary7c1fe2";
    let home = Home::new();
    let (one, thread) = (id(1), id(2));
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    let said = |what: &str| format!("{CANARY}-{what}");
    session.prompt(&said("prompt")).say(&said("answer"));
    session.bash("toolu_1", &format!("echo {CANARY}-command"), &said("output"));
    session.read("toolu_2", &format!("/work/{CANARY}-file.rs"), &said("text"));
    let text = session.take();
    let odd = format!(
        "{{\"type\":\"user\",{CANARY}-malformed\n{CANARY}-plain\n\
         {{\"type\":\"{CANARY}-kind\",\"message\":{{\"content\":7}}}}\n"
    );
    home.put(&file, text + &odd);
    let mut codex = Codex::new(&thread);
    codex.shell("call_1", &said("command"), &said("output"));
    home.put(
        &home.codex(&thread),
        codex.take()
            + &format!("{{\"type\":\"response_item\",\"payload\":{{\"type\":\"{CANARY}\"}}}}\n"),
    );
    let daemon = Process::start(&home, &["--log", "trace"]);
    daemon.client.indexed(&one);
    daemon.client.indexed(&thread);
    for query in ["", "?profile=reference", "?history=whole"] {
        let _explained = daemon.client.explain(&one, query);
    }
    let mut request = session.request(&file, "manual");
    request["instructions"] = json!(said("instructions"));
    let _answer = daemon.client.compact(&request);
    let hook = json!({"input": {"transcript_path": file, "prompt": said("hook")}, "env": {}});
    assert_eq!(daemon.client.post("/v1/hooks/claude/UserPromptSubmit", &hook).status, 204);
    let broken = format!("{{\"{CANARY}\":");
    let refused = daemon.client.send("POST", "/v1/compact", Some(broken.as_bytes()));
    assert_eq!(refused.status, 400);
    home.append(&file, format!("{CANARY} torn"));
    home.truncate(&file, 10);
    eventually("the cut file is noticed", || {
        daemon.client.session(&one).filter(|item| item["lines"] == 0)
    });
    let log = daemon.stop();
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "at this level: {log}");
    assert!(log.contains("compaction answered") && log.contains(&one), "{log}");
    let found: Vec<&str> = log.lines().filter(|line| line.contains(CANARY)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn requests_are_answered_while_it_stops() {
    let home = Home::new();
    let one = id(1);
    let mut session = Claude::new(&one);
    home.put(&home.claude(&one), session.prompt("Go.").work(2_000).take());
    let daemon = Process::start(&home, &["--set", "index.recent_days=0"]);
    // Asked for while cold: the whole file is read for this answer.
    let socket = home.socket();
    let client = Client::new(&socket);
    let asked = std::thread::spawn(move || client.explain(&one, ""));
    eventually("it is read", || (bytes_read(&daemon.client) > 0).then_some(()));
    daemon.stop();
    let explain = asked.join().unwrap();
    assert_eq!(explain["results"].as_array().unwrap().len(), 4_000);
    assert_eq!(home.snapshots().len(), 1, "what was read is saved");
    assert_eq!(home.compactctl(&["status", "--json"]).code, Some(3));
}
