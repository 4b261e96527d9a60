//! A session of the host that prints its events (`claude -p`, both ways as JSON lines).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::wait::eventually;
use super::mock_api::{Kind, Recorder, Request};
use super::setup::{Host, SessionId};
use super::wire;

/// Longest wait for the end of a turn.
const TURN: Duration = Duration::from_secs(120);

/// A running session. Dropping it kills the host.
#[derive(Debug)]
pub struct Session {
    pub id: String,
    /// All events so far.
    pub events: Vec<Value>,
    host: Host,
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Value>,
    errors: Option<JoinHandle<String>>,
    reader: Option<JoinHandle<()>>,
    first_request: usize,
}

/// How a session went.
#[derive(Debug)]
pub struct Run {
    pub id: String,
    /// All that the API saw from its start to its end.
    pub requests: Vec<Arc<Request>>,
    pub events: Vec<Value>,
    pub transcript: PathBuf,
    pub stderr: String,
    pub status: ExitStatus,
}

impl Run {
    /// The requests of a kind.
    #[must_use]
    pub fn of_kind(&self, kind: Kind) -> Vec<&Request> {
        let requests = self.requests.iter().map(Arc::as_ref);
        requests.filter(|request| request.kind == kind).collect()
    }

    /// The requests of the session itself for its next message, without sub-agents'.
    #[must_use]
    pub fn turns(&self) -> Vec<&Request> {
        let turns = self.of_kind(Kind::Turn).into_iter();
        turns.filter(|request| request.agent.is_none()).collect()
    }

    /// The last of them.
    #[track_caller]
    #[must_use]
    pub fn last(&self) -> &Value {
        &self.turns().last().expect("a request").body
    }

    /// The rows of the transcript.
    #[track_caller]
    #[must_use]
    pub fn rows(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.transcript).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How each compaction ended, in the host's words: `success` or `failed`.
    #[must_use]
    pub fn compactions(&self) -> Vec<String> {
        compactions(&self.events)
    }
}

fn compactions(events: &[Value]) -> Vec<String> {
    let results = events.iter().filter_map(|event| event["compact_result"].as_str());
    results.map(str::to_owned).collect()
}

impl Session {
    pub(super) fn start(host: &Host, session: &SessionId) -> Self {
        let mut command = Command::new(&host.binary);
        host.clean(&mut command);
        command
            .args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"])
            .arg("--verbose")
            .args(host.arguments(session))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _length = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, output) = channel();
        let reader = std::thread::spawn(move || {
            for line in stdout.split(b'\n').map_while(Result::ok) {
                if let Ok(event) = serde_json::from_slice(&line)
                    && send.send(event).is_err()
                {
                    break;
                }
            }
        });
        Self {
            id: session.text().to_owned(),
            events: Vec::new(),
            host: host.clone(),
            input: child.stdin.take(),
            child,
            output,
            errors: Some(errors),
            reader: Some(reader),
            first_request: host.api.requests().len(),
        }
    }

    /// The API that it talks to.
    #[must_use]
    pub fn api(&self) -> &Recorder {
        &self.host.api
    }

    /// The host's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its transcript is; the host writes it when the first prompt comes.
    #[must_use]
    pub fn transcript(&self) -> PathBuf {
        self.host.transcript(&self.id)
    }

    /// Says a prompt and does not wait.
    ///
    /// # Panics
    /// The host has ended.
    #[track_caller]
    pub fn send(&mut self, prompt: &str) {
        let line = json!({"type": "user", "message": {"role": "user", "content": prompt}});
        let input = self.input.as_mut().expect("a session that was not finished");
        let sent = input.write_all(format!("{line}\n").as_bytes()).and_then(|()| input.flush());
        if let Err(error) = sent {
            self.fail(&format!("the host takes no prompt: {error}"));
        }
    }

    /// Waits for the next event that is wanted, and gives all up to it.
    ///
    /// # Panics
    /// It does not come in time, or the host ends.
    #[track_caller]
    pub fn until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + TURN;
        let from = self.events.len();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(event) => {
                    let found = is_it(&event);
                    self.events.push(event);
                    if found {
                        return self.events[from..].to_vec();
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.fail(&format!("not in time: {what}")),
                Err(RecvTimeoutError::Disconnected) => {
                    self.fail(&format!("the host ended before: {what}"));
                }
            }
        }
    }

    /// Waits for the end of the turn and gives its events.
    ///
    /// # Panics
    /// See [`Self::until`].
    #[track_caller]
    pub fn result(&mut self) -> Vec<Value> {
        self.until("the end of the turn", |event| event["type"] == "result")
    }

    /// Says a prompt, waits for the end of the turn, and gives its events.
    ///
    /// # Panics
    /// See [`Self::until`].
    #[track_caller]
    pub fn prompt(&mut self, prompt: &str) -> Vec<Value> {
        self.send(prompt);
        self.result()
    }

    /// Ends the session: no more prompts, and the host's own end.
    ///
    /// # Panics
    /// The host does not end.
    #[track_caller]
    pub fn finish(mut self) -> Run {
        drop(self.input.take());
        let child = &mut self.child;
        let status = eventually("the host ends", || child.try_wait().unwrap());
        self.ended(status)
    }

    /// Kills the host, as a crash would.
    pub fn kill(mut self) -> Run {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        self.ended(status)
    }

    #[track_caller]
    pub(super) fn through(mut self, prompts: &[&str]) -> Run {
        for prompt in prompts {
            self.prompt(prompt);
        }
        let run = self.finish();
        assert!(run.status.success(), "{}: {}", run.status, run.stderr);
        run
    }

    fn ended(&mut self, status: ExitStatus) -> Run {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.events.extend(self.output.try_iter());
        let stderr = self.errors.take().map(|errors| errors.join().unwrap());
        let mut requests = self.host.api.requests();
        requests.drain(..self.first_request);
        Run {
            id: self.id.clone(),
            requests,
            events: std::mem::take(&mut self.events),
            transcript: self.transcript(),
            stderr: stderr.unwrap_or_default(),
            status,
        }
    }

    /// Ends the host and the test.
    #[track_caller]
    fn fail(&mut self, why: &str) -> ! {
        let _ended = self.child.kill();
        let status = self.child.wait().unwrap();
        let run = self.ended(status);
        let last: Vec<String> = run.events.iter().rev().take(5).map(Value::to_string).collect();
        panic!(
            "{why} ({status})\nstderr: {}\nlast events, newest first:\n{}\n{}",
            run.stderr,
            last.join("\n"),
            wire::outlines(&run.requests)
        );
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ended = self.child.kill();
            let _status = self.child.wait();
        }
    }
}
