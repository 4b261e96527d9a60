//! `fork` in a home with nothing else in it: what it takes, what it writes, what it leaves behind.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kit;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use kit::rollout::{OTHER, THREAD, rollout};
use kit::{Home, ONE, Ran, copy_program};
use serde_json::Value;

fn path(answer: &Value) -> PathBuf {
    PathBuf::from(answer["path"].as_str().unwrap())
}

/// What `fork … --json` says: one file more, and nothing else in the home is another.
#[track_caller]
fn forked(home: &Home, args: &[&str]) -> Value {
    let before = home.tree();
    let answer = home.run(&[&["fork"], args, &["--json"]].concat()).json();
    let mut after = home.tree();
    assert!(after.remove(&path(&answer)).is_some(), "{answer}");
    after.retain(|path, bytes| bytes.is_some() || before.contains_key(path));
    assert_eq!(after, before);
    answer
}

#[test]
fn by_path_id_and_the_beginning_of_one() {
    let home = Home::new();
    let file = home.thread(THREAD, 30, 400);
    home.thread(OTHER, 3, 400);
    home.session(ONE);
    for wanted in [file.to_str().unwrap(), THREAD, "01a22bab-1"] {
        let answer = forked(&home, &[wanted]);
        let fork = answer["thread_id"].as_str().unwrap();
        assert_eq!(answer["source"]["thread_id"], THREAD);
        assert_eq!(answer["source"]["path"], file.to_str().unwrap());
        assert_eq!(answer["resume_command"], format!("codex resume {fork}"));
        assert!(answer["counters"]["dropped"].as_u64().unwrap() > 0, "{answer}");
        assert!(path(&answer).starts_with(home.path().join(".codex/sessions")), "{answer}");
        assert!(path(&answer).to_str().unwrap().ends_with(&format!("-{fork}.jsonl")), "{answer}");
        let mode = fs::metadata(path(&answer)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, fs::metadata(&file).unwrap().permissions().mode() & 0o777);
    }
    // From the folder that it lies in, by its name alone.
    let mut command = home.command(&["fork", file.file_name().unwrap().to_str().unwrap()]);
    let ran = Ran::of(command.current_dir(file.parent().unwrap()).output().unwrap());
    let out = ran.good();
    assert!(out.contains(&format!("thread    {THREAD}\n")), "{out}");
    assert!(out.contains("go on     codex resume ") && out.contains("tool results kept"), "{out}");
    assert!(!out.contains('\u{1b}'), "{out}");
}

#[test]
fn what_leads_to_no_thread_writes_nothing() {
    let home = Home::new();
    let file = home.thread(THREAD, 3, 400);
    home.thread(OTHER, 3, 400);
    home.session(ONE);
    let claude = home.path().join(format!(".claude/projects/-w/{ONE}.jsonl"));
    let empty = home.put(".codex/sessions/rollout-2026-11-30T08-00-00-x.jsonl", "");
    let odd =
        home.put("odd.jsonl", rollout(THREAD, 1, 9).replace("function_call_output", "telepathy"));
    let before = home.tree();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    for (wanted, message, hint) in [
        ("01a22bab".to_owned(), "2 sessions have an id that begins with 01a22bab", OTHER),
        ("ffff".to_owned(), "no session ffff is known", "compactctl sessions"),
        (ONE.to_owned(), "no session 3f2a91c0", "compactctl sessions"),
        ("./none.jsonl".to_owned(), "none.jsonl", ""),
        (text(&claude), "is a session of Claude Code", "/compact"),
        (text(&empty), "it is empty", ""),
        (text(&odd), "item 2 of the history (line 4 of the source)", "resume the thread itself"),
    ] {
        home.run(&["fork", &wanted]).fails(1, message, hint);
        home.run(&["fork", &wanted, "--json"]).fails(1, message, hint);
    }
    for args in [
        &["fork"][..],
        &["fork", THREAD, "--profile", "deep"],
        &["fork", THREAD, "--budget", "much"],
        &["forks", "--dry-run"],
        &["forks", "--older-than", "1"],
    ] {
        assert_eq!(home.run(args).status, 2, "{args:?}");
    }
    assert_eq!(home.tree(), before);
    assert!(file.exists());
}

#[test]
fn a_look_writes_nothing_and_says_what_a_fork_says() {
    let home = Home::new();
    home.thread(THREAD, 30, 400);
    let before = home.tree();
    let look = home.run(&["fork", THREAD, "--dry-run", "--json"]).json();
    let people = home.run(&["fork", THREAD, "--dry-run"]);
    assert!(people.good().contains("would be  ") && !people.out.contains("go on"), "{people:?}");
    assert_eq!(home.tree(), before);
    let made = forked(&home, &[THREAD]);
    let keys = |answer: &Value| answer.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&look), keys(&made));
    for field in ["counters", "tokens_before", "tokens_after", "items", "records", "source"] {
        assert_eq!(look[field], made[field], "{field}");
    }
    assert_eq!((&look["dry_run"], &made["dry_run"]), (&true.into(), &false.into()));
    let less = made["tokens_after"].as_u64().unwrap() - 300;
    let further = forked(&home, &[THREAD, "--budget", &less.to_string()]);
    assert!(further["tokens_after"].as_u64().unwrap() <= less, "{further}");
    let little = home.run(&["fork", THREAD, "--budget", "1", "--dry-run"]);
    assert!(little.good().contains("tokens") && little.err.contains("warning: more than the 1 "));
}

