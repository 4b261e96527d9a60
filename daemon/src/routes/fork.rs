//! `POST /v1/fork`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use compactd_api::fork::ForkRequest;
use compactd_api::{ErrorCode, HOOK_DEADLINE, ids};
use compactd_core::record::Host;

use super::App;
use super::sessions::json;
use crate::fork::{self, Wish};
use crate::serve::{ApiError, RawBody, Tasks};
use crate::sessions::Session;

pub(super) async fn fork(
    State(app): State<Arc<App>>,
    tasks: Tasks,
    body: RawBody,
) -> Result<Response, ApiError> {
    let request: ForkRequest = body.json()?;
    let wish = Wish::of(&request).ok_or(ErrorCode::ProfileUnknown)?;
    let session = find(&app, &request.session).await?;
    // A fork is begun and ended whether or not the caller stays.
    let work = async move {
        let _held = session.hold();
        tokio::task::spawn_blocking(move || fork::fork(&app, &session, wish)).await
    };
    let made = tasks.detached(work).await?.map_err(ApiError::internal)?;
    Ok(json(&made?))
}

/// The thread that an id, or the beginning of one, leads to.
async fn find(app: &App, wanted: &str) -> Result<Arc<Session>, ApiError> {
    if !ids::is_id(wanted) {
        return Err(ApiError::new(ErrorCode::InvalidId, "that is not a session id"));
    }
    let look = || {
        let all = app.sessions.all();
        let codex = all.into_iter().filter(|session| session.key.host == Host::Codex);
        let found: Vec<_> = codex.filter(|session| session.key.id.starts_with(wanted)).collect();
        match found.iter().find(|session| session.key.id == wanted) {
            Some(exact) => vec![Arc::clone(exact)],
            None => found,
        }
    };
    let mut found = look();
    if found.is_empty() {
        let mut walked = app.walked.subscribe();
        let _late = tokio::time::timeout(HOOK_DEADLINE, walked.wait_for(|walked| *walked)).await;
        found = look();
    }
    match found.as_slice() {
        [one] => Ok(Arc::clone(one)),
        [] => Err(ApiError::new(
            ErrorCode::SessionUnknown,
            format!("no session {wanted} of Codex is known"),
        )),
        many => Err(ApiError::new(
            ErrorCode::SessionUnknown,
            format!("{} sessions have an id that begins with {wanted}", many.len()),
        )
        .with_hint("give more of the id")),
    }
}
