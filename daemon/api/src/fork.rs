//! `POST /v1/fork`: a Codex thread under a new id, with the shortened history.

use serde::{Deserialize, Serialize};

use crate::words::{Level, Profile};

/// What to fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkRequest {
    /// The thread: its id, or enough of it.
    pub session: String,
    /// Tokens that may be left, counted as [`ForkAnswer::tokens_after`] is. Absent: the smaller of 60%
    /// of the window and 90% of the host's own threshold, by the host's count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Rules to use; the configured ones if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Decide and check only; nothing is written.
    #[serde(default)]
    pub dry_run: bool,
}

/// A fork. Ids, sizes and paths only: never content of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkAnswer {
    /// Id of the new thread.
    pub thread_id: String,
    /// Its rollout; of a dry run where it would be.
    pub path: String,
    /// The line that goes on with it, with the model of the source: another model could make the host
    /// compact at once.
    pub resume_command: String,
    /// Estimated size of the history with the base instructions, before.
    pub tokens_before: u64,
    /// The same of what is left; the fork's `token_count` says it to the host.
    pub tokens_after: u64,
    /// What the fork was made from.
    pub source: ForkSource,
    /// Model of the newest turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the host counted last, with what it adds beside the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_tokens: Option<u64>,
    /// The model's window, as the host gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u64>,
    /// How far the pass went.
    pub level: Level,
    /// Tokens that were to be left, where the rules alone left more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<u64>,
    /// More is left than that: the host may compact soon.
    pub over_target: bool,
    /// What went and what stayed.
    pub counters: ForkCounters,
    /// Items of the new history.
    pub items: u64,
    /// Records of the new rollout.
    pub records: u64,
    /// Nothing was written.
    pub dry_run: bool,
    /// What a person should know beside that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What a fork was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkSource {
    /// The thread.
    pub thread_id: String,
    /// Its newest file, which is only read.
    pub path: String,
    /// A running Codex held the thread: what it writes from then on is not in the fork.
    pub live: bool,
}

/// What a fork's pass did, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkCounters {
    /// Tool results in the history.
    pub results: u64,
    /// Of them whole.
    pub kept: u64,
    /// Of them cut to their start.
    pub truncated: u64,
    /// Of them gone.
    pub dropped: u64,
    /// Calls whose long inputs were shortened.
    pub inputs: u64,
    /// Texts of the assistant that were shortened.
    pub texts: u64,
}
