//! A daemon of our own, for as long as this process runs.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use compactd_api::dirs::Env;
use rustix::process::{Pid, Signal, kill_process};

use crate::daemon::Daemon;
use crate::error::Error;

/// Name of its program.
const PROGRAM: &str = "compactd";
/// What its start may take.
const START: Duration = Duration::from_secs(10);
/// What its end may take; it gives its requests 5 s.
const END: Duration = Duration::from_secs(10);
/// How often is looked whether it is there, or gone.
const LOOK: Duration = Duration::from_millis(10);
/// So many of its last lines are shown when it fails.
const LAST_LINES: usize = 5;

/// Why there is no daemon of our own.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its program is nowhere.
    #[error("cannot start a daemon: there is no {PROGRAM} beside {} nor in PATH", ours.display())]
    NoProgram {
        /// Our own program.
        ours: PathBuf,
    },
    /// The system does not run it.
    #[error("cannot start {}", program.display())]
    Spawn {
        /// Its program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It ended at once.
    #[error("{} ended at its start ({status}){}", program.display(), said(said_last))]
    Ended {
        /// Its program.
        program: PathBuf,
        /// How.
        status: ExitStatus,
        /// Its last words.
        said_last: Vec<String>,
    },
    /// It runs, and does not answer.
    #[error("{} did not answer within {} s", program.display(), START.as_secs())]
    Silent {
        /// Its program.
        program: PathBuf,
    },
}

fn said(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!(": {}", lines.join("; ")) }
}

impl StartError {
    /// A next step.
    #[must_use]
    pub fn hint(&self) -> Cow<'static, str> {
        match self {
            Self::NoProgram { .. } => {
                "build it with `cargo build --release -p compactd`, or decide \
                                       one session with `compactctl compact SESSION`"
                    .into()
            }
            Self::Spawn { program, .. } => {
                format!("check that {} can be run", program.display()).into()
            }
            Self::Ended { program, .. } | Self::Silent { program } => {
                format!("run `{}` by itself to see what it says", program.display()).into()
            }
        }
    }
}

/// A daemon that ends with this value.
#[derive(Debug)]
pub struct OwnDaemon {
    child: Child,
    words: Option<JoinHandle<VecDeque<String>>>,
}

impl OwnDaemon {
    /// Starts one and waits until a daemon answers.
    ///
    /// # Errors
    /// There is no program, or it does not come up.
    pub fn start(env: &Env) -> Result<(Self, Daemon), Error> {
        let ours = std::env::current_exe().unwrap_or_default();
        let path = std::env::var_os("PATH");
        let program = find_program(&ours, path.as_deref()).ok_or(StartError::NoProgram { ours })?;
        let mut own = Self::spawn(&program)?;
        let deadline = Instant::now() + START;
        while Instant::now() < deadline {
            // Whoever answers will do: another process may have started one at the same time.
            match Daemon::find(env) {
                Ok(daemon) => return Ok((own, daemon)),
                Err(error) if error.is_not_running() => {}
                Err(error) => return Err(error),
            }
            if let Ok(Some(status)) = own.child.try_wait() {
                let said_last = own.last_words();
                return Err(StartError::Ended { program, status, said_last }.into());
            }
            thread::sleep(LOOK);
        }
        Err(StartError::Silent { program }.into())
    }

    fn spawn(program: &Path) -> Result<Self, StartError> {
        let spawned = Command::new(program)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C is for us: we end it ourselves.
            .process_group(0)
            .spawn();
        let mut child = spawned
            .map_err(|source| StartError::Spawn { program: program.to_path_buf(), source })?;
        let words = child.stderr.take().map(|stderr| thread::spawn(move || listen(stderr)));
        Ok(Self { child, words })
    }

    fn last_words(&mut self) -> Vec<String> {
        let words = self.words.take().and_then(|words| words.join().ok());
        words.unwrap_or_default().into()
    }
}

impl Drop for OwnDaemon {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // Not waited for yet, so the number is still its own.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _gone = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(LOOK);
        }
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Reads what it says, so that it never waits for us, and keeps the end.
fn listen(stderr: ChildStderr) -> VecDeque<String> {
    let mut last = VecDeque::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if last.len() == LAST_LINES {
            last.pop_front();
        }
        last.push_back(line);
    }
    last
}

/// The program beside our own, or else the first in `PATH`.
fn find_program(ours: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let beside = ours.parent().map(|dir| dir.join(PROGRAM));
    let in_path = path.into_iter().flat_map(std::env::split_paths);
    let in_path = in_path.filter(|dir| dir.is_absolute()).map(|dir| dir.join(PROGRAM));
    beside.into_iter().chain(in_path).find(|program| {
        program
            .metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(dir: &Path, mode: u32) {
        let path = dir.join(PROGRAM);
        fs::write(&path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn beside_comes_before_path_and_only_what_can_be_run_counts() {
        let dir = tempfile::tempdir().unwrap();
        let (beside, first, second) =
            (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
        for dir in [&beside, &first, &second] {
            fs::create_dir(dir).unwrap();
        }
        let ours = beside.join("compactctl");
        let path = std::env::join_paths([Path::new("relative"), &first, &second]).unwrap();
        assert_eq!(find_program(&ours, Some(&path)), None);
        program(&first, 0o644);
        program(&second, 0o755);
        assert_eq!(find_program(&ours, Some(&path)), Some(second.join(PROGRAM)));
        program(&beside, 0o755);
        assert_eq!(find_program(&ours, Some(&path)), Some(beside.join(PROGRAM)));
        assert_eq!(find_program(&ours, None), Some(beside.join(PROGRAM)));
    }
}
