//! The daemon's start over 2,000 sessions, with its snapshots and without.

use std::time::Instant;

use crate::scratch::Scratch;
use crate::servers::{Server, transcript};
use crate::synthetic::{Shape, session};
use crate::table::{Table, micros};

const FILES: u64 = 2_000;
const ROUNDS: usize = 5;

pub(crate) fn bench(table: &mut Table) {
    let scratch = Scratch::new();
    let mut bytes = 0;
    for seed in 0..FILES {
        let made =
            session(Shape { seed: 100 + seed, file_lines: 60, results: 8, bytes: usize::MAX });
        let file = transcript(scratch.path(), &made.id);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, made.bytes()).unwrap();
        bytes += made.bytes().len();
    }
    let cache = scratch.path().join("cache");
    let start = || {
        let started = Instant::now();
        let daemon = Server::start("daemon", scratch.path());
        let first = micros(daemon.first_answer);
        daemon.wait_indexed(FILES);
        (first, micros(started.elapsed()), daemon)
    };
    let (mut cold, mut warm) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for _ in 0..ROUNDS {
        drop(std::fs::remove_dir_all(&cache));
        let (first, all, daemon) = start();
        cold.0.push(first);
        cold.1.push(all);
        daemon.stop();
        let (first, all, daemon) = start();
        warm.0.push(first);
        warm.1.push(all);
        daemon.stop();
    }
    let megabytes = bytes as f64 / 1e6;
    let about = format!("start over {FILES} sessions ({megabytes:.0} MB)");
    table.cost(
        &format!("{about}, first answer, with : without snapshots"),
        &warm.0,
        &cold.0,
        "≤ 20 ms",
    );
    table.faster(&format!("{about}, all indexed, with : without snapshots"), &warm.1, &cold.1, "");
}
