//! `GET /v1/sessions…`: the list, the details, what a compaction would do, and the pins.

use std::sync::{Arc, PoisonError};

use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use compactd_api::sessions::{
    ExplainQuery, Pin, Pins as PinList, SessionDetails, SessionItem, SessionList, SessionState,
    SessionsQuery, SkipCounts,
};
use compactd_api::{ErrorCode, HOOK_DEADLINE, convert, ids};
use compactd_core::index::History;
use compactd_core::record::Host;
use compactd_core::rules::Pins;
use compactd_transcript::LineReader;
use compactd_transcript::texts::Texts;
use serde::Serialize;

use super::App;
use super::passes::boundaries;
use crate::serve::{ApiError, Body};
use crate::sessions::{Followed, Session, Sessions, State as Known};
use crate::time::rfc3339;

/// An answer with a JSON body.
pub(super) fn json(body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => json_bytes(bytes),
        Err(error) => ApiError::new(ErrorCode::Internal, error.to_string()).into_response(),
    }
}

/// An answer whose JSON is written already.
pub(super) fn json_bytes(bytes: Vec<u8>) -> Response {
    let mut response = bytes.into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Waits until a session has an index. A cold one is read on a thread of its own, at normal
/// priority; that work goes on when the caller does not wait for it.
pub(super) async fn ready(app: &App, session: &Arc<Session>) -> Result<(), ApiError> {
    if Sessions::is_ready(session) {
        return Ok(());
    }
    if session.key.host == Host::Codex {
        // Its history may lie in files that are not found yet.
        let mut walked = app.walked.subscribe();
        drop(walked.wait_for(|walked| *walked).await);
    }
    let (sessions, work) = (Arc::clone(&app.sessions), Arc::clone(session));
    let built = tokio::task::spawn_blocking(move || {
        let _one_at_a_time = work.building.lock().unwrap_or_else(PoisonError::into_inner);
        if Sessions::is_ready(&work) {
            return Ok(true);
        }
        sessions.build(&work, &mut LineReader::new(), || !Sessions::is_ready(&work))
    })
    .await;
    match built {
        Ok(Ok(_)) => {
            app.bulk.tidy_above(app.sessions.index_bytes(), app.budget_bytes);
            Ok(())
        }
        Ok(Err(error)) => {
            let code = match &error {
                compactd_transcript::Error::NotATranscript { .. } => ErrorCode::NotATranscript,
                _ => ErrorCode::SessionUnreadable,
            };
            Err(ApiError::new(code, error.to_string()).with_hint(error.hint()))
        }
        Err(panic) => {
            app.sessions.mark_broken(session, "reading it failed inside compactd");
            Err(ApiError::internal(panic))
        }
    }
}

/// Brings a ready session up to date: what was just appended here, more than that on a thread of its
/// own, so that other requests are answered meanwhile.
pub(super) async fn current(app: &App, session: &Arc<Session>) -> bool {
    match app.sessions.follow_step(session, &mut LineReader::new()) {
        Followed::Current => true,
        Followed::Not => false,
        Followed::More => {
            let (sessions, work) = (Arc::clone(&app.sessions), Arc::clone(session));
            tokio::task::spawn_blocking(move || sessions.follow(&work, &mut LineReader::new()))
                .await
                .unwrap_or(false)
        }
    }
}

/// The session with this id. Until the folders were walked once it is waited for: the socket answers
/// before that.
pub(super) async fn find(app: &App, id: &str) -> Result<Arc<Session>, ApiError> {
    if !ids::is_id(id) {
        return Err(ApiError::new(ErrorCode::InvalidId, "that is not a session id"));
    }
    if app.sessions.find(id).is_none() {
        let mut walked = app.walked.subscribe();
        let _late = tokio::time::timeout(HOOK_DEADLINE, walked.wait_for(|walked| *walked)).await;
    }
    app.sessions.find(id).ok_or_else(|| {
        ApiError::new(ErrorCode::SessionUnknown, format!("no session {id} is known"))
    })
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<SessionsQuery>,
) -> Response {
    let mut sessions = app.sessions.all();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.file().modified));
    let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let items = sessions
        .iter()
        .map(|session| item(&app, session))
        .filter(|item| query.host.is_none_or(|host| item.host == host))
        .filter(|item| query.state.is_none_or(|state| item.state == state))
        .take(limit)
        .collect();
    json(&SessionList { sessions: items })
}

