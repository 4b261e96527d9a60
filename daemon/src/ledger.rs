//! The ledger: what became of every compaction that this daemon answered.
//!
//! Whoever answers a compaction hands over a few owned numbers and goes on; words, JSON and disk are
//! the ledger's own thread's. All else is asked of that thread too, so what is asked sees everything
//! that was handed over before it. A failure is logged and never reaches a host.

mod books;
mod seen;
mod tell;
mod track;

use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use compactd_api::passes::{Pass, PassItem, PassReport};
use tokio::sync::oneshot;

use books::{Applied, Books};
pub use seen::{Answered, Seen};
pub use tell::line;
pub(crate) use tell::rough;
pub use track::{Changed, Track};

use crate::sessions::SessionKey;
use crate::store::Store;

/// A pass older than this is not told of where the transcript cannot say whether it is meant.
const RECENT: Duration = Duration::from_secs(900);
/// A hook waits no longer for the ledger: the host waits for the hook.
const SOON: Duration = Duration::from_millis(250);
/// Nor does a person.
const PATIENT: Duration = Duration::from_secs(2);
/// A compaction that starts by itself when fewer results than this are new was started in vain.
const REFILLED_BELOW: u64 = 3;

/// Of so many sessions an answer is replaced by a later one before it is written.
const WAITING: usize = 64;

type Work = Box<dyn FnOnce(&mut Books) + Send>;

enum Job {
    Do(Work),
    Stop,
}

/// An answer that the ledger's thread has not come to yet.
type Slot = Arc<Mutex<Option<Answered>>>;

/// A handle to the ledger.
pub struct Ledger {
    jobs: Sender<Job>,
    /// Answers that wait with nothing behind them: a later one of the same compaction takes the place, so
    /// that a host that asks again and again costs one write, and no more memory.
    waiting: Mutex<HashMap<SessionKey, (u64, Slot)>>,
    applied: Applied,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").finish_non_exhaustive()
    }
}

impl Ledger {
    /// Starts the ledger's thread.
    #[must_use]
    pub fn start(store: Store) -> Self {
        let (jobs, receive) = channel();
        let applied = Applied::default();
        let mut books = Books::new(store, Arc::clone(&applied));
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || books.run(&receive))
            .inspect_err(|error| tracing::error!(%error, "passes are not remembered"))
            .ok();
        Self { jobs, waiting: Mutex::default(), applied, thread: Mutex::new(thread) }
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
        // What comes from now on comes behind this.
        self.waiting().clear();
        self.send(work);
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<SessionKey, (u64, Slot)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, work: impl FnOnce(&mut Books) + Send + 'static) {
        if self.jobs.send(Job::Do(Box::new(work))).is_err() {
            tracing::warn!("the ledger has ended: a pass is not remembered");
        }
    }

    /// `None` if there is no answer within `patience`: a disk that hangs holds up the ledger's thread,
    /// but nobody who asks. What was asked for is done all the same, once it can be.
    async fn ask<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut Books) -> T + Send + 'static,
    ) -> Option<T> {
        let (give, got) = oneshot::channel();
        self.push(move |books| {
            let _gone = give.send(work(books));
        });
        let answered = tokio::time::timeout(patience, got).await;
        if answered.is_err() {
            tracing::warn!("the ledger does not answer in time");
        }
        answered.ok()?.ok()
    }

    /// A compaction was answered.
    pub fn answered(&self, answered: Answered) {
        let (key, number) = (answered.key.clone(), answered.number);
        let mut waiting = self.waiting();
        if let Some((_, slot)) = waiting.get(&key).filter(|(earlier, _)| *earlier == number) {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.is_some() {
                *slot = Some(answered);
                return;
            }
        }
        if waiting.len() >= WAITING {
            waiting.clear();
        }
        let slot: Slot = Arc::new(Mutex::new(Some(answered)));
        waiting.insert(key, (number, Arc::clone(&slot)));
        self.send(move |books| {
            let taken = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(answered) = taken {
                let key = answered.key.clone();
                books.answered(&key, answered.into_kept());
            }
        });
    }

    /// The caller tells what it did with an answer; gives what is known of the pass now.
    pub async fn reported(
        &self,
        key: SessionKey,
        number: Option<u64>,
        report: PassReport,
    ) -> Option<PassItem> {
        self.ask(PATIENT, move |books| {
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
        self.ask(SOON, work).await.unwrap_or(false)
    }

    /// The host says that a compaction is done, with an empty summary if a plugin answered it.
    pub async fn after(&self, key: SessionKey, is_empty: bool, boundaries: Option<u64>) {
        let work = move |books: &mut Books| {
            books.change(&key, |track| ((), track.after(is_empty, boundaries)));
        };
        let _done = self.ask(SOON, work).await;
    }

    /// A session goes on behind a compaction: the pass to tell the person of, at most once. That it was
    /// told is on disk before this says so.
    pub async fn started(&self, key: SessionKey, boundaries: Option<u64>) -> Option<PassItem> {
        self.ask(SOON, move |books| {
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
        self.ask(PATIENT, move |books| {
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
        self.ask(PATIENT, move |books| {
            let number = books.change(&key, |track| {
                let changed = boundaries.map(|seen| track.boundaries(seen)).unwrap_or_default();
                let newest = track.newest().map(|kept| kept.pass.item.number);
                (number.or(newest), changed)
            })?;
            books.pass(&key, number)
        })
        .await
        .flatten()
    }

    /// Makes [`Self::refilled`] know a session: to be awaited before the session's lock is taken.
    pub async fn know(&self, key: &SessionKey) {
        if !self.applied.contains_key(key) {
            let key = key.clone();
            let work = move |books: &mut Books| books.change(&key, |_| ((), Changed::default()));
            let _known = self.ask(SOON, work).await;
        }
    }

    /// Whether the context filled up again at once: compaction `number` starts, and the one before it
    /// was an applied pass that left all but a few of the `results_now` results. Looks into memory only:
    /// of a session that is not known it says no.
    #[must_use]
    pub fn refilled(&self, key: &SessionKey, number: u64, results_now: u64) -> bool {
        // A pass with this number or a later one was answered for this compaction, and came to nothing.
        let before = self
            .applied
            .get(key)
            .and_then(|applied| applied.iter().rev().find(|(pass, _)| *pass < number).copied());
        before.is_some_and(|(before, left)| {
            before + 1 == number && results_now < left.saturating_add(REFILLED_BELOW)
        })
    }
}

fn is_recent(at: &str) -> bool {
    let Ok(at) = at.parse::<jiff::Timestamp>() else { return false };
    SystemTime::now().duration_since(SystemTime::from(at)).map_or(true, |age| age <= RECENT)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
