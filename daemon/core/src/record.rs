//! The host-neutral shape of one line of a transcript (Claude Code) or rollout (Codex).
//!
//! Reading is total: any bytes become a [`Record`] or a counted [`Skip`], never an error. Only the
//! two files below this module know a host's JSON; everything else in the core sees these types.

mod attached;
pub mod claude;
pub mod codex;
pub mod json;
pub mod raw;

use std::borrow::Cow;

pub use attached::attached_text;

/// A line longer than this is skipped and counted: a line of 100 MB must not hurt.
pub const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// The program that wrote a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// Claude Code: one JSONL transcript per session, rows linked by `parentUuid`.
    Claude,
    /// Codex: one JSONL rollout per thread, rows in order.
    Codex,
}

impl Host {
    /// The name used on the wire and in paths: `claude` or `codex`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// Reads a host's name as [`Host::name`] writes it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "claude" => Some(Self::Claude),
            "codex" => Some(Self::Codex),
            _ => None,
        }
    }
}

/// Why a line holds nothing for the index. Every reason is counted per session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Skip {
    /// Nothing but white space.
    Blank,
    /// Not a JSON object (torn, corrupt, or another format).
    Malformed,
    /// Longer than [`MAX_LINE_BYTES`].
    TooLong,
    /// A kind that never reaches the model (bookkeeping, wire copies such as `api-request*`).
    Bookkeeping,
    /// A kind this version does not know.
    Unknown,
    /// A known kind whose required part is missing or has another shape.
    Odd,
}

impl Skip {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 6] =
        [Self::Blank, Self::Malformed, Self::TooLong, Self::Bookkeeping, Self::Unknown, Self::Odd];

    /// The reason as written in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::Malformed => "malformed",
            Self::TooLong => "too_long",
            Self::Bookkeeping => "bookkeeping",
            Self::Unknown => "unknown",
            Self::Odd => "odd",
        }
    }
}

/// One line that matters.
#[derive(Debug, Clone, PartialEq)]
pub enum Record<'a> {
    /// A row of the conversation.
    Row(Row<'a>),
    /// Claude Code: the conversation before this point left the context (`compact_boundary`).
    Boundary(Boundary<'a>),
    /// Codex: the context is now exactly these rows (`compacted`).
    Compacted(Compacted<'a>),
    /// Codex: the first line of a rollout (`session_meta`).
    Session(Box<SessionMeta<'a>>),
    /// Codex: settings of the turn that starts (`turn_context`).
    Turn {
        /// Working directory of the turn.
        cwd: Option<Cow<'a, str>>,
        /// Model of the turn.
        model: Option<Cow<'a, str>>,
    },
    /// Codex: what ran inside a tool call (`item_completed` with `CommandExecution`, `FileChange` or
    /// `McpToolCall`).
    InnerCommand(InnerCommand<'a>),
    /// Codex legacy: the newest turns were taken back (`thread_rolled_back`).
    RolledBack {
        /// How many turns, each from a person's prompt on.
        turns: u32,
    },
    /// What the host said a request cost (`token_count`); Claude's usage rides on its [`Row`].
    Usage(Usage),
}

/// Whose words a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person, or the host on the person's behalf; tool results ride here.
    User,
    /// The model.
    Assistant,
    /// No words for the model in it: keeps the chain of rows whole (attachments, system rows).
    Link,
}

/// One row of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// The row's own id (Claude `uuid`); Codex rows have none.
    pub uuid: Option<Cow<'a, str>>,
    /// The row before it in its branch (Claude `parentUuid`); `None` where the key is null or absent.
    pub parent: Option<Cow<'a, str>>,
    /// The API message it belongs to (Claude `message.id`, assistant rows only).
    pub message_id: Option<Cow<'a, str>>,
    /// Whose row it is.
    pub role: Role,
    /// A row of a sub-agent's conversation kept inside the main file (Claude `isSidechain`).
    pub sidechain: bool,
    /// The host's own summary of what a compaction removed.
    pub summary: bool,
    /// Written by the host, not typed by the person (Claude `isMeta`; Codex developer messages).
    pub meta: bool,
    /// Holds text that the host sends beside the messages, and hands to no plugin: attachments, and
    /// rows that it wrote itself (Claude). See [`attached_text`].
    pub attached: bool,
    /// Text and tool parts, in order; thinking is left out.
    pub items: Vec<Item<'a>>,
    /// Facts about the session that ride on the row.
    pub about: About<'a>,
}

impl Row<'_> {
    /// A person's prompt starts a turn; what the host puts in by itself starts with a tag.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        let first = self.items.iter().find_map(|item| match item {
            Item::Text(text) => Some(text),
            _ => None,
        });
        self.role == Role::User && !self.meta && first.is_some_and(|text| !text.starts_with('<'))
    }
}

