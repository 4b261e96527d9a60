use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use compactd_core::record::Host;

use super::*;

fn key(id: &str) -> SessionKey {
    SessionKey { host: Host::Codex, id: id.to_owned() }
}

fn soon() -> SystemTime {
    SystemTime::now() + SOON
}

fn start(state: &Path) -> Recovery {
    Recovery::start(Store::new(None, Some(state.to_path_buf())))
}

fn written(text: &str) -> Option<(String, String)> {
    Some(("2026-11-30T08:16:00Z".to_owned(), text.to_owned()))
}

#[tokio::test]
async fn a_text_goes_out_once_over_restarts() {
    let state = tempfile::tempdir().unwrap();
    let recovery = start(state.path());
    assert!(!recovery.is_open(&key("a")).await);
    assert_eq!(recovery.before(key("a"), 0, written("one")).await, Some(1));
    assert!(recovery.is_open(&key("a")).await);
    assert_eq!(recovery.due(key("a"), 0, Moment::Compacted, soon()).await, None);
    recovery.stop();
    let recovery = start(state.path());
    assert!(recovery.is_open(&key("a")).await);
    let kept = Shown { compaction: 1, state: RecoveryState::Kept };
    assert_eq!(recovery.shown(key("a"), Some(0)).await, Some(kept));
    let pending = Shown { compaction: 1, state: RecoveryState::Pending };
    assert_eq!(recovery.shown(key("a"), Some(1)).await, Some(pending));
    assert_eq!(recovery.due(key("a"), 1, Moment::Compacted, soon()).await.as_deref(), Some("one"));
    assert_eq!(recovery.due(key("a"), 1, Moment::Compacted, soon()).await, None);
    assert!(!recovery.is_open(&key("a")).await);
    recovery.stop();
    let recovery = start(state.path());
    assert_eq!(recovery.due(key("a"), 1, Moment::GoesOn, soon()).await, None);
    let delivered = Shown { compaction: 1, state: RecoveryState::Delivered };
    assert_eq!(recovery.shown(key("a"), Some(1)).await, Some(delivered));
    assert_eq!(recovery.shown(key("b"), Some(1)).await, None);
    recovery.stop();
}

#[tokio::test]
async fn hooks_at_the_same_time_get_it_once() {
    let state = tempfile::tempdir().unwrap();
    let recovery = Arc::new(start(state.path()));
    recovery.before(key("a"), 0, written("one")).await;
    let asked: Vec<_> = (0..20)
        .map(|_| {
            let recovery = Arc::clone(&recovery);
            tokio::spawn(async move { recovery.due(key("a"), 1, Moment::GoesOn, soon()).await })
        })
        .collect();
    let mut got = 0;
    for asked in asked {
        got += usize::from(asked.await.unwrap().is_some());
    }
    assert_eq!(got, 1);
    recovery.stop();
}

#[tokio::test]
async fn what_the_disk_refuses_is_not_said() {
    let state = tempfile::tempdir().unwrap();
    let recovery = start(state.path());
    recovery.before(key("a"), 0, written("one")).await;
    let thread = state.path().join("recovery/codex-a/thread.json");
    let before = fs::read(&thread).unwrap();
    // Root may write where modes say no: a folder in the place of the file is refused to anyone.
    fs::remove_file(&thread).unwrap();
    fs::create_dir_all(thread.join("x")).unwrap();
    assert_eq!(recovery.due(key("a"), 1, Moment::Compacted, soon()).await, None);
    assert!(recovery.is_open(&key("a")).await);
    fs::remove_dir_all(&thread).unwrap();
    fs::write(&thread, before).unwrap();
    assert_eq!(recovery.due(key("a"), 1, Moment::GoesOn, soon()).await.as_deref(), Some("one"));
    assert_eq!(fs::metadata(&thread).unwrap().permissions().mode() & 0o777, 0o600);
    recovery.stop();
    // Without a state folder nothing is kept.
    let nowhere = Recovery::start(Store::default());
    assert_eq!(nowhere.before(key("a"), 0, written("one")).await, None);
    assert_eq!(nowhere.due(key("a"), 1, Moment::Compacted, soon()).await, None);
    nowhere.stop();
}

#[tokio::test]
async fn files_of_another_version_are_left_alone() {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("recovery/codex-a");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("thread.json"), r#"{"format":2}"#).unwrap();
    let recovery = start(state.path());
    assert!(!recovery.is_open(&key("a")).await);
    assert_eq!(recovery.before(key("a"), 0, written("one")).await, None);
    assert_eq!(recovery.due(key("a"), 1, Moment::Compacted, soon()).await, None);
    recovery.clean();
    recovery.stop();
    assert_eq!(fs::read_to_string(folder.join("thread.json")).unwrap(), r#"{"format":2}"#);
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}

#[tokio::test]
async fn the_newest_few_stay_on_disk() {
    let state = tempfile::tempdir().unwrap();
    let recovery = start(state.path());
    for seen in 0..6 {
        recovery.before(key("a"), seen, written(&format!("text {seen}"))).await;
    }
    let folder = state.path().join("recovery/codex-a");
    let mut names: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["4.md", "5.md", "6.md", "thread.json"]);
    let text = recovery.due(key("a"), 6, Moment::Compacted, soon()).await.unwrap();
    assert_eq!(text, "text 3\n\ntext 4\n\ntext 5");
    // Threads that fell out of memory are read again.
    for other in 0..10 {
        assert!(!recovery.is_open(&key(&other.to_string())).await);
    }
    assert_eq!(recovery.due(key("a"), 6, Moment::Compacted, soon()).await, None);
    recovery.stop();
}

#[test]
fn a_text_that_nobody_takes_is_not_lost() {
    let state = tempfile::tempdir().unwrap();
    let store = Store::new(None, Some(state.path().to_path_buf()));
    let mut shelf = Shelf::new(store.clone(), Open::default());
    shelf.before(&key("a"), 0, written("one"));
    shelf.before(&key("a"), 1, written("two"));
    let mut offered = Vec::new();
    for is_taken in [false, true, true] {
        shelf.due(&key("a"), 2, Moment::Compacted, |text| {
            offered.push(text);
            is_taken
        });
        // On disk it is as in memory.
        let mut again = Shelf::new(store.clone(), Open::default());
        assert_eq!(again.is_open(&key("a")), shelf.is_open(&key("a")));
    }
    let both = Some("one\n\ntwo".to_owned());
    assert_eq!(offered, [both.clone(), both, None]);
}

#[tokio::test]
async fn an_asker_that_does_not_wait_takes_nothing() {
    let state = tempfile::tempdir().unwrap();
    let recovery = start(state.path());
    recovery.before(key("a"), 0, written("one")).await;
    // The thread is busy until the asker is gone.
    let (begin, begun) = channel::<()>();
    let busy = Job::Do(Box::new(move |_| assert!(begun.recv().is_err())));
    recovery.jobs.send(busy).unwrap();
    assert_eq!(recovery.due(key("a"), 1, Moment::Compacted, SystemTime::now()).await, None);
    drop(begin);
    let got = recovery.due(key("a"), 1, Moment::Compacted, soon()).await;
    assert_eq!(got.as_deref(), Some("one"));
    recovery.stop();
}
