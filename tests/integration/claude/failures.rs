//! Whatever goes wrong beside the host: its own compaction runs, the session goes on, and nothing of
//! ours gets into the context.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use compactd_tests::harness::host::scenario::long_work;
use compactd_tests::harness::host::{Kind, Run, Step, wire};
use serde_json::{Value, json};

use super::kit::{Stage, assert_no_summary, notes};
use super::{assert_tree, plugin, tree};

/// Where callers look for a daemon, below a home.
const SOCKET: &str = ".local/state/compactd/api.sock";

/// What stands in a daemon's place: it notes the first line of each request and answers as told.
fn stand_in(
    stage: &Stage,
    answer: impl Fn(&Value) -> String + Send + 'static,
) -> Arc<Mutex<Vec<String>>> {
    let path = stage.home.join(SOCKET);
    let folder = path.parent().unwrap();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    // Ends with the process: it waits for callers only.
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            let Some((head, body)) = request(&stream) else { continue };
            let line = head.lines().next().unwrap_or_default().to_owned();
            let is_compact = line.starts_with("POST /v1/compact ");
            noted.lock().unwrap().push(line);
            let answer = if is_compact { answer(&body) } else { http(204, "") };
            if answer == HANG {
                held.push(stream);
                continue;
            }
            let mut stream = stream;
            let _written = stream.write_all(answer.as_bytes());
        }
    });
    seen
}

/// Says nothing and keeps the connection open.
const HANG: &str = "\0hang";

fn request(mut stream: &UnixStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    let mut part = [0; 65536];
    loop {
        let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(0, |(_, value)| value.trim().parse().unwrap());
        if body.len() >= length {
            return Some((head.to_owned(), serde_json::from_str(body).unwrap_or(Value::Null)));
        }
    }
}

fn http(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// An answer of the right shape that decides nothing.
fn decided(request: &Value, outcome: &str) -> Value {
    let rows = request["rows"].as_array().map_or(0, Vec::len);
    json!({"protocol": 1, "compaction": 1, "outcome": outcome, "decisions": [],
        "ordinals": (0..rows).collect::<Vec<_>>(),
        "counters": {"results": 0, "kept": 0, "truncated": 0, "dropped": 0, "chars_before": 0,
            "chars_after": 0, "tokens_before": 0, "tokens_after": 0, "micros": 0}})
}

/// A session with a compaction by hand.
fn manual(stage: &Stage) -> Run {
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    stage.host.run(&["Mend all of it.", "/compact", "What now?"])
}

#[track_caller]
fn assert_native(run: &Run) {
    let outlines = || wire::outlines(&run.requests);
    assert_eq!(run.compactions(), ["success"], "{}", outlines());
    assert_eq!(run.of_kind(Kind::Summary).len(), 1, "{}", outlines());
    assert!(wire::has(run.last(), "MOCK-SUMMARY"), "{}", wire::outline(run.last()));
    assert!(notes(run.last()).is_empty());
    for text in wire::texts(run.last(), "user").iter().filter(|text| text.contains("compactd")) {
        let lines = text.lines().filter(|line| line.contains("compactd"));
        for line in lines {
            let is_hosts = line.ends_with("completed successfully</local-command-stdout>")
                || line.ends_with("completed successfully");
            assert!(is_hosts, "not the host's own line: {line}");
        }
    }
}

#[test]
fn no_daemon() {
    let Some(stage) = Stage::without_daemon() else { return };
    assert_native(&manual(&stage));
}

#[test]
fn a_socket_that_nobody_listens_at() {
    let Some(stage) = Stage::without_daemon() else { return };
    let path = stage.home.join(SOCKET);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap()).unwrap();
    drop(UnixListener::bind(path).unwrap());
    assert_native(&manual(&stage));
}

#[test]
fn a_daemon_that_was_killed() {
    let Some(mut stage) = Stage::new() else { return };
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    let mut session = stage.host.start();
    session.prompt("Mend all of it.");
    stage.daemon.take().unwrap().kill();
    session.prompt("/compact");
    session.prompt("What now?");
    assert_native(&session.finish());
}

#[test]
fn a_daemon_that_hangs() {
    let Some(stage) = Stage::without_daemon() else { return };
    let seen = stand_in(&stage, |_| HANG.to_owned());
    assert_native(&manual(&stage));
    assert!(seen.lock().unwrap().iter().any(|line| line.starts_with("POST /v1/compact ")));
}

