//! `GET /v1/recall/{id}`: where a tool result and its call stand. The daemon says the place, the
//! caller reads the bytes from the transcript itself: no text of it travels.

use serde::{Deserialize, Serialize};

use crate::words::Host;

/// Query of `GET /v1/recall/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecallQuery {
    /// Only in this session and its sub-agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recall {
    /// The id that was asked for.
    pub id: String,
    /// The sessions that hold it, the newest first; only those with an index in memory.
    pub found: Vec<RecallSession>,
    /// Known sessions that were not looked into: they have no index in memory.
    pub unread: u64,
}

/// One session that holds the id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecallSession {
    /// Whose session it is.
    pub host: Host,
    /// Its id; a sub-agent's own.
    pub session: String,
    /// The session that a sub-agent belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The files of its history, the oldest first.
    pub files: Vec<String>,
    /// The rows that hold the result, in the order of the history.
    pub results: Vec<ResultPlace>,
    /// Offsets of the rows that hold the call, likewise.
    pub calls: Vec<u64>,
}

/// A row that holds a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultPlace {
    /// Byte at which the row's line starts, in one of the files.
    pub offset: u64,
    /// Characters of the result there.
    pub chars: u64,
    /// It is a note of an earlier pass, not the result itself.
    pub noted: bool,
}
