//! A scripted Messages API on 127.0.0.1 that keeps every request.

use std::convert::Infallible;
use std::net::TcpListener as StdListener;
use std::pin::Pin;
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Method, Request as HttpRequest, Response};
use hyper::body::{Bytes, Frame};
use regex::Regex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

use super::super::wait::PATIENCE;
use super::answer::{Answer, answer};
use super::step::{Gate, Step};
use super::wire;

/// By these words a request for a summary is known. A new version of the host may use others.
static SUMMARY_ASKED: LazyLock<Regex> = LazyLock::new(|| {
    let words = "Respond with TEXT ONLY|\
        create a detailed summary of (the|this|the RECENT portion of the) conversation";
    Regex::new(words).unwrap()
});

/// What stands for a summary, unless the test gives another.
const SUMMARY: &str = "<analysis>none</analysis>\n\
    <summary>\nMOCK-SUMMARY: the session so far, in one line.\n</summary>";
/// What is said when the script has no step for a request.
const DEFAULT: &str = "mock: script used up";

/// What the host wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The next message of the session or of a sub-agent.
    Turn,
    /// The summary of a compaction.
    Summary,
    /// A look at the quota; takes no step.
    Aux,
    /// `/v1/messages/count_tokens`.
    CountTokens,
    /// Anything else.
    Other,
}

/// A request that came.
#[derive(Debug)]
pub struct Request {
    /// Its place among all, from 0.
    pub at: usize,
    pub kind: Kind,
    pub path: String,
    /// The session's id, as the host says it in a header.
    pub session: Option<String>,
    /// The sub-agent's id, if one asks.
    pub agent: Option<String>,
    pub body: Value,
    /// Length of the body as it came.
    pub body_bytes: usize,
}

impl Request {
    /// Its messages; none if it has none.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }
}

fn kind_of(body: &Value) -> Kind {
    // Reminders with the role of the system may stand behind the message that asks.
    let mut messages = body["messages"].as_array().into_iter().flatten();
    let said = messages.rfind(|message| message["role"] == "user");
    let asks = |message: &Value| {
        let blocks = wire::blocks(message);
        let mut texts = blocks.iter().filter_map(|block| block["text"].as_str());
        texts.any(|text| SUMMARY_ASKED.is_match(text))
    };
    if said.is_some_and(asks) {
        Kind::Summary
    } else if body["max_tokens"].as_u64().unwrap_or(0) <= 1 {
        Kind::Aux
    } else {
        Kind::Turn
    }
}

#[derive(Debug)]
struct Inner {
    steps: Vec<Step>,
    summary: Step,
    default: Step,
    requests: Vec<Arc<Request>>,
}

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    came: Condvar,
}

/// The requests of an API and its script; it may be cloned.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    url: String,
}

impl Recorder {
    /// Where the API is, for `ANTHROPIC_BASE_URL`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Adds steps to the end of the script.
    pub fn script(&self, steps: impl IntoIterator<Item = Step>) {
        self.shared.inner.lock().unwrap().steps.extend(steps);
    }

    /// What every request for a summary gets that no step is for.
    pub fn summary(&self, step: Step) {
        self.shared.inner.lock().unwrap().summary = step;
    }

    /// What a request gets that no step is for.
    pub fn default(&self, step: Step) {
        self.shared.inner.lock().unwrap().default = step;
    }

    /// How many steps nobody took yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.shared.inner.lock().unwrap().steps.len()
    }

    /// All requests so far, in the order in which they came.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.shared.inner.lock().unwrap().requests.clone()
    }

    /// Those of a kind.
    #[must_use]
    pub fn of_kind(&self, kind: Kind) -> Vec<Arc<Request>> {
        self.requests().into_iter().filter(|request| request.kind == kind).collect()
    }

    /// The newest request for a message of the session itself.
    ///
    /// # Panics
    /// There is none.
    #[track_caller]
    #[must_use]
    pub fn last_turn(&self) -> Arc<Request> {
        let mut turns = self.of_kind(Kind::Turn).into_iter();
        turns.rfind(|request| request.agent.is_none()).expect("a request of the session")
    }

    /// Waits until the requests are as wanted.
    ///
    /// # Panics
    /// They are not in time; an outline of all is told.
    #[track_caller]
    pub fn wait_until<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&[Arc<Request>]) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut inner = self.shared.inner.lock().unwrap();
        loop {
            if let Some(value) = look(&inner.requests) {
                return value;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let seen = wire::outlines(&inner.requests);
                drop(inner);
                panic!("not in time: {what}\n{seen}");
            }
            inner = self.shared.came.wait_timeout(inner, left).unwrap().0;
        }
    }

    /// Waits until there are this many requests, and gives the newest of them.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize) -> Arc<Request> {
        let what = format!("{count} requests");
        self.wait_until(&what, |requests| {
            let last = count.checked_sub(1)?;
            requests.get(last).map(Arc::clone)
        })
    }

    fn note(&self, mut request: Request) -> (Arc<Request>, Step) {
        let mut inner = self.shared.inner.lock().unwrap();
        request.at = inner.requests.len();
        let step = match request.kind {
            Kind::Turn | Kind::Summary => {
                let fitting = inner.steps.iter().position(|step| step.fits(&request));
                match fitting {
                    Some(at) => inner.steps.remove(at),
                    None if request.kind == Kind::Summary => inner.summary.clone(),
                    None => inner.default.clone(),
                }
            }
            Kind::Aux | Kind::CountTokens | Kind::Other => Step::text("ok"),
        };
        let request = Arc::new(request);
        inner.requests.push(Arc::clone(&request));
        drop(inner);
        self.shared.came.notify_all();
        (request, step)
    }
}

