//! Transcripts and folders that nobody wrote with good intent: counted, survived, and no other
//! session notices.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use compactd_tests::harness::{Claude, Daemon, Home, Process, binaries, eventually};
use serde_json::{Value, json};

use super::id;

fn skipped(client: &compactd_tests::harness::Client, id: &str) -> Value {
    client.get(&format!("/v1/sessions/{id}")).good()["skipped"].clone()
}

#[test]
fn huge_and_broken_lines_are_skipped_and_memory_stays_bounded() {
    let home = Home::new();
    let good = id(1);
    let mut session = Claude::new(&good);
    home.put(&home.claude(&good), session.prompt("Go.").work(3).take());
    let mut lines = 0;
    let mut hostile = |number: u32, odd: &[u8], expected: &str| {
        let id = id(number);
        let mut around = Claude::new(&id);
        let mut text = around.prompt("Before.").bash("toolu_1", "true", "ok").take().into_bytes();
        text.extend_from_slice(odd);
        text.push(b'\n');
        text.extend_from_slice(around.bash("toolu_2", "true", "ok").take().as_bytes());
        home.put(&home.claude(&id), text);
        lines += around.lines();
        (id, around.lines() + 1, expected.to_owned())
    };
    let mut long = br#"{"type":"user","message":{"role":"user","content":""#.to_vec();
    long.resize(100 << 20, b'a');
    long.extend_from_slice(br#""}}"#);
    let deep = |open: &str, close: &str| {
        let inside = open.repeat(100_000) + "1" + &close.repeat(100_000);
        format!(r#"{{"type":"user","uuid":"deep","message":{{"role":"user","content":{inside}}}}}"#)
    };
    let row = |content: &str| {
        format!(
            r#"{{"type":"user","uuid":"odd","message":{{"role":"user","content":"{content}"}}}}"#
        )
    };
    let mut invalid = row("X").into_bytes();
    let at = invalid.iter().position(|byte| *byte == b'X').unwrap();
    invalid[at] = 0xff;
    let mut nul = row("X").into_bytes();
    nul[at] = 0;
    let cases = [
        hostile(10, &long, "too_long"),
        hostile(11, deep("[", "]").as_bytes(), ""),
        hostile(12, deep("{\"a\":", "}").as_bytes(), ""),
        hostile(13, "[".repeat(100_000).as_bytes(), "malformed"),
        hostile(14, &invalid, ""),
        hostile(15, &nul, ""),
        hostile(16, &[0; 4096], "malformed"),
        hostile(17, br#"{"type":"user","uuid":"half","message":{"content":"\ud83d"}}"#, ""),
        hostile(18, "{\"type\":\"assistant\"".repeat(5).as_bytes(), "malformed"),
    ];
    drop(long);
    let daemon = Process::start(&home, &[]);
    daemon.client.has_lines(&good, session.lines());
    for (id, lines, expected) in &cases {
        let item = daemon.client.has_lines(id, *lines);
        assert_eq!(item["results"], 2, "{id}: {item}");
        let skipped = skipped(&daemon.client, id);
        if !expected.is_empty() {
            assert_eq!(skipped[expected], 1, "{id}: {skipped}");
        }
        let results = daemon.client.explain(id, "")["results"].as_array().unwrap().len();
        assert_eq!(results, 2, "{id}");
    }
    let (now, most) = daemon.rss_kib();
    assert!(now.max(most) < 200 << 10, "{now} KiB now, {most} KiB at most");
    // Half of a huge line, for ever without its end, byte by byte.
    let torn = home.claude(&id(10));
    for _ in 0..20 {
        home.append(&torn, vec![b'x'; 1 << 20]);
        let _status = daemon.client.status();
    }
    home.append(&home.claude(&good), session.say("Still here.").take());
    daemon.client.has_lines(&good, session.lines());
    let (_, most) = daemon.rss_kib();
    assert!(most < 200 << 10, "{most} KiB at most");
    let log = daemon.stop();
    assert!(!log.contains("panic"), "{log}");
}

#[test]
fn a_long_run_of_identifiers_is_no_blow_up() {
    let home = Home::new();
    let one = id(1);
    let mut session = Claude::new(&one);
    session.prompt("Go.");
    for at in 0..6 {
        session.bash(&format!("toolu_{at}"), "cat x", &"_a".repeat(3_500_000));
    }
    home.put(&home.claude(&one), session.take());
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(&one, session.lines());
    daemon.stop();
}

#[test]
fn graphs_without_end_are_left() {
    let home = Home::new();
    let one = id(1);
    let row = |uuid: &str, parent: &str, id: &str| {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent, "isSidechain": false,
            "message": {"role": "assistant", "id": uuid, "content": [
                {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "true"}}]}})
        .to_string()
            + "\n"
    };
    // Cycles, copies, a parent of its own, the same call twice, a boundary that leads to itself.
    let mut text = row("a", "b", "toolu_1") + &row("b", "a", "toolu_1") + &row("c", "c", "toolu_2");
    for _ in 0..200 {
        text += &row("a", "c", "toolu_1");
    }
    text += &(json!({"type": "system", "subtype": "compact_boundary", "uuid": "d",
        "logicalParentUuid": "d", "parentUuid": "d"})
    .to_string()
        + "\n");
    text += &row("e", "d", "toolu_3");
    home.put(&home.claude(&one), &text);
    let mut codex = String::new();
    for (at, other) in [(2, 3), (3, 2)] {
        let meta = json!({"timestamp": "2026-11-30T08:00:00.000Z", "ordinal": 5, "type": "session_meta",
            "payload": {"id": id(at), "cwd": "/w", "history_base":
                {"thread_id": id(other), "end_ordinal_exclusive": 5}}});
        codex.push_str(&meta.to_string());
        home.put(&home.codex(&id(at)), meta.to_string() + "\n");
    }
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&one);
    let explain = daemon.client.explain(&one, "");
    assert_eq!(explain, home.offline(&home.claude(&one), &[]));
    for at in [2, 3] {
        let details = daemon.client.get(&format!("/v1/sessions/{}", id(at))).good();
        assert!(details["problem"].as_str().unwrap().contains("history"), "{details}");
    }
    daemon.stop();
}

