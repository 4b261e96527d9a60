//! `POST /v1/compact`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::response::Response;
use compactd_api::compact::{CompactAnswer, CompactRequest, Outcome};
use compactd_api::{COMPACT_WAIT, ErrorCode, Trigger, convert};
use compactd_transcript::texts::attached;

use super::App;
use super::sessions::{current, json, json_bytes, ready};
use crate::compaction::{self, Beside};
use crate::focus::focus;
use crate::ledger::{Answered, Seen};
use crate::serve::{ApiError, RawBody};
use crate::sessions::{Session, SessionKey, State as SessionState};

pub(super) async fn compact(
    State(app): State<Arc<App>>,
    body: RawBody,
) -> Result<Response, ApiError> {
    let started = Instant::now();
    let request = match CompactRequest::from_usual(body.bytes()) {
        Some(request) => request,
        None => body.json()?,
    };
    request.check().map_err(|code| ApiError::new(code, "the request cannot be served"))?;
    let session = find(&app, &request)?;
    app.sessions.touch(&session);
    let _held = session.hold();
    if request.trigger == Trigger::Auto {
        app.ledger.know(&session.key).await;
    }
    let waited = tokio::time::timeout(COMPACT_WAIT, async {
        ready(&app, &session).await?;
        Ok(current(&app, &session).await)
    })
    .await;
    let response = match waited {
        Ok(Ok(true)) => match answer(&app, &session, &request, None, started)? {
            Reply::Whole(response) => response,
            Reply::Wants { rows, focus } => {
                let beside = beside(&app, &session, rows, focus).await;
                match answer(&app, &session, &request, Some(&beside), started)? {
                    Reply::Whole(response) => response,
                    Reply::Wants { .. } => unready(&app, "the answer has no end"),
                }
            }
        },
        Ok(Ok(false)) => unready(&app, "the session cannot be read"),
        Ok(Err(error)) => return Err(error),
        // The work goes on; the next request finds it done.
        Err(_late) => unready(&app, "the session is still being read"),
    };
    app.stats.compact_micros.add(micros(started));
    Ok(response)
}

fn micros(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn unready(app: &App, reason: &'static str) -> Response {
    app.stats.compactions_unready.add(1);
    json(&CompactAnswer::nothing(0, Outcome::Unready, reason))
}

/// The session that a request is about: a sub-agent's own file where one is named.
fn find(app: &App, request: &CompactRequest<'_>) -> Result<Arc<Session>, ApiError> {
    let host = convert::host(request.host)
        .ok_or_else(|| ApiError::new(ErrorCode::HostUnknown, "the host is not known"))?;
    let id = request.agent.as_ref().unwrap_or(&request.session).to_string();
    let key = SessionKey { host, id };
    if let Some(session) = app.sessions.get(&key) {
        return Ok(session);
    }
    let transcript = Path::new(request.transcript.as_str());
    let own = match &request.agent {
        Some(agent) => transcript
            .with_extension("")
            .join("subagents")
            .join(format!("agent-{}.jsonl", agent.as_str())),
        None => transcript.to_path_buf(),
    };
    if !own.exists() {
        let message = format!("there is no transcript at {}", own.display());
        return Err(ApiError::new(ErrorCode::SessionUnknown, message));
    }
    app.sessions.at_path(&own).ok_or_else(|| {
        let message = format!("{} is not inside the folders that are followed", own.display());
        ApiError::new(ErrorCode::TranscriptOutsideRoots, message)
    })
}

/// Reads what an answer needs beside the index.
async fn beside(
    app: &Arc<App>,
    session: &Arc<Session>,
    rows: Vec<u64>,
    wants_focus: bool,
) -> Beside {
    let (app, session) = (Arc::clone(app), Arc::clone(session));
    let read = tokio::task::spawn_blocking(move || Beside {
        attached: attached(&session.file().path, &rows),
        focus: wants_focus.then(|| focus(&app, &session)).flatten(),
    });
    read.await.unwrap_or_default()
}

enum Reply {
    Whole(Response),
    /// Texts have to be read for it: of these rows, and for the host's own summary.
    Wants {
        rows: Vec<u64>,
        focus: bool,
    },
}

fn answer(
    app: &App,
    session: &Session,
    request: &CompactRequest<'_>,
    beside: Option<&Beside>,
    started: Instant,
) -> Result<Reply, ApiError> {
    let pins = match app.sessions.store().pins(&session.key) {
        Ok(pins) => pins,
        Err(error) => {
            // Without its pins a pass could take what the person wants kept.
            tracing::error!(session = session.key.id, %error, "pins cannot be read");
            return Ok(Reply::Whole(unready(app, "the pins of the session cannot be read")));
        }
    };
    let state = session.lock();
    let SessionState::Ready(tail) = &*state else {
        return Ok(Reply::Whole(unready(app, "the session cannot be read")));
    };
    let profile = compaction::profile(request, app.profile);
    let index = tail.index();
    let refilled = request.trigger == Trigger::Auto
        && app.ledger.refilled(&session.key, index.facts().compactions + 1, index.results() as u64);
    let mut answer = compaction::answer(index, request, profile, &pins, refilled, beside);
    if beside.is_none() && matches!(answer.outcome, Outcome::Apply | Outcome::Escalate) {
        let rows = compaction::wanted(index);
        let focus = answer.outcome == Outcome::Escalate;
        if focus || !rows.is_empty() {
            return Ok(Reply::Wants { rows, focus });
        }
    }
    let seen = Seen::of(index, profile, &pins, &answer);
    answer.counters.micros = micros(started);
    if let Some(answered) = Answered::of(&session.key, request, &answer, profile, seen) {
        app.ledger.answered(answered);
    }
    let counters = &answer.counters;
    match answer.outcome {
        Outcome::Apply => app.stats.compactions_apply.add(1),
        Outcome::Skip => app.stats.compactions_skip.add(1),
        Outcome::Escalate => app.stats.compactions_escalate.add(1),
        Outcome::Unready | Outcome::Other => app.stats.compactions_unready.add(1),
    }
    if matches!(answer.outcome, Outcome::Apply | Outcome::Escalate) {
        app.stats.results_truncated.add(counters.truncated);
        app.stats.results_dropped.add(counters.dropped);
        app.stats.tokens_freed.add(counters.tokens_before.saturating_sub(counters.tokens_after));
    }
    tracing::info!(
        session = session.key.id,
        outcome = answer.outcome.name(),
        results = counters.results,
        dropped = counters.dropped,
        truncated = counters.truncated,
        micros = counters.micros,
        "compaction answered"
    );
    Ok(Reply::Whole(json_bytes(answer.to_json())))
}
