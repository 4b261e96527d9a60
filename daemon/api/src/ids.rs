//! Which ids and names may come in from outside. They end up in paths and logs, so the set is small.

/// Longest id of a session or sub-agent.
pub const ID_MAX: usize = 128;
/// Longest name of a hook event.
pub const EVENT_MAX: usize = 64;

/// Whether this is a usable id of a session or sub-agent: `[A-Za-z0-9._-]{1,128}`, not `.` or `..`.
#[must_use]
pub fn is_id(id: &str) -> bool {
    (1..=ID_MAX).contains(&id.len())
        && id != "."
        && id != ".."
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// Whether this may be the name of a hook event: `[A-Za-z]{1,64}`.
#[must_use]
pub fn is_event(name: &str) -> bool {
    (1..=EVENT_MAX).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        for good in
            ["a", "...", "a.b_c-d", "0198c7a2-1111-7000-8000-000000000001", &"x".repeat(128)]
        {
            assert!(is_id(good), "{good}");
        }
        for bad in
            ["", ".", "..", "a/b", "../x", "/x", "a\\b", "a b", "a\n", "a\0", "é", &"x".repeat(129)]
        {
            assert!(!is_id(bad), "{bad:?}");
        }
    }

    #[test]
    fn events() {
        assert!(is_event("PreCompact") && is_event(&"x".repeat(64)));
        for bad in ["", "Pre-Compact", "Pre1", "../x", "é", &"x".repeat(65)] {
            assert!(!is_event(bad), "{bad:?}");
        }
    }
}
