//! Tells which transcripts appear, change and go, from the kernel's events and from looking.
//!
//! Events are only hints: they can overflow, and a limit can leave folders unwatched. So each hint
//! leads to a `stat`, a folder that is new is listed after it is watched, what cannot be watched
//! is polled, and a sweep of everything runs now and then. Nothing here reads a transcript or
//! writes anything; one thread owns all the state.

mod anchor;
mod inbox;
mod poll;
mod tracker;
mod watch;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use compactd_transcript::layout::Roots;
use compactd_transcript::walk::Found;

pub use inbox::Signals;
pub use watch::{MakeWatch, Reach, Reason, Watch, WatchError};

use tracker::{Cause, Tracker};

/// What to follow and how often to look without being told.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where transcripts lie.
    pub roots: Roots,
    /// Milliseconds between two looks at what cannot be watched.
    pub poll_ms: u64,
    /// Seconds between two looks at everything.
    pub sweep_s: u64,
}

/// Something happened to a transcript, or to the watching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A transcript that was not known, also once for each one that exists at the start.
    Found(Found),
    /// A known transcript has perhaps another content, or another file took its place.
    Changed(PathBuf),
    /// A known transcript is no longer at its path; a moved one is found again at the new path.
    Gone(PathBuf),
    /// Everything was looked at once.
    SweepDone {
        /// Transcripts that exist.
        files: usize,
    },
    /// Some or all changes are noticed by polling only.
    Degraded {
        /// Why.
        reason: Reason,
    },
    /// Everything is watched again.
    Restored,
}

/// Follows all transcripts inside the roots until it is shut down or dropped.
#[derive(Debug)]
pub struct Follower {
    signals: Signals,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Starts the thread. It first tells what exists, then [`Event::SweepDone`], then changes.
    ///
    /// # Errors
    /// No thread can be started. Trouble with watching is an [`Event::Degraded`].
    pub fn start(config: Config, sink: impl Fn(Event) + Send + Sync + 'static) -> io::Result<Self> {
        Self::start_with(config, watch::notify(), sink)
    }

    /// As [`Self::start`], with another way to watch.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start_with(
        config: Config,
        make_watch: MakeWatch,
        sink: impl Fn(Event) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let signals = Signals::default();
        let inbox = signals.clone();
        let sink = Arc::new(sink);
        let thread = std::thread::Builder::new()
            .name("compactd-follow".to_owned())
            .spawn(move || follow(&config, &inbox, make_watch, sink))?;
        Ok(Self { signals, thread: Some(thread) })
    }

    /// Asks for a look at everything now.
    pub fn sweep(&self) {
        self.signals.ask_for_sweep();
    }

    /// Ends the thread and waits for it. No event comes after this.
    pub fn shutdown(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.signals.stop();
        if let Some(Err(_panic)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the follower had stopped by a panic");
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.end();
    }
}

fn follow(
    config: &Config,
    signals: &Signals,
    make_watch: MakeWatch,
    sink: Arc<dyn Fn(Event) + Send + Sync>,
) {
    let poll_every = Duration::from_millis(config.poll_ms.max(10));
    let sweep_every = Duration::from_secs(config.sweep_s.max(1));
    let mut tracker = Tracker::new(config.roots.clone(), signals.clone(), make_watch, sink);
    tracker.sweep(Cause::Swept);
    let mut next_sweep = Instant::now() + sweep_every;
    let mut next_poll = Instant::now() + poll_every;
    loop {
        let deadline = if tracker.must_poll() { next_sweep.min(next_poll) } else { next_sweep };
        let batch = signals.wait(deadline);
        if batch.is_stop {
            return;
        }
        if let Some(reason) = batch.limit {
            tracker.watch_failed(reason);
        }
        if batch.is_sweep || Instant::now() >= next_sweep {
            tracker.sweep(if batch.is_sweep { Cause::Told } else { Cause::Swept });
            next_sweep = Instant::now() + sweep_every;
        } else {
            for path in &batch.paths {
                tracker.look_at(path);
            }
        }
        if tracker.must_poll() && Instant::now() >= next_poll {
            tracker.poll();
            next_poll = Instant::now() + poll_every;
        }
        tracker.report_watching();
    }
}

#[cfg(test)]
mod tests;
