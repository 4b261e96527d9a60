//! What the model "says": the steps of a script.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::gate::Gate;
use super::mock_api::{Kind, Request};
use super::recorder::Fits;

/// A tool call of a step.
#[derive(Debug, Clone)]
pub struct Call {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) input: Value,
}

impl Call {
    /// A call whose id is made when the step is answered.
    #[must_use]
    pub fn new(name: &str, input: Value) -> Self {
        Self { id: None, name: name.to_owned(), input }
    }

    /// With this id.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }
}

/// Who takes a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taker {
    /// The session itself.
    Session,
    /// Its sub-agents.
    Agent,
    /// A request for a summary, of either.
    Summary,
}

#[derive(Debug, Clone)]
pub(super) enum Reply {
    Message { thinking: Option<String>, text: Option<String>, calls: Vec<Call> },
    Error { status: u16, kind: String, message: String },
}

type Matcher = Arc<dyn Fn(&Request) -> bool + Send + Sync>;

/// One answer. A request takes the first step of the script that is not taken and fits it: by who
/// asks (the session, if nothing else is said), and by [`Step::when`].
#[derive(Clone)]
pub struct Step {
    taker: Taker,
    matcher: Option<Matcher>,
    pub(super) reply: Reply,
    pub(super) usage: Map<String, Value>,
    pub(super) delay: Duration,
    pub(super) gate: Option<Gate>,
    pub(super) hold: Option<(usize, Gate)>,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("taker", &self.taker)
            .field("has_matcher", &self.matcher.is_some())
            .field("reply", &self.reply)
            .finish_non_exhaustive()
    }
}

impl Step {
    fn of(reply: Reply) -> Self {
        Self {
            taker: Taker::Session,
            matcher: None,
            reply,
            usage: Map::new(),
            delay: Duration::ZERO,
            gate: None,
            hold: None,
        }
    }

    /// The model says something and ends its turn.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::of(Reply::Message { thinking: None, text: Some(text.to_owned()), calls: Vec::new() })
    }

    /// The model calls tools, all in one message.
    #[must_use]
    pub fn tools(calls: impl IntoIterator<Item = Call>) -> Self {
        let calls = calls.into_iter().collect();
        Self::of(Reply::Message { thinking: None, text: None, calls })
    }

    /// The model calls one tool.
    #[must_use]
    pub fn tool(name: &str, input: Value) -> Self {
        Self::tools([Call::new(name, input)])
    }

    /// An error in the API's shape, such as `529, "overloaded_error"`.
    #[must_use]
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let (kind, message) = (kind.to_owned(), message.to_owned());
        Self::of(Reply::Error { status, kind, message })
    }

    /// The API's refusal of too many tokens, in its words.
    #[must_use]
    pub fn prompt_too_long() -> Self {
        let message = "prompt is too long: 214312 tokens > 200000 maximum";
        Self::error(400, "invalid_request_error", message)
    }

    /// Says something before its calls.
    #[must_use]
    pub fn say(mut self, said: &str) -> Self {
        if let Reply::Message { text, .. } = &mut self.reply {
            *text = Some(said.to_owned());
        }
        self
    }

    /// Thinks before all else.
    #[must_use]
    pub fn think(mut self, thought: &str) -> Self {
        if let Reply::Message { thinking, .. } = &mut self.reply {
            *thinking = Some(thought.to_owned());
        }
        self
    }

    /// Pretends that the request had this many tokens; the host compacts by that.
    #[must_use]
    pub fn tokens(self, input: u64) -> Self {
        self.usage("input_tokens", json!(input))
    }

    /// Another field of the usage.
    #[must_use]
    pub fn usage(mut self, field: &str, value: Value) -> Self {
        self.usage.insert(field.to_owned(), value);
        self
    }

    /// Answers so much later.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Answers when the gate is opened.
    #[must_use]
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Streams its first `blocks` (thinking, text and calls, in this order) and holds the rest back
    /// until the gate is opened: the host starts with a call while the next is still to come.
    #[must_use]
    pub fn hold_after(mut self, blocks: usize, gate: &Gate) -> Self {
        self.hold = Some((blocks, gate.clone()));
        self
    }

    /// For a sub-agent of the session.
    #[must_use]
    pub fn for_agent(mut self) -> Self {
        self.taker = Taker::Agent;
        self
    }

    /// For a request for a summary, in place of the script's summary.
    #[must_use]
    pub fn for_summary(mut self) -> Self {
        self.taker = Taker::Summary;
        self
    }

    /// Only for a request like this.
    #[must_use]
    pub fn when(mut self, matcher: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.matcher = Some(Arc::new(matcher));
        self
    }

    /// Only for a request whose last message has this in one of its texts or tool results.
    #[must_use]
    pub fn when_last_has(self, text: &str) -> Self {
        let text = text.to_owned();
        self.when(move |request| {
            let last = request.messages().last();
            last.is_some_and(|message| super::wire::all_text(message).contains(&text))
        })
    }
}

impl Fits<Request> for Step {
    fn fits(&self, request: &Request) -> bool {
        let taker = match request.kind {
            Kind::Summary => Taker::Summary,
            _ if request.agent.is_some() => Taker::Agent,
            _ => Taker::Session,
        };
        taker == self.taker && self.matcher.as_ref().is_none_or(|matcher| matcher(request))
    }
}
