//! The real Claude Code against a scripted API: what it sends, and when.
//!
//! Without the host these tests end at once, with a line that says how to run them.

mod attached;
mod auto;
mod daemon;
mod escalation;
mod failures;
mod install;
mod interactive;
mod kit;
mod manual;
mod native;
mod results;
mod seen;
mod shapes;
mod types;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use compactd_tests::harness::Home;
use compactd_tests::harness::host::{Host, Kind, Run, Step};
use serde_json::json;

/// A session in a home has one window of 100,000 tokens and compacts above 67,000.
const SMALL_WINDOW: (&str, &str) = ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");

/// Three small files, and the model that reads one after the other.
fn three_reads(host: &Host, tokens: [u64; 3]) -> Vec<Step> {
    let read = |(number, tokens): (usize, u64)| {
        let text = format!("LIMIT_{number} = {}\n", 48_210 + number);
        let file = host.put(&format!("src/part{number}.py"), text);
        Step::tool("Read", json!({"file_path": file})).tokens(tokens)
    };
    tokens.into_iter().enumerate().map(read).collect()
}

/// The kinds of a run's requests, in order.
fn kinds(run: &Run) -> Vec<Kind> {
    run.requests.iter().map(|request| request.kind).collect()
}

/// This project's plugin.
fn plugin() -> PathBuf {
    fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin/claude")).unwrap()
}

/// A pipe with a name: what reads a line of it waits until the test writes one. At its end readers
/// see the end.
struct Pipe {
    path: PathBuf,
    ends: File,
}

impl Pipe {
    fn new(home: &Home, name: &str) -> Self {
        let path = home.work().join(name);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success(), "mkfifo {}", path.display());
        // With both ends open here nobody waits for another to open it.
        let ends = File::options().read(true).write(true).open(&path).unwrap();
        Self { path, ends }
    }

    /// A command that prints the next line.
    fn reader(&self) -> String {
        format!("head -n 1 {}", self.path.display())
    }

    fn write(&mut self, line: &str) {
        self.ends.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}
