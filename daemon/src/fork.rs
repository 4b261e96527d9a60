//! Forks of Codex threads, made on a thread of their own: they read and write a whole rollout.

use std::sync::Arc;

use compactd_api::fork::{ForkAnswer, ForkRequest};
use compactd_api::{ErrorCode, convert};
use compactd_core::rules::Profile;
use compactd_fork::{Options, auto_compact_limit, home_of};

use crate::routes::App;
use crate::serve::ApiError;
use crate::sessions::Session;

/// How a fork is wanted; what is not said is as configured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish {
    budget: Option<u64>,
    profile: Option<Profile>,
    dry_run: bool,
}

impl Wish {
    /// What a request asks for; `None` if it names rules that this version does not know.
    #[must_use]
    pub fn of(request: &ForkRequest) -> Option<Self> {
        let profile = match request.profile {
            Some(profile) => Some(convert::profile(profile)?),
            None => None,
        };
        Some(Self { budget: request.budget, profile, dry_run: request.dry_run })
    }
}

/// Forks a thread; the copy lies in the home of its source, which is one of the roots.
///
/// # Errors
/// It cannot be forked, or not truly; nothing is left behind then.
pub async fn fork(
    app: &Arc<App>,
    session: &Arc<Session>,
    wish: Wish,
) -> Result<ForkAnswer, ApiError> {
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
    };
    let made = tokio::task::spawn_blocking(move || compactd_fork::fork(&source, &options)).await;
    made.map_err(ApiError::internal)?.map_err(|error| {
        ApiError::new(ErrorCode::ForkRefused, error.to_string()).with_hint(error.hint())
    })
}
