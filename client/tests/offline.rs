//! Files and sessions, decided without a daemon.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kit;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use kit::{Home, ONE, Ran, TRANSCRIPT, TWO, copy_program};

fn fixtures() -> Vec<std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let mut open = vec![root.join("claude-code"), root.join("codex")];
    let mut files = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                open.push(path);
            } else if name.ends_with(".jsonl") || name.ends_with(".jsonl.zst") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn json_has_the_documented_shape() {
    let home = Home::new();
    let file = home.put("session.jsonl", TRANSCRIPT);
    let json = home.run(&["compact", file.to_str().unwrap(), "--json"]).json();
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected =
        ["host", "session", "profile", "history", "lines", "messages", "results", "totals"];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!((&json["host"], &json["session"]), (&"claude".into(), &"session".into()));
    assert_eq!((&json["profile"], &json["history"]), (&"standard".into(), &"context".into()));
    for result in json["results"].as_array().unwrap() {
        for key in ["id", "tool", "chars", "tokens_est", "decision", "call", "rule", "reason"] {
            assert!(result.get(key).is_some(), "{key} in {result}");
        }
        let is_kept = result["decision"] == "keep";
        assert_eq!(result.get("left").is_none(), is_kept, "{result}");
    }
}

#[test]
fn profiles_differ_in_what_becomes_of_calls() {
    let home = Home::new();
    let file = home.put("session.jsonl", TRANSCRIPT);
    let calls = |profile: &str| {
        let json =
            home.run(&["compact", file.to_str().unwrap(), "--json", "--profile", profile]).json();
        let results = json["results"].as_array().unwrap().clone();
        results.iter().filter(|result| result["call"] == "removed").count()
    };
    assert!(calls("reference") > 0);
    assert_eq!(calls("standard"), 0);
}

#[test]
fn every_recorded_session_is_decided_and_left_alone() {
    let home = Home::new();
    let files = fixtures();
    assert!(files.len() > 10, "{files:?}");
    let mut results = 0;
    for file in files {
        let before = fs::read(&file).unwrap();
        for history in ["context", "whole"] {
            let args = ["compact", file.to_str().unwrap(), "--json", "--history", history];
            let ran = home.run(&args);
            if ran.err.contains("is not a transcript") {
                continue;
            }
            results += ran.json()["results"].as_array().unwrap().len();
        }
        assert_eq!(fs::read(&file).unwrap(), before);
    }
    assert!(results > 50, "{results}");
}

#[test]
fn packed_and_plain_are_decided_alike() {
    let home = Home::new();
    let plain = home.put("a/session.jsonl", TRANSCRIPT);
    let packed = home.put("b/session.jsonl.zst", zstd::encode_all(TRANSCRIPT, 3).unwrap());
    let of = |path: &Path| home.run(&["compact", path.to_str().unwrap(), "--json"]).json();
    assert_eq!(of(&plain), of(&packed));
}

#[test]
fn lines_and_cut_look_at_a_beginning() {
    let home = Home::new();
    let file = home.put("session.jsonl", TRANSCRIPT);
    let file = file.to_str().unwrap();
    for history in ["context", "whole"] {
        let run = |more: &[&str]| {
            let mut args = vec!["compact", file, "--json", "--history", history];
            args.extend(more);
            home.run(&args).json()
        };
        let whole = run(&[]);
        assert_eq!(run(&["--cut", "100"]), whole);
        assert_eq!(run(&["--lines", "99999"]), whole);
        assert_eq!(run(&["--lines", "7"])["lines"], 7);
        let total = whole["messages"].as_u64().unwrap();
        for percent in [0, 10, 33, 50, 90, 99] {
            let cut = run(&["--cut", &percent.to_string()]);
            let lines = cut["lines"].as_u64().unwrap();
            assert_eq!(cut["messages"], total * percent / 100, "{history} {percent}");
            // One more line would open one message more.
            let next = run(&["--lines", &(lines + 1).to_string()]);
            assert_eq!(next["messages"], total * percent / 100 + 1, "{history} {percent}");
            assert_eq!(run(&["--lines", &lines.to_string()]), cut);
        }
    }
}

#[test]
fn people_get_a_summary_and_groups() {
    let home = Home::new();
    let file = home.put("session.jsonl", TRANSCRIPT);
    let ran = home.run(&["compact", file.to_str().unwrap()]);
    let out = ran.good();
    let first = out.lines().next().unwrap();
    assert!(first.starts_with("25 results, ") && first.ends_with("% freed"), "{out}");
    let at = |text: &str| out.find(text).unwrap_or_else(|| panic!("{text} in {out}"));
    assert!(at("\ngoes: ") < at("\nis cut: ") && at("\nis cut: ") < at("\nstays: "));
    assert!(!out.contains('\u{1b}') && ran.err.is_empty(), "{ran:?}");
    let all = home.run(&["compact", file.to_str().unwrap(), "--all"]);
    assert_eq!(all.good().matches("toolu_sample").count(), 25);
    let mut narrow = home.command(&["compact", file.to_str().unwrap(), "--all"]);
    let narrow = Ran::of(narrow.env("COLUMNS", "70").output().unwrap());
    assert!(narrow.good().lines().skip(3).all(|line| line.chars().count() <= 70), "{narrow:?}");
}