/// Facts about the session that Claude Code repeats on every row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About<'a> {
    /// Session id of the host.
    pub session: Option<Cow<'a, str>>,
    /// Sub-agent id (rows of `subagents/agent-<id>.jsonl`).
    pub agent: Option<Cow<'a, str>>,
    /// Working directory.
    pub cwd: Option<Cow<'a, str>>,
    /// Version of the host.
    pub version: Option<Cow<'a, str>>,
    /// Model that answered (assistant rows).
    pub model: Option<Cow<'a, str>>,
    /// RFC 3339 time of the row, as written.
    pub timestamp: Option<Cow<'a, str>>,
    /// Usage of the request that this assistant row answers.
    pub usage: Option<Usage>,
}

/// What one request cost, in model tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Size of the whole prompt, cached parts included.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Context window, where the host says it.
    pub window_tokens: Option<u64>,
}

/// One part of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Item<'a> {
    /// Text of the row's role.
    Text(Cow<'a, str>),
    /// A tool call of the model.
    Call(Call<'a>),
    /// The result of a tool call.
    Result(ToolResult<'a>),
    /// A part without text: an image, a sealed item.
    Opaque,
}

impl Item<'_> {
    /// A text without any character is nothing that a host sends.
    pub(crate) fn is_empty_text(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call<'a> {
    /// The host's id that joins it to its result.
    pub id: Cow<'a, str>,
    /// Name of the tool; Codex namespaces are joined with `__`.
    pub tool: Cow<'a, str>,
    /// The leaves of the input in order: strings and numbers (a free-form input is one leaf).
    pub leaves: Vec<Leaf<'a>>,
}

/// One string or number of a tool call's input.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf<'a> {
    /// The key under which it stands; a leaf inside a list has the list's key; the empty string at
    /// the top.
    pub key: Cow<'a, str>,
    /// Nesting depth: 1 = directly in the input object, 0 = the input itself.
    pub depth: u8,
    /// A JSON string (which may be shortened) rather than a number.
    pub string: bool,
    /// The decoded text.
    pub text: Cow<'a, str>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    /// Id of the call it answers.
    pub id: Cow<'a, str>,
    /// All its text, parts joined by a newline: what the model read.
    pub text: Cow<'a, str>,
    /// The tool's own output, which terms and comparisons are taken from.
    pub body: Body<'a>,
    /// The host or the tool said that it failed.
    pub is_error: bool,
    /// Holds parts that are no text (images, binary).
    pub opaque: bool,
    /// Codex: what goes on running behind it, by the id that a later call asks for it with (a
    /// script's cell, a command's session).
    pub running: Option<Cow<'a, str>>,
}

/// The tool's own output inside a result's text.
#[derive(Debug, Clone, PartialEq)]
pub enum Body<'a> {
    /// The text from this byte offset on (behind the host's header in Codex, else 0).
    From(usize),
    /// Codex code mode: what a script showed, with what stood escaped in JSON as it was.
    Parts {
        /// The pieces, a newline between them.
        text: Cow<'a, str>,
        /// Byte offset of each piece's end.
        ends: Vec<usize>,
    },
}