#[test]
fn what_is_no_file_is_left_alone() {
    let home = Home::new();
    let good = id(1);
    let mut session = Claude::new(&good);
    let folder = home.join(".claude/projects/-work-app");
    home.put(&home.claude(&good), session.prompt("Go.").work(1).take());
    let mkfifo = |name: &str| {
        let status = Command::new("mkfifo").arg(folder.join(name)).status().unwrap();
        assert!(status.success());
    };
    let (fifo, dir) = (id(2), id(3));
    mkfifo(&format!("{fifo}.jsonl"));
    fs::create_dir(folder.join(format!("{dir}.jsonl"))).unwrap();
    symlink("/dev/zero", folder.join(format!("{}.jsonl", id(4)))).unwrap();
    symlink("/nowhere", folder.join(format!("{}.jsonl", id(5)))).unwrap();
    symlink(folder.join("loop-b"), folder.join("loop-a")).unwrap();
    symlink(folder.join("loop-a"), folder.join("loop-b")).unwrap();
    symlink(&folder, folder.join("below")).unwrap();
    symlink(home.join(".claude/projects"), home.join(".claude/projects/-again")).unwrap();
    fs::create_dir_all(home.join(".codex/sessions/2026")).unwrap();
    symlink(home.join(".codex/sessions"), home.join(".codex/sessions/2026/up")).unwrap();
    let socket =
        std::os::unix::net::UnixListener::bind(folder.join(format!("{}.jsonl", id(6)))).unwrap();
    let daemon = Process::start(&home, &[]);
    daemon.client.has_lines(&good, session.lines());
    mkfifo(&format!("{}.jsonl", id(7)));
    home.append(&home.claude(&good), session.say("Still here.").take());
    daemon.client.has_lines(&good, session.lines());
    let known: Vec<Value> =
        daemon.client.sessions().iter().map(|item| item["id"].clone()).collect();
    assert_eq!(known, [json!(good)]);
    for number in 2..8 {
        let path = home.claude(&id(number));
        let request = json!({"host": "claude", "session": id(number), "transcript": path,
            "trigger": "auto", "rows": []});
        let refused = daemon.client.post("/v1/compact", &request);
        assert!((400..500).contains(&refused.status), "{number}: {refused:?}");
        let hook = json!({"input": {"transcript_path": path}, "env": {}});
        assert_eq!(daemon.client.post("/v1/hooks/claude/Stop", &hook).status, 204);
    }
    assert_eq!(daemon.client.sessions().len(), 1);
    drop(socket);
    daemon.stop();
}

