//! The index and the Rust rescan over whole files: in this process, and as processes of their own.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compactd_core::index::{History, Index};
use compactd_core::record::{Host, sniff};
use compactd_core::rules::{CallFate, Decision, Pins, Profile};
use compactd_core::settings::Settings;
use compactd_tests::compare::left;
use compactd_tests::core_tools::CoreTools;
use compactd_tests::rescan;
use compactd_transcript::LineReader;
use compactd_transcript::lines::{Cursor, Slice};
use compactd_transcript::source::Transcript;

use crate::scratch::lines;

/// A decision as a line of JSON, the same text from all three.
pub(crate) type Dump = Vec<String>;

pub(crate) fn host_of(lines: &[&[u8]]) -> Option<Host> {
    lines.iter().find_map(|line| sniff(line))
}

pub(crate) fn index(host: Host, lines: &[&[u8]]) -> Index {
    let mut index = Index::new(host, &Settings::default());
    for line in lines {
        index.apply(line, 0);
    }
    index.settle();
    index
}

/// All of the work on lines in memory: the number of results that do not stay whole.
pub(crate) fn ingest(host: Host, lines: &[&[u8]]) -> usize {
    changed(&index(host, lines))
}

pub(crate) fn changed(index: &Index) -> usize {
    let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
    pass.iter().filter(|decided| decided.ruling.decision != Decision::Keep).count()
}

fn ingest_file(reader: &mut LineReader, path: &Path) -> usize {
    let mut file = Transcript::open(path).unwrap();
    let mut index: Option<Index> = None;
    reader
        .read(&mut file, Cursor::default(), Slice::whole().with_torn(), |line| {
            if index.is_none() {
                index = sniff(line.bytes).map(|host| Index::new(host, &Settings::default()));
            }
            if let Some(index) = &mut index {
                index.apply(line.bytes, line.offset);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    let Some(mut index) = index else { return 0 };
    index.settle();
    changed(&index)
}

/// `__ingest FILE…`
pub(crate) fn ingest_files(paths: &[PathBuf]) {
    let mut reader = LineReader::new();
    println!("{}", paths.iter().map(|path| ingest_file(&mut reader, path)).sum::<usize>());
}

/// `__ingest_loop FILE…`: for a profiler.
pub(crate) fn ingest_again_and_again(paths: &[PathBuf]) {
    for _ in 0..20 {
        ingest_files(paths);
    }
}

/// `__rescan FILE…`
pub(crate) fn rescan_files(paths: &[PathBuf]) {
    let results = paths.iter().map(|path| {
        let bytes = std::fs::read(path).unwrap();
        rescan_count(&lines(&bytes))
    });
    println!("{}", results.sum::<usize>());
}

pub(crate) fn rescan_count(lines: &[&[u8]]) -> usize {
    let found = rescan::rescan(lines, None, &CoreTools::default(), &rescan::Options::default());
    found.results.iter().filter(|one| one.decision != rescan::Decision::Keep).count()
}

/// This program as another process.
pub(crate) fn again(job: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(job).stdout(Stdio::null());
    command
}

pub(crate) fn index_dump(lines: &[&[u8]], whole: bool) -> Dump {
    let Some(host) = host_of(lines) else { return Dump::new() };
    let index = index(host, lines);
    let (history, profile) = if whole {
        (History::Whole, Profile::Reference)
    } else {
        (History::Context, Profile::Standard)
    };
    let dumped = |decided: compactd_core::rules::Decided<'_>| {
        let decision = match decided.ruling.decision {
            Decision::Keep => "keep",
            Decision::Truncate => "truncate",
            Decision::Drop => "drop",
        };
        let call = match decided.call {
            CallFate::Kept => "kept",
            CallFate::Shortened => "shortened",
            CallFate::Removed => "removed",
        };
        serde_json::json!([
            decided.id,
            decided.tool,
            decided.chars,
            decision,
            call,
            decided.ruling.rule.name(),
            left(host, &decided, lines)
        ])
        .to_string()
    };
    index.pass(history, profile, &Pins::default()).iter().map(dumped).collect()
}

pub(crate) fn rescan_dump(lines: &[&[u8]], whole: bool) -> Dump {
    let (history, profile) = if whole {
        (rescan::History::Whole, rescan::Profile::Reference)
    } else {
        (rescan::History::Context, rescan::Profile::Standard)
    };
    let options = rescan::Options { history, profile, ..rescan::Options::default() };
    let dumped = |decided: rescan::Decided| {
        let decision = match decided.decision {
            rescan::Decision::Keep => "keep",
            rescan::Decision::Truncate => "truncate",
            rescan::Decision::Drop => "drop",
        };
        let call = match decided.call {
            rescan::CallFate::Kept => "kept",
            rescan::CallFate::Shortened => "shortened",
            rescan::CallFate::Removed => "removed",
        };
        serde_json::json!([
            decided.id,
            decided.tool,
            decided.chars,
            decision,
            call,
            decided.rule,
            decided.left
        ])
        .to_string()
    };
    let found = rescan::rescan(lines, None, &CoreTools::default(), &options);
    found.results.into_iter().map(dumped).collect()
}

/// How many decisions of two are not the same.
pub(crate) fn differing(a: &Dump, b: &Dump) -> usize {
    a.len().abs_diff(b.len()) + a.iter().zip(b).filter(|(a, b)| a != b).count()
}
