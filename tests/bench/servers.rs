//! The daemon, and a server of the same stack that only reads and writes, as processes of their own.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as Segment, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use compactd::run::{Setup, run};
use compactd::serve::{Options, RawBody, serve, signals};
use compactd::store::Store;
use compactd_api::settings::Settings;
use compactd_tests::harness::eventually;
use compactd_transcript::Roots;

use crate::http::{Client, get};
use crate::ours::again;

fn socket(home: &Path, name: &str) -> PathBuf {
    home.join(name).with_extension("sock")
}

/// The socket that a server is started with, as its standard input: whoever asks before it is there
/// is answered when it is, as with a service manager's.
fn listener() -> UnixListener {
    UnixListener::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap())
}

fn runtime() -> tokio::runtime::Runtime {
    // As the daemon's own main.
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// `__daemon HOME`: compactd over the folders of a home, until SIGTERM.
pub(crate) fn daemon(home: &Path) {
    let settings = Settings::default();
    compactd::telemetry::start(&settings.log);
    let (socket, listener) = (socket(home, "daemon"), listener());
    let setup = Setup {
        settings,
        roots: Roots::new([home.join(".claude")], [home.join(".codex")]),
        store: Store::new(Some(home.join("cache")), Some(home.join("state"))),
        socket,
    };
    runtime().block_on(async {
        let stop = signals(|| ()).unwrap();
        run(setup, listener, async {
            let _signal = stop.await;
        })
        .await
        .unwrap();
    });
}

/// `__equal`: reads a body and answers with as many bytes as the path says.
pub(crate) fn equal() {
    async fn answer(
        State(sizes): State<&'static std::sync::Mutex<HashMap<usize, Bytes>>>,
        Segment(size): Segment<usize>,
        body: RawBody,
    ) -> Response {
        std::hint::black_box(body.bytes());
        let bytes = {
            let mut sizes = sizes.lock().unwrap();
            sizes.entry(size).or_insert_with(|| Bytes::from(vec![b' '; size])).clone()
        };
        ([(CONTENT_TYPE, "application/json")], bytes).into_response()
    }
    compactd::telemetry::start(&Settings::default().log);
    let listener = listener();
    let sizes = &*Box::leak(Box::default());
    let router = Router::new().route("/equal/{size}", post(answer)).with_state(sizes);
    runtime().block_on(async {
        let stop = signals(|| ()).unwrap();
        serve(listener, router, stop, Options::default()).await.unwrap();
    });
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) socket: PathBuf,
    /// How long its first answer took, from the start of the process.
    pub(crate) first_answer: Duration,
}

impl Server {
    /// `job` is `daemon` or `equal`.
    pub(crate) fn start(job: &str, home: &Path) -> Self {
        let socket = socket(home, job);
        drop(std::fs::remove_file(&socket));
        let started = Instant::now();
        let log = std::fs::File::create(home.join(job).with_extension("log")).unwrap();
        let listener = OwnedFd::from(UnixListener::bind(&socket).unwrap());
        let mut command = again(&format!("__{job}"));
        let child = command.arg(home).stdin(Stdio::from(listener)).stderr(log).spawn().unwrap();
        // Only the server holds the socket now: if it ends, so does the question.
        drop(command);
        let mut server = Self { child, socket, first_answer: Duration::ZERO };
        let (_status, _) = Client::new(&server.socket).ask(&get("/v1/status"));
        server.first_answer = started.elapsed();
        server
    }

    /// Waits until so many sessions are indexed and none waits.
    pub(crate) fn wait_indexed(&self, sessions: u64) {
        let mut client = Client::new(&self.socket);
        eventually("all sessions are indexed", || {
            let status = client.json(&get("/v1/status"));
            let figures = &status["sessions"];
            let are = figures["indexed"].as_u64() >= Some(sessions) && figures["bulk_queue"] == 0;
            are.then_some(())
        });
    }

    /// Ends it as systemd would, and waits.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _gone = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        drop(self.child.wait());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

/// Where a session's transcript lies in a home.
pub(crate) fn transcript(home: &Path, session: &str) -> PathBuf {
    home.join(".claude/projects/-work-app").join(session).with_extension("jsonl")
}
