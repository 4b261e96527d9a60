//! Tests with real folders, and with watchers that fail as the kernel's limits make them fail.

use super::*;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// A home with one Claude root, and its follower.
struct Scene {
    dir: tempfile::TempDir,
    events: Receiver<Event>,
    follower: Option<Follower>,
}

const NEVER: u64 = 1_000_000;

impl Scene {
    /// Makes the home; the follower is started by [`Scene::start`].
    fn new() -> Self {
        let (_, events) = channel();
        Self { dir: tempfile::tempdir().unwrap(), events, follower: None }
    }

    /// Starts with times so long that only events can help; waits for the first sweep.
    fn watched() -> Self {
        let mut scene = Self::new();
        fs::create_dir_all(scene.project()).unwrap();
        scene.start(NEVER, watch::notify());
        scene.wait(is_sweep);
        scene
    }

    fn start(&mut self, poll_ms: u64, make_watch: MakeWatch) {
        let (sender, events) = channel();
        let roots = Roots::new([self.dir.path().join(".claude")], [self.dir.path().join(".codex")]);
        let config = Config { roots, poll_ms, sweep_s: NEVER };
        let sink = Mutex::new(sender);
        let sink = move |event| drop(sink.lock().unwrap().send(event));
        self.follower = Some(Follower::start_with(config, make_watch, sink).unwrap());
        self.events = events;
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join(".claude/projects/-w")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    /// Waits for an event and gives all up to it.
    fn wait(&self, is_wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut seen = Vec::new();
        while let Ok(event) = self.events.recv_timeout(deadline - Instant::now()) {
            let is_last = is_wanted(&event);
            seen.push(event);
            if is_last {
                return seen;
            }
        }
        panic!("not seen in time, only {seen:?}");
    }

    fn wait_found(&self, path: &Path) -> Vec<Event> {
        self.wait(|event| matches!(event, Event::Found(found) if found.path == path))
    }

    fn wait_changed(&self, path: &Path) -> Vec<Event> {
        self.wait(|event| matches!(event, Event::Changed(changed) if changed == path))
    }

    fn wait_gone(&self, path: &Path) -> Vec<Event> {
        self.wait(|event| matches!(event, Event::Gone(gone) if gone == path))
    }
}

fn is_sweep(event: &Event) -> bool {
    matches!(event, Event::SweepDone { .. })
}

fn append(path: &Path) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(b"{}\n").unwrap();
}

#[test]
fn tells_what_exists_first_then_appends_and_the_end() {
    let mut scene = Scene::new();
    let file = scene.file("s.jsonl");
    fs::create_dir_all(scene.project().join("s/subagents")).unwrap();
    append(&file);
    append(&scene.file("s/subagents/agent-a.jsonl"));
    append(&scene.file("notes.txt"));
    scene.start(NEVER, watch::notify());
    let start = scene.wait(is_sweep);
    assert_eq!(start.len(), 3, "{start:?}");
    assert_eq!(start[2], Event::SweepDone { files: 2 });
    for _ in 0..20 {
        append(&file);
        scene.wait_changed(&file);
    }
    append(&scene.file("s/subagents/agent-a.jsonl"));
    scene.wait_changed(&scene.file("s/subagents/agent-a.jsonl"));
    scene.follower.take().unwrap().shutdown();
    assert!(scene.events.iter().count() < 30, "the sink is dropped with the thread");
}

#[test]
fn reading_a_transcript_is_no_event() {
    let scene = Scene::watched();
    let (read, marker) = (scene.file("s.jsonl"), scene.file("t.jsonl"));
    append(&read);
    scene.wait_found(&read);
    append(&marker);
    scene.wait_found(&marker);
    for _ in 0..50 {
        fs::read(&read).unwrap();
    }
    append(&marker);
    let seen = scene.wait_changed(&marker);
    let reads = seen.iter().filter(|event| **event == Event::Changed(read.clone())).count();
    assert!(reads <= 1, "{seen:?}");
}

