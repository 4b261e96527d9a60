//! The records that make the host take a fork's history as it is.
//!
//! After a compaction of its own the host writes the same four. Without `world_state` and
//! `turn_context` it sends its initial context once more; without `window_number` or `token_count` it
//! compacts on the first turn, because it then goes by the usage that the copied body records.

use compactd_core::record::codex::shape;
use compactd_core::record::json::{self, Raw};

use crate::splice::{Splice, quote};

/// What the source says that the fork has to say again, gathered record by record.
#[derive(Debug, Default)]
pub(crate) struct Companions {
    /// The newest full `world_state` and the patches behind it.
    world: Vec<String>,
    turn: Option<String>,
    usage: Option<String>,
    first_window: Option<String>,
    window: Option<String>,
    number: Option<u64>,
    compactions: u64,
    /// Model of the newest turn.
    pub(crate) model: Option<String>,
    /// Tokens of the newest request and its answer, as the host counted them.
    pub(crate) host_tokens: Option<u64>,
    /// The model's window, less the host's reserve.
    pub(crate) window_tokens: Option<u64>,
}

impl Companions {
    /// Takes in one record; `is_sound`: of a `compacted` record, whether the host takes it.
    pub(crate) fn record(&mut self, kind: &str, payload: Raw<'_>, is_sound: bool) {
        let text = |name: &str| payload.member(name).and_then(Raw::text).map(|it| it.into_owned());
        match kind {
            "session_meta" => {
                let window = payload.member("context_window").and_then(|it| it.member("window_id"));
                let window = window.and_then(Raw::text).map(|id| id.into_owned());
                // A fork repeats its ancestors' metas behind its own.
                if self.first_window.is_none() {
                    self.first_window = window;
                }
            }
            // One that the host would not take was no state for it in the source either.
            "world_state" if shape::world_state(payload.get()).is_ok() => {
                if payload.member("full").is_some_and(Raw::is_true) {
                    self.world.clear();
                } else if self.world.is_empty() {
                    return;
                }
                self.world.push(payload.get().to_owned());
            }
            "turn_context" => {
                if shape::turn_context(payload.get()).is_ok() {
                    self.turn = Some(payload.get().to_owned());
                }
                self.model = text("model").or(self.model.take());
            }
            "compacted" if is_sound => {
                self.compactions += 1;
                self.number = payload.member("window_number").and_then(Raw::whole);
                self.window = text("window_id");
                if let Some(first) = text("first_window_id") {
                    self.first_window = Some(first);
                }
            }
            "event_msg" if payload.kind().as_deref() == Some("token_count") => self.count(payload),
            _ => {}
        }
    }

    fn count(&mut self, payload: Raw<'_>) {
        let Some(info) = payload.member("info").filter(|info| info.is_object()) else { return };
        let last = info.member("last_token_usage").and_then(|last| last.member("total_tokens"));
        let Some(last) = last.and_then(Raw::whole) else { return };
        self.host_tokens = Some(last);
        let window = info.member("model_context_window").and_then(Raw::whole);
        self.window_tokens = window.or(self.window_tokens);
        if shape::token_count(payload.get()).is_ok() {
            self.usage = Some(info.get().to_owned());
        }
    }

