//! Requests while the background thread indexes 200 MB, against an idle daemon.

use std::time::{Duration, Instant};

use crate::http::{Client, get};
use crate::scratch::Scratch;
use crate::servers::{Server, transcript};
use crate::synthetic::{Shape, USUAL_LINES, session};
use crate::table::{Table, at, shown, time};

pub(crate) fn bench(table: &mut Table) {
    let scratch = Scratch::new();
    let idle_home = Scratch::new();
    let mut bytes = 0;
    for seed in 0..40 {
        let (results, bytes_each) = (usize::MAX, 5_000_000);
        let shape = Shape { seed: 50 + seed, file_lines: USUAL_LINES, results, bytes: bytes_each };
        let made = session(shape);
        let file = transcript(scratch.path(), &made.id);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, made.bytes()).unwrap();
        bytes += made.bytes().len();
    }
    let idle = Server::start("daemon", idle_home.path());
    let started = Instant::now();
    let busy = Server::start("daemon", scratch.path());
    let status = get("/v1/status");
    let (mut while_busy, mut while_idle) = (Vec::new(), Vec::new());
    let mut client = Client::new(&busy.socket);
    let mut idle_client = Client::new(&idle.socket);
    // In turn: other load falls on both alike.
    loop {
        let mut left = false;
        while_busy.push(time(|| {
            let (_, body) = client.ask(&status);
            let text = String::from_utf8_lossy(body);
            left = !(text.contains("\"indexed\":40") && text.contains("\"bulk_queue\":0"));
        }));
        while_idle.push(time(|| {
            std::hint::black_box(idle_client.ask(&status));
        }));
        if !left {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(300), "indexing does not end");
        // The pace of the questions, not a wait for anything.
        std::thread::sleep(Duration::from_micros(500));
    }
    let took = started.elapsed().as_secs_f64();
    for percent in [50, 99] {
        let (busy, idle) = (at(&while_busy, percent), at(&while_idle, percent));
        table.row(
            &format!(
                "status while {:.0} MB are indexed ({took:.1} s), to idle daemon, p{percent}, n={}",
                bytes as f64 / 1e6,
                while_busy.len()
            ),
            &format!("**{:.2}** x", busy / idle),
            &format!("{} : {}", shown(busy), shown(idle)),
            if percent == 50 { "≤ 1.3" } else { "" },
        );
    }
    busy.stop();
    idle.stop();
}
