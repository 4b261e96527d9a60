//! Runs another program with a limit, and finds programs.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::error::InstallError;

/// What a command of a host or of a service manager may take.
pub const LIMIT: Duration = Duration::from_secs(120);
/// How often is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
/// So much of what it says is shown.
const SAID_MAX: usize = 2000;

/// How a program ended.
#[derive(Debug)]
pub struct Ran {
    /// Its status; `None`: it was ended because it took too long.
    pub status: Option<ExitStatus>,
    /// What it printed.
    pub out: String,
    /// What it said.
    pub err: String,
}

/// Runs a program without input, and ends it when it takes longer than `limit`.
///
/// # Errors
/// It cannot be run.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<Ran> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let out = child.stdout.take().map(listen);
    let err = child.stderr.take().map(listen);
    let status = wait(&mut child, Instant::now() + limit)?;
    // After a limit its own children may hold the pipes: what it said is not waited for.
    let heard = |thread: Option<JoinHandle<Vec<u8>>>| match thread {
        Some(thread) if status.is_some() || thread.is_finished() => {
            String::from_utf8_lossy(&thread.join().unwrap_or_default()).into_owned()
        }
        _ => String::new(),
    };
    Ok(Ran { status, out: heard(out), err: heard(err) })
}

fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > deadline {
            let _gone = child.kill();
            let _gone = child.wait();
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

fn listen(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _broken = stream.read_to_end(&mut bytes);
        bytes
    })
}

/// Runs a program that must succeed; `shown` is how a person would type it.
///
/// # Errors
/// It cannot be run, fails, or takes too long.
pub fn must(command: &mut Command, shown: &str) -> Result<String, InstallError> {
    let failed = |status: String, said: &str| InstallError::Command {
        command: shown.to_owned(),
        status,
        said: last_of(said),
    };
    match run(command, LIMIT) {
        Ok(Ran { status: Some(status), out, .. }) if status.success() => Ok(out),
        Ok(Ran { status: Some(status), out, err }) => {
            Err(failed(status.to_string(), if err.trim().is_empty() { &out } else { &err }))
        }
        Ok(Ran { status: None, err, .. }) => {
            Err(failed(format!("no end within {} s", LIMIT.as_secs()), &err))
        }
        Err(error) => Err(failed("it cannot be run".to_owned(), &error.to_string())),
    }
}

fn last_of(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut text = lines.join("; ");
    if text.is_empty() {
        text.push_str("it said nothing");
    }
    if let Some((end, _)) = text.char_indices().nth(SAID_MAX) {
        text.truncate(end);
        let _full = write!(text, "…");
    }
    text
}

/// Whether a file can be run.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The first program of this name in `PATH`, then in `more`.
#[must_use]
pub fn find(name: &str, path: Option<&OsStr>, more: &[PathBuf]) -> Option<PathBuf> {
    let in_path = path.into_iter().flat_map(std::env::split_paths);
    let in_path = in_path.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    in_path.chain(more.iter().cloned()).find(|path| is_program(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_it_says_is_told() {
        assert_eq!(must(&mut sh("echo yes"), "x").unwrap(), "yes\n");
        let error =
            must(&mut sh("echo out; echo 'not  so' >&2; echo >&2; echo two >&2; exit 3"), "x y");
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "`x y` failed (exit status: 3): not  so; two");
        let text = must(&mut sh("echo out; exit 1"), "x").unwrap_err().to_string();
        assert!(text.ends_with(": out"), "{text}");
        let text = must(&mut Command::new("/nowhere/x"), "x").unwrap_err().to_string();
        assert!(text.starts_with("`x` failed (it cannot be run): "), "{text}");
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let ran = run(&mut sh("echo a; exec sleep 100"), Duration::from_millis(50)).unwrap();
        assert!(ran.status.is_none());
    }
}
