//! What the shim takes from its environment, in one pass: its own settings, and the allow-listed
//! variables that travel with the request because the daemon does not see a hook's environment.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// The hook's share of the hosts' patience; `COMPACTD_HOOK_TIMEOUT_MS` may only lower it.
const TIMEOUT: Duration = Duration::from_millis(1500);

#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) socket: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) runtime: Option<PathBuf>,
    pub(crate) path: Option<OsString>,
    pub(crate) daemon: Option<PathBuf>,
    pub(crate) may_start: bool,
    pub(crate) timeout: Duration,
    pub(crate) debug: Option<PathBuf>,
    /// Codex sets `PLUGIN_ROOT` for its plugins' hooks, Claude Code does not.
    pub(crate) has_plugin_root: bool,
    /// The allow-listed variables as one JSON object.
    pub(crate) json: Vec<u8>,
}

impl Environment {
    pub(crate) fn read() -> Self {
        Self::from_variables(std::env::vars_os())
    }

    fn from_variables(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let mut environment = Self {
            socket: None,
            home: None,
            runtime: None,
            path: None,
            daemon: None,
            may_start: true,
            timeout: TIMEOUT,
            debug: None,
            has_plugin_root: false,
            json: Vec::with_capacity(1024),
        };
        environment.json.push(b'{');
        for (name, value) in variables {
            if is_forwarded(name.as_bytes()) {
                if environment.json.len() > 1 {
                    environment.json.push(b',');
                }
                escape(&name.to_string_lossy(), &mut environment.json);
                environment.json.push(b':');
                escape(&value.to_string_lossy(), &mut environment.json);
            }
            environment.take(name.as_bytes(), value);
        }
        environment.json.push(b'}');
        environment
    }

    /// Keeps a setting of the shim's own. Empty is unset; paths must be absolute.
    fn take(&mut self, name: &[u8], value: OsString) {
        if value.is_empty() {
            return;
        }
        match name {
            b"COMPACTD_SOCKET" => self.socket = Some(value.into()),
            b"COMPACTD_HOOK_DEBUG" => self.debug = Some(value.into()),
            b"COMPACTD_HOOK_START" => self.may_start = value != "0",
            b"COMPACTD_HOOK_TIMEOUT_MS" => {
                if let Some(wanted) = value.to_str().and_then(|text| text.trim().parse().ok()) {
                    self.timeout = TIMEOUT.min(Duration::from_millis(wanted));
                }
            }
            b"COMPACTD_BIN" => self.daemon = absolute(value),
            b"HOME" => self.home = absolute(value),
            b"XDG_RUNTIME_DIR" => self.runtime = absolute(value),
            b"PLUGIN_ROOT" => self.has_plugin_root = true,
            b"PATH" => self.path = Some(value),
            _ => {}
        }
    }
}

fn absolute(value: OsString) -> Option<PathBuf> {
    Some(PathBuf::from(value)).filter(|path| path.is_absolute())
}

/// The allow-list. Nothing else of the environment leaves the process.
fn is_forwarded(name: &[u8]) -> bool {
    name.starts_with(b"COMPACT_PLUS_")
        || matches!(
            name,
            b"CODEX_HOME"
                | b"CLAUDE_CONFIG_DIR"
                | b"TMPDIR"
                | b"PLUGIN_ROOT"
                | b"PLUGIN_DATA"
                | b"CLAUDE_PLUGIN_ROOT"
                | b"CLAUDE_PLUGIN_DATA"
                | b"CLAUDE_PROJECT_DIR"
                | b"CLAUDE_CODE_SESSION_ID"
                | b"PATH"
        )
}

/// True for a variable that belongs to one hook run and must not stick to a daemon started by it.
pub(crate) fn is_per_session(name: &[u8]) -> bool {
    name != b"PATH"
        && name != b"TMPDIR"
        && name != b"CODEX_HOME"
        && name != b"CLAUDE_CONFIG_DIR"
        && (is_forwarded(name)
            || matches!(name, b"CLAUDE_ENV_FILE" | b"CLAUDE_PID" | b"CLAUDE_CODE_CHILD_SESSION"))
}

/// Appends `text` as a JSON string.
fn escape(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => out.extend_from_slice(&[
                b'\\',
                b'u',
                b'0',
                b'0',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Environment {
        Environment::from_variables(
            variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))),
        )
    }

    #[test]
    fn only_the_allow_list_is_forwarded() {
        let environment = read(&[
            ("ANTHROPIC_API_KEY", "secret"),
            ("PATH", "/bin"),
            ("COMPACT_PLUS_X", ""),
            ("COMPACT_PLUSX", "no"),
            ("TMPDIR", "/t"),
        ]);
        let expected = r#"{"PATH":"/bin","COMPACT_PLUS_X":"","TMPDIR":"/t"}"#;
        assert_eq!(String::from_utf8(environment.json).unwrap(), expected);
    }

    #[test]
    fn values_are_escaped() {
        let environment = read(&[("TMPDIR", "a\"b\\c\nd\u{1f}é\u{7f}")]);
        let expected = "{\"TMPDIR\":\"a\\\"b\\\\c\\u000ad\\u001fé\u{7f}\"}";
        assert_eq!(String::from_utf8(environment.json).unwrap(), expected);
    }

    #[test]
    fn the_timeout_is_only_lowered() {
        let timeout = |value| read(&[("COMPACTD_HOOK_TIMEOUT_MS", value)]).timeout.as_millis();
        assert_eq!(timeout("100"), 100);
        for value in ["99999", "", "-1", "x"] {
            assert_eq!(timeout(value), 1500, "{value}");
        }
    }

    #[test]
    fn relative_paths_and_empty_values_are_unset() {
        let environment = read(&[
            ("HOME", "here"),
            ("XDG_RUNTIME_DIR", "."),
            ("COMPACTD_BIN", "compactd"),
            ("COMPACTD_SOCKET", ""),
        ]);
        assert!(environment.home.is_none() && environment.runtime.is_none());
        assert!(environment.daemon.is_none() && environment.socket.is_none());
    }

    #[test]
    fn a_started_daemon_keeps_nothing_of_the_session() {
        for name in ["COMPACT_PLUS_TWO_PASS", "CLAUDE_CODE_SESSION_ID", "PLUGIN_ROOT"] {
            assert!(is_per_session(name.as_bytes()), "{name}");
        }
        for name in ["PATH", "HOME", "CODEX_HOME", "TMPDIR", "LANG"] {
            assert!(!is_per_session(name.as_bytes()), "{name}");
        }
    }
}
