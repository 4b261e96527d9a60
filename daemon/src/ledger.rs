//! The ledger: what became of every compaction that this daemon answered.
//!
//! Whoever answers a compaction hands over a few owned numbers and goes on; words, JSON and disk are
//! the ledger's own thread's. All else is asked of that thread too, so what is asked sees everything
//! that was handed over before it. A failure is logged and never reaches a host.

mod seen;
mod tell;
mod track;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use compactd_api::passes::{self, KeptPass, Pass, PassItem, PassReport};
use dashmap::DashMap;
use std::sync::Arc;
use tokio::sync::oneshot;

pub use seen::{Answered, Seen};
pub use tell::line;
pub use track::{Changed, Track};

use crate::sessions::SessionKey;
use crate::store::Store;

/// A pass older than this is not told of where the transcript cannot say whether it is meant.
const RECENT: Duration = Duration::from_secs(900);
/// So many sessions have their passes in memory.
const TRACKS: usize = 512;
/// A compaction that starts by itself when fewer results than this are new was started in vain.
const REFILLED_BELOW: u64 = 3;

type Work = Box<dyn FnOnce(&mut Books) + Send>;

enum Job {
    Do(Work),
    Stop,
}

/// What a session's next compaction wants to know at once: the number of the newest pass that was
/// applied, and the results that it left.
type Left = Arc<DashMap<SessionKey, Option<(u64, u64)>>>;

/// A handle to the ledger.
pub struct Ledger {
    jobs: Sender<Job>,
    left: Left,
    store: Store,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").finish_non_exhaustive()
    }
}

/// What the thread holds.
struct Books {
    store: Store,
    tracks: HashMap<SessionKey, Track>,
    left: Left,
}

impl Ledger {
    /// Starts the ledger's thread.
    #[must_use]
    pub fn start(store: Store) -> Self {
        let (jobs, receive) = channel();
        let left = Left::default();
        let mut books =
            Books { store: store.clone(), tracks: HashMap::new(), left: Arc::clone(&left) };
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || books.run(&receive))
            .inspect_err(|error| tracing::error!(%error, "passes are not remembered"))
            .ok();
        Self { jobs, left, store, thread: Mutex::new(thread) }
    }

    /// Finishes what was handed over and ends the thread.
    pub fn stop(&self) {
        let _gone = self.jobs.send(Job::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the ledger's thread had panicked");
        }
    }

    fn push(&self, work: impl FnOnce(&mut Books) + Send + 'static) {
        if self.jobs.send(Job::Do(Box::new(work))).is_err() {
            tracing::warn!("the ledger has ended: a pass is not remembered");
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Books) -> T + Send + 'static,
    ) -> Option<T> {
        let (give, got) = oneshot::channel();
        self.push(move |books| {
            let _gone = give.send(work(books));
        });
        got.await.ok()
    }

    /// A compaction was answered.
    pub fn answered(&self, answered: Answered) {
        self.push(move |books| {
            let key = answered.key.clone();
            let kept = answered.into_kept();
            books.change(&key, |track| ((), track.answered(kept)));
        });
    }

    /// The caller tells what it did with an answer; gives what is known of the pass now.
    pub async fn reported(
        &self,
        key: SessionKey,
        number: Option<u64>,
        report: PassReport,
    ) -> Option<PassItem> {
        self.ask(move |books| {
            books.change(&key, |track| {
                let newest = track.newest().map(|kept| kept.pass.item.number);
                let number = number.or(newest).unwrap_or_default();
                match track.reported(number, &report) {
                    Some(changed) => {
                        (track.get(number).map(|kept| kept.pass.item.clone()), changed)
                    }
                    None => (None, Changed::default()),
                }
            })
        })
        .await
        .flatten()
    }

    /// The host is about to ask for its own summary as compaction `number`: whether the caller has the
    /// focus text for it already.
    pub async fn before(&self, key: SessionKey, number: Option<u64>) -> bool {
        let work = move |books: &mut Books| books.change(&key, |track| track.before(number));
        self.ask(work).await.unwrap_or(false)
    }

    /// The host says that a compaction is done, with an empty summary if a plugin answered it.
    pub async fn after(&self, key: SessionKey, is_empty: bool, boundaries: Option<u64>) {
        let work = move |books: &mut Books| {
            books.change(&key, |track| ((), track.after(is_empty, boundaries)));
        };
        let _done = self.ask(work).await;
    }

    /// A session goes on behind a compaction: the pass to tell the person of, at most once. That it was
    /// told is on disk before this says so.
    pub async fn started(&self, key: SessionKey, boundaries: Option<u64>) -> Option<PassItem> {
        self.ask(move |books| {
            books.change(&key, |track| {
                let (told, changed) = track.started(boundaries, is_recent);
                (told.map(|kept| kept.pass.item.clone()), changed)
            })
        })
        .await
        .flatten()
    }

    /// A session ends.
    pub fn closed(&self, key: SessionKey, boundaries: Option<u64>) {
        self.push(move |books| books.change(&key, |track| ((), track.closed(boundaries))));
    }

    /// The passes of a session, the newest first, and the number of its newest compaction as far as
    /// they tell.
    pub async fn list(
        &self,
        key: SessionKey,
        boundaries: Option<u64>,
    ) -> Option<(Vec<PassItem>, u64)> {
        self.ask(move |books| {
            books.change(&key, |track| {
                let changed = boundaries.map(|seen| track.boundaries(seen)).unwrap_or_default();
                let items = track.newest_first().map(|kept| kept.pass.item.clone()).collect();
                ((items, track.compaction()), changed)
            })
        })
        .await
    }

    /// A pass with its results; the newest if no number is given.
    pub async fn pass(
        &self,
        key: SessionKey,
        number: Option<u64>,
        boundaries: Option<u64>,
    ) -> Option<Pass> {
        self.ask(move |books| {
            let number = books.change(&key, |track| {
                let changed = boundaries.map(|seen| track.boundaries(seen)).unwrap_or_default();
                let newest = track.newest().map(|kept| kept.pass.item.number);
                (number.or(newest), changed)
            })?;
            books.whole(&key, number).map(|kept| kept.pass)
        })
        .await
        .flatten()
    }

    /// Whether the context filled up again at once: compaction `number` starts, and the one before it
    /// was an applied pass that left all but a few of the `results_now` results.
    #[must_use]
    pub fn refilled(&self, key: &SessionKey, number: u64, results_now: u64) -> bool {
        let known = self.left.get(key).map(|left| *left);
        let left = known.unwrap_or_else(|| {
            // Not asked for since the start: the one file that matters is read here.
            let before = number.checked_sub(1)?;
            let bytes = self.store.pass(key, before).ok().flatten()?;
            Track::of([passes::parse(&bytes).ok()?]).newest_applied()
        });
        left.is_some_and(|(before, left)| {
            before + 1 == number && results_now < left.saturating_add(REFILLED_BELOW)
        })
    }
}

