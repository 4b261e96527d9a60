//! The passes of a session, what became of them, where a result stands, and the focus text.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use compactd_api::passes::{LAST, PassList, PassReport};
use compactd_api::recall::{Recall, RecallQuery, RecallSession, ResultPlace};
use compactd_api::sessions::Focus;
use compactd_api::{ErrorCode, HOOK_DEADLINE, convert, ids};
use compactd_transcript::LineReader;

use super::App;
use super::sessions::{find, json, ready};
use crate::focus::focus as write_focus;
use crate::serve::{ApiError, Body, Tasks};
use crate::sessions::{Session, SessionKey, State as Known};

/// Boundaries that the session's index has seen, if it has one in memory.
pub(super) fn boundaries(session: &Session) -> Option<u64> {
    match &*session.lock() {
        Known::Ready(tail) => Some(tail.index().facts().compactions),
        Known::Cold | Known::Broken(_) => None,
    }
}

fn number(text: &str) -> Result<Option<u64>, ApiError> {
    if text == LAST {
        return Ok(None);
    }
    let number = text.parse().map_err(|_| {
        ApiError::new(ErrorCode::BadRequest, format!("a pass is named by its number or {LAST}"))
    })?;
    Ok(Some(number))
}

fn unknown() -> ApiError {
    ApiError::new(ErrorCode::PassUnknown, "no such pass of the session is known")
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let session = find(&app, &id).await?;
    let seen = boundaries(&session);
    let (passes, _) = app.ledger.list(session.key.clone(), seen).await.ok_or_else(unknown)?;
    Ok(json(&PassList { host: session.key.host.into(), session: id, passes }))
}

pub(super) async fn pass(
    State(app): State<Arc<App>>,
    Path((id, which)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let which = number(&which)?;
    let session = find(&app, &id).await?;
    let seen = boundaries(&session);
    let pass = app.ledger.pass(session.key.clone(), which, seen).await;
    Ok(json(&pass.ok_or_else(unknown)?))
}

pub(super) async fn report(
    State(app): State<Arc<App>>,
    Path((id, which)): Path<(String, String)>,
    tasks: Tasks,
    Body(report): Body<PassReport>,
) -> Result<Response, ApiError> {
    let which = number(&which)?;
    let own = report.agent.clone().unwrap_or_else(|| id.clone());
    if !ids::is_id(&id) || !ids::is_id(&own) {
        return Err(ErrorCode::InvalidId.into());
    }
    let key = match report.host {
        Some(host) => {
            let host = convert::host(host).ok_or(ErrorCode::HostUnknown)?;
            SessionKey { host, id: own }
        }
        None => find(&app, &own).await?.key.clone(),
    };
    let item = tasks.detached(async move { app.ledger.reported(key, which, report).await }).await?;
    Ok(json(&item.ok_or_else(unknown)?))
}

pub(super) async fn focus(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let session = find(&app, &id).await?;
    app.sessions.touch(&session);
    let held = session.hold();
    ready(&app, &session).await?;
    let focus = tokio::task::spawn_blocking(move || {
        let _held = held;
        app.sessions.follow(&session, &mut LineReader::new());
        write_focus(&app, &session)
    })
    .await
    .map_err(ApiError::internal)?;
    Ok(json(&Focus { focus }))
}

pub(super) async fn recall(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(query): Query<RecallQuery>,
) -> Result<Response, ApiError> {
    if !ids::is_id(&id) {
        return Err(ApiError::new(ErrorCode::InvalidId, "that is not the id of a result"));
    }
    let mut walked = app.walked.subscribe();
    drop(tokio::time::timeout(HOOK_DEADLINE, walked.wait_for(|walked| *walked)).await);
    let mut sessions = app.sessions.all();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.file().modified));
    if let Some(wanted) = &query.session {
        sessions.retain(|session| {
            session.key.id == *wanted || session.file().parent.as_ref() == Some(wanted)
        });
        if sessions.is_empty() {
            return Err(ApiError::new(ErrorCode::SessionUnknown, "no such session is known"));
        }
        for session in &sessions {
            // One that cannot be read is counted below.
            let _unread = ready(&app, session).await;
        }
    }
    // Each index is gone over row by row, without holding up other requests.
    let recall = tokio::task::spawn_blocking(move || {
        let mut recall = Recall { id, found: Vec::new(), unread: 0 };
        for session in sessions {
            match look(&session, &recall.id) {
                Some(found) => recall.found.extend(found),
                None => recall.unread += 1,
            }
        }
        recall
    })
    .await
    .map_err(ApiError::internal)?;
    Ok(json(&recall))
}

/// Where a session holds the id; `None` if it has no index.
fn look(session: &Session, id: &str) -> Option<Option<RecallSession>> {
    let parent = session.file().parent;
    let state = session.lock();
    let Known::Ready(tail) = &*state else { return None };
    let places = tail.index().places(id);
    if places.is_empty() {
        return Some(None);
    }
    let results = places.results.iter().map(|place| ResultPlace {
        offset: place.offset,
        chars: u64::from(place.chars),
        noted: place.noted,
    });
    Some(Some(RecallSession {
        host: session.key.host.into(),
        session: session.key.id.clone(),
        parent,
        files: tail.segments().iter().map(|file| file.path.display().to_string()).collect(),
        results: results.collect(),
        calls: places.calls,
    }))
}