#[test]
fn a_file_made_at_once_in_a_new_folder_is_never_lost() {
    let scene = Scene::watched();
    let mut wanted: Vec<PathBuf> = Vec::new();
    for number in 0..200 {
        let dir = scene.dir.path().join(format!(".claude/projects/-p{number}/s/subagents"));
        fs::create_dir_all(&dir).unwrap();
        append(&dir.join("agent-a.jsonl"));
        append(&dir.join("../../s.jsonl"));
        wanted.push(dir.join("agent-a.jsonl"));
        wanted.push(scene.dir.path().join(format!(".claude/projects/-p{number}/s.jsonl")));
    }
    let mut missing: std::collections::HashSet<_> = wanted.iter().cloned().collect();
    while !missing.is_empty() {
        for event in scene.wait(|event| matches!(event, Event::Found(_))) {
            if let Event::Found(found) = event {
                assert!(missing.remove(&found.path), "found twice: {}", found.path.display());
            }
        }
    }
    for path in &wanted {
        append(path);
        scene.wait_changed(path);
    }
}

#[test]
fn missing_roots_are_found_when_they_are_made_step_by_step() {
    let mut scene = Scene::new();
    scene.start(NEVER, watch::notify());
    assert_eq!(scene.wait(is_sweep), [Event::SweepDone { files: 0 }]);
    fs::create_dir_all(scene.project()).unwrap();
    append(&scene.file("s.jsonl"));
    scene.wait_found(&scene.file("s.jsonl"));
    let day = scene.dir.path().join(".codex/sessions/2026/11/30");
    fs::create_dir_all(&day).unwrap();
    let id = "01a22bab-7fc4-7621-9bf6-c6757fc8279e";
    let rollout = day.join(format!("rollout-2026-11-30T08-56-12-{id}.jsonl"));
    append(&rollout);
    scene.wait_found(&rollout);
    // Taken away and made again.
    fs::rename(scene.dir.path().join(".claude/projects"), scene.dir.path().join("old")).unwrap();
    scene.wait_gone(&scene.file("s.jsonl"));
    fs::create_dir_all(scene.project()).unwrap();
    append(&scene.file("t.jsonl"));
    scene.wait_found(&scene.file("t.jsonl"));
}

#[test]
fn replaced_moved_and_deleted_files_are_told() {
    let scene = Scene::watched();
    let (old, new) = (scene.file("s.jsonl"), scene.file("t.jsonl"));
    append(&old);
    scene.wait_found(&old);
    fs::write(scene.file("s.tmp"), "{}\n{}\n").unwrap();
    fs::rename(scene.file("s.tmp"), &old).unwrap();
    scene.wait_changed(&old);
    fs::rename(&old, &new).unwrap();
    let moved = scene.wait_found(&new);
    assert!(moved.contains(&Event::Gone(old)), "{moved:?}");
    fs::remove_file(&new).unwrap();
    scene.wait_gone(&new);
}

#[test]
fn a_moved_folder_is_followed_and_also_when_it_comes_back() {
    let scene = Scene::watched();
    let aside = scene.dir.path().join(".claude/projects/-aside");
    let agent = "s/subagents/agent-a.jsonl";
    fs::create_dir_all(scene.project().join("s/subagents")).unwrap();
    append(&scene.file(agent));
    scene.wait_found(&scene.file(agent));
    fs::rename(scene.project(), &aside).unwrap();
    scene.wait_found(&aside.join(agent));
    append(&aside.join(agent));
    scene.wait_changed(&aside.join(agent));
    fs::rename(&aside, scene.project()).unwrap();
    scene.wait_found(&scene.file(agent));
    append(&scene.file(agent));
    scene.wait_changed(&scene.file(agent));
    // Away and back before anybody looks.
    for _ in 0..20 {
        fs::rename(scene.project(), &aside).unwrap();
        fs::rename(&aside, scene.project()).unwrap();
    }
    scene.follower.as_ref().unwrap().sweep();
    scene.wait(is_sweep);
    append(&scene.file("s.jsonl"));
    scene.wait_found(&scene.file("s.jsonl"));
    append(&scene.file(agent));
    scene.wait_changed(&scene.file(agent));
}

