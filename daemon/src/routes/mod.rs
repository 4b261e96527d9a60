//! The API's handlers: thin, each reads its request, asks a session or the stats, and answers.

mod compact;
mod fork;
mod hooks;
mod passes;
mod sessions;
mod status;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use axum::Router;
use axum::routing::{get, post};
use compactd_api::routes;
use compactd_api::settings::OnManualCompact;
use compactd_core::rules::Profile;

use crate::ledger::Ledger;
use crate::recovery::Recovery;
use crate::sessions::Sessions;
use crate::stats::Stats;
use crate::workers::Bulk;

/// What the handlers know.
#[derive(Debug)]
pub struct App {
    /// The sessions.
    pub sessions: Arc<Sessions>,
    /// The counters.
    pub stats: Arc<Stats>,
    /// The queue of sessions to index.
    pub bulk: Arc<Bulk>,
    /// What became of the compactions that were answered.
    pub ledger: Arc<Ledger>,
    /// What agents get behind a compaction of their host.
    pub recovery: Arc<Recovery>,
    /// What is done when a person compacts a thread of Codex.
    pub on_manual_compact: OnManualCompact,
    /// Length of a focus text in characters.
    pub focus_chars: usize,
    /// The rules used where a request names none.
    pub profile: Profile,
    /// Budget of all indexes.
    pub budget_bytes: u64,
    /// Where it listens.
    pub socket: PathBuf,
    /// When it started.
    pub started: (SystemTime, Instant),
    /// The system gives no notice of changes: files are polled.
    pub polling: AtomicBool,
    /// All folders were walked once: every session that there is is known.
    pub walked: tokio::sync::watch::Sender<bool>,
}

/// All routes of v1.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route(routes::STATUS, get(status::status))
        .route(routes::STATS, get(status::stats))
        .route(routes::METRICS, get(status::metrics))
        .route(routes::OPENAPI, get(status::openapi))
        .route(routes::SESSIONS, get(sessions::list))
        .route(routes::SESSION, get(sessions::details))
        .route(routes::EXPLAIN, get(sessions::explain))
        .route(routes::FOCUS, get(passes::focus))
        .route(routes::PASSES, get(passes::list))
        .route(routes::PASS, get(passes::pass).post(passes::report))
        .route(routes::RECALL, get(passes::recall))
        .route(routes::PINS, get(sessions::pins).post(sessions::pin).delete(sessions::unpin))
        .route(routes::COMPACT, post(compact::compact))
        .route(routes::FORK, post(fork::fork))
        .route(routes::HOOK, post(hooks::hook))
        .with_state(app)
}