    /// The payload of the `compacted` record with these items.
    pub(crate) fn compacted<'a>(
        &self,
        window: &str,
        items: impl Iterator<Item = &'a str>,
    ) -> String {
        let items: Vec<&str> = items.collect();
        let previous = self.window.as_ref().or(self.first_window.as_ref());
        let ids = [
            ("first_window_id", self.first_window.as_ref()),
            ("previous_window_id", previous),
            ("window_id", Some(&window.to_owned())),
        ]
        .into_iter()
        .filter_map(|(key, id)| id.map(|id| format!(r#","{key}":{}"#, quote(id))))
        .collect::<String>();
        format!(
            r#"{{"message":"","replacement_history":[{}],"window_number":{}{ids}}}"#,
            items.join(","),
            self.number.unwrap_or(self.compactions) + 1,
        )
    }

    /// Type and payload of the records behind the body: `compacted`, and those that follow it. With a
    /// turn's id they are a turn of their own: where the source has turns that were taken back, the host
    /// could take our records back with them.
    pub(crate) fn added(
        &self,
        compacted: String,
        tokens: u64,
        own_turn: Option<&str>,
    ) -> Vec<(&'static str, String)> {
        let mut records = Vec::new();
        if let Some(id) = own_turn.map(quote) {
            let window = self.window_tokens.map_or("null".to_owned(), |window| window.to_string());
            let started = format!(
                r#"{{"type":"task_started","turn_id":{id},"model_context_window":{window},"collaboration_mode_kind":"default"}}"#
            );
            records.push(("event_msg", started));
        }
        records.push(("compacted", compacted));
        records.extend(self.world.iter().map(|state| ("world_state", state.clone())));
        records.extend(self.turn.as_deref().map(|turn| ("turn_context", in_turn(turn, own_turn))));
        if let Some(id) = own_turn.map(quote) {
            let complete =
                format!(r#"{{"type":"task_complete","turn_id":{id},"last_agent_message":null}}"#);
            records.push(("event_msg", complete));
        }
        records.push(("event_msg", self.token_count(tokens)));
        records
    }

    /// Whether the host knows from the source what it told the model at the start.
    pub(crate) fn has_world(&self) -> bool {
        !self.world.is_empty() && self.turn.is_some()
    }

    /// As the host writes it after a compaction: the newest size is an estimate, its parts are 0. No
    /// limits of the account, which would also bring a float into the last line.
    fn token_count(&self, tokens: u64) -> String {
        let zero = r#""input_tokens":0,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0"#;
        let last = format!(r#"{{{zero},"total_tokens":{tokens}}}"#);
        let info = self.usage.as_deref().and_then(|usage| {
            let whole = json::value(usage)?;
            let mut splice = Splice::default();
            splice.replace(usage, whole.member("last_token_usage")?.get(), last.clone());
            Some(splice.apply(usage))
        });
        let info = info.unwrap_or_else(|| {
            let window = self.window_tokens.map_or("null".to_owned(), |window| window.to_string());
            format!(
                r#"{{"total_token_usage":{{{zero},"total_tokens":0}},"last_token_usage":{last},"model_context_window":{window}}}"#
            )
        });
        format!(r#"{{"type":"token_count","info":{info},"rate_limits":null}}"#)
    }
}

/// A `turn_context` as that of another turn.
fn in_turn(turn: &str, id: Option<&str>) -> String {
    let old = json::value(turn).and_then(|whole| whole.member("turn_id"));
    let (Some(id), Some(old)) = (id, old) else { return turn.to_owned() };
    let mut splice = Splice::default();
    splice.replace(turn, old.get(), quote(id));
    splice.apply(turn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn fed(records: &[(&str, Value)]) -> Companions {
        let mut companions = Companions::default();
        for (kind, payload) in records {
            let text = payload.to_string();
            companions.record(kind, json::value(&text).unwrap(), true);
        }
        companions
    }

    #[test]
    fn the_newest_state_goes_on() {
        let companions = fed(&[
            ("session_meta", json!({ "context_window": { "window_id": "w0" } })),
            ("world_state", state(false, 0)),
            ("world_state", state(true, 1)),
            ("world_state", state(true, 2)),
            ("world_state", json!({ "full": true, "state": 2 })),
            ("turn_context", turn("m1")),
            ("world_state", state(false, 3)),
            ("turn_context", turn("m2")),
            ("turn_context", json!({ "model": "m3" })),
            (
                "event_msg",
                json!({ "type": "token_count", "info": { "total_token_usage": usage(9_500), "last_token_usage": usage(30), "model_context_window": 258_400 }, "rate_limits": { "x": 0.5 } }),
            ),
            ("event_msg", json!({ "type": "token_count", "info": null })),
        ]);
        let parsed: Vec<(&str, Value)> = companions
            .added("{}".into(), 7, None)
            .into_iter()
            .skip(1)
            .map(|(kind, text)| (kind, serde_json::from_str(&text).unwrap()))
            .collect();
        assert_eq!(
            parsed[..3],
            [
                ("world_state", state(true, 2)),
                ("world_state", state(false, 3)),
                ("turn_context", turn("m2")),
            ]
        );
        let usage = &parsed[3].1;
        assert_eq!(usage["info"]["last_token_usage"]["total_tokens"], 7);
        assert_eq!(usage["info"]["total_token_usage"]["total_tokens"], 9_500);
        assert!(usage["rate_limits"].is_null());
        assert_eq!((companions.host_tokens, companions.window_tokens), (Some(30), Some(258_400)));
        assert_eq!(companions.model.as_deref(), Some("m3"));
        let compacted: Value =
            serde_json::from_str(&companions.compacted("w9", ["{}", "1"].into_iter())).unwrap();
        assert_eq!(
            compacted,
            json!({ "message": "", "replacement_history": [{}, 1], "window_number": 1,
                "first_window_id": "w0", "previous_window_id": "w0", "window_id": "w9" })
        );
    }

    fn state(full: bool, number: u32) -> Value {
        json!({ "full": full, "state": { "n": number } })
    }

    fn turn(model: &str) -> Value {
        json!({ "turn_id": "t", "cwd": "/w", "model": model, "approval_policy": "never" })
    }

    fn usage(total: u64) -> Value {
        json!({ "input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0,
            "reasoning_output_tokens": 0, "total_tokens": total })
    }

    #[test]
    fn a_turn_of_their_own() {
        let companions = fed(&[("turn_context", turn("m"))]);
        let records = companions.added("{}".into(), 7, Some("own"));
        let kinds: Vec<(&str, Value)> = records
            .iter()
            .map(|(kind, text)| {
                (*kind, serde_json::from_str::<Value>(text).unwrap()["turn_id"].clone())
            })
            .collect();
        let own = json!("own");
        assert_eq!(
            kinds,
            [
                ("event_msg", own.clone()),
                ("compacted", Value::Null),
                ("turn_context", own.clone()),
                ("event_msg", own),
                ("event_msg", Value::Null),
            ]
        );
    }

    #[test]
    fn windows_are_numbered_on() {
        let number = |records: &[(&str, Value)]| -> Value {
            let text = fed(records).compacted("w", std::iter::empty());
            serde_json::from_str(&text).unwrap()
        };
        let old = ("compacted", json!({ "message": "" }));
        assert_eq!(number(&[old.clone(), old])["window_number"], 3);
        let new = json!({ "window_number": 4, "window_id": "w4", "first_window_id": "w1" });
        let next = number(&[("compacted", new)]);
        assert_eq!(next["window_number"], 5);
        assert_eq!(
            (&next["first_window_id"], &next["previous_window_id"]),
            (&json!("w1"), &json!("w4"))
        );
    }

    #[test]
    fn a_source_without_usage() {
        let records = Companions::default().added("{}".into(), 12, None);
        let [_, (kind, text)] = records.as_slice() else { panic!("{records:?}") };
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            (*kind, &value["info"]["last_token_usage"]["total_tokens"]),
            ("event_msg", &json!(12))
        );
    }
}
