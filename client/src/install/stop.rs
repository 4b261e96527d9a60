//! Ends a daemon that runs from the installed place, so that it does not outlive its program.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use compactd_api::dirs::Env;
use rustix::process::{Pid, Signal, kill_process};

use crate::daemon::Daemon;

/// What its end may take; it gives its requests 5 s.
const END: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// Ends the daemon that answers, if it is this program. Tells what went wrong.
#[must_use]
pub fn stop(env: &Env, program: &Path) -> Option<String> {
    let status = Daemon::find(env).ok()?.status().ok()?.value;
    let pid = i32::try_from(status.pid).ok().and_then(Pid::from_raw)?;
    // Whatever else answers is not ours to end. The number comes from the daemon itself, and the
    // kernel says what runs under it.
    let exe = format!("/proc/{}/exe", status.pid);
    let runs = fs::read_link(&exe).ok()?;
    let runs = runs.to_string_lossy();
    let runs = Path::new(runs.strip_suffix(" (deleted)").unwrap_or(&runs));
    if runs != program && fs::canonicalize(program).ok().as_deref() != Some(runs) {
        return None;
    }
    if kill_process(pid, Signal::TERM).is_err() {
        return Some(format!("the daemon (process {}) cannot be ended", status.pid));
    }
    let deadline = Instant::now() + END;
    while Instant::now() < deadline {
        // One that has ended and that nobody waited for has a number still, and no program.
        if fs::read_link(&exe).is_err() {
            return None;
        }
        thread::sleep(LOOK);
    }
    Some(format!("the daemon (process {}) has not ended yet", status.pid))
}
