//! The threads beside the runtime: one that follows what changes, one that reads whole sessions
//! when nothing else wants the processor, and the upkeep of memory and snapshots.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use compactd_transcript::LineReader;
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use crate::sessions::{Session, Sessions};

/// How often memory and snapshots are looked after when nothing happens.
const UPKEEP: Duration = Duration::from_secs(20);

/// A session is saved when it has grown by this, or at the next upkeep.
const SAVE_BYTES: u64 = 8 * 1024 * 1024;

/// Work for the background thread.
#[derive(Debug, Default)]
struct Queue {
    sessions: VecDeque<Arc<Session>>,
    /// The one being read. It may wait once more: it changed meanwhile.
    busy: Option<Arc<Session>>,
    tidy: bool,
    stop: bool,
}

/// Whole sessions that wait to be read. One thread at `SCHED_IDLE` takes them: under any other
/// policy it would slow the requests by a factor.
#[derive(Debug, Default)]
pub struct Bulk {
    queue: Mutex<Queue>,
    wake: Condvar,
}

impl Bulk {
    /// Puts a session at the end of the queue, unless it waits already.
    pub fn push(&self, session: Arc<Session>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if !queue.sessions.iter().any(|waiting| Arc::ptr_eq(waiting, &session)) {
            queue.sessions.push_back(session);
            self.wake.notify_one();
        }
    }

    /// Sessions that wait or are being read.
    #[must_use]
    pub fn len(&self) -> usize {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.sessions.len() + usize::from(queue.busy.is_some())
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a session waits or is being read.
    #[must_use]
    pub fn holds(&self, session: &Arc<Session>) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.sessions.iter().chain(&queue.busy).any(|waiting| Arc::ptr_eq(waiting, session))
    }

    /// Asks for an upkeep now if the indexes take more than they may.
    pub fn tidy_above(&self, index_bytes: u64, budget_bytes: u64) {
        if index_bytes > budget_bytes {
            self.queue.lock().unwrap_or_else(PoisonError::into_inner).tidy = true;
            self.wake.notify_one();
        }
    }

    /// Ends the thread after the step it is in.
    pub fn stop(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
        self.wake.notify_all();
    }

    fn stopped(&self) -> bool {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).stop
    }

    /// The next session, busy until [`Bulk::done`]; `None` when an upkeep is due.
    fn next(&self) -> Option<Arc<Session>> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut queue, _) = self
            .wake
            .wait_timeout_while(queue, UPKEEP, |queue| {
                queue.sessions.is_empty() && !queue.tidy && !queue.stop
            })
            .unwrap_or_else(PoisonError::into_inner);
        queue.tidy = false;
        queue.busy = queue.sessions.pop_front();
        queue.busy.clone()
    }

    fn done(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).busy = None;
    }

    /// The thread's loop. What needs a session's lock goes to `changed`: a request would wait for
    /// this thread, which runs only when nothing else does.
    pub fn run(&self, sessions: &Sessions, budget_bytes: u64, changed: &Sender<Change>) {
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        if let Err(error) =
            set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle)
        {
            tracing::warn!(?error, "background thread runs at normal priority");
        }
        let mut reader = LineReader::new();
        while !self.stopped() {
            let Some(session) = self.next() else {
                let _stopping = changed.send(Change::Upkeep);
                continue;
            };
            if Sessions::is_ready(&session) {
                // It changed while it was being read: not for this thread to hold its lock.
                let _stopping = changed.send(Change::Path(session.file().path));
            } else {
                let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    sessions.build(&session, &mut reader, || {
                        !self.stopped() && !Sessions::is_ready(&session)
                    })
                }));
                if read.is_err() {
                    tracing::error!(session = session.key.id, "reading a session panicked");
                    sessions.mark_broken(&session, "reading it failed inside compactd");
                    reader = LineReader::new();
                }
            }
            if session.unsaved_bytes() > SAVE_BYTES || sessions.index_bytes() > budget_bytes {
                let _stopping = changed.send(Change::Upkeep);
            }
            self.done();
        }
    }
}

/// Whether a session that changed then is read without being asked for.
#[must_use]
pub fn is_recent(modified: SystemTime, recent: Duration) -> bool {
    modified.elapsed().map_or(true, |age| age <= recent)
}

/// What the follower hands to the thread that applies it.
#[derive(Debug)]
pub enum Change {
    /// A transcript that may have grown or is new.
    Path(PathBuf),
    /// A transcript that is gone.
    Gone(PathBuf),
    /// Snapshots to write and memory to give back.
    Upkeep,
}

/// Follows changes: ready sessions catch up here, cold ones that change go to the queue.
pub fn follow_changes(
    changes: &std::sync::mpsc::Receiver<Change>,
    sessions: &Sessions,
    bulk: &Bulk,
    recent: Duration,
    budget_bytes: u64,
) {
    let mut reader = LineReader::new();
    for change in changes {
        if bulk.stopped() {
            return; // what is not followed now is read at the next start
        }
        match change {
            Change::Gone(path) => sessions.gone(&path),
            Change::Upkeep => {
                sessions.save_all();
                sessions.evict(budget_bytes);
            }
            Change::Path(path) => {
                let Some(session) = sessions.at_path(&path) else { continue };
                let followed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    sessions.follow(&session, &mut reader)
                }));
                match followed {
                    Ok(true) => {}
                    Ok(false) => {
                        // A ready one that cannot be read now waits for its next change or sweep.
                        if !Sessions::is_ready(&session)
                            && is_recent(session.file().modified, recent)
                        {
                            bulk.push(session);
                        }
                    }
                    Err(_) => {
                        tracing::error!(session = session.key.id, "following a session panicked");
                        reader = LineReader::new();
                        bulk.push(session);
                    }
                }
            }
        }
    }
}
