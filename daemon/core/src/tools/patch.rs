//! Files named in an `apply_patch` text, raw or escaped inside JavaScript; what a code mode script
//! calls.

use super::paths;
use super::writes::Sink;

const HEADS: [&str; 4] = ["Update File: ", "Add File: ", "Delete File: ", "Move to: "];

/// Adds the files that a patch names; true if it names one.
pub(super) fn names(text: &str, sink: &mut Sink) -> bool {
    let mut found = false;
    for at in memchr::memmem::find_iter(text.as_bytes(), "*** ") {
        let before = text.get(..at).unwrap_or_default();
        let escaped = before.ends_with("\\n") || before.ends_with(['"', '\'', '`']);
        if !escaped && !before.is_empty() && !before.ends_with('\n') {
            continue;
        }
        let rest = text.get(at.saturating_add(4)..).unwrap_or_default();
        let Some(name) = HEADS.iter().find_map(|head| rest.strip_prefix(head)) else { continue };
        let stops: &[char] = if escaped { &['\n', '\\', '"', '\'', '`'] } else { &['\n'] };
        let name = name.split(stops).next().unwrap_or_default().trim();
        let name = paths::last(name);
        found = true;
        if name.is_empty() || name.contains("${") {
            sink.all = true;
        } else {
            sink.name(name);
        }
    }
    found
}

/// What a code mode script calls besides shell commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calls {
    pub patch: bool,
    pub others: bool,
}

/// Looks for `tools.NAME` in a script.
pub(super) fn calls(script: &str) -> Calls {
    let mut calls = Calls { patch: false, others: false };
    for at in memchr::memmem::find_iter(script.as_bytes(), "tools.") {
        let rest = script.get(at.saturating_add("tools.".len())..).unwrap_or_default();
        let end = rest
            .bytes()
            .position(|b| !(b.is_ascii_alphanumeric() || b == b'_'))
            .unwrap_or(rest.len());
        match rest.get(..end).unwrap_or_default() {
            "" | "exec_command" | "shell" | "shell_command" | "local_shell" => {}
            "apply_patch" => calls.patch = true,
            _ => calls.others = true,
        }
    }
    calls.patch |= memchr::memmem::find(script.as_bytes(), b"apply_patch").is_some();
    calls
}
