//! A compaction request over the socket, against an endpoint of the same server that only reads and
//! writes as many bytes.

use std::hint::black_box;
use std::path::PathBuf;
use std::process::Stdio;

use compactd_api::compact::CompactRequest;
use compactd_core::rules::{Pins, Profile};
use compactd_tests::harness::eventually;
use serde_json::{Value, json};

use crate::http::{Client, request};
use crate::ours;
use crate::scratch::{Scratch, lines};
use crate::servers::{Server, transcript};
use crate::synthetic::{self, Session};
use crate::table::{Table, in_turn, median, shown};

const AIM: &str = "≤ 1.3";

pub(crate) fn bench(table: &mut Table) {
    let scratch = Scratch::new();
    let sessions: Vec<Session> =
        [100, 1_000, 10_000, 20_000].into_iter().map(synthetic::results).collect();
    for session in &sessions {
        let file = transcript(scratch.path(), &session.id);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, session.bytes()).unwrap();
    }
    let daemon = Server::start("daemon", scratch.path());
    let equal = Server::start("equal", scratch.path());
    for session in &sessions {
        // The daemon takes 20,000 ids: of the largest session those of the results alone.
        let with_calls = session.results <= 10_000;
        let body = body(scratch.path(), session, with_calls);
        let ask = request("POST", "/v1/compact", &body);
        let answer = first_answer(&daemon, &ask);
        let counters = &answer["counters"];
        assert_eq!(counters["results"], session.results);
        let size = answer.to_string().len();
        let plain = request("POST", &format!("/equal/{size}"), &body);
        let about = format!(
            "{} results ({} KB in, {} KB out, {} decisions)",
            session.results,
            body.len() / 1000,
            size / 1000,
            answer["decisions"].as_array().map_or(0, Vec::len)
        );

        parts_of(table, &scratch, session, &body);
        let rounds = if session.results > 1000 { 60 } else { 400 };
        let (mut a, mut b) = (Client::new(&daemon.socket), Client::new(&equal.socket));
        let (mut c, mut d) = (Client::new(&daemon.socket), Client::new(&equal.socket));
        let mut kept = || check(a.ask(&ask));
        let mut kept_equal = || check(b.ask(&plain));
        let mut fresh = || {
            c.again(&daemon.socket);
            check(c.ask(&ask));
        };
        let mut fresh_equal = || {
            d.again(&equal.socket);
            check(d.ask(&plain));
        };
        let times =
            in_turn(rounds, &mut [&mut kept, &mut kept_equal, &mut fresh, &mut fresh_equal]);
        table.cost(&format!("request, kept connection, {about}"), &times[0], &times[1], AIM);
        table.cost(&format!("request, fresh connection, {about}"), &times[2], &times[3], AIM);
    }
    equal.stop();
    daemon.stop();
}

/// `__parts TRANSCRIPT BODY`: what the daemon does between the two ends of the socket, step by step.
/// A process of its own, because a heap that much else has gone through makes it slower.
pub(crate) fn parts(paths: &[PathBuf]) {
    let (transcript, body) = (std::fs::read(&paths[0]).unwrap(), std::fs::read(&paths[1]).unwrap());
    let index = ours::index(compactd_core::record::Host::Claude, &lines(&transcript));
    drop(transcript);
    let read = || CompactRequest::from_usual(&body).unwrap();
    let asked = read();
    let decide = || {
        compactd::compaction::answer(
            &index,
            &asked,
            Profile::Standard,
            &Pins::default(),
            false,
            None,
        )
    };
    let answer = decide();
    let mut serde =
        || drop(black_box(serde_json::from_slice::<CompactRequest<'_>>(&body).unwrap()));
    let mut by_hand = || drop(black_box(read()));
    let mut decided = || drop(black_box(decide()));
    let mut serde_out = || drop(black_box(serde_json::to_vec(&answer).unwrap()));
    let mut written = || drop(black_box(answer.to_json()));
    let times =
        in_turn(30, &mut [&mut serde, &mut by_hand, &mut decided, &mut serde_out, &mut written]);
    let [serde, by_hand, decided, serde_out, written] =
        [0, 1, 2, 3, 4].map(|at| shown(median(&times[at])));
    println!(
        "read {by_hand} (serde {serde}), join and decide {decided}, write {written} (serde {serde_out})"
    );
}

fn parts_of(table: &mut Table, scratch: &Scratch, session: &Session, body: &[u8]) {
    let file = scratch.file("body.json", body);
    let mut parts = ours::again("__parts");
    parts.args([&transcript(scratch.path(), &session.id), &file]);
    let output = parts.stdout(Stdio::piped()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let what = format!("request, its parts by themselves, {} results", session.results);
    table.row(&what, "", text.trim(), "");
}

/// The daemon may still be reading the session.
fn first_answer(daemon: &Server, ask: &[u8]) -> Value {
    let mut client = Client::new(&daemon.socket);
    eventually("the daemon knows the session", || {
        let answer = client.json(ask);
        (answer["outcome"] != "unready").then_some(answer)
    })
}

fn check((status, body): (u16, &[u8])) {
    assert_eq!(status, 200);
    black_box(body);
}

/// The request in the order of fields that a caller writes.
fn body(home: &std::path::Path, session: &Session, with_calls: bool) -> Vec<u8> {
    let rows: Vec<String> = session
        .rows
        .iter()
        .map(|row| {
            let role = if row.assistant { "assistant" } else { "user" };
            let named = !row.ids.is_empty() && (with_calls || !row.assistant);
            let ids = if named { format!(r#","ids":{}"#, json!(row.ids)) } else { String::new() };
            let error = if row.is_error { r#","is_error":true"# } else { "" };
            let (uuid, chars) = (&row.uuid, row.chars);
            format!(r#"{{"row":"{uuid}","role":"{role}"{ids},"chars":{chars}{error}}}"#)
        })
        .collect();
    let transcript = transcript(home, &session.id);
    let head: Value = json!({"host": "claude", "session": session.id,
        "transcript": transcript, "trigger": "auto",
        "usage": {"tokens": 150_000, "window": 200_000}});
    let head = head.to_string();
    let head = head.strip_suffix('}').unwrap();
    format!("{head},\"rows\":[{}]}}", rows.join(",")).into_bytes()
}
