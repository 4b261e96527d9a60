//! What the model "says": the steps of a script.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::gate::Gate;
use super::super::recorder::Fits;
use super::api::Request;
use super::wire;

/// A tool call of a step.
#[derive(Debug, Clone)]
pub struct Call {
    pub(super) id: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) input: Input,
}

#[derive(Debug, Clone)]
pub(super) enum Input {
    /// Of a `function_call`.
    Arguments(Value),
    /// Of a `custom_tool_call`.
    Text(String),
}

impl Call {
    fn of(name: &str, input: Input) -> Self {
        Self { id: None, namespace: None, name: name.to_owned(), input }
    }

    /// A `function_call` whose id is made when the step is answered.
    #[must_use]
    pub fn new(name: &str, arguments: Value) -> Self {
        Self::of(name, Input::Arguments(arguments))
    }

    /// A `custom_tool_call`.
    #[must_use]
    pub fn custom(name: &str, input: &str) -> Self {
        Self::of(name, Input::Text(input.to_owned()))
    }

    /// A shell command, for models with direct tools.
    #[must_use]
    pub fn shell(command: &str) -> Self {
        Self::new("exec_command", json!({"cmd": command}))
    }

    /// A change of files: what stands between the patch's first and last line.
    #[must_use]
    pub fn patch(body: &str) -> Self {
        Self::custom("apply_patch", &patch(body))
    }

    /// JavaScript, for models in code mode.
    #[must_use]
    pub fn code(script: &str) -> Self {
        Self::custom("exec", script)
    }

    /// A sub-agent with this task.
    #[must_use]
    pub fn spawn(task: &str) -> Self {
        Self::new("spawn_agent", json!({"message": task, "agent_type": "default"}))
            .namespace("multi_agent_v1")
    }

    /// With this id.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// A tool of this namespace: an MCP server's, or the host's for sub-agents.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }
}

/// A whole patch.
pub(super) fn patch(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

/// Who takes a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taker {
    /// The session itself.
    Session,
    /// Its sub-agents.
    Agent,
    /// A request for a compaction, of either.
    Compaction,
}

#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// Thoughts, words and calls, in this order.
    Items { thought: Option<String>, text: Option<String>, calls: Vec<Call>, more: Vec<Value> },
    /// An HTTP status with an error.
    Status { status: u16, message: String },
    /// A stream that says that it failed.
    Failed { code: String, message: String },
}

type Matcher = Arc<dyn Fn(&Request) -> bool + Send + Sync>;

/// One answer. A request takes the first step of the script that is not taken and fits it: by who
/// asks (the session, if nothing else is said), and by [`Step::when`].
#[derive(Clone)]
pub struct Step {
    taker: Taker,
    matcher: Option<Matcher>,
    pub(super) reply: Reply,
    pub(super) tokens: Option<u64>,
    pub(super) delay: Duration,
    pub(super) gate: Option<Gate>,
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
            tokens: None,
            delay: Duration::ZERO,
            gate: None,
        }
    }

    fn items(text: Option<&str>, calls: Vec<Call>) -> Self {
        let text = text.map(str::to_owned);
        Self::of(Reply::Items { thought: None, text, calls, more: Vec::new() })
    }

    /// The model says something and ends its turn.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::items(Some(text), Vec::new())
    }

    /// The model calls tools, all at once.
    #[must_use]
    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Self {
        Self::items(None, calls.into_iter().collect())
    }

    /// The model runs one shell command.
    #[must_use]
    pub fn shell(command: &str) -> Self {
        Self::calls([Call::shell(command)])
    }

    /// The model runs one script in code mode.
    #[must_use]
    pub fn code(script: &str) -> Self {
        Self::calls([Call::code(script)])
    }

    /// An HTTP error.
    #[must_use]
    pub fn status(status: u16, message: &str) -> Self {
        Self::of(Reply::Status { status, message: message.to_owned() })
    }

    /// The stream begins and says that it failed, for instance with `context_length_exceeded`.
    #[must_use]
    pub fn failed(code: &str, message: &str) -> Self {
        Self::of(Reply::Failed { code: code.to_owned(), message: message.to_owned() })
    }

    /// Says something before its calls.
    #[must_use]
    pub fn say(mut self, said: &str) -> Self {
        if let Reply::Items { text, .. } = &mut self.reply {
            *text = Some(said.to_owned());
        }
        self
    }

    /// Thinks before all else.
    #[must_use]
    pub fn think(mut self, thinks: &str) -> Self {
        if let Reply::Items { thought, .. } = &mut self.reply {
            *thought = Some(thinks.to_owned());
        }
        self
    }

    /// One more item, as it is.
    #[must_use]
    pub fn item(mut self, item: Value) -> Self {
        if let Reply::Items { more, .. } = &mut self.reply {
            more.push(item);
        }
        self
    }

    /// Pretends that the request had this many tokens; the host compacts by that.
    #[must_use]
    pub fn tokens(mut self, input: u64) -> Self {
        self.tokens = Some(input);
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

    /// For a sub-agent of the session.
    #[must_use]
    pub fn for_agent(mut self) -> Self {
        self.taker = Taker::Agent;
        self
    }

    /// For a request for a compaction, in place of the script's summary. Its text is the summary,
    /// or what is sealed in the host's sealed kind.
    #[must_use]
    pub fn for_compaction(mut self) -> Self {
        self.taker = Taker::Compaction;
        self
    }

    /// Only for a request like this.
    #[must_use]
    pub fn when(mut self, matcher: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.matcher = Some(Arc::new(matcher));
        self
    }

    /// Only for a request that has this in one of its items.
    #[must_use]
    pub fn when_input_has(self, text: &str) -> Self {
        let text = text.to_owned();
        self.when(move |request| wire::has(&request.body, &text))
    }
}

impl Fits<Request> for Step {
    fn fits(&self, request: &Request) -> bool {
        let taker = if request.is_compaction() {
            Taker::Compaction
        } else if request.is_agent {
            Taker::Agent
        } else {
            Taker::Session
        };
        taker == self.taker && self.matcher.as_ref().is_none_or(|matcher| matcher(request))
    }
}
