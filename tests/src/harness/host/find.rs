//! Where the host and the compiler of its plugins are: not part of the project, and installed by a
//! script of its own.

use std::path::PathBuf;

/// The variable for a test's tool, or a word on how to come by it.
///
/// # Panics
/// It is not set, or names nothing, although it has to be there.
fn find(variable: &str, what: &str) -> Option<PathBuf> {
    let required = std::env::var_os("COMPACTD_HOSTS_REQUIRED").is_some_and(|value| value == "1");
    let path = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let hint = format!("{variable}=$(.ci/hosts.sh {what}) cargo test -p compactd-tests");
    match path {
        Some(path) if path.is_file() => Some(path),
        Some(path) => panic!("{variable} names no file: {}\nhint: {hint}", path.display()),
        None if required => panic!("{variable} is not set\nhint: {hint}"),
        None => {
            tell(&format!("skipped, {variable} is not set: {hint}"));
            None
        }
    }
}

/// The real Claude Code. Without it a test ends at once, with a line that says how to run it.
#[must_use]
pub fn claude() -> Option<PathBuf> {
    find("COMPACTD_CLAUDE", "claude")
}

/// The TypeScript compiler.
#[must_use]
pub fn compiler() -> Option<PathBuf> {
    find("COMPACTD_TSC", "tsc")
}

/// That something is missing that a test needs and that is not ours to install.
///
/// # Panics
/// It has to be there.
pub(super) fn missing(what: &str, hint: &str) {
    let required = std::env::var_os("COMPACTD_HOSTS_REQUIRED").is_some_and(|value| value == "1");
    assert!(!required, "{what} is not there\nhint: {hint}");
    tell(&format!("skipped, {what} is not there: {hint}"));
}

#[expect(clippy::print_stderr, reason = "a test that did not look has to say so")]
fn tell(line: &str) {
    eprintln!("{line}");
}
