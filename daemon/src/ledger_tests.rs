use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use compactd_api::compact::{Counters, Outcome};
use compactd_api::passes::{self, PassResult, PassState, ReportOutcome};
use compactd_api::{CallFate, DecisionKind, Profile, Trigger};
use compactd_core::record::Host;

use super::*;

fn key(id: &str) -> SessionKey {
    SessionKey { host: Host::Claude, id: id.to_owned() }
}

fn answer(id: &str, number: u64) -> Answered {
    Answered {
        key: key(id),
        at: SystemTime::now(),
        trigger: Trigger::Auto,
        profile: Profile::Standard,
        number,
        outcome: Outcome::Apply,
        level: None,
        focus: false,
        reason: None,
        counters: Counters { results: 5, ..Counters::default() },
        seen: Seen::default(),
    }
}

fn ledger(state: &Path) -> Ledger {
    Ledger::start(Store::new(None, Some(state.to_path_buf())))
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

fn numbers(ledger: &Ledger, id: &str) -> Vec<u64> {
    let list = wait(ledger.list(key(id), None)).unwrap().0;
    list.iter().map(|item| item.number).collect()
}

fn file(state: &Path, id: &str, number: u64) -> PathBuf {
    passes::folder(state, Host::Claude, id).join(passes::file_name(number))
}

#[test]
fn passes_outlive_the_process_and_are_private() {
    let state = tempfile::tempdir().unwrap();
    let first = ledger(state.path());
    for number in 1..=22 {
        first.answered(answer("a", number));
    }
    first.answered(answer("b", 7));
    first.stop();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = file(state.path(), "a", 22);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&passes::base(state.path())), 0o700);
    assert!(!file(state.path(), "a", 2).exists());
    let second = ledger(state.path());
    assert_eq!(numbers(&second, "a"), (3..=22).rev().collect::<Vec<_>>());
    assert_eq!(numbers(&second, "b"), [7]);
    let list = wait(second.list(key("a"), None)).unwrap().0;
    assert_eq!((list[0].state, list[1].state), (PassState::Answered, PassState::Applied));
    second.stop();
    // After its end it says nothing and breaks nothing.
    second.answered(answer("a", 23));
    assert!(wait(second.list(key("a"), None)).is_none());
}

#[test]
fn an_answer_that_waits_gives_way_to_a_later_one() {
    let state = tempfile::tempdir().unwrap();
    let ledger = ledger(state.path());
    let (go, wait_for_it) = channel::<()>();
    ledger.push(move |_| wait_for_it.recv().unwrap());
    let of = |results: u64| Answered {
        counters: Counters { results, ..Counters::default() },
        ..answer("a", 1)
    };
    for results in 0..1_000 {
        ledger.answered(of(results));
    }
    ledger.answered(answer("b", 1));
    let behind: Vec<usize> =
        ledger.waiting().values().map(|(_, slot)| Arc::strong_count(slot)).collect();
    assert_eq!(behind, [2, 2], "one place in the queue each");
    // What comes behind a report stays behind it.
    ledger.push(|books| {
        let report = PassReport::of(ReportOutcome::Applied);
        books.change(&key("a"), |track| ((), track.reported(1, &report).unwrap_or_default()));
    });
    ledger.answered(of(5_000));
    go.send(()).unwrap();
    let items = wait(ledger.list(key("a"), None)).unwrap().0;
    assert_eq!((items[0].counters.results, items[0].state), (5_000, PassState::Answered));
    assert_eq!(numbers(&ledger, "b"), [1]);
    ledger.stop();
}