/// The API. Dropping it closes it. Everything that can be asked of it is [`Recorder`]'s.
#[derive(Debug)]
pub struct MockApi {
    recorder: Recorder,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl std::ops::Deref for MockApi {
    type Target = Recorder;

    fn deref(&self) -> &Recorder {
        &self.recorder
    }
}

impl MockApi {
    /// Starts one with these steps, on a port of its own.
    #[must_use]
    pub fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let inner = Inner {
            steps: steps.into_iter().collect(),
            summary: Step::text(SUMMARY),
            default: Step::text(DEFAULT),
            requests: Vec::new(),
        };
        let shared = Arc::new(Shared { inner: Mutex::new(inner), came: Condvar::new() });
        let url = format!("http://{}", listener.local_addr().unwrap());
        let recorder = Recorder { shared, url };
        let app = Router::new().fallback(serve).with_state(recorder.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let server = axum::serve(listener, app).into_future();
                tokio::select! {
                    ended = server => ended.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { recorder, stop: Some(stop), thread: Some(thread) }
    }

    /// A handle that outlives a borrow.
    #[must_use]
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }
}

impl Drop for MockApi {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the mock API panicked");
        }
    }
}

async fn serve(State(api): State<Recorder>, request: HttpRequest<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let header = |name: &str| head.headers.get(name)?.to_str().ok().map(str::to_owned);
    let path = head.uri.path();
    let kind = match (&head.method, path) {
        (&Method::POST, "/v1/messages") => kind_of(&body),
        (&Method::POST, "/v1/messages/count_tokens") => Kind::CountTokens,
        _ => Kind::Other,
    };
    let tokens = bytes.len() / 4;
    let answer = if head.method == Method::HEAD {
        Answer::json(200, &json!({}))
    } else {
        let (request, step) = api.note(Request {
            at: 0,
            kind,
            path: path.to_owned(),
            session: header("x-claude-code-session-id"),
            agent: header("x-claude-code-agent-id"),
            body,
            body_bytes: bytes.len(),
        });
        if let Some(gate) = &step.gate {
            gate.pass().await;
        }
        tokio::time::sleep(step.delay).await;
        match kind {
            Kind::CountTokens => Answer::json(200, &json!({"input_tokens": tokens})),
            Kind::Other if head.method == Method::POST => Answer::json(200, &json!({})),
            Kind::Other => Answer::json(
                404,
                &json!({"type": "error", "error": {"type": "not_found_error", "message": "mock"}}),
            ),
            _ => answer(&step, &request.body, tokens),
        }
    };
    Response::builder()
        .status(answer.status)
        .header("content-type", answer.content_type)
        .header("request-id", "req_mock")
        .body(match answer.rest {
            Some((gate, rest)) => two_parts(answer.body, gate, rest),
            None => Body::from(answer.body),
        })
        .unwrap()
}

/// A body whose second part comes when the gate is opened.
fn two_parts(first: String, gate: Gate, second: String) -> Body {
    let (send, parts) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let _gone = send.send(first);
        gate.pass().await;
        let _gone = send.send(second);
    });
    Body::new(Parts { parts })
}

struct Parts {
    parts: mpsc::UnboundedReceiver<String>,
}

impl hyper::body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.parts.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part.into()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str, agent: Option<&str>) -> Request {
        let body = json!({"max_tokens": 100, "messages": [{"role": "user", "content": text},
            {"role": "system", "content": "A reminder."}]});
        Request {
            at: 0,
            kind: kind_of(&body),
            path: "/v1/messages".to_owned(),
            session: None,
            agent: agent.map(str::to_owned),
            body,
            body_bytes: 0,
        }
    }

    /// The text that a request gets.
    fn text(api: &MockApi, request: Request) -> String {
        let (request, step) = api.note(request);
        let answer = answer(&step, &request.body, 1);
        let message: Value = serde_json::from_str(&answer.body).unwrap();
        message["content"][0]["text"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_request_takes_the_first_step_that_fits() {
        let api = MockApi::start([
            Step::text("agent").for_agent(),
            Step::text("second").when(|request| wire::has(&request.body, "two")),
            Step::text("short").for_summary(),
            Step::text("first"),
        ]);
        assert_eq!(text(&api, request("one", None)), "first");
        assert_eq!(text(&api, request("one", None)), DEFAULT);
        assert_eq!(text(&api, request("two", None)), "second");
        assert_eq!(text(&api, request("two", Some("a1"))), "agent");
        let asks = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.";
        assert_eq!(text(&api, request(asks, Some("a1"))), "short");
        assert_eq!(text(&api, request(asks, None)), SUMMARY);
        let kinds: Vec<Kind> = api.requests().iter().map(|request| request.kind).collect();
        assert_eq!(kinds[..4], [Kind::Turn; 4]);
        assert_eq!(kinds[4..], [Kind::Summary; 2]);
        assert_eq!(api.left(), 0);
        assert_eq!(api.wait_for_requests(6).at, 5);
    }
}
