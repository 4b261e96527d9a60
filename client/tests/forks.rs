//! `forks` and `forks --prune`: only what is ours and as we wrote it may ever go.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kit;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kit::rollout::{OTHER, THREAD, rollout};
use kit::{Home, ONE, Ran, TWO, copy_program};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

const DAY: Duration = Duration::from_secs(86_400);

struct Fork {
    id: String,
    path: PathBuf,
}

fn fork(home: &Home, source: &str) -> Fork {
    let answer = home.run(&["fork", source, "--json"]).json();
    let text = |field: &str| answer[field].as_str().unwrap().to_owned();
    Fork { id: text("thread_id"), path: text("path").into() }
}

/// As if it had been written so many days ago.
fn age(path: &Path, days: u32) {
    fs::File::open(path).unwrap().set_modified(SystemTime::now() - days * DAY).unwrap();
}

/// A home with one fork of each kind, all old but one.
struct Kinds {
    home: Home,
    unused: Fork,
    used: Fork,
    parent: Fork,
    child: Fork,
    held: Fork,
    young: Fork,
    packed: PathBuf,
    _lock: fs::File,
}

impl Kinds {
    fn new() -> Self {
        let home = Home::new();
        home.thread(THREAD, 12, 400);
        home.thread(OTHER, 3, 400);
        home.session(ONE);
        let [unused, used, parent, held, young] = [(); 5].map(|()| fork(&home, THREAD));
        let child = fork(&home, &parent.id);
        let mut file = fs::File::options().append(true).open(&used.path).unwrap();
        let said = r#"{"timestamp":"2026-11-30T09:00:00.000Z","type":"event_msg","payload":{"type":"task_started"}}"#;
        writeln!(file, "{said}").unwrap();
        let lock = home.put(&format!(".codex/thread-writer-locks/{}.lock", held.id), "");
        let lock = fs::File::open(lock).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        // One that the host has packed since: it is not as we wrote it.
        let packed = fork(&home, THREAD).path;
        let bytes = zstd::encode_all(fs::File::open(&packed).unwrap(), 3).unwrap();
        fs::remove_file(&packed).unwrap();
        let packed = packed.with_extension("jsonl.zst");
        fs::write(&packed, bytes).unwrap();
        // What looks like one of ours and is none.
        let name = |id: &str| format!(".codex/sessions/rollout-2026-11-30T08-00-00-{id}.jsonl");
        home.put(&name(TWO), rollout(TWO, 1, 9).replace(r#""source":"cli""#, r#""compactd":true"#));
        home.put(".codex/sessions/2026/11/30/.compactd-fork-.partial", "theirs");
        home.put(".codex/sessions/2026/11/30/compactd-fork-abc123.partial", "theirs");
        for (path, bytes) in home.tree() {
            if bytes.is_some() && path != young.path {
                age(&path, 30);
            }
        }
        age(&young.path, 6);
        Self { home, unused, used, parent, child, held, young, packed, _lock: lock }
    }

    /// Why each fork stays, by its id; nothing of one that went.
    fn prune(&self, more: &[&str]) -> BTreeMap<String, Option<String>> {
        let answer = self.home.run(&[&["forks", "--prune", "--json"], more].concat()).json();
        assert_eq!(answer["unfinished"], serde_json::json!([]), "{answer}");
        let row = |row: &Value| {
            let stays = row["stays"].as_str().map(str::to_owned);
            assert_eq!(row["removed"], stays.is_none(), "{row}");
            (row["thread_id"].as_str().unwrap().to_owned(), stays)
        };
        answer["forks"].as_array().unwrap().iter().map(row).collect()
    }
}

#[test]
fn a_list_says_what_each_is() {
    let kinds = Kinds::new();
    let before = kinds.home.tree();
    let answer = kinds.home.run(&["forks", "--json"]).json();
    let rows = answer["forks"].as_array().unwrap();
    assert_eq!(rows.len(), 7, "{answer}");
    let flags = |fork: &Fork| {
        let row = rows.iter().find(|row| row["thread_id"] == *fork.id).unwrap();
        assert_eq!(row["path"], fork.path.to_str().unwrap());
        assert_eq!(row["size_bytes"], fs::metadata(&fork.path).unwrap().len());
        assert!(row.get("removed").is_none() && row.get("stays").is_none(), "{row}");
        (row["used"].as_bool().unwrap(), row["parent"].as_bool().unwrap())
    };
    assert_eq!(flags(&kinds.unused), (false, false));
    assert_eq!(flags(&kinds.used), (true, false));
    assert_eq!(flags(&kinds.parent), (false, true));
    let source = |fork: &Fork| {
        rows.iter().find(|row| row["thread_id"] == *fork.id).unwrap()["source"].clone()
    };
    assert_eq!(
        (source(&kinds.unused), source(&kinds.child)),
        (THREAD.into(), (*kinds.parent.id).into())
    );
    let made: Vec<&str> = rows.iter().map(|row| row["made_at"].as_str().unwrap()).collect();
    assert!(made.is_sorted_by(|a, b| a >= b), "the newest first: {made:?}");
    let people = kinds.home.run(&["forks"]);
    for word in
        ["not gone on with", "in use", "has a fork of its own", &kinds.held.id, &THREAD[..13]]
    {
        assert!(people.good().contains(word), "{people:?}");
    }
    assert_eq!(kinds.home.tree(), before);
    let none = Home::new();
    let ran = none.run(&["forks"]);
    assert!(ran.good().is_empty() && ran.err.contains("no forks were made here yet"), "{ran:?}");
    let json = none.run(&["forks", "--prune", "--json"]).json();
    assert_eq!(json, serde_json::json!({"forks": [], "unfinished": []}));
}

#[test]
fn only_old_forks_that_nobody_needs_go() {
    let kinds = Kinds::new();
    let before = kinds.home.tree();
    let stays = |text: &str| Some(text.to_owned());
    let expected = |held: Option<String>| {
        BTreeMap::from([
            (kinds.unused.id.clone(), None),
            (kinds.child.id.clone(), None),
            (kinds.used.id.clone(), stays("was gone on with: it is a session of yours")),
            (kinds.parent.id.clone(), stays("another thread was made from it")),
            (kinds.young.id.clone(), stays("is not old enough")),
            (kinds.held.id.clone(), held),
        ])
    };
    let without_packed = |mut found: BTreeMap<String, Option<String>>| {
        let packed = kinds.packed.to_str().unwrap();
        found.retain(|id, _| !packed.contains(&**id));
        found
    };
    // A look does not try the lock.
    assert_eq!(without_packed(kinds.prune(&["--dry-run"])), expected(None));
    assert_eq!(kinds.home.tree(), before);
    let people = kinds.home.run(&["forks", "--prune", "--dry-run"]);
    assert!(people.good().contains("would be removed"), "{people:?}");
    let found = kinds.prune(&[]);
    assert_eq!(without_packed(found), expected(stays("is held by a running Codex")));
    let mut left = before;
    left.remove(&kinds.unused.path);
    left.remove(&kinds.child.path);
    assert_eq!(kinds.home.tree(), left, "no other file may be touched");
    // What rested on the parent is gone, and a week is a choice.
    let found = kinds.prune(&["--older-than", "5"]);
    assert_eq!((&found[&kinds.parent.id], &found[&kinds.young.id]), (&None, &None));
    assert_eq!(found.len(), 5);
    let left = kinds.prune(&["--older-than", "0"]);
    assert_eq!(left.len(), 3, "used, held and packed ones stay at any age: {left:?}");
    assert!(kinds.used.path.exists() && kinds.held.path.exists() && kinds.packed.exists());
}

#[test]
fn one_that_cannot_be_removed_hides_no_other() {
    const NOBODY: u32 = 65_534;
    let home = Home::new();
    home.thread(THREAD, 12, 400);
    let [kept, goes] = [(); 2].map(|()| fork(&home, THREAD));
    // Its folder takes no change.
    let folder = home.path().join(".codex/sessions/2026/01/09");
    fs::create_dir_all(&folder).unwrap();
    let moved = folder.join(kept.path.file_name().unwrap());
    fs::rename(&kept.path, &moved).unwrap();
    let mode = |path: &Path, bits| {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    };
    mode(&folder, 0o555);
    let program = home.path().join("compactctl");
    copy_program(&program);
    let mut command =
        home.command_of(&program, &["forks", "--prune", "--older-than", "0", "--json"]);
    if fs::File::create(folder.join("probe")).is_ok() {
        // We may write everywhere, so somebody else tries.
        fs::remove_file(folder.join("probe")).unwrap();
        mode(home.path(), 0o755);
        mode(goes.path.parent().unwrap(), 0o777);
        command.uid(NOBODY);
    }
    let ran = Ran::of(command.output().unwrap());
    mode(&folder, 0o755);
    assert_eq!((ran.status, moved.exists(), goes.path.exists()), (1, true, false), "{ran:?}");
    assert!(ran.err.contains(&format!("error: cannot remove {}", moved.display())), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    let row = |id: &str| {
        let rows = answer["forks"].as_array().unwrap();
        let row = rows.iter().find(|row| row["thread_id"] == id).unwrap();
        (row["removed"].clone(), row["stays"].clone())
    };
    assert_eq!(row(&kept.id), (false.into(), "cannot be removed".into()));
    assert_eq!(row(&goes.id), (true.into(), Value::Null));
}
