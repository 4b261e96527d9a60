//! Real sessions, if there are some: a folder of transcripts in `COMPACTD_CORPORA`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use compactd_core::escalate::{Held, Occasion, Sizes, escalate};
use compactd_core::index::{History, Index};
use compactd_core::record::Host;
use compactd_core::rules::{Decision, Pins, Profile};
use compactd_core::settings::Settings;
use compactd_tests::apply::{apply, apply_escalated, normalised};
use compactd_tests::compare::{Question, difference};
use compactd_transcript::load::for_each_line;

use crate::kit::fed;

/// A file of fewer lines is looked at after every line.
const SMALL_LINES: usize = 200;
/// So many prefixes of a larger one.
const PREFIXES: usize = 9;

#[test]
fn real_sessions() {
    let Some(root) = std::env::var_os("COMPACTD_CORPORA").map(PathBuf::from) else {
        println!("skipped: COMPACTD_CORPORA names no folder of transcripts");
        return;
    };
    let mut files = Vec::new();
    walk(&root, &mut files);
    assert!(!files.is_empty(), "no transcripts under {}", root.display());
    // The largest first, shared by the cores.
    files.sort_by_key(|path| {
        std::cmp::Reverse(std::fs::metadata(path).map_or(0, |meta| meta.len()))
    });
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut failures = Vec::new();
            while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                failures.extend(check(path).err().map(|why| format!("{}: {why}", path.display())));
            }
            failures
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    println!("{} files in {:.1} s", files.len(), start.elapsed().as_secs_f64());
    assert!(failures.is_empty(), "{} files\n{}", failures.len(), failures.join("\n"));
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.to_string_lossy();
        if path.is_dir() {
            walk(&path, files);
        } else if name.ends_with(".jsonl") || name.ends_with(".jsonl.zst") {
            files.push(path);
        }
    }
}

fn check(path: &Path) -> Result<(), String> {
    let mut host = None;
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let loaded = for_each_line(path, None, |of, _, line| {
        host = Some(of);
        lines.push(line.to_vec());
    });
    if let Err(error) = loaded {
        println!("skipped: {} ({error})", path.display());
        return Ok(());
    }
    let Some(host) = host else { return Ok(()) };
    prefixes(host, &lines)?;
    twice(host, &lines)
}

fn prefixes(host: Host, lines: &[Vec<u8>]) -> Result<(), String> {
    let settings = Settings::default();
    let count = lines.len();
    let mut at: Vec<usize> = if count < SMALL_LINES {
        (1..=count).collect()
    } else {
        let even = (1..=PREFIXES).map(|part| count * part / PREFIXES);
        even.chain([50, 70, 90].map(|percent| count * percent / 100)).collect()
    };
    at.sort_unstable();
    at.dedup();
    let slices: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let questions = Question::all(&settings, &Pins::default());
    let mut index = Index::new(host, &settings);
    let mut done = 0;
    for end in at {
        for line in &lines[done..end] {
            index.apply(line, 0);
        }
        done = end;
        index.settle();
        // Both histories at each prefix; the other profile of each in turn, and all at the end.
        for (place, question) in questions.iter().enumerate() {
            if place % 2 == end % 2 && end != count {
                continue;
            }
            let rescan = question.rescan(host, &slices[..end]);
            if let Some(difference) = difference(&question.ask(&index, lines), &rescan) {
                return Err(format!(
                    "after line {end}, {:?} {:?}: {difference}",
                    question.history, question.profile
                ));
            }
        }
    }
    Ok(())
}

fn twice(host: Host, lines: &[Vec<u8>]) -> Result<(), String> {
    let settings = Settings::default();
    let once = |lines: &[Vec<u8>]| {
        let index = fed(host, &settings, lines);
        apply(host, lines, &index.pass(History::Context, Profile::Standard, &Pins::default()))
    };
    let first = once(&normalised(host, lines));
    let index = fed(host, &settings, &first);
    let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
    if let Some(again) = pass.iter().find(|decided| decided.ruling.decision != Decision::Keep) {
        return Err(format!("a second pass changes {} ({})", again.id, again.ruling.rule.name()));
    }
    to_a_budget(host, lines)
}

/// Half of the context, twice: the second pass finds nothing to do.
fn to_a_budget(host: Host, lines: &[Vec<u8>]) -> Result<(), String> {
    let settings = Settings::default();
    let lines = normalised(host, lines);
    let before = fed(host, &settings, &lines);
    let pass = |index| Index::pass(index, History::Context, Profile::Standard, &Pins::default());
    let first = pass(&before);
    let whole = Sizes::of(before.ratio(), first.chars());
    let sizes = Sizes { budget: Some(whole.left(0) / 2), ..whole };
    let made = escalate(&first, &Held::whole(&first), &sizes, Occasion::default());
    let after = fed(host, &settings, &apply_escalated(host, &lines, &first, &made));
    let second = pass(&after);
    let sizes = Sizes { chars: second.chars(), ..sizes };
    let held = Held::whole(&second);
    let again = escalate(&second, &held, &sizes, Occasion::default());
    if held.gone.is_empty() && again.results.is_empty() && again.texts.is_empty() {
        return Ok(());
    }
    Err(format!("to a budget, a second pass changes {:?} {again:?}", held.gone))
}
