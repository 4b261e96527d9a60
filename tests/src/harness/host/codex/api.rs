//! A scripted Responses API on 127.0.0.1 that keeps every request.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Request as HttpRequest, Response};
use serde_json::{Value, json};

use super::super::recorder::{self, Asked, Takes};
use super::super::serve::{Answer, Server};
use super::answer::answer;
use super::step::Step;
use super::wire;

/// By these words the request for a summary is known, unless the test gave a prompt of its own.
const SUMMARY_ASKED: &str = "CONTEXT CHECKPOINT COMPACTION";
/// What stands for a summary, unless the test gives another.
const SUMMARY: &str = "MOCK-SUMMARY: the session so far, in one line.";
/// What is said when the script has no step for a request.
const DEFAULT: &str = "mock: script used up";

/// What the host wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The next items of a thread, the session's own or a sub-agent's.
    Turn,
    /// The summary of a compaction that the host does itself.
    CompactLocal,
    /// A sealed compaction: the last item is a `compaction_trigger`.
    CompactRemote,
    /// A title for a thread on a screen, asked for in a thread of its own; takes no step.
    Title,
    /// Anything else; takes no step.
    Other,
}

/// A request that came.
#[derive(Debug)]
pub struct Request {
    /// Its place among all, from 0.
    pub at: usize,
    pub kind: Kind,
    pub path: String,
    /// The thread that asks: a session's id, or a sub-agent's own.
    pub thread: String,
    /// Whether a sub-agent asks.
    pub is_agent: bool,
    /// What the host says about the request beside its body: `request_kind`, `turn_id`,
    /// `compaction` with trigger and phase.
    pub about: Value,
    pub body: Value,
    /// Length of the body as it came.
    pub body_bytes: usize,
}

impl Request {
    /// Its items, the history and the prompt; none if it has none.
    #[must_use]
    pub fn input(&self) -> &[Value] {
        wire::input(&self.body)
    }

    /// Whether it is for a compaction.
    #[must_use]
    pub fn is_compaction(&self) -> bool {
        matches!(self.kind, Kind::CompactLocal | Kind::CompactRemote)
    }

    fn new(path: &str, headers: &HeaderMap, body: Value, body_bytes: usize) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let about =
            header("x-codex-turn-metadata").and_then(|text| serde_json::from_str(text).ok());
        let about: Value = about.unwrap_or_default();
        Self {
            at: 0,
            kind: kind_of(path, &body, &about),
            path: path.to_owned(),
            thread: header("thread-id").unwrap_or_default().to_owned(),
            is_agent: about["thread_source"] == "subagent",
            about,
            body,
            body_bytes,
        }
    }
}

fn kind_of(path: &str, body: &Value, about: &Value) -> Kind {
    let last = wire::input(body).last();
    if !path.ends_with("/responses") {
        Kind::Other
    } else if about["thread_source"] == "thread_title" {
        Kind::Title
    } else if last.is_some_and(|item| item["type"] == "compaction_trigger") {
        Kind::CompactRemote
    } else if about["request_kind"] == "compaction"
        || last.is_some_and(|item| wire::text(item).contains(SUMMARY_ASKED))
    {
        Kind::CompactLocal
    } else {
        Kind::Turn
    }
}

impl Asked for Request {
    type Kind = Kind;

    fn kind(&self) -> Kind {
        self.kind
    }

    fn takes(&self) -> Takes {
        match self.kind {
            Kind::Turn => Takes::Step,
            Kind::CompactLocal | Kind::CompactRemote => Takes::Summary,
            Kind::Title | Kind::Other => Takes::Nothing,
        }
    }

    fn place(&mut self, at: usize) {
        self.at = at;
    }

    fn outlines(requests: &[Arc<Self>]) -> String {
        wire::outlines(requests)
    }
}

/// The requests of an API and its script; it may be cloned.
pub type Recorder = recorder::Recorder<Request, Step>;

impl Recorder {
    /// The newest request for the next items of a session itself.
    ///
    /// # Panics
    /// There is none.
    #[track_caller]
    #[must_use]
    pub fn last_turn(&self) -> Arc<Request> {
        let mut turns = self.of_kind(Kind::Turn).into_iter();
        turns.rfind(|request| !request.is_agent).expect("a request of the session")
    }

    /// How many requests came so far: a place for [`Self::first_request_after`].
    #[must_use]
    pub fn count(&self) -> usize {
        self.requests().len()
    }

    /// Waits for the first request, of any kind, that came or comes after so many.
    ///
    /// # Panics
    /// It does not come in time.
    #[track_caller]
    pub fn first_request_after(&self, count: usize) -> Arc<Request> {
        self.wait_for_requests(count + 1);
        Arc::clone(&self.requests()[count])
    }
}