#[test]
fn a_daemon_that_ends_in_the_middle_of_its_answer() {
    let Some(stage) = Stage::without_daemon() else { return };
    let seen = stand_in(&stage, |request| {
        let whole = http(200, &decided(request, "apply").to_string());
        whole[..whole.len() - 40].to_owned()
    });
    assert_native(&manual(&stage));
    assert!(seen.lock().unwrap().iter().any(|line| line.starts_with("POST /v1/compact ")));
}

/// Answers that are none: each in a session of its own.
#[test]
fn answers_that_make_no_sense() {
    type Garbage = fn(&Value) -> String;
    let garbage: [(&str, Garbage); 9] = [
        ("no HTTP", |_| "what?\n".to_owned()),
        ("no JSON", |_| http(200, "<html>")),
        ("nothing", |_| http(200, "")),
        ("another shape", |_| http(200, "[1, 2]")),
        ("an error", |_| http(500, "{\"error\":{}}")),
        ("rows missing", |request| {
            let mut answer = decided(request, "apply");
            answer["ordinals"] = json!([0]);
            http(200, &answer.to_string())
        }),
        ("rows unknown", |request| {
            let mut answer = decided(request, "apply");
            answer["ordinals"] =
                json!(vec![Value::Null; request["rows"].as_array().unwrap().len()]);
            http(200, &answer.to_string())
        }),
        ("an older protocol", |request| {
            let mut answer = decided(request, "apply");
            answer["protocol"] = json!(0);
            http(200, &answer.to_string())
        }),
        ("a newer protocol", |request| {
            let mut answer = decided(request, "apply");
            answer["protocol"] = json!(2);
            http(200, &answer.to_string())
        }),
    ];
    for (what, answer) in garbage {
        let Some(stage) = Stage::without_daemon() else { return };
        let seen = stand_in(&stage, answer);
        assert_native(&manual(&stage));
        let asked = seen.lock().unwrap().iter().any(|line| line.starts_with("POST /v1/compact "));
        assert!(asked, "{what} was never given");
    }
}

#[test]
fn a_daemon_that_wants_a_newer_caller_or_does_not_know_the_route() {
    for status in [426, 404] {
        let Some(stage) = Stage::without_daemon() else { return };
        stand_in(&stage, move |_| http(status, "{\"error\":{\"code\":\"x\",\"message\":\"x\"}}"));
        assert_native(&manual(&stage));
    }
}

/// An automatic compaction that changes nothing would come again at once.
#[test]
fn an_automatic_compaction_is_never_answered_with_nothing() {
    for outcome in ["skip", "apply"] {
        let Some(stage) = Stage::without_daemon() else { return };
        stand_in(&stage, move |request| http(200, &decided(request, outcome).to_string()));
        let host = stage.host.clone().with_env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
        let mut work = long_work(&host, "a", 4);
        let steps = work.steps.len();
        work.steps[steps - 2] = work.steps[steps - 2].clone().tokens(75_000);
        stage.api.script(work.steps);
        assert_native(&host.run(&["Mend all of it.", "And now?"]));
    }
}

#[test]
fn a_daemon_that_comes_back_answers_the_next_one() {
    let Some(mut stage) = Stage::new() else { return };
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    let mut session = stage.host.start();
    session.prompt("Mend all of it.");
    stage.daemon.take().unwrap().kill();
    stage.daemon = Some(compactd_tests::harness::Process::start(&stage.home, &[]));
    let compacted = stage.compact(&mut session);
    assert!(!compacted.assert_exact().is_empty());
    assert_no_summary(&session.finish());
}

/// The host writes its declarations beside a plugin that it loads from a folder, on a screen at the
/// latest: tests give it a copy. Nothing else of the plugin changes.
#[test]
fn the_plugin_stays_as_it_is() {
    let Some(stage) = Stage::new() else { return };
    let folder = plugin(&stage.home);
    let before = tree(&folder);
    assert!(before.contains_key(Path::new("hooks/register.ts")));
    let assert_same = || {
        let _none = fs::remove_dir_all(folder.join(".claude-plugin/types"));
        assert_tree(&before, &folder);
    };
    stage.api.script(long_work(&stage.host, "a", 4).steps);
    let mut session = stage.host.start();
    session.prompt("Mend all of it.");
    assert!(!stage.compact(&mut session).assert_exact().is_empty());
    assert_no_summary(&session.finish());
    assert_same();
    let Some(terminal) = stage.host.terminal() else { return };
    stage.api.script([Step::text("Fine then.")]);
    terminal.type_line("Hello.");
    terminal.wait_for("Fine then.");
    terminal.type_line("/exit");
    terminal.wait_for_end();
    assert_same();
}
