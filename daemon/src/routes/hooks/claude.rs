//! What the hooks of Claude Code are answered with: the focus text, and the line about a compaction.

use std::sync::Arc;

use compactd_api::Host;

use super::super::App;
use super::super::passes::boundaries;
use super::{Input, register, seen};
use crate::focus::focus;
use crate::ledger::line;
use crate::sessions::{Session, SessionKey};

/// The text to print, if any.
pub(super) async fn answer(app: &Arc<App>, event: &str, input: &Input) -> Option<String> {
    // Every native compaction ends with one of these, for no sub-agent at all.
    if event == "SubagentStop" && input.agent_type.as_deref() == Some("") {
        return None;
    }
    let key = input.key(Host::Claude)?;
    let session = register(app, &key, input);
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