#[test]
fn what_is_pinned_stays() {
    let home = Home::new();
    home.thread(THREAD, 30, 400);
    let history = |answer: &Value| {
        let text = fs::read_to_string(path(answer)).unwrap();
        text.lines().rfind(|line| line.contains(r#""type":"compacted""#)).unwrap().to_owned()
    };
    assert!(!history(&forked(&home, &[THREAD])).contains("unused_name_12 = 12"));
    let pins = format!(".local/state/compactd/pins/codex-{THREAD}.json");
    home.put(&pins, r#"{"format":1,"ids":["call_12"],"files":[]}"#);
    for more in [&[THREAD][..], &[THREAD, "--budget", "1"], &[THREAD, "--profile", "reference"]] {
        let history = history(&forked(&home, more));
        assert!(history.contains("unused_name_12 = 12"), "{more:?}");
        assert!(!history.contains("unused_name_13 = 13"), "{more:?}");
    }
    let pins = home.put(&pins, "{ broken");
    let before = home.tree();
    home.run(&["fork", THREAD]).fails(1, &pins.display().to_string(), "");
    assert_eq!(home.tree(), before);
}

#[test]
fn a_file_outside_any_home_goes_to_the_configured_one() {
    let home = Home::new();
    let loose = home.put("loose/thread.jsonl", rollout(THREAD, 3, 400));
    let loose = loose.to_str().unwrap();
    let answer = forked(&home, &[loose]);
    assert!(path(&answer).starts_with(home.path().join(".codex/sessions")), "{answer}");
    let run = |name: &str, value: &Path| {
        let mut command = home.command(&["fork", loose, "--json"]);
        Ran::of(command.env(name, value).output().unwrap())
    };
    let other = home.path().join("other");
    let answer = run("CODEX_HOME", &other).json();
    assert!(path(&answer).starts_with(other.join("sessions")) && path(&answer).is_file());
    // The name of a home does not matter; one that a rollout lies in goes before all others.
    let inside = home.put("third/sessions/thread.jsonl", rollout(THREAD, 3, 400));
    let mut command = home.command(&["fork", inside.to_str().unwrap(), "--json"]);
    let answer = Ran::of(command.env("CODEX_HOME", &other).output().unwrap()).json();
    assert!(path(&answer).starts_with(home.path().join("third/sessions")), "{answer}");
    let mut command = home.command(&["fork", loose]);
    let ran = Ran::of(command.env_remove("HOME").output().unwrap());
    ran.fails(1, "lies in no Codex home", "");
}

#[test]
fn where_it_cannot_be_written_the_path_is_told() {
    const NOBODY: u32 = 65_534;
    let home = Home::new();
    let loose = home.put("thread.jsonl", rollout(THREAD, 30, 4_000));
    let (loose, codex) = (loose.to_str().unwrap(), home.path().join("codex"));
    let told = |ran: &Ran, message: &str, cause: &str| {
        ran.fails(1, message, "nothing was left behind");
        assert!(ran.err.contains(codex.join("sessions").to_str().unwrap()), "{ran:?}");
        assert!(ran.err.to_lowercase().contains(&format!("caused by: {cause}")), "{ran:?}");
    };
    // A full disk: no file can grow over 4 KiB; the signal that would come with it is ignored.
    let mut command = home.command_of(Path::new("/bin/sh"), &[]);
    command.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" fork \"$1\" --json"]);
    command.arg(env!("CARGO_BIN_EXE_compactctl")).arg(loose).env("CODEX_HOME", &codex);
    told(&Ran::of(command.output().unwrap()), "cannot write ", "file too large");
    let files = home.files_but(&[Path::new(loose)]);
    assert_eq!(files, [] as [PathBuf; 0]);
    // A folder that may not be written to.
    let folders: Vec<PathBuf> = home.tree().into_keys().filter(|path| path.is_dir()).collect();
    let mode = |bits| {
        for folder in &folders {
            fs::set_permissions(folder, fs::Permissions::from_mode(bits)).unwrap();
        }
    };
    mode(0o555);
    let program = home.path().join("compactctl");
    copy_program(&program);
    let is_root = fs::File::create(codex.join("sessions/probe")).is_ok();
    if is_root {
        fs::remove_file(codex.join("sessions/probe")).unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = home.command_of(&program, &["fork", loose, "--json"]);
    command.env("CODEX_HOME", &codex);
    if is_root {
        // We may write everywhere, so somebody else tries.
        command.uid(NOBODY);
    }
    told(&Ran::of(command.output().unwrap()), "cannot make a file in ", "permission denied");
    mode(0o755);
    fs::remove_dir_all(&codex).unwrap();
    // A file in the way.
    home.put("codex/sessions", "");
    let mut command = home.command(&["fork", loose]);
    let ran = Ran::of(command.env("CODEX_HOME", &codex).output().unwrap());
    told(&ran, "cannot make the folder ", "");
    let files = home.files_but(&[Path::new(loose), &program, &codex.join("sessions")]);
    assert_eq!(files, [] as [PathBuf; 0]);
}

/// A fork of a large rollout that is stopped in the middle of it.
struct Stopped {
    child: Child,
    draft: PathBuf,
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

impl Stopped {
    fn new(home: &Home, known: &[&Path]) -> Self {
        let mut command = home.command(&["fork", THREAD, "--json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            assert!(child.try_wait().unwrap().is_none() && Instant::now() < deadline);
            let sizes = known.first().map_or(0, |path| fs::metadata(path).unwrap().len());
            let files = partial(home);
            let is_begun =
                |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.len() > sizes / 50);
            if let Some(draft) = files.into_iter().find(is_begun) {
                signal(&child, rustix::process::Signal::STOP);
                return Self { child, draft };
            }
            park_timeout(Duration::from_millis(2));
        }
    }

    fn go_on(self) -> Ran {
        signal(&self.child, rustix::process::Signal::CONT);
        Ran::of(self.child.wait_with_output().unwrap())
    }

    fn kill(mut self) -> PathBuf {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.draft
    }
}

/// Drafts below the home's Codex folder.
fn partial(home: &Home) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![home.path().join(".codex/sessions")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => open.push(path),
                path if path.extension().is_some_and(|is| is == "partial") => found.push(path),
                _ => {}
            }
        }
    }
    found
}

