//! The benchmarks: `cargo bench -p compactd-tests` runs all, `… -- ingest request` those named.
//!
//! Every figure is a ratio to a peer that ran in turn with it, so that other load on the machine
//! falls on both; the raw medians stand beside it. `BENCHMARKS.md` tells what each peer is.
//!
//! Peers and daemons that need a process of their own are this program again (`__…`).

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failure ends it")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod append;
mod bulk;
mod decision;
mod fork;
mod host;
mod http;
mod ingest;
mod node;
mod ours;
mod request;
mod restart;
mod scratch;
mod servers;
mod shim;
mod size;
mod synthetic;
mod table;
mod tokens;
mod words;

use std::path::PathBuf;

use table::Table;

type Bench = (&'static str, fn(&mut Table));

const ALL: [Bench; 11] = [
    ("ingest", ingest::bench),
    ("decision", decision::bench),
    ("request", request::bench),
    ("shim", shim::bench),
    ("append", append::bench),
    ("restart", restart::bench),
    ("size", size::bench),
    ("bulk", bulk::bench),
    ("fork", fork::bench),
    ("host", host::bench),
    ("tokens", tokens::bench),
];

fn main() {
    // cargo adds `--bench`.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let paths = || arguments.iter().skip(1).map(PathBuf::from).collect::<Vec<_>>();
    match arguments.first().map(String::as_str) {
        Some("__ingest") => return ours::ingest_files(&paths()),
        Some("__ingest_loop") => return ours::ingest_again_and_again(&paths()),
        Some("__rescan") => return ours::rescan_files(&paths()),
        Some("__parts") => return request::parts(&paths()),
        Some("__daemon") => return servers::daemon(&paths()[0]),
        Some("__equal") => return servers::equal(),
        _ => {}
    }
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|one| one == name);
    if let Some(odd) = arguments.iter().find(|one| !ALL.iter().any(|(name, _)| name == one)) {
        let names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        eprintln!("no benchmark {odd}; there are: {}", names.join(" "));
        std::process::exit(2);
    }
    let mut table = Table::default();
    for (name, bench) in ALL {
        if wanted(name) {
            eprintln!("{name} …");
            bench(&mut table);
        }
    }
    table.print();
}