fn item(app: &App, session: &Arc<Session>) -> SessionItem {
    let file = session.file();
    let mut item = SessionItem {
        id: session.key.id.clone(),
        host: session.key.host.into(),
        path: file.path.display().to_string(),
        cwd: None,
        size_bytes: file.size_bytes,
        indexed_bytes: 0,
        lines: 0,
        messages: 0,
        results: 0,
        updated_at: rfc3339(file.modified),
        state: SessionState::Cold,
        agent: file.parent.is_some().then(|| session.key.id.clone()),
    };
    match &*session.lock() {
        Known::Ready(tail) => {
            let (index, facts) = (tail.index(), tail.index().facts());
            item.state = SessionState::Indexed;
            item.cwd.clone_from(&facts.cwd);
            item.indexed_bytes = tail.indexed_bytes();
            item.lines = facts.lines;
            item.messages = index.messages() as u64;
            item.results = index.results() as u64;
        }
        Known::Broken(_) => item.state = SessionState::Broken,
        Known::Cold if app.bulk.holds(session) => item.state = SessionState::Indexing,
        Known::Cold => {}
    }
    item
}

pub(super) async fn details(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let session = find(&app, &id).await?;
    let _held = session.hold();
    // A session that cannot be read has details too: why.
    let _shown_below = ready(&app, &session).await;
    current(&app, &session).await;
    let pins = app.sessions.store().pins(&session.key).unwrap_or_default();
    let mut details = SessionDetails {
        item: item(&app, &session),
        host_version: None,
        model: None,
        parent: session.file().parent,
        context_tokens: None,
        window_tokens: None,
        index_bytes: session.index_bytes(),
        boundaries: 0,
        compaction: 0,
        recovery: None,
        rebuilds: 0,
        pins: (pins.ids.len() + pins.files.len()) as u64,
        skipped: SkipCounts::default(),
        problem: None,
    };
    match &*session.lock() {
        Known::Ready(tail) => {
            let facts = tail.index().facts();
            details.host_version.clone_from(&facts.version);
            details.model.clone_from(&facts.model);
            details.parent = details.parent.or_else(|| facts.parent_thread.clone());
            details.context_tokens = facts.usage.map(|usage| usage.input_tokens);
            details.window_tokens = facts.usage.and_then(|usage| usage.window_tokens);
            details.boundaries = facts.compactions;
            let [blank, malformed, too_long, bookkeeping, unknown, odd] = facts.skipped;
            details.skipped = SkipCounts { blank, malformed, too_long, bookkeeping, unknown, odd };
            if tail.has_gap() {
                details.problem = Some("the beginning of its history is missing".to_owned());
            }
        }
        Known::Broken(reason) => details.problem = Some(reason.clone()),
        Known::Cold => {}
    }
    let told = app.ledger.list(session.key.clone(), boundaries(&session)).await;
    details.recovery = app.recovery.shown(session.key.clone(), boundaries(&session)).await;
    details.compaction = told.map_or(0, |(_, compaction)| compaction).max(details.boundaries);
    Ok(json(&details))
}

