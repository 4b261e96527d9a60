//! What an agent gets behind a compaction of its host: a text that was written when the context was still
//! there, once for each compaction.
//!
//! The work is a thread's of its own, one thing after another, so that hooks of one session that come at the
//! same time cannot hand out the same text. That a text is handed out is on disk before it is; a
//! daemon that is killed in between leaves it out rather than repeat it. A failure is logged and never
//! reaches a host.

mod files;
mod shelf;
mod text;
mod track;

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use compactd_api::sessions::{Recovery as Shown, RecoveryState};
use dashmap::DashMap;
use tokio::sync::oneshot;

use shelf::{Job, Shelf};
pub use text::text;
pub use track::{Moment, Stage, Track};

use crate::sessions::SessionKey;
use crate::store::Store;
use crate::time::left;

/// A hook waits no longer for what is not an answer: the host waits for the hook.
const SOON: Duration = Duration::from_millis(if cfg!(test) { 20_000 } else { 250 });
/// Nor does a person.
const PATIENT: Duration = Duration::from_secs(2);

/// Of the threads in memory, whether there is a text that may have to be delivered.
type Open = Arc<DashMap<SessionKey, bool>>;

/// A handle to the texts.
pub struct Recovery {
    jobs: Sender<Job>,
    open: Open,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recovery").finish_non_exhaustive()
    }
}

impl Recovery {
    /// Starts the thread.
    #[must_use]
    pub fn start(store: Store) -> Self {
        let (jobs, receive) = channel();
        let open = Open::default();
        let mut shelf = Shelf::new(store, Arc::clone(&open));
        let thread = std::thread::Builder::new()
            .name("recovery".to_owned())
            .spawn(move || shelf.run(&receive))
            .inspect_err(|error| tracing::error!(%error, "nothing is kept over compactions"))
            .ok();
        Self { jobs, open, thread: Mutex::new(thread) }
    }

    /// Finishes what was handed over and ends the thread.
    pub fn stop(&self) {
        let _gone = self.jobs.send(Job::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of recovery had panicked");
        }
    }

    /// `None` if there is no answer within `patience`; what was asked for is done all the same.
    async fn ask<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut Shelf, oneshot::Sender<T>) + Send + 'static,
    ) -> Option<T> {
        let (give, got) = oneshot::channel();
        if self.jobs.send(Job::Do(Box::new(move |shelf| work(shelf, give)))).is_err() {
            tracing::warn!("nothing is kept over compactions any more");
            return None;
        }
        let answered = tokio::time::timeout(patience, got).await;
        if answered.is_err() {
            tracing::warn!("the texts for after compactions do not come in time");
        }
        answered.ok()?.ok()
    }

    /// Whether a text of this thread may have to be delivered. Looks into memory only, but for the first
    /// look at a thread.
    pub async fn is_open(&self, key: &SessionKey) -> bool {
        if let Some(open) = self.open.get(key).map(|open| *open) {
            return open;
        }
        let key = key.clone();
        self.ask(SOON, move |shelf, give| {
            let _gone = give.send(shelf.is_open(&key));
        })
        .await
        .unwrap_or(false)
    }

    /// The host is about to compact a thread that shows `seen` compactions so far. Keeps a text for after
    /// it, if there is one, with the time at which it was written. Gives the number of the compaction; `None`
    /// if the disk refused.
    pub async fn before(
        &self,
        key: SessionKey,
        seen: u64,
        text: Option<(String, String)>,
    ) -> Option<u64> {
        self.ask(SOON, move |shelf, give| {
            let _gone = give.send(shelf.before(&key, seen, text));
        })
        .await
        .flatten()
    }

    /// What the agent of a thread that shows `seen` compactions is to get now, at most once. What does not
    /// come before `until` is not taken.
    pub async fn due(
        &self,
        key: SessionKey,
        seen: u64,
        moment: Moment,
        until: SystemTime,
    ) -> Option<String> {
        // The clock counts too: whoever stood still meanwhile must not take what nobody reads.
        let is_over = move || left(until).is_zero();
        self.ask(left(until), move |shelf, give| {
            if !give.is_closed() && !is_over() {
                shelf.due(&key, seen, moment, |text| !is_over() && give.send(text).is_ok());
            }
        })
        .await
        .flatten()
    }

    /// How far the newest text of a thread is.
    pub async fn shown(&self, key: SessionKey, seen: Option<u64>) -> Option<Shown> {
        let stage = self.ask(PATIENT, move |shelf, give| {
            let _gone = give.send(shelf.stage(&key, seen));
        });
        let (compaction, stage) = stage.await??;
        let state = match stage {
            Stage::Kept => RecoveryState::Kept,
            Stage::Pending => RecoveryState::Pending,
            Stage::Delivered => RecoveryState::Delivered,
        };
        Some(Shown { compaction, state })
    }

    /// Removes old texts. Does not wait for it.
    pub fn clean(&self) {
        let _gone = self.jobs.send(Job::Do(Box::new(Shelf::clean)));
    }
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
