//! The shapes against what the real host was seen to do with each, as the fixtures say.
//!
//! A fixture's value stands for every place: `fields` names, for each place of an item, the values
//! that the host took and sent on as they were. What it took but sent as something else is
//! `changed`: for us, a flaw.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::check::Check;
use super::*;

const RECORDS: &str = include_str!("../../../../../../tests/fixtures/codex-shapes/records.json");
const ITEMS: &str = include_str!("../../../../../../tests/fixtures/codex-shapes/items.json");

/// Where a value of the table goes: an object's text may hold numbers that a [`Value`] cannot.
const HERE: &str = "@here@";

fn words(list: &Value) -> Vec<&str> {
    let list = list.get("taken").unwrap_or(list);
    list.as_str().unwrap().split_whitespace().collect()
}

/// The item as text, with this at the place; nothing if it stands there already.
fn with(item: &Value, place: &str, value: Option<&RawValue>) -> Option<String> {
    let mut item = item.clone();
    let (parent, key) = place.rsplit_once('/').unwrap();
    let at = item.pointer_mut(place).unwrap();
    let Some(value) = value else {
        match item.pointer_mut(parent).unwrap() {
            Value::Object(object) => drop(object.remove(key)),
            Value::Array(list) => drop(list.remove(key.parse().unwrap())),
            _ => unreachable!("{place}"),
        }
        return Some(item.to_string());
    };
    if serde_json::from_str::<Value>(value.get()).is_ok_and(|value| value == *at) {
        return None;
    }
    *at = Value::String(HERE.to_owned());
    Some(item.to_string().replace(&format!("\"{HERE}\""), value.get()))
}

/// A flaw is found at the place that was changed, above it or below it.
fn is_near(flaw: &Flaw, place: &str) -> bool {
    flaw.place.starts_with(place) || place.starts_with(&flaw.place)
}