/// The API. Dropping it closes it. Everything that can be asked of it is [`Recorder`]'s.
#[derive(Debug)]
pub struct Responses {
    recorder: Recorder,
    _server: Server,
}

impl std::ops::Deref for Responses {
    type Target = Recorder;

    fn deref(&self) -> &Recorder {
        &self.recorder
    }
}

impl Responses {
    /// Starts one with these steps, on a port of its own.
    #[must_use]
    pub fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = steps.into_iter().collect();
        let mut recorder = None;
        let server = Server::start(|url| {
            let new = Recorder::new(url, steps, Step::text(SUMMARY), Step::text(DEFAULT));
            Router::new().fallback(serve).with_state(recorder.insert(new).clone())
        });
        Self { recorder: recorder.unwrap(), _server: server }
    }

    /// A handle that outlives a borrow.
    #[must_use]
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }
}

async fn serve(State(api): State<Recorder>, request: HttpRequest<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    // 0.171.0 sends plain JSON, whatever the provider's name. Anything else is refused, so that it
    // is seen.
    let encoding = head.headers.get("content-encoding").cloned();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let request = Request::new(head.uri.path(), &head.headers, body, bytes.len());
    let (request, step) = api.note(request);
    let step = step.or_else(|| (request.kind == Kind::Title).then(|| Step::text("A title")));
    let refused = |status: u16, message: &str| {
        Answer::json(status, &json!({"error": {"message": format!("mock: {message}")}}))
    };
    let answer = match step {
        _ if encoding.is_some() => refused(415, &format!("an encoded body: {encoding:?}")),
        Some(step) if head.method == Method::POST => {
            if let Some(gate) = &step.gate {
                gate.pass().await;
            }
            tokio::time::sleep(step.delay).await;
            answer(&step, &request)
        }
        _ => refused(404, "not served"),
    };
    answer.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(last: &Value, about: &Value) -> Request {
        let mut headers = HeaderMap::new();
        headers.insert("thread-id", "t1".parse().unwrap());
        headers.insert("x-codex-turn-metadata", about.to_string().parse().unwrap());
        Request::new("/v1/responses", &headers, json!({"input": [last]}), 40)
    }

    fn said(text: &str) -> Value {
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
    }

    /// The first text that a request gets.
    fn text(api: &Responses, request: Request) -> String {
        let (request, step) = api.note(request);
        let answer = answer(&step.unwrap(), &request);
        let data = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let mut events = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
        let done = events.find(|event| event["type"] == "response.output_item.done").unwrap();
        let item = &done["item"];
        item["encrypted_content"].as_str().map_or_else(|| wire::text(item), str::to_owned)
    }

    #[test]
    fn a_request_takes_the_first_step_that_fits() {
        let api = Responses::start([
            Step::text("agent").for_agent(),
            Step::text("second").when_input_has("two"),
            Step::text("short").for_compaction(),
            Step::text("first"),
        ]);
        let (own, agent) = (json!({"thread_source": "user"}), json!({"thread_source": "subagent"}));
        assert_eq!(text(&api, request(&said("one"), &own)), "first");
        assert_eq!(text(&api, request(&said("one"), &own)), DEFAULT);
        assert_eq!(text(&api, request(&said("two"), &own)), "second");
        assert_eq!(text(&api, request(&said("two"), &agent)), "agent");
        let asks = said("You are performing a CONTEXT CHECKPOINT COMPACTION.");
        assert_eq!(text(&api, request(&asks, &agent)), "short");
        assert_eq!(text(&api, request(&asks, &own)), SUMMARY);
        let own_prompt = json!({"thread_source": "user", "request_kind": "compaction"});
        assert_eq!(text(&api, request(&said("Sum up."), &own_prompt)), SUMMARY);
        let sealed = text(&api, request(&json!({"type": "compaction_trigger"}), &own));
        assert!(!sealed.contains(SUMMARY), "{sealed}");
        let title = request(&said("Say a title."), &json!({"thread_source": "thread_title"}));
        assert_eq!((title.kind, title.takes()), (Kind::Title, Takes::Nothing));
        let kinds: Vec<Kind> = api.requests().iter().map(|request| request.kind).collect();
        assert_eq!(kinds[..4], [Kind::Turn; 4]);
        assert_eq!(kinds[4..7], [Kind::CompactLocal; 3]);
        assert_eq!(kinds[7..], [Kind::CompactRemote]);
        assert_eq!(api.left(), 0);
        assert_eq!(api.first_request_after(6).at, 6);
    }
}
