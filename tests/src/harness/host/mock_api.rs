//! A scripted Messages API on 127.0.0.1 that keeps every request.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Method, Request as HttpRequest, Response};
use regex::Regex;
use serde_json::{Value, json};

use super::answer::answer;
use super::recorder::{Asked, Takes};
use super::serve::{Answer, Server};
use super::step::Step;
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

impl Asked for Request {
    type Kind = Kind;

    fn kind(&self) -> Kind {
        self.kind
    }

    fn takes(&self) -> Takes {
        match self.kind {
            Kind::Turn => Takes::Step,
            Kind::Summary => Takes::Summary,
            Kind::Aux | Kind::CountTokens | Kind::Other => Takes::Nothing,
        }
    }

    fn place(&mut self, at: usize) {
        self.at = at;
    }

    fn outlines(requests: &[Arc<Self>]) -> String {
        wire::outlines(requests)
    }
}

/// The requests of an API and its script; it may be cloned. Its address is for
/// `ANTHROPIC_BASE_URL`.
pub type Recorder = super::recorder::Recorder<Request, Step>;

impl Recorder {
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
}

/// The API. Dropping it closes it. Everything that can be asked of it is [`Recorder`]'s.
#[derive(Debug)]
pub struct MockApi {
    recorder: Recorder,
    _server: Server,
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
        let step = step.unwrap_or_else(|| Step::text("ok"));
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
    answer.into_response()
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
        let answer = answer(&step.unwrap(), &request.body, 1);
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
