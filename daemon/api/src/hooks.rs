//! `POST /v1/hooks/{host}/{event}`: what the shim hands over. The answer is 200 with text to print, or
//! 204 for nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ErrorCode;
use crate::ids::is_event;
use crate::text::Text;
use crate::words::Host;

/// Variables that the shim forwards with each request, because the daemon's own are others. Those that
/// start with [`FORWARDED_PREFIX`] go too.
pub const FORWARDED: &[&str] = &[
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PLUGIN_DATA",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_PROJECT_DIR",
    "CODEX_HOME",
    "PATH",
    "PLUGIN_DATA",
    "PLUGIN_ROOT",
    "TMPDIR",
];
/// Start of the names of more forwarded variables.
pub const FORWARDED_PREFIX: &str = "COMPACT_PLUS_";

/// Whether a variable is forwarded.
#[must_use]
pub fn is_forwarded(name: &str) -> bool {
    FORWARDED.contains(&name) || name.starts_with(FORWARDED_PREFIX)
}

/// Body of a hook request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HookRequest<'a> {
    /// What the host gave the hook on stdin, as it is; null if that was no JSON.
    #[serde(borrow, default)]
    pub input: Option<&'a RawValue>,
    /// The forwarded variables of the hook's process.
    #[serde(borrow, default)]
    pub env: BTreeMap<Text<'a>, Text<'a>>,
}

/// Checks the two names in the path of a hook request.
///
/// # Errors
/// [`ErrorCode::HostUnknown`], or [`ErrorCode::InvalidId`] for the event. An event that no version
/// knows is no error: it is answered with nothing.
pub fn check_path(host: &str, event: &str) -> Result<Host, ErrorCode> {
    let host = Host::from_name(host).ok_or(ErrorCode::HostUnknown)?;
    if is_event(event) { Ok(host) } else { Err(ErrorCode::InvalidId) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(check_path("claude", "PreCompact"), Ok(Host::Claude));
        assert_eq!(check_path("other", "PreCompact"), Err(ErrorCode::HostUnknown));
        assert_eq!(check_path("codex", "../x"), Err(ErrorCode::InvalidId));
        assert!(
            is_forwarded("PATH") && is_forwarded("COMPACT_PLUS_X") && !is_forwarded("AWS_SECRET")
        );
    }

    #[test]
    fn any_input() {
        let deep = format!(
            r#"{{"input":{}{},"env":{{"PATH":"/bin"}}}}"#,
            "[".repeat(100),
            "]".repeat(100)
        );
        let request: HookRequest<'_> = serde_json::from_str(&deep).unwrap();
        assert_eq!(request.input.unwrap().get().len(), 200);
        assert_eq!(request.env.get(&Text::from("PATH")).unwrap(), "/bin");
        let surrogate: HookRequest<'_> =
            serde_json::from_str(r#"{"input":{"prompt":"\ud83d"}}"#).unwrap();
        assert!(surrogate.input.is_some() && surrogate.env.is_empty());
        let nothing: HookRequest<'_> = serde_json::from_str(r#"{"input":null}"#).unwrap();
        assert!(nothing.input.is_none());
    }
}
