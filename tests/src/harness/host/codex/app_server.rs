//! A client of `codex app-server`: JSON lines over stdin and stdout.

use std::io::Write as _;
use std::process::{ChildStdin, Stdio};

use serde_json::{Value, json};

use super::exec::{Group, TURN};
use super::setup::Codex;

/// A server that runs. Dropping it ends it, and kills it if it does not end.
#[derive(Debug)]
pub struct AppServer {
    group: Group,
    input: Option<ChildStdin>,
    calls: u64,
    /// How many messages [`Self::until`] has gone past.
    seen: usize,
}

impl AppServer {
    #[track_caller]
    pub(super) fn start(host: &Codex) -> Self {
        let mut group = Group::start(host.server_command(), Stdio::piped());
        let input = group.child.stdin.take();
        let mut server = Self { group, input, calls: 0, seen: 0 };
        server.call(
            "initialize",
            &json!({"clientInfo": {"name": "compactd-tests", "version": "0"},
                "capabilities": {"experimentalApi": true}}),
        );
        server.send(&json!({"method": "initialized", "params": {}}));
        server
    }

    #[track_caller]
    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("a server that was not ended");
        let sent = input.write_all(format!("{message}\n").as_bytes()).and_then(|()| input.flush());
        if let Err(error) = sent {
            self.fail(&format!("the server takes no message: {error}"));
        }
    }

    /// Asks something and gives the result, or the error.
    ///
    /// # Errors
    /// What the server answers in place of a result.
    ///
    /// # Panics
    /// It does not answer.
    #[track_caller]
    pub fn try_call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({"id": id, "method": method, "params": params}));
        let is_it = |message: &Value| message["id"] == id && message.get("method").is_none();
        let (_, answer) = self.wait(method, 0, is_it);
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Asks something that must go well.
    ///
    /// # Panics
    /// It does not.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        match self.try_call(method, params) {
            Ok(result) => result,
            Err(error) => self.fail(&format!("{method}: {error}")),
        }
    }

    /// Waits for the next message that is wanted, and goes past it. Messages that came while an
    /// answer was waited for are looked at too.
    ///
    /// # Panics
    /// It does not come in time, or the server ends.
    #[track_caller]
    pub fn until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let (at, message) = self.wait(what, self.seen, is_it);
        self.seen = at + 1;
        message
    }

    /// The first message from a place on that is wanted, and its place.
    #[track_caller]
    fn wait(&mut self, what: &str, from: usize, is_it: impl Fn(&Value) -> bool) -> (usize, Value) {
        let mut next = from;
        let found = self.group.lines.wait(TURN, |lines| {
            while let Some(message) = lines.values.get(next) {
                next += 1;
                if is_it(message) {
                    return Some(Some((next - 1, message.clone())));
                }
            }
            lines.is_over.then_some(None)
        });
        match found {
            Some(Some(found)) => found,
            Some(None) => self.fail(&format!("the server ended before: {what}")),
            None => self.fail(&format!("not in time: {what}")),
        }
    }

    /// All messages so far.
    #[must_use]
    pub fn messages(&self) -> Vec<Value> {
        self.group.lines.with(|lines| lines.values.clone())
    }

    /// A new thread that stays loaded, and its id. `params` are the server's for `thread/start`,
    /// such as `{"historyMode": "legacy"}`.
    #[track_caller]
    pub fn new_thread(&mut self, params: &Value) -> String {
        let started = self.call("thread/start", params);
        started["thread"]["id"].as_str().unwrap().to_owned()
    }

    /// Loads a stored thread.
    #[track_caller]
    pub fn resume(&mut self, thread: &str) {
        self.call("thread/resume", &json!({"threadId": thread, "excludeTurns": true}));
    }

    /// Starts a turn and does not wait for its end.
    #[track_caller]
    pub fn start_turn(&mut self, thread: &str, prompt: &str) {
        let input = json!([{"type": "text", "text": prompt}]);
        self.call("turn/start", &json!({"threadId": thread, "input": input}));
    }

    /// Waits for the end of the thread's turn, and gives how it ended.
    #[track_caller]
    pub fn turn_completed(&mut self, thread: &str) -> Value {
        let is_it = |message: &Value| {
            message["method"] == "turn/completed" && message["params"]["threadId"] == thread
        };
        self.until("the end of the turn", is_it)["params"]["turn"].clone()
    }

    /// A whole turn, which must end well.
    ///
    /// # Panics
    /// It does not.
    #[track_caller]
    pub fn turn(&mut self, thread: &str, prompt: &str) {
        self.start_turn(thread, prompt);
        self.completed_well(thread);
    }

    /// Compacts a loaded thread, as a person does with `/compact`; it must go well.
    ///
    /// # Panics
    /// It does not.
    #[track_caller]
    pub fn compact(&mut self, thread: &str) {
        self.call("thread/compact/start", &json!({"threadId": thread}));
        self.completed_well(thread);
    }

    #[track_caller]
    fn completed_well(&mut self, thread: &str) {
        let turn = self.turn_completed(thread);
        if turn["status"] != "completed" {
            self.fail(&format!("the turn did not end well: {turn}"));
        }
    }

    /// Ends the server: no more messages, and its own end.
    ///
    /// # Panics
    /// It does not end in time.
    #[track_caller]
    pub fn finish(mut self) {
        drop(self.input.take());
        if self.group.wait(TURN).is_none() {
            self.fail("the server does not end");
        }
    }

    /// Kills it, as a crash would.
    pub fn kill(mut self) {
        self.group.kill();
    }

    /// Ends the server and the test.
    #[track_caller]
    fn fail(&mut self, why: &str) -> ! {
        let status = self.group.kill();
        let messages = self.messages();
        let last: Vec<String> = messages.iter().rev().take(5).map(Value::to_string).collect();
        let stderr = self.group.stderr();
        panic!("{why} ({status})\nstderr: {stderr}\nlast, newest first:\n{}", last.join("\n"));
    }
}

impl Drop for AppServer {
    fn drop(&mut self) {
        drop(self.input.take());
        if !std::thread::panicking() {
            let _status = self.group.wait(std::time::Duration::from_secs(10));
        }
    }
}
