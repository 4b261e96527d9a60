//! The shapes in which Codex 0.171 takes the records of a rollout, for whoever writes one.
//!
//! The host drops a `compacted` record with one malformed item, or a malformed `turn_context`,
//! without a word. So everything here was seen: what is accepted was taken by the real host and
//! sent on as it was, all else is a [`Flaw`]. Fields that the host does not know are allowed, as
//! it allows them. The reader beside this module is more lenient: it also meets what older
//! versions wrote and took.

mod check;
mod items;
mod meta;
mod records;
mod turn;

use std::fmt;

use super::super::json::{self, Raw};
use check::check;

/// Where a thing has not the shape that the host takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// A JSON pointer within the thing that was checked, such as `/content/1/text`; empty for the
    /// thing itself.
    pub place: String,
    /// What had to stand there, in plain words: `a string`.
    pub expected: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "/" } else { &self.place };
        write!(f, "at {place}: expected {}", self.expected)
    }
}

impl std::error::Error for Flaw {}

/// What an item of a history is to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Words of someone: `message`, `agent_message`.
    Message,
    /// The model's reasoning; its text may be sealed, but it stands beside what it is about.
    Reasoning,
    /// A call of a tool that an item of kind [`Kind::Output`] answers.
    Call,
    /// What a tool answered.
    Output,
    /// A call that the provider ran itself: nothing answers it.
    HostedCall,
    /// A history that the provider compacted: only it can read what was there.
    Sealed,
    /// Tools that code-mode models are told of.
    Tools,
}

impl Kind {
    /// Does the item stand for a history that only the provider can read?
    #[must_use]
    pub fn is_sealed(self) -> bool {
        self == Self::Sealed
    }
}

/// Checks one response item, as it stands in a `replacement_history`.
///
/// # Errors
/// The first flaw. An unknown kind is one: the host takes it, but sends `{"type":"other"}`.
pub fn item(raw: &str) -> Result<Kind, Flaw> {
    items::item(whole(raw)?)
}

/// Checks the payload of a `compacted` record, its items included.
///
/// # Errors
/// The first flaw.
pub fn compacted(payload: &str) -> Result<(), Flaw> {
    records::compacted(whole(payload)?)
}

/// Checks the payload of a `compacted` record that stands in a rollout: may the host have written it,
/// and does it take it? Unlike in [`compacted`], what the host keeps for itself is allowed, and so are
/// items of kinds that it does not know.
///
/// # Errors
/// The first flaw.
pub fn compacted_of_host(payload: &str) -> Result<(), Flaw> {
    records::compacted_of_host(whole(payload)?)
}

/// Checks the payload of a `session_meta` record.
///
/// # Errors
/// The first flaw.
pub fn session_meta(payload: &str) -> Result<(), Flaw> {
    meta::session_meta(whole(payload)?)
}

/// Checks the payload of a `turn_context` record.
///
/// # Errors
/// The first flaw.
pub fn turn_context(payload: &str) -> Result<(), Flaw> {
    turn::turn_context(whole(payload)?)
}

/// Checks the payload of a `world_state` record, whole or a patch.
///
/// # Errors
/// The first flaw.
pub fn world_state(payload: &str) -> Result<(), Flaw> {
    records::world_state(whole(payload)?)
}

/// Checks the payload of an `event_msg` record that is a `token_count`.
///
/// # Errors
/// The first flaw.
pub fn token_count(payload: &str) -> Result<(), Flaw> {
    records::token_count(whole(payload)?)
}

/// Checks a whole line of a rollout, without its newline.
///
/// Records that no history is made of (other events, usage records) only need to be JSON with the
/// outer shape of a record.
///
/// # Errors
/// The first flaw; its place is a pointer within the line.
pub fn record(line: &[u8]) -> Result<(), Flaw> {
    let Ok(text) = std::str::from_utf8(line) else { return Err(Flaw::here("UTF-8")) };
    records::record(whole(text)?)
}

fn whole(text: &str) -> Result<Raw<'_>, Flaw> {
    json::value(text).ok_or_else(|| Flaw::here("JSON"))
}

#[cfg(test)]
mod tests;
