//! The one request: which route it goes to and how it is put on the wire.

use std::ffi::OsString;
use std::io::{self, ErrorKind, IoSlice, Write};

use crate::scan;

/// The protocol number of compactd's API.
const PROTOCOL: u32 = 1;
const MAX_EVENT_BYTES: usize = 64;

/// Where the request goes; what the arguments leave out comes from the hook's input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Route {
    host: Option<&'static str>,
    event: Option<String>,
}

impl Route {
    /// Reads `[HOST [EVENT]]`; anything else is no route.
    pub(crate) fn parse(arguments: &[OsString]) -> Option<Self> {
        let host = match arguments.first() {
            None => None,
            Some(name) if name == "claude" => Some("claude"),
            Some(name) if name == "codex" => Some("codex"),
            Some(_) => return None,
        };
        let event = match arguments.get(1) {
            None => None,
            Some(name) => Some(event_name(name.to_str()?.as_bytes())?),
        };
        (arguments.len() <= 2).then_some(Self { host, event })
    }

    /// Fills the gaps from the input; false if there is no usable event name in it. A Codex
    /// rollout is known by its file name, or by the variable that only Codex sets.
    pub(crate) fn complete(&mut self, input: &[u8], has_plugin_root: bool) -> bool {
        if self.event.is_none() {
            self.event = scan::string(input, b"hook_event_name").and_then(event_name);
        }
        self.host.get_or_insert_with(|| {
            let transcript = scan::string(input, b"transcript_path");
            let is_codex = transcript.map_or(has_plugin_root, |path| {
                path.rsplit(|byte| *byte == b'/').next().unwrap_or(path).starts_with(b"rollout-")
            });
            if is_codex { "codex" } else { "claude" }
        });
        self.event.is_some()
    }

    /// A tool call of Codex that is no sub-agent's: these come with every call, and there is never
    /// anything to say to one.
    pub(crate) fn is_tool_of_root(&self, input: &[u8]) -> bool {
        self.host == Some("codex")
            && matches!(self.event.as_deref(), Some("PreToolUse" | "PostToolUse"))
            && scan::string(input, b"agent_id").is_none_or(<[u8]>::is_empty)
    }
}

/// An event name goes into the path as it is, so that only letters, digits, `-` and `_` may.
fn event_name(name: &[u8]) -> Option<String> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > MAX_EVENT_BYTES || !name.iter().all(is_plain) {
        return None;
    }
    String::from_utf8(name.to_vec()).ok()
}

/// Sends the request with one gathered write as a rule; the input is not copied. `until` is when the
/// answer is not read any more, in milliseconds of the system's clock: what the daemon does later, after
/// a suspend for instance, must not count as told.
pub(crate) fn send(
    mut out: impl Write,
    route: &Route,
    input: &[u8],
    environment: &[u8],
    until: u128,
) -> io::Result<()> {
    const BEFORE: &str = "{\"input\":";
    const BETWEEN: &[u8] = b",\"env\":";
    let length = BEFORE.len() + input.len() + BETWEEN.len() + environment.len() + 1;
    let head = format!(
        "POST /v1/hooks/{}/{} HTTP/1.1\r\nHost: compactd\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\nCompactd-Protocol: {PROTOCOL}\r\n\
         Compactd-Shim: {}\r\nCompactd-Until: {until}\r\n\r\n{BEFORE}",
        route.host.unwrap_or_default(),
        route.event.as_deref().unwrap_or_default(),
        crate::VERSION,
    );
    let mut parts = [head.as_bytes(), input, BETWEEN, environment, b"}"].map(IoSlice::new);
    let mut parts = parts.as_mut_slice();
    while !parts.is_empty() {
        match out.write_vectored(parts) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Option<Route> {
        Route::parse(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_strict() {
        assert!(parse(&[]).is_some() && parse(&["codex"]).is_some());
        assert!(parse(&["claude", "PreCompact"]).is_some());
        for bad in [
            &["gemini", "PreCompact"][..],
            &["--frobnicate"],
            &["claude", "../status"],
            &["claude", "a b"],
            &["claude", ""],
            &["claude", "PreCompact", "more"],
        ] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn gaps_are_filled_from_the_input() {
        let check = |input: &str, has_plugin_root, host, event: Option<&str>| {
            let mut route = parse(&[]).unwrap();
            assert_eq!(route.complete(input.as_bytes(), has_plugin_root), event.is_some());
            assert_eq!(route, Route { host: Some(host), event: event.map(str::to_owned) });
        };
        let claude = r#"{"transcript_path":"/h/rollout-x/s.jsonl","hook_event_name":"Stop"}"#;
        check(claude, true, "claude", Some("Stop"));
        let codex = r#"{"transcript_path":"/h/rollout-2.jsonl","hook_event_name":"PreCompact"}"#;
        check(codex, false, "codex", Some("PreCompact"));
        check(r#"{"transcript_path":null,"hook_event_name":"Stop"}"#, true, "codex", Some("Stop"));
        check(r#"{"hook_event_name":"a/b"}"#, false, "claude", None);
        check("", false, "claude", None);
    }

    #[test]
    fn tool_calls_of_a_root_thread_stay_here() {
        let check = |host: &str, event: &str, input: &str| {
            parse(&[host, event]).unwrap().is_tool_of_root(input.as_bytes())
        };
        let root = r#"{"session_id":"a","tool_input":{"agent_id":"b"}}"#;
        assert!(check("codex", "PreToolUse", root) && check("codex", "PostToolUse", root));
        assert!(check("codex", "PreToolUse", r#"{"agent_id":""}"#));
        assert!(check("codex", "PreToolUse", r#"{"agent_id":null}"#));
        assert!(check("codex", "PreToolUse", "no json"));
        assert!(!check("codex", "PreToolUse", r#"{"agent_id":"b"}"#));
        assert!(!check("codex", "PostToolUse", r#"{"tool_input":{},"agent_id":"b"}"#));
        assert!(!check("codex", "UserPromptSubmit", root) && !check("claude", "PreToolUse", root));
    }

    #[test]
    fn short_writes_are_continued() {
        struct Trickle(Vec<u8>);
        impl Write for Trickle {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let taken = bytes.len().min(7);
                self.0.extend_from_slice(&bytes[..taken]);
                Ok(taken)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut out = Trickle(Vec::new());
        send(&mut out, &parse(&["claude", "Stop"]).unwrap(), b"{\"a\": 1}", b"{}", 17).unwrap();
        let text = String::from_utf8(out.0).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /v1/hooks/claude/Stop HTTP/1.1\r\nHost: compactd\r\n"));
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
        assert!(head.contains("\r\nCompactd-Until: 17"));
        assert_eq!(body, "{\"input\":{\"a\": 1},\"env\":{}}");
    }
}
