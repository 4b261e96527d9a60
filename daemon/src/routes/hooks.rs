//! `POST /v1/hooks/{host}/{event}`: the shim's door. A hook makes its session known at once, before
//! the file system says so, and tells the ledger what the host does; few are answered with text.
//!
//! Whatever goes wrong here is a line in the log and an answer without text: the host goes on.

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use compactd_api::hooks::{HookRequest, check_path};
use compactd_api::{HOOK_DEADLINE, Host, convert, ids};
use serde::Deserialize;

use super::App;
use super::passes::boundaries;
use super::sessions::{current, ready};
use crate::focus::focus;
use crate::ledger::line;
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
    compact_summary: Option<String>,
}

pub(super) async fn hook(
    State(app): State<Arc<App>>,
    Path((host, event)): Path<(String, String)>,
    tasks: Tasks,
    body: RawBody,
) -> Result<Response, ApiError> {
    let host = check_path(&host, &event)
        .map_err(|code| ApiError::new(code, format!("no hook {event} of {host}")))?;
    let request: HookRequest<'_> = body.json()?;
    let input: Input =
        request.input.and_then(|input| serde_json::from_str(input.get()).ok()).unwrap_or_default();
    // The shim may go away at any time; what the ledger learns must not depend on that.
    let app_there = Arc::clone(&app);
    let text = tasks.detached(async move { answer(&app_there, host, &event, input).await }).await;
    let text = text.unwrap_or_else(|error| {
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

/// The text to print, if any.
async fn answer(app: &Arc<App>, host: Host, event: &str, input: Input) -> Option<String> {
    // Every native compaction ends with one of these, for no sub-agent at all.
    if event == "SubagentStop" && input.agent_type.as_deref() == Some("") {
        return None;
    }
    let mut session = None;
    for path in [&input.transcript_path, &input.agent_transcript_path].into_iter().flatten() {
        let registered = register(app, FilePath::new(path));
        session = session.or(registered);
    }
    let key = key(host, &input)?;
    // A sub-agent's hook names the file of its session: its own is found by its id.
    let session = app.sessions.get(&key).or(session.filter(|session| session.key == key));
    if host != Host::Claude {
        return None;
    }
    match event {
        "PreCompact" => before(app, key, session?).await,
        "PostCompact" => {
            let is_empty = input.compact_summary.as_deref()?.is_empty();
            let seen = seen(app, session.as_ref()).await;
            app.ledger.after(key, is_empty, seen).await;
            None
        }
        "SessionStart" if input.source.as_deref() == Some("compact") => {
            let seen = seen(app, session.as_ref()).await;
            let item = app.ledger.started(key.clone(), seen).await?;
            let line = line(&item, &short(app, &key.id));
            serde_json::to_string(&serde_json::json!({ "systemMessage": line })).ok()
        }
        "SessionEnd" => {
            app.ledger.closed(key, session.as_deref().and_then(boundaries));
            None
        }
        _ => None,
    }
}

/// Whose hook it is: a sub-agent has a context of its own.
fn key(host: Host, input: &Input) -> Option<SessionKey> {
    let id = input.agent_id.clone().filter(|id| !id.is_empty()).or(input.session_id.clone())?;
    ids::is_id(&id).then_some(SessionKey { host: convert::host(host)?, id })
}

/// The host is about to ask for its own summary: the focus text, unless a plugin handed it over.
async fn before(app: &Arc<App>, key: SessionKey, session: Arc<Session>) -> Option<String> {
    let seen = seen(app, Some(&session)).await;
    if app.ledger.before(key, seen.map(|seen| seen + 1)).await {
        return None;
    }
    seen?;
    let app = Arc::clone(app);
    let held = session.hold();
    let written = tokio::task::spawn_blocking(move || {
        let _held = held;
        focus(&app, &session)
    });
    written.await.ok().flatten()
}

/// Boundaries that the transcript has now; `None` if it is not read in time.
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

/// So much of an id that it leads to one session.
fn short(app: &App, id: &str) -> String {
    let ids: Vec<String> = app
        .sessions
        .all()
        .iter()
        .map(|session| session.key.id.clone())
        .filter(|other| other != id)
        .collect();
    (8..id.len())
        .filter_map(|length| id.get(..length))
        .find(|short| !ids.iter().any(|other| other.starts_with(short)))
        .unwrap_or(id)
        .to_owned()
}

fn register(app: &App, path: &FilePath) -> Option<Arc<Session>> {
    let session = app.sessions.at_path(path)?;
    app.sessions.touch(&session);
    if !Sessions::is_ready(&session) {
        app.bulk.push(Arc::clone(&session));
    }
    Some(session)
}