#[test]
fn links_to_folders_do_not_double_files_or_loop() {
    let scene = Scene::watched();
    append(&scene.file("s.jsonl"));
    scene.wait_found(&scene.file("s.jsonl"));
    let projects = scene.dir.path().join(".claude/projects");
    std::os::unix::fs::symlink(&projects, projects.join("-loop")).unwrap();
    std::os::unix::fs::symlink(scene.project(), projects.join("-same")).unwrap();
    scene.follower.as_ref().unwrap().sweep();
    let seen = scene.wait(is_sweep);
    assert_eq!(seen.last(), Some(&Event::SweepDone { files: 1 }), "{seen:?}");
    let elsewhere = scene.dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    append(&elsewhere.join("t.jsonl"));
    std::os::unix::fs::symlink(&elsewhere, projects.join("-linked")).unwrap();
    scene.wait_found(&projects.join("-linked/t.jsonl"));
    append(&elsewhere.join("t.jsonl"));
    scene.wait_changed(&projects.join("-linked/t.jsonl"));
}

/// Knobs and counters of a [`Limited`] watcher.
#[derive(Default)]
struct Limits {
    /// Watches that succeed before the limit.
    free: AtomicUsize,
    /// Making a watcher fails.
    refuses: AtomicBool,
    /// Events of the kernel are lost.
    is_deaf: AtomicBool,
    signals: Mutex<Option<Signals>>,
}

struct Limited {
    limits: Arc<Limits>,
    real: notify::RecommendedWatcher,
}

impl Watch for Limited {
    fn watch(&mut self, dir: &Path, _: Reach) -> Result<(), WatchError> {
        use notify::Watcher;
        let take = |free: usize| free.checked_sub(1);
        if self.limits.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
            return Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch).into());
        }
        Ok(self.real.watch(dir, notify::RecursiveMode::NonRecursive)?)
    }

    fn unwatch(&mut self, dir: &Path) {
        use notify::Watcher;
        drop(self.real.unwatch(dir));
    }
}

fn limited(limits: &Arc<Limits>) -> MakeWatch {
    let limits = Arc::clone(limits);
    Box::new(move |signals| {
        if limits.refuses.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(24).into());
        }
        *limits.signals.lock().unwrap() = Some(signals.clone());
        let limits = Arc::clone(&limits);
        let hears = Arc::clone(&limits);
        let handler = move |event| {
            if !hears.is_deaf.load(Ordering::SeqCst) {
                signals.notify(event);
            }
        };
        let real = notify::recommended_watcher(handler)?;
        Ok(Box::new(Limited { limits, real }))
    })
}

#[test]
fn an_overflow_leads_to_a_sweep_that_finds_what_was_lost() {
    let limits = Arc::new(Limits { free: 1000.into(), ..Limits::default() });
    let mut scene = Scene::new();
    fs::create_dir_all(scene.project()).unwrap();
    append(&scene.file("s.jsonl"));
    append(&scene.file("t.jsonl"));
    scene.start(NEVER, limited(&limits));
    scene.wait(is_sweep);
    limits.is_deaf.store(true, Ordering::SeqCst);
    append(&scene.file("s.jsonl"));
    fs::remove_file(scene.file("t.jsonl")).unwrap();
    fs::create_dir_all(scene.file("u/subagents")).unwrap();
    append(&scene.file("u/subagents/agent-a.jsonl"));
    let overflow =
        notify::Event::new(notify::EventKind::Other).set_flag(notify::event::Flag::Rescan);
    limits.signals.lock().unwrap().as_ref().unwrap().notify(Ok(overflow));
    let seen = scene.wait(is_sweep);
    assert!(seen.contains(&Event::Changed(scene.file("s.jsonl"))), "{seen:?}");
    assert!(seen.contains(&Event::Gone(scene.file("t.jsonl"))), "{seen:?}");
    assert_eq!(seen.len(), 4, "{seen:?}");
    // And the new folder is watched from then on.
    limits.is_deaf.store(false, Ordering::SeqCst);
    append(&scene.file("u/subagents/agent-a.jsonl"));
    scene.wait_changed(&scene.file("u/subagents/agent-a.jsonl"));
}

