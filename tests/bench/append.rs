//! From a line in the file to that line in the index, through notify and the threads of the daemon.

use std::io::Write as _;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use compactd::follow::{Config, Event, Follower};
use compactd::sessions::Sessions;
use compactd::stats::Stats;
use compactd::store::Store;
use compactd::workers::{Bulk, Change, follow_changes};
use compactd_core::settings::Settings;
use compactd_transcript::{LineReader, Roots};

use crate::scratch::Scratch;
use crate::servers::transcript;
use crate::synthetic;
use crate::table::{Table, at, micros, shown};

const APPENDS: usize = 3000;

pub(crate) fn bench(table: &mut Table) {
    let scratch = Scratch::new();
    let mut session = synthetic::results(1_000);
    let more: Vec<String> = session.lines.split_off(session.lines.len() - 600);
    // 1.2 KB, as the median line of a transcript.
    let more: Vec<&String> = more.iter().filter(|line| (900..1500).contains(&line.len())).collect();
    let file = transcript(scratch.path(), &session.id);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, session.bytes()).unwrap();

    // What `run` makes, without the socket.
    let roots = Roots::new([scratch.path().join(".claude")], Vec::new());
    let stats = Arc::new(Stats::default());
    let store = Store::new(None, None);
    let sessions =
        Arc::new(Sessions::new(roots.clone(), Settings::default(), store, Arc::clone(&stats)));
    let bulk = Arc::new(Bulk::default());
    let (send, changes) = mpsc::channel();
    let live = std::thread::spawn({
        let (sessions, bulk) = (Arc::clone(&sessions), Arc::clone(&bulk));
        move || follow_changes(&changes, &sessions, &bulk, Duration::from_secs(86_400), u64::MAX)
    });
    let (tell_ready, ready) = mpsc::channel::<()>();
    let found = Mutex::new(Some(tell_ready));
    let follower = Follower::start(Config { roots, poll_ms: 1000, sweep_s: 30 }, {
        let sessions = Arc::clone(&sessions);
        move |event| match event {
            Event::Found(file) => {
                let session = sessions.found(&file);
                sessions.build(&session, &mut LineReader::new(), || true).unwrap();
            }
            Event::Changed(path) => drop(send.send(Change::Path(path))),
            Event::SweepDone { .. } => drop(found.lock().unwrap().take()),
            _ => {}
        }
    })
    .unwrap();
    // Ends when the sender is dropped.
    assert!(ready.recv().is_err());

    let mut out = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    let mut times = Vec::new();
    let mut bytes = 0;
    for number in 0..=APPENDS {
        let mut line = more[number % more.len()].clone();
        line.push('\n');
        bytes += line.len();
        let before = stats.lines_read.get();
        let started = Instant::now();
        out.write_all(line.as_bytes()).unwrap();
        while stats.lines_read.get() == before {
            assert!(started.elapsed() < Duration::from_secs(10), "an append was not seen");
            std::thread::yield_now();
        }
        // The first one waits for watches and threads to be in place.
        if number > 0 {
            times.push(micros(started.elapsed()));
        }
        // A pace, not a wait: nothing is owed when it is over.
        std::thread::sleep(Duration::from_micros(300));
    }
    follower.shutdown();
    drop(live.join());
    table.row(
        &format!("append to indexed, {} B lines, {APPENDS} appends", bytes / (APPENDS + 1)),
        "",
        &format!(
            "p50 {}, p90 {}, p99 {}, max {}",
            shown(at(&times, 50)),
            shown(at(&times, 90)),
            shown(at(&times, 99)),
            shown(at(&times, 100))
        ),
        "p50 ≤ 100 us, p99 ≤ 1 ms",
    );
}
