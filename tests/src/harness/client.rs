//! A client for tests: the project's own on tokio and hyperlocal, asked from plain threads.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use compactctl::asynchronous::AsyncClient;
use hyper::body::Bytes;
use serde_json::Value;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::wait::{PATIENCE, eventually};

/// Longest wait for one answer.
const ANSWER: Duration = Duration::from_secs(60);

/// Asks a daemon. Its connections are driven by a thread of their own.
#[derive(Debug)]
pub struct Client {
    client: AsyncClient,
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The body of an answer that went well.
    #[track_caller]
    #[must_use]
    pub fn good(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// Status and code of an error.
    #[track_caller]
    #[must_use]
    pub fn error(&self) -> (u16, String) {
        let json = self.json();
        assert!(json["request_id"].is_string(), "{json}");
        (self.status, json["error"]["code"].as_str().unwrap().to_owned())
    }
}

impl Client {
    /// A client of the daemon that listens at a path.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let _stopped = runtime.block_on(stopped);
        });
        Self { client: AsyncClient::new(socket), handle, stop: Some(stop), thread: Some(thread) }
    }

    /// One request; `None` if no answer came.
    #[must_use]
    pub fn try_send(&self, method: &str, target: &str, body: Option<&[u8]>) -> Option<Answer> {
        let body = body.map(Bytes::copy_from_slice);
        let answer = self.handle.block_on(async {
            tokio::time::timeout(ANSWER, self.client.send(method, target, body)).await
        });
        let response = answer.expect("an answer in time").ok()?;
        Some(Answer { status: response.status, body: response.body })
    }

    /// One request.
    #[track_caller]
    #[must_use]
    pub fn send(&self, method: &str, target: &str, body: Option<&[u8]>) -> Answer {
        self.try_send(method, target, body)
            .unwrap_or_else(|| panic!("{method} {target}: no answer"))
    }

    #[track_caller]
    #[must_use]
    pub fn get(&self, target: &str) -> Answer {
        self.send("GET", target, None)
    }

    #[track_caller]
    #[must_use]
    pub fn post(&self, target: &str, body: &Value) -> Answer {
        self.send("POST", target, Some(body.to_string().as_bytes()))
    }

    #[track_caller]
    #[must_use]
    pub fn delete(&self, target: &str, body: &Value) -> Answer {
        self.send("DELETE", target, Some(body.to_string().as_bytes()))
    }

    #[track_caller]
    #[must_use]
    pub fn status(&self) -> Value {
        self.get("/v1/status").good()
    }

    #[track_caller]
    #[must_use]
    pub fn stats(&self) -> Value {
        self.get("/v1/stats").good()
    }

    /// All sessions.
    #[track_caller]
    #[must_use]
    pub fn sessions(&self) -> Vec<Value> {
        self.get("/v1/sessions").good()["sessions"].as_array().unwrap().clone()
    }

    /// Asks for a session that still waits for the background thread after some seconds: that runs
    /// only when nothing else does, and other tests may take both processors for minutes.
    fn want(&self, id: &str, last: Option<&Value>, begun: std::time::Instant) {
        let waits = last.is_some_and(|item| item["state"] == "indexing");
        if waits && begun.elapsed() > Duration::from_secs(3) {
            drop(self.get(&format!("/v1/sessions/{id}")));
        }
    }

    /// A session as the list has it.
    #[track_caller]
    #[must_use]
    pub fn session(&self, id: &str) -> Option<Value> {
        self.sessions().into_iter().find(|session| session["id"] == id)
    }

    /// What a compaction would do, with a query such as `?profile=reference`.
    #[track_caller]
    #[must_use]
    pub fn explain(&self, id: &str, query: &str) -> Value {
        self.get(&format!("/v1/sessions/{id}/explain{query}")).good()
    }

    #[track_caller]
    #[must_use]
    pub fn compact(&self, request: &Value) -> Value {
        self.post("/v1/compact", request).good()
    }

    /// Waits until these sessions are found.
    #[track_caller]
    pub fn known(&self, ids: &[String]) {
        eventually("all sessions are found", || {
            let sessions = self.sessions();
            let is_known = |id: &String| sessions.iter().any(|item| item["id"] == **id);
            ids.iter().all(is_known).then_some(())
        });
    }

    /// Waits until a session is indexed up to the end of its file, and gives its item of the list.
    ///
    /// # Panics
    /// It is not in time; its last item is told.
    #[track_caller]
    pub fn indexed(&self, id: &str) -> Value {
        let mut last = None;
        let begun = std::time::Instant::now();
        let deadline = begun + PATIENCE;
        eventually(&format!("{id} is indexed"), || {
            last = self.session(id);
            let is_late = std::time::Instant::now() >= deadline;
            assert!(!is_late, "{id} is not indexed: {last:?}");
            self.want(id, last.as_ref(), begun);
            last.clone().filter(|item| {
                let size = std::fs::metadata(item["path"].as_str().unwrap_or_default())
                    .map_or(0, |metadata| metadata.len());
                let is_packed = item["path"].as_str().unwrap_or_default().ends_with(".zst");
                item["state"] == "indexed" && (is_packed || item["indexed_bytes"] == size)
            })
        })
    }

    /// Waits until a session has this many lines and is indexed.
    #[track_caller]
    pub fn has_lines(&self, id: &str, lines: u64) -> Value {
        let mut last = None;
        let begun = std::time::Instant::now();
        let deadline = begun + PATIENCE;
        eventually(&format!("{id} has {lines} lines"), || {
            last = self.session(id);
            let is_late = std::time::Instant::now() >= deadline;
            assert!(!is_late, "{id} has not {lines} lines: {last:?}");
            self.want(id, last.as_ref(), begun);
            last.clone().filter(|item| item["lines"] == lines && item["state"] == "indexed")
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
