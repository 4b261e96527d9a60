//! How large the index is, in memory and as a snapshot.

use crate::scratch::{Scratch, corpora, lines};
use crate::table::Table;
use crate::{ours, synthetic};

const AIM: &str = "≤ 15 %";

pub(crate) fn bench(table: &mut Table) {
    let session = synthetic::megabytes(50);
    row(table, "generated session", &[session.bytes()]);
    drop(session);
    let scratch = Scratch::new();
    let real = corpora(&scratch);
    for host in ["claude", "codex"] {
        let of_host = |path: &std::path::Path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(host))
        };
        let all: Vec<&[u8]> = real
            .iter()
            .filter(|real| of_host(&real.path))
            .map(|real| real.bytes.as_slice())
            .collect();
        if !all.is_empty() {
            row(table, &format!("corpora, {host}, {} sessions", all.len()), &all);
        }
    }
}

fn row(table: &mut Table, name: &str, sessions: &[impl AsRef<[u8]>]) {
    let (mut bytes, mut heap, mut snapshot) = (0, 0, 0);
    for session in sessions {
        let lines = lines(session.as_ref());
        let Some(host) = ours::host_of(&lines) else { continue };
        let index = ours::index(host, &lines);
        bytes += session.as_ref().len();
        heap += index.heap_bytes();
        snapshot += index.encode().len();
    }
    let percent = |part: usize| part as f64 * 100.0 / bytes as f64;
    table.row(
        &format!("index bytes to transcript bytes, {name}"),
        &format!("memory {:.1} %, snapshot {:.1} %", percent(heap), percent(snapshot)),
        &format!(
            "{:.2} MB, {:.2} MB of {:.1} MB",
            heap as f64 / 1e6,
            snapshot as f64 / 1e6,
            bytes as f64 / 1e6
        ),
        AIM,
    );
}
