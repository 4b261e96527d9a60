//! Forks of Codex threads: for whoever asks, and in the place of a compaction that a person begins.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use compactd_api::fork::{ForkAnswer, ForkRequest};
use compactd_api::{ErrorCode, convert};
use compactd_core::rules::Profile;
use compactd_fork::{Error, Options, auto_compact_limit, home_of};

use crate::routes::App;
use crate::serve::ApiError;
use crate::sessions::Session;

/// How a fork is wanted; what is not said is as configured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish {
    budget: Option<u64>,
    profile: Option<Profile>,
    dry_run: bool,
    /// Only if something goes, and only by then.
    in_place: Option<SystemTime>,
}

impl Wish {
    /// What a request asks for; `None` if it names rules that this version does not know.
    #[must_use]
    pub fn of(request: &ForkRequest) -> Option<Self> {
        let profile = match request.profile {
            Some(profile) => Some(convert::profile(profile)?),
            None => None,
        };
        let ForkRequest { budget, dry_run, .. } = *request;
        Some(Self { budget, profile, dry_run, in_place: None })
    }
}

/// Forks a thread; the copy lies in the home of its source, which is one of the roots. Reads and writes a
/// whole rollout: not for a thread that serves requests.
///
/// # Errors
/// It cannot be forked, or not truly; nothing is left behind then.
pub fn fork(app: &App, session: &Session, wish: Wish) -> Result<ForkAnswer, ApiError> {
    let source = session.file().path;
    let home = home_of(&source).ok_or_else(|| {
        ApiError::new(ErrorCode::ForkRefused, "the rollout lies in no Codex home")
    })?;
    let pins = app.sessions.store().pins(&session.key);
    let options = Options {
        threshold: auto_compact_limit(&home),
        home,
        profile: wish.profile.unwrap_or(app.profile),
        settings: app.sessions.settings().clone(),
        pins: pins.map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))?,
        budget: wish.budget,
        dry_run: wish.dry_run,
        in_place: wish.in_place,
    };
    let made = compactd_fork::fork(&source, &options);
    if let Ok(fork) = made.as_ref()
        && !fork.dry_run
    {
        // Whoever asked may ask for it before the system tells that it is there.
        drop(app.sessions.at_path(Path::new(&fork.path)));
    }
    made.map_err(|error| {
        let refused = ApiError::new(ErrorCode::ForkRefused, error.to_string());
        let refused = refused.with_hint(error.hint());
        match std::error::Error::source(&error) {
            Some(cause) if matches!(error, Error::Write { .. }) => refused.with_cause(cause),
            _ => refused,
        }
    })
}

/// What came of the wish for a fork in the place of a compaction.
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

/// Prepares a fork of a session to go on with in the place of a compaction. What is not done at `until` is not
/// asked for any more: then there is no fork.
#[must_use]
pub fn prepared(app: &Arc<App>, session: &Arc<Session>, until: SystemTime) -> Prepared {
    match fork(app, session, Wish { in_place: Some(until), ..Wish::default() }) {
        Ok(ForkAnswer { thread_id: thread, tokens_before, tokens_after, .. }) => {
            Prepared::Fork { thread, tokens_before, tokens_after }
        }
        Err(error) => {
            tracing::info!(session = session.key.id, reason = error.message(), "there is no fork");
            Prepared::Refused { reason: error.message().to_owned() }
        }
    }
}
