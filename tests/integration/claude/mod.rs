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

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
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

/// The plugin in the checkout. A host never gets this folder: it writes into folders that it loads
/// plugins from.
fn checkout() -> PathBuf {
    fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin/claude")).unwrap()
}

/// A copy of the plugin for a home, the marketplace around it with it.
fn plugin(home: &Home) -> PathBuf {
    let folder = home.join("plugins");
    if !folder.exists() {
        copy(checkout().parent().unwrap(), &folder);
        // What a host wrote there is no part of the plugin.
        let _none = fs::remove_dir_all(folder.join("claude/.claude-plugin/types"));
    }
    folder.join("claude")
}

/// Copies a folder, programs as programs.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let there = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &there);
        } else {
            fs::copy(&path, there).unwrap();
        }
    }
}

/// Everything in a folder: mode, and bytes or target. Large files by their size.
pub(super) fn tree(folder: &Path) -> BTreeMap<PathBuf, (u32, String)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(below) = waiting.pop() {
        for entry in fs::read_dir(&below).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            let content = if about.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if about.is_dir() {
                waiting.push(path.clone());
                String::new()
            } else if !about.is_file() {
                "a socket or pipe".to_owned()
            } else if about.len() > 1_000_000 {
                format!("{} bytes, inode {}", about.len(), about.ino())
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            };
            found.insert(path.strip_prefix(folder).unwrap().to_path_buf(), (about.mode(), content));
        }
    }
    found
}

/// That a folder is as it was.
#[track_caller]
pub(super) fn assert_tree(before: &BTreeMap<PathBuf, (u32, String)>, folder: &Path) {
    let now = tree(folder);
    let differ = |these: &BTreeMap<PathBuf, (u32, String)>,
                  those: &BTreeMap<PathBuf, (u32, String)>| {
        let differ = these.iter().filter(|(path, entry)| those.get(*path) != Some(entry));
        differ.map(|(path, entry)| format!("{path:?} {entry:?}")).collect::<Vec<_>>()
    };
    let (gone, new) = (differ(before, &now), differ(&now, before));
    assert!(gone.is_empty() && new.is_empty(), "before: {gone:#?}\nnow: {new:#?}");
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