/// 30 MB.
fn large(home: &Home) -> PathBuf {
    let file = home.thread(THREAD, 1_000, 30_000);
    assert!(fs::metadata(&file).unwrap().len() > 30_000_000);
    file
}

#[test]
fn one_that_is_killed_leaves_a_draft_that_no_host_reads_and_prune_removes() {
    let home = Home::new();
    let file = large(&home);
    let before = fs::read(&file).unwrap();
    let stopped = Stopped::new(&home, &[&file]);
    let prune = |more: &[&str]| {
        home.run(&[&["forks", "--prune", "--json"], more].concat()).json()["unfinished"].clone()
    };
    // It is being written, however old it looks.
    let old = std::time::SystemTime::now() - Duration::from_secs(30 * 86_400);
    let age = |draft: &Path| fs::File::open(draft).unwrap().set_modified(old).unwrap();
    age(&stopped.draft);
    let found = prune(&[]);
    assert_eq!(
        (&found[0]["removed"], &found[0]["stays"]),
        (&false.into(), &"is being written".into())
    );
    assert_eq!(found[0]["path"], stopped.draft.to_str().unwrap());
    let draft = stopped.kill();
    assert_eq!(home.files_but(&[&file]), [draft.as_path()]);
    let name = draft.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(".compactd-fork-") && !name.contains("rollout"), "{name}");
    assert_eq!(home.run(&["forks", "--json"]).json()["forks"], serde_json::json!([]));
    assert!(home.run(&["forks"]).good().contains("not finished"));
    // Now nobody writes it.
    fs::File::open(&draft).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    assert_eq!(prune(&[])[0]["stays"], "is not old enough");
    age(&draft);
    assert_eq!(prune(&["--dry-run"])[0]["removed"], true);
    assert!(draft.exists());
    assert_eq!(prune(&[])[0]["removed"], true);
    assert_eq!(home.files_but(&[&file]), [] as [PathBuf; 0]);
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_source_that_changes_while_it_is_read_gives_no_fork() {
    let home = Home::new();
    let file = large(&home);
    let other = home.put("other", rollout(THREAD, 3, 400));
    let cut = |file: &Path| {
        let length = fs::metadata(file).unwrap().len() / 2;
        fs::File::options().write(true).open(file).unwrap().set_len(length).unwrap();
    };
    let replace = |file: &Path| fs::rename(&other, file).unwrap();
    let gone = |file: &Path| fs::remove_file(file).unwrap();
    let changes: [&dyn Fn(&Path); 3] = [&cut, &replace, &gone];
    let said = ["it was cut", "another content is there", "it is gone"];
    for (change, what) in changes.into_iter().zip(said) {
        let whole = large(&home);
        let stopped = Stopped::new(&home, &[&whole]);
        change(&file);
        let ran = stopped.go_on();
        ran.fails(1, &format!("was changed while it was read: {what}"), "fork it again");
        assert_eq!(home.files_but(&[&file, &other]), [] as [PathBuf; 0]);
    }
}
