//! `GET /v1/status`, `/v1/stats`, `/v1/metrics` and the description of the API itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::Response;
use compactd_api::PROTOCOL;
use compactd_api::sessions::{
    HookCounts, Memory, OutcomeCounts, SessionCounts, SkipCounts, Stats, Status, Times, WatchMode,
    Watching,
};

use super::App;
use super::sessions::json;
use crate::sessions::{Sessions, State as Known};
use crate::time::rfc3339;

pub(super) async fn status(State(app): State<Arc<App>>) -> Response {
    let broken = count(&app.sessions, |state| matches!(state, Known::Broken(_)));
    let mut problems = Vec::new();
    if broken > 0 {
        problems.push(format!("{broken} sessions cannot be read"));
    }
    let polling = app.polling.load(Ordering::Relaxed);
    let healthy = problems.is_empty();
    let roots = app.sessions.roots().trees().iter();
    json(&Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
        pid: std::process::id(),
        started_at: rfc3339(app.started.0),
        healthy,
        problems,
        sessions: SessionCounts {
            known: app.sessions.len() as u64,
            indexed: count(&app.sessions, |state| matches!(state, Known::Ready(_))),
            bulk_queue: app.bulk.len() as u64,
        },
        memory: Memory { index_bytes: app.sessions.index_bytes(), budget_bytes: app.budget_bytes },
        socket: app.socket.display().to_string(),
        roots: roots.map(|tree| tree.path.display().to_string()).collect(),
        watching: Watching {
            mode: if polling { WatchMode::Poll } else { WatchMode::Notify },
            dirs: folders(&app.sessions),
        },
    })
}

/// Folders that hold transcripts.
fn folders(sessions: &Sessions) -> u64 {
    let all = sessions.all();
    let folders: BTreeSet<PathBuf> = all
        .iter()
        .filter_map(|session| session.file().path.parent().map(Path::to_path_buf))
        .collect();
    folders.len() as u64
}

fn count(sessions: &Sessions, wanted: impl Fn(&Known) -> bool) -> u64 {
    sessions.all().iter().filter(|session| wanted(&session.lock())).count() as u64
}

pub(super) async fn stats(State(app): State<Arc<App>>) -> Response {
    let stats = &app.stats;
    let [count, p50, p99, max] = stats.compact_micros.spread();
    json(&Stats {
        uptime_s: app.started.1.elapsed().as_secs(),
        requests: stats.requests.get(),
        errors: stats.errors.get(),
        compactions: OutcomeCounts {
            apply: stats.compactions_apply.get(),
            skip: stats.compactions_skip.get(),
            escalate: stats.compactions_escalate.get(),
            unready: stats.compactions_unready.get(),
        },
        results_truncated: stats.results_truncated.get(),
        results_dropped: stats.results_dropped.get(),
        tokens_freed: stats.tokens_freed.get(),
        compact_micros: Times { count, p50, p99, max },
        hooks: HookCounts { text: stats.hooks_answered.get(), silent: stats.hooks_silent.get() },
        bytes_read: stats.bytes_read.get(),
        lines_read: stats.lines_read.get(),
        skipped: skipped(&app.sessions),
        rebuilds: stats.rebuilds.get(),
        broken: stats.broken.get(),
        snapshots_loaded: stats.snapshots_loaded.get(),
        snapshots_saved: stats.snapshots_saved.get(),
    })
}

/// Skipped lines of the sessions in memory.
fn skipped(sessions: &Sessions) -> SkipCounts {
    let mut sums = [0; 6];
    for session in sessions.all() {
        if let Known::Ready(tail) = &*session.lock() {
            for (sum, count) in sums.iter_mut().zip(tail.index().facts().skipped) {
                *sum += count;
            }
        }
    }
    let [blank, malformed, too_long, bookkeeping, unknown, odd] = sums;
    SkipCounts { blank, malformed, too_long, bookkeeping, unknown, odd }
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> String {
    let sessions = &app.sessions;
    app.stats.prometheus(&[
        ("sessions", "Sessions known.", sessions.len() as u64),
        (
            "sessions_indexed",
            "Sessions with an index in memory.",
            count(sessions, |state| matches!(state, Known::Ready(_))),
        ),
        ("bulk_queue", "Sessions waiting to be indexed.", app.bulk.len() as u64),
        ("index_bytes", "Bytes that all indexes take.", sessions.index_bytes()),
        ("index_budget_bytes", "Bytes that all indexes may take.", app.budget_bytes),
        ("uptime_seconds", "Seconds since the start.", app.started.1.elapsed().as_secs()),
    ])
}

pub(super) async fn openapi() -> Response {
    json(&compactd_api::openapi::document())
}