impl ToolResult<'_> {
    /// The tool's own output.
    #[must_use]
    pub fn body(&self) -> &str {
        match &self.body {
            Body::From(at) => self.text.get(*at..).unwrap_or_default(),
            Body::Parts { text, .. } => text,
        }
    }

    /// The pieces of the body: what a script showed at once, else the body as it is.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        let whole = match &self.body {
            Body::From(_) => Some(self.body()),
            Body::Parts { .. } => None,
        };
        let (text, ends) = match &self.body {
            Body::From(_) => ("", &[][..]),
            Body::Parts { text, ends } => (&**text, ends.as_slice()),
        };
        let mut start = 0;
        let parts = ends.iter().map(move |&end| {
            let piece = text.get(start..end).unwrap_or_default();
            start = end.saturating_add(1);
            piece
        });
        whole.into_iter().chain(parts)
    }
}

/// Claude Code's `compact_boundary`.
#[derive(Debug, Clone, PartialEq)]
pub struct Boundary<'a> {
    /// The row's own id.
    pub uuid: Option<Cow<'a, str>>,
    /// Rows before the boundary that stay in the context, in order (`preservedMessages.uuids`).
    pub preserved: Vec<Cow<'a, str>>,
    /// A row of a sub-agent's conversation inside the main file.
    pub sidechain: bool,
    /// `manual` or `auto`, as written.
    pub trigger: Option<Cow<'a, str>>,
}

/// Codex's `compacted`.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted<'a> {
    /// The whole context after it, unless the record is one of the old kind with a summary only
    /// (then the summary's row). Shapes that the host would refuse make the record a [`Skip::Odd`].
    pub rows: Vec<Row<'a>>,
    /// Some history is sealed in an encrypted item: nobody but the vendor can read it.
    pub sealed: bool,
    /// The host's count of context windows.
    pub window_number: Option<u64>,
}

/// Codex's `session_meta`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionMeta<'a> {
    /// Thread id.
    pub id: Option<Cow<'a, str>>,
    /// The root thread's id (differs for sub-agents).
    pub session: Option<Cow<'a, str>>,
    /// The thread that spawned this one.
    pub parent_thread: Option<Cow<'a, str>>,
    /// Working directory.
    pub cwd: Option<Cow<'a, str>>,
    /// Version of the host.
    pub version: Option<Cow<'a, str>>,
    /// The history this file continues (`history_base`).
    pub base: Option<HistoryBase<'a>>,
    /// RFC 3339 time, as written.
    pub timestamp: Option<Cow<'a, str>>,
}

/// Where the history of a forked or reverted thread lives.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryBase<'a> {
    /// Thread whose file holds it.
    pub thread: Cow<'a, str>,
    /// First ordinal that is not part of it.
    pub end_ordinal: u64,
    /// First byte that is not part of it, where the host says it.
    pub end_offset: Option<u64>,
}

/// What ran inside a Codex tool call: a command, a patch, a tool of an MCP server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InnerCommand<'a> {
    /// The item's id: the call's own id outside code mode, `exec-<uuid>` inside.
    pub id: Cow<'a, str>,
    /// Working directory, without the `file://` scheme.
    pub cwd: Option<Cow<'a, str>>,
    /// The command as run, without the `bash -lc` wrapper; empty for what is no command.
    pub command: Cow<'a, str>,
    /// Files that the host itself understood the command to read (`parsed_cmd` of type `read`).
    pub reads: Vec<Cow<'a, str>>,
    /// Files that a patch changed (`FileChange`).
    pub writes: Vec<Cow<'a, str>>,
    /// Exit code other than 0, a failed or a declined status.
    pub failed: bool,
}

impl InnerCommand<'_> {
    /// Whether it ran inside a script: its id does not name the call then.
    #[must_use]
    pub fn is_of_script(&self) -> bool {
        self.id.starts_with("exec-")
    }
}

/// Reads one line without its newline.
///
/// # Errors
/// The reason why the line holds nothing for the index; the caller counts it.
pub fn read_line(host: Host, line: &[u8]) -> Result<Record<'_>, Skip> {
    if line.len() > MAX_LINE_BYTES {
        return Err(Skip::TooLong);
    }
    if line.iter().all(u8::is_ascii_whitespace) {
        return Err(Skip::Blank);
    }
    match host {
        Host::Claude => claude::read(line),
        Host::Codex => codex::read(line),
    }
}

/// Tells a host from the first lines of a file; `None` while no line is typical of either.
#[must_use]
pub fn sniff(line: &[u8]) -> Option<Host> {
    json::sniff(line)
}
