//! The full rescan: the rules of `docs/rules.md` as one straightforward pass over all lines.
//!
//! Written for itself, on `serde_json::Value`, one regular expression and maps keyed by strings: the
//! live index is held against it, and benchmarks use it as the peer that rescans.
//! It shares nothing with `compactd-core` but what a tool call does ([`ToolSemantics`]).

mod context;
mod decide;
mod history;
mod lines;
mod notes;
mod reader;
mod reader_claude;
mod reader_codex;
mod shorten;
pub mod standin;
mod supersede;
mod terms;
mod ties;

#[cfg(test)]
mod test_context;
#[cfg(test)]
mod test_kit;
#[cfg(test)]
mod test_ladder;
#[cfg(test)]
mod test_readers;
#[cfg(test)]
mod test_terms;

use std::collections::HashSet;

pub use terms::terms;

/// The program that wrote the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    Claude,
    Codex,
}

impl Host {
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// Which rows count (§1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    #[default]
    Context,
    Whole,
}

/// What happens to the call of a dropped result (§7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    Reference,
    #[default]
    Standard,
}

/// The settings of the rules.
#[derive(Debug, Clone)]
pub struct Options {
    pub history: History,
    pub profile: Profile,
    pub recent_results: usize,
    pub pin_last: usize,
    pub generic_above: usize,
    pub rerunnable_chars: usize,
    /// Results that the person pinned.
    pub pinned_ids: HashSet<String>,
    /// Files whose reads the person pinned: the whole path or its last components.
    pub pinned_files: HashSet<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            history: History::default(),
            profile: Profile::default(),
            recent_results: 10,
            pin_last: 6,
            generic_above: 10,
            rerunnable_chars: 200,
            pinned_ids: HashSet::new(),
            pinned_files: HashSet::new(),
        }
    }
}

/// What ran inside a Codex tool call: a command, or without one a patch or a tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InnerCommand {
    pub id: String,
    pub command: String,
    pub cwd: Option<String>,
    /// Files that the host understood the command to read.
    pub reads: Vec<String>,
    /// Files that a patch changed.
    pub writes: Vec<String>,
    pub failed: bool,
}

/// All that ran inside one call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    pub commands: Vec<InnerCommand>,
    /// Ran in this call or in a script that went on beside it.
    pub loose: Vec<InnerCommand>,
    pub failed: bool,
    /// A file was shown by this call or by a script that went on beside it.
    pub unsure: bool,
}

/// Which files a call writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Writes {
    #[default]
    None,
    Names(Vec<String>),
    All,
}

/// What a call does (§5).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Action {
    /// The files that it shows.
    pub reads: Vec<String>,
    pub writes: Writes,
    /// Set if the call is cheap to run again.
    pub rerunnable: Option<Rerunnable>,
    /// Which files it shows cannot be told.
    pub unsure: bool,
}

/// How a call is cheap to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rerunnable {
    /// Only if its output shows no failure.
    pub needs_pass: bool,
    /// Also if its output was used later.
    pub even_if_used: bool,
}

/// The tables of tools.
pub trait ToolSemantics {
    /// Whether the output of a test run shows a failure.
    fn shows_failure(&self, text: &str) -> bool;

    /// What a call does by its name, its input and what ran in it.
    fn whole(
        &self,
        host: &str,
        tool: &str,
        input: &serde_json::Value,
        cwd: Option<&str>,
        ran: &Ran,
    ) -> Action;

    /// Whether the tool edits files itself: then a failed call wrote nothing.
    fn is_edit_tool(&self, tool: &str) -> bool {
        matches!(tool, "Edit" | "Write" | "MultiEdit" | "NotebookEdit" | "apply_patch")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Keep,
    Truncate,
    Drop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFate {
    Kept,
    Shortened,
    Removed,
}

/// What happens to one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub id: String,
    pub tool: String,
    /// Length of the text that the model read.
    pub chars: usize,
    pub decision: Decision,
    pub call: CallFate,
    /// Name of the rule that decided.
    pub rule: &'static str,
    /// The text that takes the place of the result's, where that changes and stays.
    pub left: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    pub messages: usize,
    pub results: Vec<Decided>,
}

/// Decides about every result in the lines of a transcript or rollout.
pub fn rescan(
    lines: &[&[u8]],
    host: Option<Host>,
    tools: &dyn ToolSemantics,
    options: &Options,
) -> Outcome {
    let values = lines.iter().filter_map(|line| reader::parse(line)).collect::<Vec<_>>();
    let Some(host) = host.or_else(|| values.iter().find_map(reader::sniff)) else {
        return Outcome::default();
    };
    let records = match host {
        Host::Claude => reader_claude::read(&values),
        Host::Codex => reader_codex::read(&values),
    };
    drop(values);
    let rows = match (host, options.history) {
        (Host::Claude, History::Whole) => context::claude_whole(&records),
        (Host::Claude, History::Context) => context::claude(&records),
        (Host::Codex, History::Whole) => context::codex_whole(&records),
        (Host::Codex, History::Context) => context::codex(&records),
    };
    let history = history::History::new(host, &rows);
    let results = decide::decide(&history, tools, options);
    Outcome { messages: history.messages, results }
}
