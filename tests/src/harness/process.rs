//! The real binaries, run in a home.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::binaries::binaries;
use super::client::Client;
use super::home::Home;
use super::wait::eventually;

/// Where a real daemon listens that has no runtime folder.
const SOCKET: &str = ".local/state/compactd/run/api.sock";

/// A real daemon. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    pub client: Client,
    child: Child,
    pid: u32,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What a run printed that went well, as JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

impl Home {
    /// A program with nothing of our own environment.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.path()).current_dir(self.path());
        command
    }

    /// Runs `compactctl`.
    #[must_use]
    pub fn compactctl(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(&binaries().compactctl).args(arguments).output().unwrap())
    }

    /// What `compactctl compact FILE --json` says, in its own process.
    #[track_caller]
    #[must_use]
    pub fn offline(&self, file: &Path, more: &[&str]) -> Value {
        let mut arguments = vec!["compact", file.to_str().unwrap(), "--json"];
        arguments.extend(more);
        self.compactctl(&arguments).json()
    }

    /// Runs `compactd` that is expected to end by itself.
    #[must_use]
    pub fn compactd(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(&binaries().compactd).args(arguments).output().unwrap())
    }

    /// Runs the shim with a hook's input.
    #[must_use]
    pub fn hook(&self, arguments: &[&str], env: &[(&str, &str)], input: &[u8]) -> Ran {
        let mut child = self
            .command(&binaries().hook)
            .args(arguments)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Puts the shim where the hosts' plugins look for it.
    pub fn put_shim(&self) {
        let place = self.join(".local/share/compactd/bin/compactd-hook");
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&binaries().hook, place).unwrap();
    }

    /// Where a real daemon listens here.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.join(SOCKET)
    }
}

impl Process {
    /// Starts a daemon and waits until it answers.
    #[must_use]
    pub fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(&binaries().compactd);
        command.args(arguments);
        Self::spawn(command, &home.socket())
    }

    /// Runs a command that becomes a daemon, and waits until it answers.
    #[must_use]
    pub fn spawn(mut command: Command, socket: &Path) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().unwrap());
        let reader = std::thread::spawn({
            let log = Arc::clone(&log);
            move || {
                for line in lines.split(b'\n').map_while(Result::ok) {
                    let mut log = log.lock().unwrap();
                    log.push_str(&String::from_utf8_lossy(&line));
                    log.push('\n');
                }
            }
        });
        let pid = child.id();
        let client = Client::new(socket);
        let mut process = Self { client, child, pid, log, reader: Some(reader) };
        eventually("the daemon answers", || {
            if let Some(status) = process.child.try_wait().unwrap() {
                process.join_reader();
                panic!("the daemon ended: {status}\n{}", process.log());
            }
            process
                .client
                .try_send("GET", "/v1/status", None)
                .filter(|answer| answer.status == 200 && answer.json()["pid"] == process.pid)
        });
        process
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Its memory in KiB that is in use now, and at most so far.
    #[must_use]
    pub fn rss_kib(&self) -> (u64, u64) {
        let mut text = String::new();
        let path = format!("/proc/{}/status", self.pid);
        std::fs::File::open(path).unwrap().read_to_string(&mut text).unwrap();
        let number = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        (number("VmRSS:"), number("VmHWM:"))
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn join_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
    }

    fn ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        let status = eventually("the daemon ends", || child.try_wait().unwrap());
        self.join_reader();
        status
    }

    /// Tells it to end, and waits: it must end well. Gives its whole log.
    #[track_caller]
    pub fn stop(mut self) -> String {
        self.signal(Signal::TERM);
        let status = self.ended();
        assert_eq!(status.code(), Some(0), "{status}\n{}", self.log());
        self.log()
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        assert_eq!(self.ended().signal(), Some(9));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ended = self.child.kill();
            let _status = self.child.wait();
        }
        if std::thread::panicking() {
            eprint_log(&self.log());
        }
    }
}

#[expect(clippy::print_stderr, reason = "beside the failure of the test")]
fn eprint_log(log: &str) {
    let from = log.len().saturating_sub(4000);
    eprintln!("--- log of the daemon\n{}", log.get(from..).unwrap_or(log));
}