pub(super) async fn explain(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(query): Query<ExplainQuery>,
) -> Result<Response, ApiError> {
    let session = find(&app, &id).await?;
    let profile = match query.profile {
        None => app.profile,
        Some(profile) => convert::profile(profile)
            .ok_or_else(|| ApiError::new(ErrorCode::ProfileUnknown, "that profile is not known"))?,
    };
    let history = match query.history {
        None | Some(compactd_api::History::Context) => History::Context,
        Some(compactd_api::History::Whole) => History::Whole,
        Some(compactd_api::History::Other) => {
            return Err(ApiError::new(ErrorCode::BadRequest, "history is context or whole"));
        }
    };
    app.sessions.touch(&session);
    let held = session.hold();
    ready(&app, &session).await?;
    let app_there = Arc::clone(&app);
    // For people: the texts of what is cut are read again, which may take a while.
    let explained = tokio::task::spawn_blocking(move || -> Result<Response, ApiError> {
        let _held = held;
        let sessions = &app_there.sessions;
        sessions.follow(&session, &mut LineReader::new());
        let pins = sessions
            .store()
            .pins(&session.key)
            .map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))?;
        let cut = {
            let state = session.lock();
            let Known::Ready(tail) = &*state else { return Err(not_ready(&state)) };
            convert::cut_ids(tail.index(), history, profile, &pins)
        };
        let mut texts = Texts::wanted(cut);
        // A file that is gone by now leaves what is cut without its text.
        let _incomplete = texts.read(&session.file().path, None);
        let texts = texts.found();
        let state = session.lock();
        let Known::Ready(tail) = &*state else { return Err(not_ready(&state)) };
        let id = &session.key.id;
        Ok(json(&convert::explain(tail.index(), id, history, profile, &pins, &texts)))
    })
    .await;
    explained.map_err(ApiError::internal)?
}

fn not_ready(state: &Known) -> ApiError {
    match state {
        Known::Broken(reason) => ApiError::new(ErrorCode::SessionUnreadable, reason.clone()),
        Known::Cold | Known::Ready(_) => {
            ApiError::new(ErrorCode::Busy, "the session was put back to disk, ask again")
        }
    }
}

pub(super) async fn pins(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let session = find(&app, &id).await?;
    Ok(json(&pin_list(&read_pins(&app, &session)?)))
}

pub(super) async fn pin(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Body(pin): Body<Pin>,
) -> Result<Response, ApiError> {
    change_pins(&app, &id, |pins, cwd| match pin {
        Pin::Id(id) => pins.ids.insert(id),
        Pin::File(file) => pins.files.insert(absolute(&file, cwd)),
    })
    .await
}

pub(super) async fn unpin(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Body(pin): Body<Pin>,
) -> Result<Response, ApiError> {
    change_pins(&app, &id, |pins, cwd| match pin {
        Pin::Id(id) => pins.ids.remove(&id),
        Pin::File(file) => pins.files.remove(&absolute(&file, cwd)),
    })
    .await
}

/// Reads, changes and writes a session's pins. The runtime has one thread and nothing is awaited
/// from the reading on, so two requests cannot overwrite each other.
async fn change_pins(
    app: &App,
    id: &str,
    change: impl FnOnce(&mut Pins, Option<&str>) -> bool,
) -> Result<Response, ApiError> {
    let session = find(app, id).await?;
    // Only the index knows where the session runs, to which a pinned file may be relative.
    let _held = session.hold();
    let _unreadable = ready(app, &session).await;
    let mut pins = read_pins(app, &session)?;
    let cwd = match &*session.lock() {
        Known::Ready(tail) => tail.index().facts().cwd.clone(),
        Known::Cold | Known::Broken(_) => None,
    };
    if change(&mut pins, cwd.as_deref()) {
        app.sessions.store().save_pins(&session.key, &pins).map_err(|error| {
            let hint = if error.is_full() { "free some space on the disk" } else { "" };
            ApiError::new(ErrorCode::Internal, error.to_string()).with_hint(hint)
        })?;
    }
    Ok(json(&pin_list(&pins)))
}

fn absolute(file: &str, cwd: Option<&str>) -> String {
    compactd_core::tools::normalise(file, cwd)
}

fn read_pins(app: &App, session: &Session) -> Result<Pins, ApiError> {
    app.sessions
        .store()
        .pins(&session.key)
        .map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))
}

fn pin_list(pins: &Pins) -> PinList {
    let ids = pins.ids.iter().cloned().map(Pin::Id);
    let files = pins.files.iter().cloned().map(Pin::File);
    PinList { pins: ids.chain(files).collect() }
}