/// Holds every mutation of the table's items against a check, and gives how many there were.
fn hold(
    table: &Map<String, Value>,
    values: &[(String, Box<RawValue>)],
    section: &str,
    check: impl Fn(&str, &str) -> Check,
) -> usize {
    let mut count = 0;
    let (mut wrong, mut objects) = (Vec::new(), Vec::new());
    for (name, entry) in table[section].as_object().unwrap() {
        let (item, taken) = (&entry["item"], entry["host"] == "taken");
        assert_eq!(check(name, &item.to_string()).is_ok(), taken, "{section} {name}");
        let Some(fields) = entry.get("fields") else { continue };
        objects.push(String::new());
        for (place, list) in fields.as_object().unwrap() {
            let taken = words(list);
            let missing = [("missing", None)];
            let values = values.iter().map(|(value, raw)| (value.as_str(), Some(raw.as_ref())));
            for (value, raw) in missing.into_iter().chain(values) {
                let Some(text) = with(item, place, raw) else { continue };
                count += 1;
                match (check(name, &text), taken.contains(&value)) {
                    (Ok(()), true) => {}
                    (Err(flaw), false) if is_near(&flaw, place) => {}
                    (got, want) => {
                        wrong.push(format!("{name}{place} {value}: {got:?}, taken: {want}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    count
}

fn values(text: &str) -> Vec<(String, Box<RawValue>)> {
    #[derive(serde::Deserialize)]
    struct Table {
        values: std::collections::BTreeMap<String, Box<RawValue>>,
    }
    serde_json::from_str::<Table>(text).unwrap().values.into_iter().collect()
}

#[test]
fn items_are_taken_as_the_host_takes_them() {
    let table: Map<String, Value> = serde_json::from_str(ITEMS).unwrap();
    let count = hold(&table, &values(ITEMS), "items", |_, text| item(text).map(|_| ()));
    assert!(count > 2_000, "{count}");
    for case in table["cases"].as_array().unwrap() {
        let found = item(&case["item"].to_string());
        match case["host"].as_str().unwrap() {
            "taken" => assert!(found.is_ok(), "{}: {found:?}", case["name"]),
            _ => assert_eq!(
                found.unwrap_err().place,
                case["place"].as_str().unwrap(),
                "{}",
                case["name"]
            ),
        }
    }
}

/// The check of a payload, or of a whole line.
fn payload(name: &str, text: &str) -> Check {
    let text =
        text.replace("@cwd@", "/work").replace("@id@", "01a22bab-57d2-7033-a843-3ff7bd86d2b3");
    match name {
        "compacted" => compacted(&text),
        "session_meta" => session_meta(&text),
        "turn_context" => turn_context(&text),
        "world_state" => world_state(&text),
        "token_count" => token_count(&text),
        _ => record(text.as_bytes()),
    }
}

#[test]
fn records_are_taken_as_the_host_takes_them() {
    let table: Map<String, Value> = serde_json::from_str(RECORDS).unwrap();
    let count = hold(&table, &values(RECORDS), "records", payload);
    assert!(count > 1_500, "{count}");
}

#[test]
fn unknown_fields_are_taken_where_the_host_takes_them() {
    let table: Map<String, Value> = serde_json::from_str(ITEMS).unwrap();
    for (name, entry) in table["items"].as_object().unwrap() {
        if entry["host"] != "taken" {
            continue;
        }
        let closed = entry.get("closed").and_then(Value::as_array).cloned().unwrap_or_default();
        for place in objects(&entry["item"], "") {
            let mut item = entry["item"].clone();
            item.pointer_mut(&place).unwrap()["zz_extra"] = serde_json::json!({"a": [1, null]});
            let found = super::item(&item.to_string());
            assert_eq!(found.is_err(), closed.contains(&Value::from(place)), "{name}: {found:?}");
        }
    }
}

/// The places of all objects in a value.
fn objects(value: &Value, at: &str) -> Vec<String> {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => {
            list.iter().enumerate().map(|(at, it)| (at.to_string(), it)).collect()
        }
        _ => return Vec::new(),
    };
    let own = value.is_object().then(|| at.to_owned());
    let below = below.iter().flat_map(|(key, value)| objects(value, &format!("{at}/{key}")));
    own.into_iter().chain(below).collect()
}

#[test]
fn a_flaw_names_its_place() {
    let flaw = |raw| item(raw).unwrap_err().to_string();
    assert_eq!(
        flaw(
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":null}]}"#
        ),
        "at /content/1/text: expected a string"
    );
    assert_eq!(flaw("7"), "at /: expected an object");
    assert_eq!(flaw("{"), "at /: expected JSON");
    assert_eq!(
        flaw(r#"{"type":"novel"}"#),
        "at /type: expected a kind of item that the host sends on"
    );
    let line = |history: &str| {
        format!(
            r#"{{"timestamp":"T","ordinal":3,"type":"compacted","payload":{{"message":"","replacement_history":[{history}]}}}}"#
        )
    };
    assert_eq!(record(line(r#"{"type":"compaction","encrypted_content":"x"}"#).as_bytes()), Ok(()));
    assert_eq!(
        record(line(r#"{"type":"reasoning","summary":[]},{"type":"reasoning"}"#).as_bytes())
            .unwrap_err()
            .to_string(),
        "at /payload/replacement_history/1/summary: expected a list"
    );
}

#[test]
fn kinds_say_what_an_item_is() {
    let kind = |raw| item(raw).unwrap();
    assert!(kind(r#"{"type":"compaction","encrypted_content":"x"}"#).is_sealed());
    assert!(kind(r#"{"type":"compaction_summary","encrypted_content":"x"}"#).is_sealed());
    assert!(kind(r#"{"type":"context_compaction"}"#).is_sealed());
    assert_eq!(
        kind(r#"{"type":"reasoning","summary":[],"encrypted_content":"x"}"#),
        Kind::Reasoning
    );
    assert_eq!(kind(r#"{"type":"web_search_call"}"#), Kind::HostedCall);
}

/// What no value of the table can say: how the host reads the text of a line.
#[test]
fn the_text_of_a_line_is_read_as_the_host_reads_it() {
    let deep = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
    let line = |beside: &str, inside: &str| {
        format!(
            r#"{{"timestamp":"T","type":"compacted"{beside},"payload":{{"message":"","replacement_history":[]{inside}}}}}"#
        )
    };
    let taken = |text: &str| record(text.as_bytes()).is_ok();
    for number in [
        "18446744073709551615",
        "-9223372036854775808",
        "0.1",
        "-0",
        "1E5",
        "1e400",
        "123456789012345678901234567890.5",
    ] {
        assert!(taken(&line(&format!(r#","zz":{number}"#), "")), "{number}");
        assert!(taken(&line("", &format!(r#","zz":{number}"#))), "{number}");
    }
    for number in ["18446744073709551616", "-9223372036854775809"] {
        assert!(!taken(&line(&format!(r#","zz":{number}"#), "")), "{number}");
        assert!(!taken(&line("", &format!(r#","zz":{number}"#))), "{number}");
    }
    for text in [r"\ud83d\ude00", r"\u0000", r"\ufffe", r"\uFFFF"] {
        assert!(taken(&line("", &format!(r#","zz":"{text}","{text}":1"#))), "{text}");
    }
    for text in [r"\ud83d", r"\ude00", r"\ud83dx", r"\ud83dA"] {
        assert!(!taken(&line("", &format!(r#","zz":"{text}""#))), "{text}");
        assert!(!taken(&line(&format!(r#","{text}":1"#), "")), "{text}");
    }
    assert!(taken(&line("", &format!(r#","zz":{}"#, deep(125)))));
    assert!(!taken(&line("", &format!(r#","zz":{}"#, deep(126)))));
    assert!(taken(&line(&format!(r#","zz":{}"#, deep(126)), "")));
    assert!(!taken(&line(&format!(r#","zz":{}"#, deep(127)), "")));
    let sound = line("", "");
    assert!(taken(&sound) && taken(&format!("  {sound} \r")));
    for odd in ["\u{feff}", "x", "{}"] {
        assert!(!taken(&format!("{odd}{sound}")), "{odd}");
        assert!(!taken(&format!("{sound}{odd}")), "{odd}");
    }
    assert!(record(b"\xff").is_err());
    // The host takes the last of two; which one is meant is not for us to say.
    assert!(!taken(&line("", r#","message":"""#)));
}

#[test]
fn what_the_host_wrote_may_hold_what_is_its_own() {
    let taken = |beside: &str| {
        compacted_of_host(&format!(r#"{{"message":"","replacement_history":[{beside}"#)).is_ok()
    };
    assert!(!taken(r#"{"type":"message"}]}"#));
    assert!(taken(r#"{"type":"ghost_snapshot"}]}"#));
    assert!(taken(r#"],"window_id":7,"mcp_resource_origins":[]}"#));
    assert!(taken(r#"],"retained_context":{"verified_answers":[],"incomplete":false}}"#));
    assert!(!taken(r#"],"retained_context":{}}"#) && !taken(r#"],"mcp_resource_origins":"x"}"#));
    assert!(!taken(r#"],"replacement_history_metadata":[{}]}"#));
}
