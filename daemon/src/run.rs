//! The daemon's life: start, serve, stop.
//!
//! The socket answers first. Then the folders are walked, the watcher starts, recent sessions are
//! read in the background; old ones are read when they are asked for.

use std::collections::HashSet;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use compactd_api::convert;
use compactd_api::settings::Settings;
use compactd_core::record::Host;
use compactd_core::rules::Profile;
use compactd_transcript::Roots;

use crate::follow::{self, Event, Follower};
use crate::ledger::Ledger;
use crate::recovery::Recovery;
use crate::routes::{self, App};
use crate::serve;
use crate::sessions::Sessions;
use crate::stats::Stats;
use crate::store::Store;
use crate::workers::{Bulk, Change, follow_changes, is_recent};

/// What a daemon runs with.
#[derive(Debug)]
pub struct Setup {
    /// The settings.
    pub settings: Settings,
    /// Where transcripts are looked for.
    pub roots: Roots,
    /// Where snapshots and pins are kept.
    pub store: Store,
    /// Where it listens, for people.
    pub socket: PathBuf,
}

/// The threads and what they share.
struct Workers {
    bulk: Arc<Bulk>,
    sessions: Arc<Sessions>,
    threads: Vec<JoinHandle<()>>,
    follower: Option<Follower>,
}

/// Runs until `shutdown` is done, then finishes what is under way and saves the snapshots.
///
/// # Errors
/// The listener cannot be used.
pub async fn run(
    setup: Setup,
    listener: UnixListener,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let stats = Arc::new(Stats::default());
    let rules = convert::settings(&setup.settings.rules);
    let budget_bytes = setup.settings.index.memory_mb * 1024 * 1024;
    let ledger = Arc::new(Ledger::start(setup.store.clone()));
    let recovery = Arc::new(Recovery::start(setup.store.clone()));
    let sessions = Arc::new(Sessions::new(setup.roots, rules, setup.store, Arc::clone(&stats)));
    let bulk = Arc::new(Bulk::default());
    let app = Arc::new(App {
        sessions: Arc::clone(&sessions),
        stats: Arc::clone(&stats),
        bulk: Arc::clone(&bulk),
        ledger: Arc::clone(&ledger),
        recovery: Arc::clone(&recovery),
        on_manual_compact: setup.settings.codex.on_manual_compact,
        focus_chars: usize::try_from(setup.settings.focus.max_chars).unwrap_or(usize::MAX),
        profile: convert::profile(setup.settings.rules.profile).unwrap_or(Profile::Standard),
        budget_bytes,
        socket: setup.socket,
        started: (SystemTime::now(), Instant::now()),
        polling: AtomicBool::new(false),
        walked: tokio::sync::watch::Sender::new(false),
    });
    let workers = Workers::start(&app, &setup.settings, budget_bytes);
    let observer = serve::Observer::new(move |status| {
        stats.requests.add(1);
        stats.errors.add(u64::from(status >= 400));
    });
    let options = serve::Options { observer, ..serve::Options::default() };
    let router = routes::router(Arc::clone(&app));
    let served = serve::serve(listener, router, shutdown, options).await;
    serve::activation::notify_stopping();
    workers.stop();
    ledger.stop();
    recovery.stop();
    let left = served?;
    if left != serve::Unfinished::default() {
        tracing::warn!(connections = left.connections, tasks = left.tasks, "cut off at the end");
    }
    Ok(())
}

impl Workers {
    fn start(app: &Arc<App>, settings: &Settings, budget_bytes: u64) -> Self {
        let (sessions, bulk) = (Arc::clone(&app.sessions), Arc::clone(&app.bulk));
        let recent = Duration::from_secs(settings.index.recent_days * 86_400);
        let (send, receive) = mpsc::channel();
        let mut threads = Vec::new();
        threads.extend(spawn("bulk", {
            let (sessions, bulk) = (Arc::clone(&sessions), Arc::clone(&bulk));
            let changed = send.clone();
            move || bulk.run(&sessions, budget_bytes, &changed)
        }));
        threads.extend(spawn("live", {
            let (sessions, bulk) = (Arc::clone(&sessions), Arc::clone(&bulk));
            move || follow_changes(&receive, &sessions, &bulk, recent, budget_bytes)
        }));
        let config = follow::Config {
            roots: sessions.roots().clone(),
            poll_ms: settings.watch.poll_ms,
            sweep_s: settings.watch.sweep_s,
        };
        let follower = Follower::start(config, {
            let app = Arc::clone(app);
            move |event| take(&app, &send, recent, event)
        });
        let follower = match follower {
            Ok(follower) => Some(follower),
            Err(error) => {
                tracing::error!(%error, "transcripts are not followed, only read when asked for");
                None
            }
        };
        Self { bulk, sessions, threads, follower }
    }

    fn stop(self) {
        // The follower and the background thread first: they hold the senders that keep the live
        // thread going.
        if let Some(follower) = self.follower {
            follower.shutdown();
        }
        self.bulk.stop();
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a worker thread had panicked");
            }
        }
        self.sessions.save_all();
    }
}

/// Hands an event of the follower to who deals with it. Runs on the follower's thread.
fn take(app: &App, changes: &mpsc::Sender<Change>, recent: Duration, event: Event) {
    match event {
        Event::Found(found) => {
            let session = app.sessions.found(&found);
            // The history of a Codex thread may lie in a file that is found later.
            let waits = found.host == Host::Codex && !*app.walked.borrow();
            if is_recent(found.mtime, recent) && !waits {
                app.bulk.push(session);
            }
        }
        Event::Changed(path) => {
            let _stopping = changes.send(Change::Path(path));
        }
        Event::Gone(path) => {
            let _stopping = changes.send(Change::Gone(path));
        }
        Event::SweepDone { files } => {
            tracing::debug!(files, "folders walked");
            if !app.walked.send_replace(true) {
                for session in app.sessions.all() {
                    let is_codex = session.key.host == Host::Codex;
                    if is_codex && is_recent(session.file().modified, recent) {
                        app.bulk.push(session);
                    }
                }
            }
            let known: HashSet<String> =
                app.sessions.all().iter().map(|session| Store::name(&session.key)).collect();
            let store = app.sessions.store();
            store.clean(|name| known.contains(name));
            let trees = app.sessions.roots().trees();
            // A folder that is empty now may be a disk that is not mounted.
            let is_whole = |host: Host| {
                let name = format!("{}-", host.name());
                known.iter().any(|known| known.starts_with(&name))
                    && trees
                        .iter()
                        .filter(|tree| tree.host == host)
                        .all(|tree| std::fs::read_dir(&tree.path).is_ok())
            };
            app.recovery.clean();
            store.clean_passes(|name| known.contains(name), is_whole, SystemTime::now());
        }
        Event::Degraded { reason } => {
            app.polling.store(true, Ordering::Relaxed);
            tracing::warn!(reason = reason.name(), hint = reason.hint(), "changes are polled for");
        }
        Event::Restored => {
            app.polling.store(false, Ordering::Relaxed);
            tracing::info!("all changes are noticed at once again");
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .inspect_err(|error| tracing::error!(name, %error, "thread cannot be started"))
        .ok()
}
