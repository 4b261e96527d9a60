//! `POST /v1/hooks/{host}/{event}`: the shim's door. A hook makes its session known at once, before
//! the file system says so; there is nothing to print yet.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use compactd_api::hooks::{HookRequest, check_path};
use serde::Deserialize;

use super::App;
use crate::serve::{ApiError, RawBody};
use crate::sessions::Sessions;

/// What of a hook's input says whose it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input {
    transcript_path: Option<String>,
    agent_transcript_path: Option<String>,
}

pub(super) async fn hook(
    State(app): State<Arc<App>>,
    Path((host, event)): Path<(String, String)>,
    body: RawBody,
) -> Result<Response, ApiError> {
    check_path(&host, &event)
        .map_err(|code| ApiError::new(code, format!("no hook {event} of {host}")))?;
    let request: HookRequest<'_> = body.json()?;
    let input: Input =
        request.input.and_then(|input| serde_json::from_str(input.get()).ok()).unwrap_or_default();
    for path in [input.transcript_path, input.agent_transcript_path].into_iter().flatten() {
        register(&app, FilePath::new(&path));
    }
    app.stats.hooks_silent.add(1);
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn register(app: &App, path: &FilePath) {
    let Some(session) = app.sessions.at_path(path) else { return };
    app.sessions.touch(&session);
    if !Sessions::is_ready(&session) {
        app.bulk.push(session);
    }
}
