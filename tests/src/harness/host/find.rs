//! Where the hosts and the compiler of a plugin are: not part of the project, pinned in
//! `tests/hosts.env`, and installed by `.ci/hosts.sh`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// The pinned versions.
const PINNED: &str = include_str!("../../../hosts.env");

fn is_required() -> bool {
    std::env::var_os("COMPACTD_HOSTS_REQUIRED").is_some_and(|value| value == "1")
}

/// The variable for a test's tool, or a word on how to come by it.
///
/// # Panics
/// It names nothing; or it is not set although it has to be there.
fn find(variable: &str, what: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let hint = format!("{variable}=$(.ci/hosts.sh {what}) cargo test -p compactd-tests");
    match path {
        Some(path) if path.is_file() => Some(path),
        Some(path) => panic!("{variable} names no file: {}\nhint: {hint}", path.display()),
        None => {
            missing(variable, &hint);
            None
        }
    }
}

/// The real Claude Code, of the pinned version. Without it a test ends at once, and a line says how
/// to run it.
#[must_use]
pub fn claude() -> Option<PathBuf> {
    static VERSION: OnceLock<String> = OnceLock::new();
    host("COMPACTD_CLAUDE", "claude", &VERSION, "CLAUDE_CODE_VERSION")
}

/// The real Codex, as [`claude`].
#[must_use]
pub fn codex() -> Option<PathBuf> {
    static VERSION: OnceLock<String> = OnceLock::new();
    host("COMPACTD_CODEX", "codex", &VERSION, "CODEX_VERSION")
}

fn host(variable: &str, what: &str, said: &OnceLock<String>, name: &str) -> Option<PathBuf> {
    let path = find(variable, what)?;
    let said = said.get_or_init(|| version(&path));
    let pinned = pinned(name);
    if !said.split_whitespace().any(|word| word == pinned) {
        let other = format!("{variable} says {said:?}, pinned is {pinned}");
        assert!(!is_required(), "{other}");
        tell(&other);
    }
    Some(path)
}

/// The TypeScript compiler.
#[must_use]
pub fn compiler() -> Option<PathBuf> {
    find("COMPACTD_TSC", "tsc")
}

/// A value of `tests/hosts.env`.
fn pinned(name: &str) -> &'static str {
    let mut values = PINNED.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.next().unwrap_or_else(|| panic!("tests/hosts.env has no {name}"))
}

fn version(path: &Path) -> String {
    let home = tempfile::tempdir().unwrap();
    let output =
        Command::new(path).arg("--version").env_clear().env("HOME", home.path()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// That something is missing that a test needs and that is not ours to install.
///
/// # Panics
/// It has to be there.
pub(super) fn missing(what: &str, hint: &str) {
    assert!(!is_required(), "{what} is not there\nhint: {hint}");
    tell(&format!("tests are skipped, {what} is not there: {hint}"));
}

/// Says it once, past the capture of what tests print: a test that did not look passes.
fn tell(line: &str) {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut told = TOLD.lock().unwrap();
    if !told.iter().any(|other| other == line) {
        told.push(line.to_owned());
        drop(writeln!(std::io::stderr(), "{line}"));
    }
}
