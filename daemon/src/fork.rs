//! The fork that a manual compaction of Codex is answered with where `codex.on_manual_compact` is `fork`:
//! the seam between the hooks and whoever writes it.

use std::sync::Arc;
use std::time::Instant;

use crate::routes::App;
use crate::sessions::Session;

/// What came of the wish for a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// It is written, and can be resumed.
    Fork {
        /// Id of the new thread.
        thread: String,
        /// Tokens of the context before.
        tokens_before: u64,
        /// And after.
        tokens_after: u64,
    },
    /// There is none, and the person may want to know why; without content.
    Refused {
        /// Why, as the rest of a sentence.
        reason: String,
    },
}

/// Prepares a fork of a session that is up to date, for that model. What is not done at `until` is not asked
/// for any more: then there must be no fork. `None`: there is nothing to say.
#[must_use]
pub fn prepared(
    _app: &Arc<App>,
    session: &Arc<Session>,
    _model: &str,
    _until: Instant,
) -> Option<Prepared> {
    tracing::info!(session = session.key.id, "there is no fork: the host compacts by itself");
    None
}
