//! A result or a call as it stands in its line, byte for byte: for giving it back.

use super::Host;
use super::json::{self, Raw};

/// The JSON value that a line holds for the result with this id: its content (Claude Code) or output
/// (Codex).
#[must_use]
pub fn result<'a>(host: Host, line: &'a str, id: &str) -> Option<&'a str> {
    find(host, line, |part| {
        let (names, value): (&[&str], &str) = match host {
            Host::Claude => (&["tool_use_id"], "content"),
            Host::Codex => (&["call_id"], "output"),
        };
        let is_result = match part.member("type").and_then(Raw::text).as_deref() {
            Some("tool_result") => host == Host::Claude,
            Some(kind) => host == Host::Codex && kind.ends_with("_output"),
            None => false,
        };
        let is_it = is_result && names.iter().any(|name| names_it(part, name, id));
        if is_it { part.member(value) } else { None }
    })
}

/// The JSON value that a line holds for the input of the call with this id; of Codex it may be JSON in
/// a string.
#[must_use]
pub fn call<'a>(host: Host, line: &'a str, id: &str) -> Option<&'a str> {
    find(host, line, |part| match (host, part.member("type").and_then(Raw::text).as_deref()) {
        (Host::Claude, Some("tool_use")) if names_it(part, "id", id) => part.member("input"),
        (Host::Codex, Some(kind)) if kind.ends_with("_call") => {
            let is_it = names_it(part, "call_id", id)
                || (part.member("call_id").is_none_or(Raw::is_null) && names_it(part, "id", id));
            let inputs = ["arguments", "input", "action"];
            if is_it { inputs.iter().find_map(|name| part.member(name)) } else { None }
        }
        _ => None,
    })
}

fn names_it(part: Raw<'_>, name: &str, id: &str) -> bool {
    part.member(name).and_then(Raw::text_or_number).is_some_and(|found| found == id)
}

/// The first part of a line for which `look` finds something.
fn find<'a>(
    host: Host,
    line: &'a str,
    look: impl Fn(Raw<'a>) -> Option<Raw<'a>>,
) -> Option<&'a str> {
    let whole = json::looks_like_object(line)?;
    let found = match host {
        Host::Claude => {
            let content = whole.member("message")?.member("content")?;
            content.elements().chain(std::iter::once(content)).find_map(look)
        }
        Host::Codex => {
            let payload = whole.member("payload").unwrap_or(whole);
            match payload.member("replacement_history") {
                Some(items) => items.elements().find_map(look),
                None => look(payload),
            }
        }
    };
    found.map(Raw::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_as_they_were_written() {
        let line = r#"{"type":"user","message":{"content":[{"tool_use_id":"other","type":"tool_result","content":"x"},{"type":"tool_result","tool_use_id":"t1","content":[ {"type":"text", "text":"\u0041\r\n"} ]}]}}"#;
        assert_eq!(
            result(Host::Claude, line, "t1"),
            Some(r#"[ {"type":"text", "text":"\u0041\r\n"} ]"#)
        );
        assert_eq!(result(Host::Claude, line, "t2"), None);
        let line = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"b": 1.0,"a":2}}]}}"#;
        assert_eq!(call(Host::Claude, line, "t1"), Some(r#"{"b": 1.0,"a":2}"#));
        assert_eq!(result(Host::Claude, line, "t1"), None);
    }

    #[test]
    fn codex_items_alone_and_in_a_replacement() {
        let output = r#"{"type":"function_call_output","call_id":"c1","output":"a\nb"}"#;
        let input =
            r#"{"type":"function_call","call_id":"c1","name":"shell","arguments":"{\"x\":1}"}"#;
        for (line, found) in [
            (format!(r#"{{"type":"response_item","payload":{output}}}"#), (true, false)),
            (format!(r#"{{"type":"response_item","payload":{input}}}"#), (false, true)),
            (output.to_owned(), (true, false)),
            (
                format!(
                    r#"{{"type":"compacted","payload":{{"replacement_history":[{input},{output}]}}}}"#
                ),
                (true, true),
            ),
        ] {
            assert_eq!(result(Host::Codex, &line, "c1"), found.0.then_some(r#""a\nb""#), "{line}");
            assert_eq!(call(Host::Codex, &line, "c1"), found.1.then_some(r#""{\"x\":1}""#));
            assert_eq!(result(Host::Codex, &line, "c2"), None);
        }
    }
}
