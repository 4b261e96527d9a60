//! What the hooks of Codex are answered with: behind a compaction the recovery text of the thread, and where a
//! person compacts, if the settings say so, the fork to go on with.
//!
//! No hook of Codex can shape a compaction, and none names one: the rollout says which it is.

use std::sync::Arc;
use std::time::SystemTime;

use compactd_api::Host;
use compactd_api::settings::OnManualCompact;
use serde_json::json;

use super::super::App;
use super::{Input, register, seen};
use crate::fork::{Prepared, prepared};
use crate::ledger::rough;
use crate::recovery::{Moment, text};
use crate::sessions::{Session, SessionKey};
use crate::time::{left, rfc3339};

/// The text to print, if any.
pub(super) async fn answer(
    app: &Arc<App>,
    event: &str,
    input: &Input,
    until: SystemTime,
) -> Option<String> {
    let key = input.key(Host::Codex)?;
    match event {
        // A root thread has better moments, and these come with every tool call.
        "PreToolUse" | "PostToolUse" if input.agent().is_none() => None,
        "UserPromptSubmit" | "PreToolUse" | "PostToolUse" => {
            let known = app.sessions.get(&key);
            if !app.recovery.is_open(&key).await {
                if known.is_none() {
                    register(app, &key, input);
                }
                return None;
            }
            let session = register(app, &key, input);
            due(app, key, session.as_ref(), event, (Moment::GoesOn, until)).await
        }
        "SessionStart" if input.source.as_deref() == Some("compact") => {
            let session = register(app, &key, input);
            if !app.recovery.is_open(&key).await {
                return None;
            }
            due(app, key, session.as_ref(), event, (Moment::Compacted, until)).await
        }
        "PreCompact" => {
            let session = register(app, &key, input)?;
            before(app, key, session, input, until).await
        }
        // `PostCompact` too: what it says stands in the rollout, where it is read when it is needed.
        _ => {
            register(app, &key, input);
            None
        }
    }
}

/// What the agent is to get now, if it gets it in time.
async fn due(
    app: &Arc<App>,
    key: SessionKey,
    session: Option<&Arc<Session>>,
    event: &str,
    (moment, until): (Moment, SystemTime),
) -> Option<String> {
    let seen = seen(app, session).await?;
    let text = app.recovery.due(key, seen, moment, until).await?;
    let output = json!({ "hookEventName": event, "additionalContext": text });
    serde_json::to_string(&json!({ "hookSpecificOutput": output })).ok()
}

/// The host is about to compact: the text for behind it is written while the context is there.
async fn before(
    app: &Arc<App>,
    key: SessionKey,
    session: Arc<Session>,
    input: &Input,
    until: SystemTime,
) -> Option<String> {
    let Some(seen) = seen(app, Some(&session)).await else {
        tracing::info!(session = key.id, "not read in time: nothing is kept over its compaction");
        return None;
    };
    let (there, held) = ((Arc::clone(app), Arc::clone(&session)), session.hold());
    let at = rfc3339(SystemTime::now());
    let text = tokio::task::spawn_blocking({
        let at = at.clone();
        move || {
            let _held = held;
            text(&there.0, &there.1, seen.saturating_add(1), &at)
        }
    });
    let text = tokio::time::timeout(left(until), text).await;
    let text = text.ok().and_then(Result::ok).flatten().map(|text| (at, text));
    let is_kept = text.is_some();
    let number = app.recovery.before(key.clone(), seen, text).await;
    tracing::debug!(session = key.id, number, is_kept, "the host is about to compact");
    // Of a compaction that the host began by itself the turn would be lost.
    let is_wish = input.trigger.as_deref() == Some("manual");
    let model = input.model.clone().filter(|model| is_plain(model)).filter(|_| is_wish);
    if let Some(model) = model.filter(|_| app.on_manual_compact == OnManualCompact::Fork) {
        match fork(app, &session, until).await {
            Some(Prepared::Fork { thread, tokens_before, tokens_after }) => {
                // It will not compact: nothing is to be kept for behind that.
                app.recovery.before(key, seen, None).await;
                return stop(&thread, &model, tokens_before, tokens_after);
            }
            Some(Prepared::Refused { reason }) => {
                let line = format!("compactd: no fork, the host compacts by itself: {reason}");
                return serde_json::to_string(&json!({ "systemMessage": line })).ok();
            }
            None => {}
        }
    }
    None
}

/// A fork of the session, if there is one in time.
async fn fork(app: &Arc<App>, session: &Arc<Session>, until: SystemTime) -> Option<Prepared> {
    let (app, session) = (Arc::clone(app), Arc::clone(session));
    let held = session.hold();
    let work = tokio::task::spawn_blocking(move || {
        let _held = held;
        prepared(&app, &session, until)
    });
    match tokio::time::timeout(left(until), work).await {
        Ok(made) => made.ok(),
        Err(_) => {
            tracing::warn!("a fork did not come in time: the host compacts by itself");
            Some(Prepared::Refused { reason: compactd_fork::Error::Late.to_string() })
        }
    }
}

/// Whether a model's name can stand in a command line as it is.
fn is_plain(model: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
    !model.is_empty() && !model.starts_with('-') && model.bytes().all(is_plain)
}

/// Stops the host's compaction. These are all the fields that it knows here.
fn stop(thread: &str, model: &str, before: u64, after: u64) -> Option<String> {
    let tokens = format!("{} → {} tokens", rough(before), rough(after));
    let line = format!(
        "compactd: a fork of this session is ready, {tokens} · go on in it: codex resume {thread} -m {model}"
    );
    let reason = "compactd prepared a fork instead of compacting";
    let answer = json!({ "continue": false, "stopReason": reason, "systemMessage": line });
    serde_json::to_string(&answer).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_of_models_stand_in_a_command() {
        for good in ["gpt-5.5", "vendor/model:7b", "a_b"] {
            assert!(is_plain(good), "{good}");
        }
        for bad in ["", "-m", "a b", "a;b", "$(a)", "a'b"] {
            assert!(!is_plain(bad), "{bad}");
        }
    }

    #[test]
    fn a_stop_has_the_fields_that_the_host_knows() {
        let id = "01a22bab-a7b9-7e42-ae04-fb49f9ea1f50";
        let answer = stop(id, "gpt-5.5", 152_340, 31_000).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let expected = json!({
            "continue": false,
            "stopReason": "compactd prepared a fork instead of compacting",
            "systemMessage": format!("compactd: a fork of this session is ready, 152k → 31k tokens · \
                go on in it: codex resume {id} -m gpt-5.5"),
        });
        assert_eq!(answer, expected);
    }
}
