//! The body of a fork: the records of the source under the new thread's id.
//!
//! A record keeps its bytes; only its `ordinal`, and the ids of the thread in its payload, change.

use std::collections::BTreeSet;

use compactd_core::record::json::Raw;

use crate::seal;
use crate::splice::{Splice, quote};

/// Members of a payload that name the thread.
const THREAD_IDS: [&str; 2] = ["thread_id", "session_id"];

/// Who the fork is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// Its thread id.
    pub(crate) id: String,
    /// The ids that its source goes by, those of its older files too.
    pub(crate) old: BTreeSet<String>,
    /// RFC 3339 in UTC, to the millisecond.
    pub(crate) now: String,
    /// Records carry ordinals (`history_mode` `paginated`).
    pub(crate) is_paginated: bool,
}

impl Identity {
    /// A record of the source as the fork's record number `ordinal`.
    pub(crate) fn record(&self, text: &str, whole: Raw<'_>, ordinal: u64) -> String {
        let mut splice = Splice::default();
        if self.is_paginated {
            number(&mut splice, text, whole, ordinal);
        }
        // Most records name no thread.
        let names_one = self.old.iter().any(|id| text.contains(id.as_str()));
        if let Some(payload) = whole.member("payload").filter(|_| names_one) {
            for key in THREAD_IDS {
                if let Some(value) = payload.member(key)
                    && value.text().is_some_and(|id| self.old.contains(&*id))
                {
                    splice.replace(text, value.get(), quote(&self.id));
                }
            }
        }
        splice.apply(text)
    }

    /// The first record: the source's `session_meta` with the new id, its history in this one file.
    pub(crate) fn meta(&self, text: &str, whole: Raw<'_>, parent: &str) -> Option<String> {
        let payload = whole.member("payload").filter(|payload| payload.is_object())?;
        let mut splice = Splice::default();
        if self.is_paginated {
            number(&mut splice, text, whole, 0);
        }
        if let Some(timestamp) = whole.member("timestamp") {
            splice.replace(text, timestamp.get(), quote(&self.now));
        }
        let gone = ["forked_from_id", "forked_from_ordinal_exclusive", "history_base", MARK];
        // A fork is a thread of its own: it belongs to no parent's turn.
        let agent = ["parent_thread_id", "agent_nickname", "agent_role", "agent_path"];
        let set = [
            ("id", quote(&self.id)),
            ("session_id", quote(&self.id)),
            ("timestamp", quote(&self.now)),
        ];
        let mut members = Vec::new();
        for (key, value) in payload.members() {
            if gone.contains(&&*key) || agent.contains(&&*key) {
                continue;
            }
            let new = set.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
            let new = new.or_else(|| own_source(&key, value));
            let value = new.unwrap_or_else(|| value.get().to_owned());
            members.push(format!("{}:{value}", quote(&key)));
        }
        // Not the host's own `forked_from_id`: with it, and without `history_base`, a client is not told
        // how full the thread is.
        members.push(format!(
            r#""{MARK}":{{"version":{},"forked_from":{},"seal":"{}"}}"#,
            quote(env!("CARGO_PKG_VERSION")),
            quote(parent),
            seal::BLANK,
        ));
        splice.replace(text, payload.get(), format!("{{{}}}", members.join(",")));
        Some(splice.apply(text))
    }
}

/// Our own member of a fork's `session_meta`: by it a fork is known to be ours.
pub(crate) const MARK: &str = "compactd";

/// A sub-agent's fork is a person's thread. Its `source` stays: by it the host chooses the tools, and other
/// ones it would tell the model of.
fn own_source(key: &str, value: Raw<'_>) -> Option<String> {
    let is_agent = key == "thread_source" && value.text().as_deref() == Some("subagent");
    is_agent.then(|| "\"user\"".to_owned())
}

fn number(splice: &mut Splice, text: &str, whole: Raw<'_>, ordinal: u64) {
    if let Some(old) = whole.member("ordinal") {
        splice.replace(text, old.get(), ordinal.to_string());
    } else {
        let inside = text.find('{').map_or(0, |at| at + 1);
        splice.insert(inside, format!("\"ordinal\":{ordinal},"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactd_core::record::json;
    use serde_json::Value;

    fn identity(is_paginated: bool) -> Identity {
        Identity {
            id: "new".into(),
            old: ["old".to_owned(), "base".to_owned()].into(),
            now: "2026-11-30T10:00:00.000Z".into(),
            is_paginated,
        }
    }

    fn record(line: &str, is_paginated: bool) -> String {
        identity(is_paginated).record(line, json::value(line).unwrap(), 7)
    }

    #[test]
    fn a_record_changes_in_number_and_thread_only() {
        let line = r#"{"timestamp":"t", "ordinal" : 3,"payload":{"b":1.0,"thread_id":"old","x":{"thread_id":"old"}}}"#;
        assert_eq!(
            record(line, true),
            r#"{"timestamp":"t", "ordinal" : 7,"payload":{"b":1.0,"thread_id":"new","x":{"thread_id":"old"}}}"#
        );
        let line = r#"{"timestamp":"t","payload":{"session_id":"other"}}"#;
        assert_eq!(record(line, false), line);
        assert_eq!(record(line, true), line.replacen('{', "{\"ordinal\":7,", 1));
    }

    #[test]
    fn the_meta_stands_alone() {
        let line = r#"{"timestamp":"t","ordinal":41,"type":"session_meta","payload":{"session_id":"root","id":"old","timestamp":"t","cwd":"/w","parent_thread_id":"root","source":{"subagent":{"thread_spawn":{}}},"thread_source":"subagent","forked_from_id":"x","history_base":{"thread_id":"x"},"compactd":{"version":"0"},"dynamic_tools":[1.0]}}"#;
        let meta = identity(true).meta(line, json::value(line).unwrap(), "old").unwrap();
        let meta: Value = serde_json::from_str(&meta).unwrap();
        assert_eq!(
            meta,
            serde_json::json!({
                "timestamp": "2026-11-30T10:00:00.000Z", "ordinal": 0, "type": "session_meta",
                "payload": {
                    "session_id": "new", "id": "new", "timestamp": "2026-11-30T10:00:00.000Z",
                    "cwd": "/w", "source": { "subagent": { "thread_spawn": {} } }, "thread_source": "user", "dynamic_tools": [1.0],
                    "compactd": { "version": env!("CARGO_PKG_VERSION"), "forked_from": "old", "seal": seal::BLANK },
                }
            })
        );
        let odd = r#"{"type":"session_meta"}"#;
        assert!(identity(true).meta(odd, json::value(odd).unwrap(), "old").is_none());
    }
}
