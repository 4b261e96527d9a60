//! One turn of the host that prints its events (`codex exec --json`).

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::super::watched::Watched;
use super::api::{Kind, Recorder, Request};
use super::setup::Codex;
use super::wire;

/// Longest wait for the end of a turn.
pub(super) const TURN: Duration = Duration::from_secs(120);

/// A child that leads a process group of its own, and what it prints. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) child: Child,
    pub(super) lines: Arc<Watched<Lines>>,
    reader: Option<JoinHandle<()>>,
    errors: Option<JoinHandle<String>>,
}

/// JSON lines so far, and whether there will be no more.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) values: Vec<Value>,
    pub(super) is_over: bool,
}

impl Group {
    pub(super) fn start(mut command: Command, input: Stdio) -> Self {
        let command = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _length = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let lines = Arc::new(Watched::new(Lines::default()));
        let reader = std::thread::spawn({
            let lines = Arc::clone(&lines);
            move || {
                for line in stdout.split(b'\n').map_while(Result::ok) {
                    if let Ok(value) = serde_json::from_slice(&line) {
                        lines.with(|lines| lines.values.push(value));
                    }
                }
                lines.with(|lines| lines.is_over = true);
            }
        });
        Self { child, lines, reader: Some(reader), errors: Some(errors) }
    }

    /// Waits for the end of what it prints, and of itself. Gives nothing if it takes too long.
    pub(super) fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.lines.wait(patience, |lines| lines.is_over.then_some(()))?;
        Some(self.child.wait().unwrap())
    }

    /// Kills it with all that it started in its group.
    pub(super) fn kill(&mut self) -> ExitStatus {
        if self.child.try_wait().unwrap().is_none() {
            let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
            let _gone = kill_process_group(pid, Signal::KILL);
        }
        self.child.wait().unwrap()
    }

    /// What it printed to stderr, once it has ended.
    pub(super) fn stderr(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.errors.take().map(|errors| errors.join().unwrap()).unwrap_or_default()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A turn that runs. Dropping it kills the host.
#[derive(Debug)]
pub struct Exec {
    group: Group,
    api: Recorder,
    first_request: usize,
}

/// How a turn went.
#[derive(Debug)]
pub struct Run {
    /// The thread's id; empty if the host named none.
    pub thread: String,
    pub status: ExitStatus,
    /// The events that it printed.
    pub events: Vec<Value>,
    /// All that the API saw from its start to its end.
    pub requests: Vec<Arc<Request>>,
    pub stderr: String,
}

impl Run {
    /// A run that must have ended well.
    ///
    /// # Panics
    /// It has not; all is told.
    #[track_caller]
    pub fn good(self) -> Self {
        let seen = wire::outlines(&self.requests);
        let failed = self.events.iter().filter(|event| event["type"] == "turn.failed").count();
        let is_good = self.status.success() && failed == 0 && !self.thread.is_empty();
        assert!(is_good, "{}\n{}\n{:#?}\n{seen}", self.status, self.stderr, self.events);
        self
    }

    /// The kinds of its requests, in order.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        self.requests.iter().map(|request| request.kind).collect()
    }

    /// The requests of the session itself for its next items, without sub-agents'.
    #[must_use]
    pub fn turns(&self) -> Vec<&Request> {
        let turns = self.requests.iter().map(Arc::as_ref);
        turns.filter(|request| request.kind == Kind::Turn && !request.is_agent).collect()
    }

    /// The last of them.
    ///
    /// # Panics
    /// There is none.
    #[track_caller]
    #[must_use]
    pub fn last(&self) -> &Request {
        self.turns().last().expect("a request")
    }
}

impl Exec {
    pub(super) fn start(host: &Codex, command: Command) -> Self {
        let first_request = host.api.count();
        let group = Group::start(command, Stdio::null());
        Self { group, api: host.api.clone(), first_request }
    }

    /// The host's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.group.child.id()
    }

    /// Waits for the thread's id, which comes before the first request.
    ///
    /// # Panics
    /// It does not come.
    #[track_caller]
    #[must_use]
    pub fn thread(&self) -> String {
        let look = |values: &[Value]| {
            let id = thread_of(values);
            (!id.is_empty()).then_some(id)
        };
        let found = self.group.lines.wait(TURN, |lines| {
            let id = look(&lines.values);
            id.map(Some).or_else(|| lines.is_over.then_some(None))
        });
        found.flatten().expect("the host names its thread")
    }

    /// Waits for the host's end.
    ///
    /// # Panics
    /// It does not end in time; then it is killed.
    #[track_caller]
    pub fn finish(mut self) -> Run {
        let Some(status) = self.group.wait(TURN) else {
            let run = self.kill();
            panic!("the host does not end\n{}\n{}", run.stderr, wire::outlines(&run.requests));
        };
        self.ended(status)
    }

    /// Kills the host, as a crash would.
    pub fn kill(mut self) -> Run {
        let status = self.group.kill();
        self.ended(status)
    }

    fn ended(&mut self, status: ExitStatus) -> Run {
        let stderr = self.group.stderr();
        let events = self.group.lines.with(|lines| std::mem::take(&mut lines.values));
        let mut requests = self.api.requests();
        requests.drain(..self.first_request);
        Run { thread: thread_of(&events), status, events, requests, stderr }
    }
}

fn thread_of(events: &[Value]) -> String {
    let mut ids = events.iter().filter(|event| event["type"] == "thread.started");
    let id = ids.find_map(|event| event["thread_id"].as_str());
    id.unwrap_or_default().to_owned()
}
