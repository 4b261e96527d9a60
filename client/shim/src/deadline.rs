//! The deadline over everything.
//!
//! A thread that watches the clock would be the simplest and costs 0.15 ms of a 0.8 ms process
//! (measured, see `README.md`), so that each step bounds itself where it can: stdin is polled, the
//! socket has time-outs. The thread is made only for the rare rest: a stdin that is neither a file
//! nor a pipe nor a socket, and an answer larger than a pipe holds. Not bounded by us is a connect
//! to a full accept queue (thousands of unanswered hooks before this one): there the hosts' own
//! hook time-out, set in the plugins' `hooks.json`, has to do.

use std::io::{self, ErrorKind};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::report::Report;

/// Enough for a sleep and one line of report.
const STACK_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    ends: Instant,
    report: Report,
}

impl Deadline {
    pub(crate) fn new(started: Instant, limit: Duration, report: Report) -> Self {
        Self { ends: started + limit, report }
    }

    /// What is left, never zero.
    pub(crate) fn remaining(&self) -> io::Result<Duration> {
        let remaining = self.ends.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(remaining) }
    }

    /// The deadline by the system's clock, in milliseconds.
    pub(crate) fn wall_millis(&self) -> u128 {
        let left = self.ends.saturating_duration_since(Instant::now());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (now + left).as_millis()
    }

    /// Ends the process at the deadline, whatever it does then. An error if the thread could not
    /// be made: then nothing that may block must be tried.
    pub(crate) fn watch(&self) -> io::Result<()> {
        let watched = self.clone();
        let watcher = thread::Builder::new().stack_size(STACK_BYTES);
        watcher
            .spawn(move || {
                thread::sleep(watched.ends.saturating_duration_since(Instant::now()));
                watched.report.finish("deadline");
                leave();
            })
            .map(drop)
    }
}

/// Ends the process with 0, whatever else is going on.
#[expect(clippy::exit, reason = "a hook's status is 0 also where main cannot return")]
pub(crate) fn leave() -> ! {
    std::process::exit(0)
}