fn is_recent(at: &str) -> bool {
    let Ok(at) = at.parse::<jiff::Timestamp>() else { return false };
    SystemTime::now().duration_since(SystemTime::from(at)).map_or(true, |age| age <= RECENT)
}

impl Books {
    fn run(&mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Do(work) => {
                    if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
                        tracing::error!("a step of the ledger panicked");
                        // What is on disk is whole; what was in memory may not be.
                        self.tracks.clear();
                    }
                }
                Job::Stop => return,
            }
        }
    }

    /// Changes the passes of a session, and writes what changed.
    fn change<T>(&mut self, key: &SessionKey, work: impl FnOnce(&mut Track) -> (T, Changed)) -> T {
        if !self.tracks.contains_key(key) {
            if self.tracks.len() >= TRACKS {
                self.tracks.clear();
            }
            let loaded = self.load(key);
            self.tracks.insert(key.clone(), loaded);
        }
        let (answer, changed) = match self.tracks.get_mut(key) {
            Some(track) => work(track),
            None => work(&mut Track::default()),
        };
        for number in &changed.written {
            self.write(key, *number);
        }
        for number in &changed.removed {
            if let Err(error) = self.store.remove_pass(key, *number) {
                tracing::warn!(session = key.id, number, %error, "an old pass stays");
            }
        }
        if let Some(track) = self.tracks.get(key) {
            self.left.insert(key.clone(), track.newest_applied());
        }
        answer
    }

    /// What is on disk, without the results. Files of other versions are left as they are.
    fn load(&self, key: &SessionKey) -> Track {
        let numbers = self.store.pass_numbers(key).unwrap_or_else(|error| {
            tracing::warn!(session = key.id, %error, "passes cannot be read");
            Vec::new()
        });
        let kept = numbers.into_iter().filter_map(|number| self.read(key, number)).map(|kept| {
            let pass = Pass { results: Vec::new(), ..kept.pass };
            KeptPass { pass, ..kept }
        });
        Track::of(kept)
    }

    fn read(&self, key: &SessionKey, number: u64) -> Option<KeptPass> {
        let bytes = match self.store.pass(key, number) {
            Ok(bytes) => bytes?,
            Err(error) => {
                tracing::warn!(session = key.id, number, %error, "a pass cannot be read");
                return None;
            }
        };
        match passes::parse(&bytes) {
            // A file that was put there under another number is none of ours.
            Ok(kept) => Some(kept).filter(|kept| kept.pass.item.number == number),
            Err(error) => {
                tracing::warn!(session = key.id, number, %error, "a pass is left as it is");
                None
            }
        }
    }

    /// A pass with its results.
    fn whole(&self, key: &SessionKey, number: u64) -> Option<KeptPass> {
        let known = self.tracks.get(key)?.get(number)?;
        if !known.pass.results.is_empty() || known.pass.item.counters.results == 0 {
            return Some(known.clone());
        }
        let results = self.read(key, number).map(|kept| kept.pass.results).unwrap_or_default();
        let pass = Pass { results, ..known.pass.clone() };
        Some(KeptPass { pass, ..known.clone() })
    }

    /// Writes a pass. Its results leave the memory then: they may be thousands.
    fn write(&mut self, key: &SessionKey, number: u64) {
        let Some(whole) = self.whole(key, number) else { return };
        let foreign = self.store.pass(key, number).ok().flatten().is_some_and(|bytes| {
            matches!(passes::parse(&bytes), Err(passes::PassError::Format(_)))
        });
        if foreign {
            tracing::warn!(session = key.id, number, "a pass of another version is in the way");
            return;
        }
        match self.store.save_pass(key, number, &passes::print(&whole)) {
            Ok(true) => {
                let track = self.tracks.get_mut(key);
                if let Some(kept) = track.and_then(|track| track.get_mut(number)) {
                    kept.pass.results = Vec::new();
                }
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(session = key.id, number, %error, "a pass is not on disk");
            }
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
