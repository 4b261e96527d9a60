//! `tokens`: how far the token estimate is from what the hosts counted, on real sessions.
//!
//! A figure and no race: `COMPACTD_CORPORA` names the folder of sessions; without it nothing is
//! measured. Per result: intervals between two requests in which exactly one result of more than
//! 4,000 characters, and nothing else, came in. Per session: their sum.

use std::path::{Path, PathBuf};

use compactd_core::index::Index;
use compactd_core::record::Host;
use compactd_core::settings::Settings;
use compactd_core::tokens::Ratio;
use compactd_transcript::load::for_each_line;

use crate::table::{Table, at, median};

const LARGE_CHARS: u64 = 4_000;
const METHODS: [&str; 3] = ["chars/4", "chars × ratio of the model", "calibrated (compactd)"];

/// Relative errors of one method.
#[derive(Default)]
struct Errors {
    results: Vec<f64>,
    sessions: Vec<f64>,
}

pub(crate) fn bench(_: &mut Table) {
    let Some(root) = std::env::var_os("COMPACTD_CORPORA").map(PathBuf::from) else {
        eprintln!("tokens: skipped, COMPACTD_CORPORA names no folder of sessions");
        return;
    };
    let mut files = Vec::new();
    walk(&root, &mut files);
    println!(
        "\n| tokens | median / p90 / bias per result > 4,000 chars | median / p90 per session sum |"
    );
    println!("| --- | --- | --- |");
    for host in [Host::Claude, Host::Codex] {
        let mut errors: [Errors; 3] = Default::default();
        for file in &files {
            session(file, host, &mut errors);
        }
        for (name, errors) in METHODS.iter().zip(&errors) {
            let Errors { results, sessions } = errors;
            let absolute = |values: &[f64]| values.iter().map(|v| v.abs()).collect::<Vec<_>>();
            let (per_result, per_session) = (absolute(results), absolute(sessions));
            println!(
                "| {host:?} ({} sessions, {} results): {name} | {:.1} / {:.1} / {:+.0} % | {:.1} / {:.1} % |",
                sessions.len(),
                results.len(),
                median(&per_result),
                at(&per_result, 90),
                median(results),
                median(&per_session),
                at(&per_session, 90),
            );
        }
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
        let name = path.to_string_lossy();
        if path.is_dir() {
            walk(&path, files);
        } else if name.ends_with(".jsonl") || name.ends_with(".jsonl.zst") {
            files.push(path);
        }
    }
    files.sort();
}

fn session(path: &Path, wanted: Host, errors: &mut [Errors; 3]) {
    let mut index: Option<Index> = None;
    let (mut known, mut truth) = (0, 0.0);
    let mut sums = [0.0; 3];
    // A file that is no transcript is none of ours.
    let _loaded = for_each_line(path, None, |host, offset, line| {
        if host != wanted {
            return;
        }
        let index = index.get_or_insert_with(|| Index::new(host, &Settings::default()));
        let online = index.ratio();
        index.apply(line, offset);
        let (measured, interval) = index.meter().measured();
        if measured == known {
            return;
        }
        known = measured;
        let model = Ratio::of(host, index.facts().model.as_deref());
        let tokens = interval.tokens as f64;
        let one = interval.results == 1 && interval.chars == interval.result_chars;
        if !one || interval.chars <= LARGE_CHARS {
            return;
        }
        truth += tokens;
        let estimates =
            [interval.chars / 4, model.tokens(interval.chars), online.tokens(interval.chars)];
        for ((estimate, sum), errors) in estimates.into_iter().zip(&mut sums).zip(&mut *errors) {
            *sum += estimate as f64;
            errors.results.push((estimate as f64 - tokens) / tokens * 100.0);
        }
    });
    if truth > 0.0 {
        for (sum, errors) in sums.into_iter().zip(errors) {
            errors.sessions.push((sum - truth) / truth * 100.0);
        }
    }
}