#[test]
fn a_pass_is_told_once_over_restarts() {
    let state = tempfile::tempdir().unwrap();
    let first = ledger(state.path());
    first.answered(answer("a", 1));
    wait(first.after(key("a"), true, Some(0)));
    first.stop();
    let second = ledger(state.path());
    assert_eq!(wait(second.started(key("a"), Some(1))).unwrap().number, 1);
    second.stop();
    let third = ledger(state.path());
    assert!(wait(third.started(key("a"), Some(1))).is_none());
    let report = PassReport { millis: Some(2.5), ..PassReport::of(ReportOutcome::Applied) };
    let item = wait(third.reported(key("a"), None, report.clone())).unwrap();
    assert_eq!((item.state, item.report), (PassState::Applied, Some(report.clone())));
    assert!(wait(third.reported(key("a"), Some(9), report.clone())).is_none());
    assert!(wait(third.reported(key("none"), None, report)).is_none());
    third.stop();
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let state = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let base = passes::base(state.path());
    fs::create_dir_all(&base).unwrap();
    // A link in the place of a session's folder, and one in the place of a file.
    symlink(elsewhere.path(), base.join("claude-a")).unwrap();
    let secret = elsewhere.path().join("1.json");
    fs::write(&secret, "precious").unwrap();
    fs::create_dir_all(base.join("claude-b")).unwrap();
    symlink(&secret, base.join("claude-b/1.json")).unwrap();
    symlink("/dev/zero", base.join("claude-b/2.json")).unwrap();
    // A pass of another version, and no pass at all.
    fs::create_dir_all(base.join("claude-c")).unwrap();
    fs::write(base.join("claude-c/1.json"), r#"{"format":9,"more":[]}"#).unwrap();
    fs::write(base.join("claude-c/2.json"), "{ torn").unwrap();
    fs::write(base.join("claude-c/notes.txt"), "x").unwrap();
    let first = ledger(state.path());
    for id in ["a", "b", "c"] {
        assert!(numbers(&first, id).is_empty(), "{id}");
        first.answered(answer(id, 1));
        // It is remembered all the same.
        assert_eq!(numbers(&first, id), [1], "{id}");
    }
    first.stop();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "precious");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    assert!(fs::symlink_metadata(base.join("claude-b/1.json")).unwrap().is_file());
    let foreign = fs::read_to_string(base.join("claude-c/1.json")).unwrap();
    assert_eq!(foreign, r#"{"format":9,"more":[]}"#);
    assert_eq!(fs::read_to_string(base.join("claude-c/2.json")).unwrap(), "{ torn");
}

#[test]
fn a_context_that_fills_up_at_once_is_noticed() {
    let state = tempfile::tempdir().unwrap();
    let first = ledger(state.path());
    let mut pass = answer("a", 3);
    pass.seen = Seen::default();
    first.answered(pass);
    wait(first.after(key("a"), true, Some(2)));
    for (number, results, expected) in
        [(4, 0, true), (4, 2, true), (4, 3, false), (3, 0, false), (5, 0, false)]
    {
        assert_eq!(first.refilled(&key("a"), number, results), expected, "{number} {results}");
    }
    assert!(!first.refilled(&key("b"), 1, 0) && !first.refilled(&key("b"), 4, 0));
    // The next one was answered too and came to nothing.
    first.answered(answer("a", 4));
    assert_eq!(numbers(&first, "a"), [4, 3]);
    assert!(first.refilled(&key("a"), 4, 2) && first.refilled(&key("a"), 5, 2));
    first.stop();
    let second = ledger(state.path());
    assert!(!second.refilled(&key("a"), 4, 2), "nothing is in memory yet");
    wait(second.know(&key("a")));
    assert!(second.refilled(&key("a"), 4, 2) && !second.refilled(&key("a"), 4, 3));
    // Of what has no passes nothing is kept.
    wait(second.know(&key("b")));
    wait(second.after(key("c"), true, None));
    assert_eq!(second.applied.len(), 1);
    second.stop();
}

fn results(number: usize) -> Vec<PassResult> {
    let result = |at: usize| PassResult {
        id: format!("toolu_{at}"),
        tool: "Bash".to_owned(),
        chars: 9,
        decision: DecisionKind::Keep,
        call: CallFate::Kept,
        rule: "too_recent".to_owned(),
        reason: "fewer than 3 results behind it".to_owned(),
    };
    (0..number).map(result).collect()
}

/// An answer with results; its sums say that there are none.
fn answer_with(ledger: &Ledger, id: &str, number: u64, count: usize) {
    let mut kept = answer(id, number).into_kept();
    kept.pass.item.counters.results = 0;
    kept.pass.results = results(count);
    let key = key(id);
    ledger.push(move |books| books.answered(&key, kept));
}

fn count(ledger: &Ledger, id: &str, number: u64) -> usize {
    wait(ledger.pass(key(id), Some(number), None)).unwrap().results.len()
}

#[test]
fn results_are_written_once_and_stay() {
    let state = tempfile::tempdir().unwrap();
    let first = ledger(state.path());
    answer_with(&first, "a", 1, 5);
    assert_eq!(count(&first, "a", 1), 5);
    let path = file(state.path(), "a", 1).with_file_name(passes::results_name(1));
    let bytes = fs::read(&path).unwrap();
    // Gone, and unreadable, while hooks come.
    for there in [&b"{ torn"[..], &bytes] {
        fs::remove_file(&path).unwrap();
        wait(first.after(key("a"), true, Some(0)));
        fs::write(&path, there).unwrap();
        let _told = wait(first.started(key("a"), Some(0)));
        let report = PassReport::of(ReportOutcome::Applied);
        assert!(wait(first.reported(key("a"), None, report)).is_some());
        assert_eq!(fs::read(&path).unwrap(), there);
    }
    let inode = fs::metadata(&path).unwrap().ino();
    wait(first.before(key("a"), None));
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "the file is the same");
    first.stop();
    let second = ledger(state.path());
    assert_eq!(count(&second, "a", 1), 5);
    // Another answer has results of its own, at another time.
    fs::write(&path, passes::print_results("then", &results(2))).unwrap();
    assert_eq!(count(&second, "a", 1), 0, "of another answer");
    answer_with(&second, "a", 1, 3);
    assert_eq!(count(&second, "a", 1), 3);
    second.stop();
}

