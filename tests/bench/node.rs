//! The Node.js peer, if there is a `node`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::ours::Dump;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/peer/rescan.mjs");

pub(crate) fn is_there() -> bool {
    let version = Command::new("node").arg("--version").stdout(Stdio::null()).status();
    let there = version.is_ok_and(|status| status.success());
    if !there {
        eprintln!("  (no node: its figures are left out)");
    }
    there
}

pub(crate) fn peer() -> Command {
    let mut command = Command::new("node");
    // A 50 MB transcript as objects takes more than the default on a small machine.
    command.args(["--max-old-space-size=8192", SCRIPT]).stdout(Stdio::null());
    command
}

pub(crate) fn dump(file: &Path, whole: bool) -> Dump {
    let (history, profile) = if whole { ("whole", "reference") } else { ("context", "standard") };
    let mut command = peer();
    command.arg(file).args(["--history", history, "--profile", profile, "--dump"]);
    let output = command.stdout(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "node failed on {}", file.display());
    let text = String::from_utf8(output.stdout).unwrap();
    // Parsed and written anew, so that both escape alike.
    let again = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap().to_string();
    text.lines().map(again).collect()
}
