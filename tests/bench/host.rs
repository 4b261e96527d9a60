//! A compaction in the real Claude Code, measured by the mod itself: from the hook's start to its
//! answer. The peer is the same mod with a socket behind which prepared bytes of the same answer wait.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::Uri;
use compactd_tests::harness::host::scenario::long_work;
use compactd_tests::harness::host::{Host, MockApi, claude};
use compactd_tests::harness::{Claude, Client, Home, Process, eventually};
use serde_json::{Value, json};

use crate::table::{Table, median, shown};

/// What the issue asks of a session with 20 and more results of which three and more go.
const AIM: &str = "≤ 6.3 ms";
const ROUNDS: usize = 9;

pub(crate) fn bench(table: &mut Table) {
    let Some(claude) = claude() else { return };
    round_trip(table, &claude);
    large(table, &claude);
}

/// A session that can be compacted again and again from the same transcript.
struct Stage {
    host: Host,
    daemon: Process,
    api: MockApi,
    home: Home,
    transcript: PathBuf,
    bytes: Vec<u8>,
    id: String,
}

impl Stage {
    fn new(claude: &Path) -> Self {
        let (home, api) = (Home::new(), MockApi::start([]));
        home.put_shim();
        let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin/claude");
        let host = Host::new(claude, &home, &api)
            .with_plugin(&plugin)
            .with_env("DISABLE_AUTO_COMPACT", "1")
            .with_env("COMPACTD_HOOK_START", "0");
        let daemon = Process::start(&home, &[]);
        let (transcript, bytes, id) = (PathBuf::new(), Vec::new(), String::new());
        Self { host, daemon, api, home, transcript, bytes, id }
    }

    fn take(&mut self, transcript: PathBuf, id: &str) {
        self.bytes = fs::read(&transcript).unwrap();
        self.transcript = transcript;
        id.clone_into(&mut self.id);
    }

    /// Puts the transcript back, goes on with the session and compacts it.
    fn compact(&self, socket: Option<&Path>) {
        fs::write(&self.transcript, &self.bytes).unwrap();
        let lines = self.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.daemon.client.has_lines(&self.id, lines);
        let host = match socket {
            Some(socket) => self.host.clone().with_env("COMPACTD_SOCKET", socket),
            None => self.host.clone(),
        };
        let mut session = host.resume(&self.id);
        let events = session.prompt("/compact");
        assert!(events.iter().any(|event| event["compact_result"] == "success"), "{events:?}");
        session.finish();
    }

    /// The newest pass, when the mod has told how long it took.
    fn reported(&self) -> Value {
        let path = format!("/v1/sessions/{}/passes/last", self.id);
        eventually("the mod's report", || {
            let pass = self.daemon.client.get(&path).good();
            pass["report"]["millis"].is_number().then_some(pass)
        })
    }
}

fn round_trip(table: &mut Table, claude: &Path) {
    let mut stage = Stage::new(claude);
    stage.api.script(long_work(&stage.host, "a", 5).steps);
    let run = stage.host.run(&["Mend all of it."]);
    stage.take(run.transcript, &run.id);
    let peer = Peer::start(&stage.home.join("peer.sock"), Client::new(&stage.home.socket()));
    let (mut ours, mut theirs, mut counters) = (Vec::new(), Vec::new(), Value::Null);
    for round in 0..=ROUNDS {
        stage.compact(None);
        let pass = stage.reported();
        stage.compact(Some(&peer.socket));
        let equal = eventually("the mod's report", || peer.millis.lock().unwrap().pop());
        // The first one warms up; there the peer only learns the answer.
        if round > 0 {
            ours.push(pass["report"]["millis"].as_f64().unwrap() * 1e3);
            theirs.push(equal * 1e3);
            counters = pass["counters"].clone();
        }
    }
    let what = format!(
        "compaction in Claude Code, {} results of which {} go, to byte-equal answers",
        counters["results"],
        counters["truncated"].as_u64().unwrap() + counters["dropped"].as_u64().unwrap()
    );
    table.cost(&what, &ours, &theirs, AIM);
    let daemon = counters["micros"].as_f64().unwrap();
    table.row("… of which in the daemon", "", &shown(daemon), "");
}

fn large(table: &mut Table, claude: &Path) {
    let mut stage = Stage::new(claude);
    let id = "0000ffff-0000-4000-8000-00000000ffff";
    let mut session = Claude::new(id);
    session.prompt("Look at everything.");
    for call in 0..3000 {
        let text: String = (0..220)
            .map(|line| format!("{line} of {call}: the value_{call}_{line} stands here alone\n"))
            .collect();
        session.bash(&format!("toolu_{call:06}"), &format!("cat part{call}.txt"), &text);
    }
    session.say("All seen.");
    let path = stage.host.put_transcript(id, &session.take());
    stage.take(path, id);
    let debug = stage.home.join("debug.log");
    stage.host = stage.host.clone().with_debug_file(&debug);
    let (mut hook, mut daemon, mut settled) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=3 {
        drop(fs::remove_file(&debug));
        stage.compact(None);
        if round == 0 {
            continue;
        }
        let pass = stage.reported();
        hook.push(pass["report"]["millis"].as_f64().unwrap() * 1e3);
        daemon.push(pass["counters"]["micros"].as_f64().unwrap());
        settled.push(settled_micros(&fs::read_to_string(&debug).unwrap()));
    }
    let what = format!("6,000 messages, {} MB: compaction in the host", stage.bytes.len() >> 20);
    table.row(&what, "", &shown(median(&settled)), "≤ 300 ms");
    let share = format!("{}, in the daemon {}", shown(median(&hook)), shown(median(&daemon)));
    table.row("… of which in the mod", "", &share, "");
}

/// What the host's own log says about our hook.
fn settled_micros(log: &str) -> f64 {
    let line = log
        .lines()
        .find(|line| line.contains("compactd@inline session.compact settled in "))
        .expect("the host's line on the hook");
    let (_, behind) = line.split_once("settled in ").unwrap();
    let (millis, _) = behind.split_once("ms").unwrap();
    millis.parse::<f64>().unwrap() * 1e3
}

/// Answers with what the daemon answered the first time, and notes how long the mod says it took.
struct Peer {
    socket: PathBuf,
    millis: Arc<Mutex<Vec<f64>>>,
}

impl Peer {
    fn start(socket: &Path, daemon: Client) -> Self {
        let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let millis = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&millis);
        let answer: Arc<Mutex<Option<Bytes>>> = Arc::default();
        let daemon = Arc::new(daemon);
        let serve = move |uri: Uri, body: Bytes| {
            let (noted, answer, daemon) =
                (Arc::clone(&noted), Arc::clone(&answer), Arc::clone(&daemon));
            async move {
                if uri.path() == "/v1/compact" {
                    let known = answer.lock().unwrap().clone();
                    if let Some(known) = known {
                        return known;
                    }
                    let ask = move || daemon.send("POST", "/v1/compact", Some(&body)).body;
                    let first = tokio::task::spawn_blocking(ask).await.unwrap();
                    return answer.lock().unwrap().insert(Bytes::from(first)).clone();
                }
                let report: Value = serde_json::from_slice(&body).unwrap_or(json!({}));
                noted.lock().unwrap().extend(report["millis"].as_f64());
                Bytes::new()
            }
        };
        // Ends with the process.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = tokio::net::UnixListener::from_std(listener).unwrap();
                axum::serve(listener, Router::new().fallback(serve)).await.unwrap();
            });
        });
        Self { socket: socket.to_path_buf(), millis }
    }
}