#[test]
fn what_cannot_be_read_is_never_written_over() {
    let state = tempfile::tempdir().unwrap();
    let first = ledger(state.path());
    answer_with(&first, "a", 1, 5);
    assert_eq!(numbers(&first, "a"), [1]);
    let path = file(state.path(), "a", 1);
    let torn = [path.clone(), path.with_file_name(passes::results_name(1))];
    for path in &torn {
        fs::write(path, "{ torn").unwrap();
    }
    answer_with(&first, "a", 1, 4);
    wait(first.after(key("a"), true, Some(0)));
    assert_eq!(count(&first, "a", 1), 4, "kept in memory");
    first.stop();
    for path in &torn {
        assert_eq!(fs::read_to_string(path).unwrap(), "{ torn");
    }
}

#[test]
fn memory_is_bounded_where_nothing_can_be_written() {
    let ledger = Ledger::start(Store::new(None, None));
    for number in 1..=20 {
        answer_with(&ledger, "a", number, 2);
    }
    assert_eq!(numbers(&ledger, "a").len(), 20);
    let held = (1..=20).filter(|number| count(&ledger, "a", *number) > 0).count();
    assert_eq!((held, count(&ledger, "a", 20)), (16, 2));
    ledger.stop();
}

#[test]
fn many_sessions_share_a_bounded_memory() {
    let state = tempfile::tempdir().unwrap();
    let ledger = ledger(state.path());
    // One more than are held: that one empties the memory, and loses nothing.
    for number in 0..=books::TRACKS {
        answer_with(&ledger, &format!("s{number}"), 1, 2);
    }
    let last = format!("s{}", books::TRACKS);
    assert_eq!((count(&ledger, &last, 1), ledger.applied.len()), (2, 1));
    ledger.stop();
    let second = self::ledger(state.path());
    for id in ["s0", "s7", last.as_str()] {
        assert_eq!(count(&second, id, 1), 2, "{id}");
    }
    second.stop();
}

#[test]
fn neither_a_pipe_nor_a_hanging_disk_holds_anybody() {
    let state = tempfile::tempdir().unwrap();
    let path = file(state.path(), "a", 1);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for path in [&path, &path.with_file_name(passes::results_name(1))] {
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
    }
    let ledger = ledger(state.path());
    assert!(numbers(&ledger, "a").is_empty());
    answer_with(&ledger, "a", 1, 3);
    assert_eq!(count(&ledger, "a", 1), 3);
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
    let (go_on, hangs) = channel::<()>();
    ledger.push(move |_| assert!(hangs.recv().is_err()));
    assert!(!wait(ledger.before(key("a"), Some(1))));
    assert!(wait(ledger.started(key("a"), None)).is_none());
    drop(go_on);
    assert_eq!(numbers(&ledger, "a"), [1]);
    ledger.stop();
}

#[test]
fn a_panic_costs_one_step() {
    let state = tempfile::tempdir().unwrap();
    let ledger = ledger(state.path());
    ledger.answered(answer("a", 1));
    ledger.push(|_| panic!("in a test"));
    assert_eq!(numbers(&ledger, "a"), [1]);
    ledger.stop();
}
