//! What the watcher's thread says, merged until the follower's thread has time for it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use compactd_transcript::layout::has_transcript_name;
use notify::event::{EventKind, ModifyKind};

use super::watch::{Reason, WatchError};

/// More different paths than this are cheaper to sweep than to look at one by one.
const MAX_PATHS: usize = 4096;

/// Where a [`super::Watch`] reports to.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    inbox: Arc<Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    queue: Mutex<Batch>,
    ready: Condvar,
}

/// All that was reported since the last look.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Each path once, in the order of their first events.
    pub(super) paths: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
    /// Events were lost, or somebody asked.
    pub(super) is_sweep: bool,
    /// A watch could not be set up while events were read.
    pub(super) limit: Option<Reason>,
    /// The end.
    pub(super) is_stop: bool,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.is_sweep && self.limit.is_none() && !self.is_stop
    }
}

impl Signals {
    /// Takes one event of notify.
    pub fn notify(&self, event: notify::Result<notify::Event>) {
        match event {
            // A reader's own open() makes these, three for each append: drop them unlocked.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) if event.need_rescan() => self.ask_for_sweep(),
            Ok(event) => {
                for path in event.paths {
                    if has_transcript_name(&path) || can_be_a_folder(event.kind) {
                        self.report(path);
                    }
                }
            }
            Err(error) => match WatchError::from(error) {
                WatchError::Limit(reason) => self.change(|queue| queue.limit = Some(reason)),
                WatchError::Missing | WatchError::Denied => self.ask_for_sweep(),
            },
        }
    }

    fn report(&self, path: PathBuf) {
        self.change(|queue| {
            if queue.is_sweep || queue.seen.contains(&path) {
                return;
            }
            if queue.paths.len() < MAX_PATHS {
                queue.seen.insert(path.clone());
                queue.paths.push(path);
            } else {
                queue.is_sweep = true;
            }
        });
    }

    pub(super) fn ask_for_sweep(&self) {
        self.change(|queue| queue.is_sweep = true);
    }

    pub(super) fn stop(&self) {
        self.change(|queue| queue.is_stop = true);
    }

    /// Waits for something to be reported, until the deadline.
    pub(super) fn wait(&self, deadline: Instant) -> Batch {
        let mut queue = self.lock();
        while queue.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            queue = self
                .inbox
                .ready
                .wait_timeout(queue, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        std::mem::take(&mut *queue)
    }

    fn change(&self, change: impl FnOnce(&mut Batch)) {
        let mut queue = self.lock();
        let was_empty = queue.is_empty();
        change(&mut queue);
        if was_empty && !queue.is_empty() {
            self.inbox.ready.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.inbox.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether such an event matters for a path that is no transcript's: new, moved and removed
/// folders, and links to folders, which look like files here.
fn can_be_a_folder(kind: EventKind) -> bool {
    match kind {
        EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_)),
        EventKind::Access(_) => false,
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Any | EventKind::Other => true,
    }
}
