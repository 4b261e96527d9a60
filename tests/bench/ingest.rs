//! Full work on a transcript: readers, pairing, terms, postings, decision.

use std::path::PathBuf;
use std::process::Command;

use crate::ours::{self, again, differing};
use crate::scratch::{Scratch, corpora, lines};
use crate::table::{Table, in_turn, mb_per_s, median};
use crate::{node, synthetic};

const AIM_RESCAN: &str = "≥ 2";
const AIM_NODE: &str = "≥ 6";

pub(crate) fn bench(table: &mut Table) {
    let scratch = Scratch::new();
    let session = synthetic::megabytes(50);
    let bytes = session.bytes();
    let file = scratch.file("generated.jsonl", &bytes);
    same_decisions(table, "generated session", &[(file.clone(), &bytes)]);
    whole_process(table, "generated session", &[file], bytes.len(), 7);
    in_process(table, "generated session", &[&bytes], 7);
    drop(session);

    let real = corpora(&scratch);
    if real.is_empty() {
        return;
    }
    let files: Vec<(PathBuf, &[u8])> =
        real.iter().map(|real| (real.path.clone(), real.bytes.as_slice())).collect();
    same_decisions(table, "corpora", &files);
    let sum = real.iter().map(|real| real.bytes.len()).sum();
    let paths: Vec<PathBuf> = real.iter().map(|real| real.path.clone()).collect();
    whole_process(table, "corpora", &paths, sum, 5);
    let all: Vec<&[u8]> = real.iter().map(|real| real.bytes.as_slice()).collect();
    in_process(table, "corpora", &all, 5);
}

fn same_decisions(table: &mut Table, name: &str, files: &[(PathBuf, impl AsRef<[u8]>)]) {
    let with_node = node::is_there();
    let (mut results, mut rescan, mut js) = (0, 0, 0);
    for (path, bytes) in files {
        let lines = lines(bytes.as_ref());
        for whole in [false, true] {
            let index = ours::index_dump(&lines, whole);
            results += index.len();
            rescan += differing(&index, &ours::rescan_dump(&lines, whole));
            if with_node {
                let dump = node::dump(path, whole);
                let differ = differing(&index, &dump);
                if differ > 0 {
                    let first = index.iter().zip(&dump).find(|(a, b)| a != b);
                    eprintln!(
                        "  {} whole={whole}: {differ} differ, first {first:?}",
                        path.display()
                    );
                }
                js += differ;
            }
        }
    }
    let js = if with_node { format!("Node {js}") } else { "Node not run".to_owned() };
    table.row(
        &format!("decisions that differ, {name}"),
        &format!("rescan {rescan}, {js}"),
        &format!("of {results} (context/standard and whole/reference)"),
        "0",
    );
}

fn run(mut command: Command, files: &[PathBuf]) -> impl FnMut() {
    command.args(files);
    move || assert!(command.status().unwrap().success(), "{command:?} failed")
}

fn whole_process(table: &mut Table, name: &str, files: &[PathBuf], bytes: usize, rounds: usize) {
    let mut cat = Command::new("cat");
    cat.stdout(std::process::Stdio::null());
    let mut ours = run(again("__ingest"), files);
    let mut cat = run(cat, files);
    let mut rescan = run(again("__rescan"), files);
    let mut js = run(node::peer(), files);
    let mut things: Vec<&mut dyn FnMut()> = vec![&mut ours, &mut cat, &mut rescan];
    if node::is_there() {
        things.push(&mut js);
    }
    let times = in_turn(rounds, &mut things);
    let speed = mb_per_s(bytes, median(&times[0]));
    let megabytes = bytes as f64 / 1e6;
    let what = |peer: &str| format!("ingest, whole process, {name} ({megabytes:.1} MB) {peer}");
    table.row(&what("by itself"), "", &speed, "");
    table.cost(&what("to cat"), &times[0], &times[1], "");
    table.faster(&what("to Rust rescan"), &times[0], &times[2], AIM_RESCAN);
    if let Some(js) = times.get(3) {
        table.faster(&what("to Node rescan"), &times[0], js, AIM_NODE);
    }
}

fn in_process(table: &mut Table, name: &str, sessions: &[impl AsRef<[u8]>], rounds: usize) {
    let sessions: Vec<Vec<&[u8]>> =
        sessions.iter().map(|session| lines(session.as_ref())).collect();
    let bytes: usize = sessions.iter().flatten().map(|line| line.len() + 1).sum();
    let mut ours = || {
        for lines in &sessions {
            if let Some(host) = ours::host_of(lines) {
                std::hint::black_box(ours::ingest(host, lines));
            }
        }
    };
    let mut rescan = || {
        for lines in &sessions {
            std::hint::black_box(ours::rescan_count(lines));
        }
    };
    let times = in_turn(rounds, &mut [&mut ours, &mut rescan]);
    let speed = mb_per_s(bytes, median(&times[0]));
    table.row(&format!("ingest, in process, {name} by itself"), "", &speed, "");
    let what = format!("ingest, in process, {name} to Rust rescan");
    table.faster(&what, &times[0], &times[1], AIM_RESCAN);
}