#[test]
fn without_a_watcher_everything_is_polled_until_there_is_one() {
    let limits = Arc::new(Limits { free: 1000.into(), ..Limits::default() });
    limits.refuses.store(true, Ordering::SeqCst);
    let mut scene = Scene::new();
    fs::create_dir_all(scene.project()).unwrap();
    append(&scene.file("s.jsonl"));
    scene.start(10, limited(&limits));
    let degraded = Event::Degraded { reason: Reason::InstanceLimit };
    assert!(scene.wait(is_sweep).contains(&degraded));
    append(&scene.file("s.jsonl"));
    scene.wait_changed(&scene.file("s.jsonl"));
    fs::create_dir_all(scene.file("s/subagents")).unwrap();
    append(&scene.file("s/subagents/agent-a.jsonl"));
    scene.wait_found(&scene.file("s/subagents/agent-a.jsonl"));
    fs::remove_file(scene.file("s.jsonl")).unwrap();
    scene.wait_gone(&scene.file("s.jsonl"));
    fs::create_dir_all(scene.dir.path().join(".codex/archived_sessions")).unwrap();
    let id = "01a22bab-7fc4-7621-9bf6-c6757fc8279e";
    let name = format!(".codex/archived_sessions/rollout-2026-11-30T08-56-12-{id}.jsonl");
    append(&scene.dir.path().join(&name));
    scene.wait_found(&scene.dir.path().join(&name));
    limits.refuses.store(false, Ordering::SeqCst);
    scene.follower.as_ref().unwrap().sweep();
    assert!(scene.wait(is_sweep).contains(&Event::Restored));
}

#[test]
fn folders_over_the_limit_are_polled_and_the_others_watched() {
    let mut scene = Scene::new();
    for number in 0..30 {
        let dir = scene.dir.path().join(format!(".claude/projects/-p{number}"));
        fs::create_dir_all(&dir).unwrap();
        append(&dir.join("s.jsonl"));
    }
    let limits = Arc::new(Limits { free: 10.into(), ..Limits::default() });
    scene.start(20, limited(&limits));
    let seen = scene.wait(is_sweep);
    assert!(seen.contains(&Event::Degraded { reason: Reason::WatchLimit }), "{seen:?}");
    assert_eq!(seen.last(), Some(&Event::SweepDone { files: 30 }));
    for number in 0..30 {
        let dir = scene.dir.path().join(format!(".claude/projects/-p{number}"));
        append(&dir.join("s.jsonl"));
        scene.wait_changed(&dir.join("s.jsonl"));
        append(&dir.join("t.jsonl"));
        scene.wait_found(&dir.join("t.jsonl"));
    }
}

#[test]
fn reasons_have_names_and_hints() {
    let of = |errno| WatchError::from(io::Error::from_raw_os_error(errno));
    assert_eq!(of(28), WatchError::Limit(Reason::WatchLimit));
    assert_eq!(of(24), WatchError::Limit(Reason::InstanceLimit));
    assert_eq!(of(2), WatchError::Missing);
    assert_eq!(of(13), WatchError::Denied);
    for reason in [Reason::WatchLimit, Reason::InstanceLimit, Reason::Unavailable("x".into())] {
        assert!(!reason.name().is_empty() && reason.hint().contains("polled"));
        assert!(!reason.to_string().is_empty());
    }
}
