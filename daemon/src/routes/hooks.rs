//! `POST /v1/hooks/{host}/{event}`: the shim's door. A hook makes its session known at once, before
//! the file system says so, and tells what the host does; few are answered with text. What an event
//! means is its host's.
//!
//! Whatever goes wrong here is a line in the log and an answer without text: the host goes on.

mod claude;
mod codex;
mod until;

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use compactd_api::hooks::{HookRequest, check_path};
use compactd_api::{HOOK_DEADLINE, Host, convert, ids};
use serde::Deserialize;

use super::App;
use super::passes::boundaries;
use super::sessions::{current, ready};
use crate::serve::{ApiError, RawBody, Tasks};
use crate::sessions::{Session, SessionKey, Sessions};

/// A session that is not read by then is answered without text; the shim waits a little longer.
const PATIENCE: Duration = Duration::from_millis(HOOK_DEADLINE.as_millis() as u64 - 300);

/// What of a hook's input is looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input {
    session_id: Option<String>,
    transcript_path: Option<String>,
    agent_id: Option<String>,
    agent_transcript_path: Option<String>,
    agent_type: Option<String>,
    source: Option<String>,
    trigger: Option<String>,
    model: Option<String>,
    compact_summary: Option<String>,
}

impl Input {
    /// The sub-agent whose hook it is.
    fn agent(&self) -> Option<&String> {
        self.agent_id.as_ref().filter(|id| !id.is_empty())
    }

    /// Whose hook it is: a sub-agent has a context of its own.
    fn key(&self, host: Host) -> Option<SessionKey> {
        let id = self.agent().or(self.session_id.as_ref())?.clone();
        ids::is_id(&id).then_some(SessionKey { host: convert::host(host)?, id })
    }
}

pub(super) async fn hook(
    State(app): State<Arc<App>>,
    Path((host, event)): Path<(String, String)>,
    tasks: Tasks,
    headers: HeaderMap,
    body: RawBody,
) -> Result<Response, ApiError> {
    let until = until::of(&headers);
    let host = check_path(&host, &event)
        .map_err(|code| ApiError::new(code, format!("no hook {event} of {host}")))?;
    let request: HookRequest<'_> = body.json()?;
    let input: Input =
        request.input.and_then(|input| serde_json::from_str(input.get()).ok()).unwrap_or_default();
    // The shim may go away at any time; what is learned from a hook must not depend on that.
    let app_there = Arc::clone(&app);
    let text = tasks.detached(async move {
        match host {
            Host::Claude => claude::answer(&app_there, &event, &input).await,
            Host::Codex => codex::answer(&app_there, &event, &input, until).await,
            Host::Other => None,
        }
    });
    let text = text.await.unwrap_or_else(|error| {
        tracing::warn!(?error, "a hook could not be answered");
        None
    });
    Ok(match text {
        Some(text) => {
            app.stats.hooks_answered.add(1);
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            ([(header::CONTENT_TYPE, plain)], text).into_response()
        }
        None => {
            app.stats.hooks_silent.add(1);
            StatusCode::NO_CONTENT.into_response()
        }
    })
}

/// Makes the sessions known whose files a hook names; gives the one whose hook it is. A sub-agent's hook
/// may name the file of its session: its own is found by its id.
fn register(app: &App, key: &SessionKey, input: &Input) -> Option<Arc<Session>> {
    let mut found = None;
    for path in [&input.transcript_path, &input.agent_transcript_path].into_iter().flatten() {
        let Some(session) = app.sessions.at_path(FilePath::new(path)) else { continue };
        app.sessions.touch(&session);
        if !Sessions::is_ready(&session) {
            app.bulk.push(Arc::clone(&session));
        }
        found = found.or(Some(session).filter(|session| session.key == *key));
    }
    app.sessions.get(key).or(found)
}

/// Compactions that the transcript shows now; `None` if it is not read in time.
async fn seen(app: &Arc<App>, session: Option<&Arc<Session>>) -> Option<u64> {
    let session = session?;
    let _held = session.hold();
    let read = tokio::time::timeout(PATIENCE, async {
        ready(app, session).await.ok()?;
        current(app, session).await.then_some(())
    });
    read.await.ok().flatten()?;
    boundaries(session)
}