#[test]
fn a_session_is_found_by_the_beginning_of_its_id() {
    let home = Home::new();
    home.session(ONE);
    home.session(TWO);
    let ran = home.run(&["compact", "3f2a", "--json"]);
    assert_eq!(ran.json()["session"], ONE);
    let explained = home.run(&["explain", "3f2a", "--now", "--json"]);
    assert_eq!(explained.json(), ran.json());
    let mut with_pass = ran.json();
    with_pass["pass"] = serde_json::Value::Null;
    assert_eq!(home.run(&["explain", "3f2a", "--json"]).json(), with_pass);
    assert!(explained.err.contains("no daemon is running"), "{explained:?}");
    home.run(&["compact", "3f2"]).fails(1, "2 sessions have an id that begins with 3f2", ONE);
    home.run(&["compact", "3f2c91c0"]).fails(1, "no session 3f2c91c0 is known", ONE);
    home.run(&["explain", "zzz"]).fails(1, "no session zzz is known", "compactctl sessions");
    let listed = home.run(&["sessions", "--json"]).json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
    assert!(home.run(&["sessions", "--host", "codex"]).good().is_empty());
}

#[test]
fn pins_count_without_a_daemon_too() {
    let home = Home::new();
    home.session(ONE);
    let rule = || {
        let json = home.run(&["compact", ONE, "--json"]).json();
        json["results"][0]["rule"].as_str().unwrap().to_owned()
    };
    assert_eq!(rule(), "unreferenced");
    let pins = format!(".local/state/compactd/pins/claude-{ONE}.json");
    home.put(&pins, r#"{"format":1,"ids":["toolu_sample01"],"files":[]}"#);
    assert_eq!(rule(), "pinned");
    home.put(&pins, "{");
    home.run(&["compact", ONE]).fails(1, "cannot read the pins in", "move it away");
}

#[test]
fn bad_files_are_told_apart() {
    let home = Home::new();
    home.run(&["compact", "none.jsonl"]).fails(1, "none.jsonl: no such file", "check the path");
    home.put("empty.jsonl", "");
    home.run(&["compact", "empty.jsonl"]).fails(1, "not a transcript: it is empty", ".jsonl file");
    home.put("text.jsonl", "hello\nworld\n");
    home.run(&["compact", "text.jsonl"]).fails(1, "text.jsonl is not a transcript", ".jsonl file");
    home.put("other.jsonl", "{\"a\":1}\n");
    home.run(&["compact", "other.jsonl"]).fails(1, "no line is a record", "Claude Code");
    home.put("broken.jsonl.zst", "not zstd at all");
    home.run(&["compact", "broken.jsonl.zst"]).fails(1, "cannot unpack", "zstd -t");
    fs::create_dir(home.path().join("dir.jsonl")).unwrap();
    home.run(&["compact", "dir.jsonl"]).fails(1, "it is a directory", "one .jsonl file inside it");
    home.run(&["compact", "./"]).fails(1, "it is a directory", "one .jsonl file inside it");
}

#[test]
fn a_file_without_permission_is_told() {
    const NOBODY: u32 = 65_534;
    let home = Home::new();
    let file = home.put("session.jsonl", TRANSCRIPT);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let args = ["compact", file.to_str().unwrap()];
    let ran = if fs::read(&file).is_err() {
        home.run(&args)
    } else {
        // We may read everything, so somebody else tries.
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = home.path().join("compactctl");
        copy_program(&program);
        Ran::of(home.command_of(&program, &args).uid(NOBODY).output().unwrap())
    };
    ran.fails(1, "permission denied", "run as the user who owns the transcript");
}

#[test]
fn wrong_usage_is_status_2() {
    let home = Home::new();
    for args in [
        &["compact"][..],
        &["compact", "x.jsonl", "--cut", "101"],
        &["compact", "x.jsonl", "--cut", "5", "--lines", "5"],
        &["compact", "x.jsonl", "--profile", "deep"],
        &["pin", "x"],
        &["nothing"],
        &[],
    ] {
        let ran = home.run(args);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{ran:?}");
    }
}

#[test]
fn a_closed_reader_is_no_failure() {
    let home = Home::new();
    let file = home.put("session.jsonl", TRANSCRIPT);
    let mut command = home.command(&["compact", file.to_str().unwrap(), "--json"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn configuration_and_its_mistakes() {
    let home = Home::new();
    let file = ".config/compactd/config.toml";
    home.put(file, "[rules]\npin_last = 3\n");
    let shown = home.run(&["config", "show", "--origin"]);
    let line = shown.good().lines().find(|line| line.contains("rules.pin_last")).unwrap();
    assert!(line.contains(" 3 ") && line.ends_with("config.toml"), "{line}");
    let json = home.run(&["config", "show", "--json"]).json();
    let row = json.as_array().unwrap().iter().find(|row| row["name"] == "rules.pin_last").unwrap();
    assert_eq!(row["value"], "3");
    home.put(file, "[rules]\npin_lats = 3\n");
    home.run(&["config", "show"]).fails(1, "did you mean rules.pin_last?", "correct the file");
    home.put(file, "[rules]\npin_last = \"six\"\n");
    let ran = home.run(&["config", "show"]);
    assert!(ran.status == 0 && ran.err.starts_with("warning: setting rules.pin_last"), "{ran:?}");
}

#[test]
fn version_and_completions() {
    let home = Home::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(home.run(&["version"]).good(), format!("compactctl {version}\n"));
    assert_eq!(home.run(&["version", "--json"]).json()["protocol"], 1);
    assert!(home.run(&["completions", "bash"]).good().contains("compactctl"));
    assert_eq!(home.run(&["completions", "dos"]).status, 2);
}