#[test]
fn a_file_that_may_not_be_read_is_told_and_hides_no_other() {
    const NOBODY: u32 = 65_534;
    let home = Home::new();
    let (good, closed) = (id(1), id(2));
    let mut session = Claude::new(&good);
    home.put(&home.claude(&good), session.prompt("Go.").work(1).take());
    let mut other = Claude::new(&closed);
    home.put(&home.claude(&closed), other.prompt("Go.").work(1).take());
    fs::set_permissions(home.claude(&closed), fs::Permissions::from_mode(0o000)).unwrap();
    let dark = home.join(".claude/projects/-dark");
    fs::create_dir(&dark).unwrap();
    fs::set_permissions(&dark, fs::Permissions::from_mode(0o000)).unwrap();
    let mut command;
    if rustix::process::geteuid().is_root() {
        // Root may read everything, so somebody else runs it.
        let status =
            Command::new("chown").arg("-R").arg(NOBODY.to_string()).arg(home.path()).status();
        assert!(status.unwrap().success());
        let program = home.join("compactd");
        copy_program(&binaries().compactd, &program);
        command = home.command(&program);
        command.uid(NOBODY);
    } else {
        command = home.command(&binaries().compactd);
    }
    command.stdin(std::process::Stdio::null());
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        // The daemon serves its own user only; so the client is that user too.
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let ctl = home.join("compactctl");
        copy_program(&binaries().compactctl, &ctl);
        let ask = |arguments: &[&str]| {
            let output = home.command(&ctl).args(arguments).uid(NOBODY).output().unwrap();
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
                serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default(),
            )
        };
        eventually("it answers", || (ask(&["status", "--json"]).0 == Some(0)).then_some(()));
        let state = |id: &str| {
            let (_, _, json) = ask(&["sessions", "--json"]);
            let found = json["sessions"].as_array()?.iter().find(|item| item["id"] == *id)?.clone();
            Some(found["state"].as_str()?.to_owned())
        };
        eventually("one is indexed, one is told", || {
            (state(&good)? == "indexed" && state(&closed)? == "broken").then_some(())
        });
        let (code, error, _) = ask(&["explain", &closed, "--json"]);
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("permission denied"), "{error}");
        let (code, _, json) = ask(&["status", "--json"]);
        assert_eq!(code, Some(0));
        assert!(json["problems"][0].as_str().unwrap().contains('1'), "{json}");
        assert_eq!(json["healthy"], false, "{json}");
        // Readable again: it is read.
        fs::set_permissions(home.claude(&closed), fs::Permissions::from_mode(0o600)).unwrap();
        eventually("it can be asked for again", || {
            (ask(&["explain", &closed, "--json"]).0 == Some(0)).then_some(())
        });
        // Root is another user here: it is not served.
        let client = compactd_tests::harness::Client::new(&home.socket());
        let answer = client.try_send("GET", "/v1/status", None);
        assert!(answer.is_none_or(|answer| answer.status == 403));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = eventually("it ends", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0));
    } else {
        let daemon = Process::spawn(command, &home.socket());
        daemon.client.has_lines(&good, session.lines());
        let refused = daemon.client.get(&format!("/v1/sessions/{closed}/explain"));
        assert_eq!(refused.error(), (422, "session_unreadable".to_owned()));
        daemon.stop();
    }
    fs::set_permissions(home.claude(&closed), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&dark, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn many_silent_callers_hold_up_nobody() {
    let home = Home::new();
    let daemon = Process::start(&home, &[]);
    let mut silent = Vec::new();
    for at in 0..40 {
        let mut stream = std::os::unix::net::UnixStream::connect(home.socket()).unwrap();
        if at % 2 == 0 {
            stream.write_all(b"GET /v1/status HTTP/1.1\r\nHo").unwrap();
        }
        silent.push(stream);
    }
    let _status = daemon.client.status();
    daemon.stop();
}

/// Another process copies: a file that this one has open for writing cannot be run, and a child of
/// another test would keep it open for a moment.
fn copy_program(from: &std::path::Path, to: &std::path::Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}
