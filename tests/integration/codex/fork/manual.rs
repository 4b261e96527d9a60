//! `codex.on_manual_compact = "fork"` in the real host: a person's `/compact` leads to a fork, and to
//! the host's own compaction where there is none.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use compactd_tests::harness::host::codex::{
    AppServer, CODE_MODE, Codex, Config, DIRECT, Kind, Responses, Step, rollout, wire,
};
use compactd_tests::harness::host::{codex, tmux};
use compactd_tests::harness::{Home, eventually};
use serde_json::{Value, json};

use super::super::rig::{Rig, prompt, texts};
use super::kit::{Fork, hashes, long_code, long_work, resumes, write};

/// A thread of a rig that is worth a fork.
fn worked(rig: &Rig, steps: Vec<Step>) -> String {
    rig.host.api().script(steps);
    rig.host.exec(&prompt("Write a note and check it.")).good().thread
}

/// Begins a compaction as a person does, and gives how its turn ended.
fn compacts(server: &mut AppServer, thread: &str) -> String {
    server.call("thread/compact/start", &json!({"threadId": thread}));
    server.turn_completed(thread)["status"].as_str().unwrap().to_owned()
}

/// What our hooks told the person before a compaction.
fn told(server: &AppServer) -> Vec<Value> {
    let messages = server.messages();
    let runs = messages.iter().filter(|message| message["method"] == "hook/completed");
    let runs = runs.map(|message| &message["params"]["run"]);
    runs.filter(|run| run["eventName"] == "preCompact")
        .flat_map(|run| run["entries"].as_array().unwrap().clone())
        .collect()
}

/// The rollouts that came since a look.
fn new_rollouts(host: &Codex, before: &BTreeMap<PathBuf, u64>) -> Vec<PathBuf> {
    let all = rollout::all(&host.codex_home());
    all.into_iter().filter(|path| !before.contains_key(path)).collect()
}

/// The fork in a new rollout.
fn fork_in(path: &Path) -> Fork {
    let id = rollout::records(path)[0]["payload"]["id"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), 36, "{id}");
    Fork { answer: Value::Null, thread: id, path: path.to_path_buf() }
}

/// The line that goes on with a fork: whole, as it can be pasted.
fn go_on(fork: &Fork, model: &str) -> String {
    format!("go on in it: codex resume {} -m {model}", fork.thread)
}

fn compactions(source: &Path) -> usize {
    rollout::payloads(&rollout::records(source), "compacted").len()
}

#[test]
fn a_person_gets_a_fork_and_the_thread_stays_as_it_was() {
    let Some(codex) = codex() else { return };
    for model in [DIRECT, CODE_MODE] {
        let api = Responses::start([]);
        let rig = Rig::forking(&codex, &api, &Config::default().model(model));
        let host = &rig.host;
        let steps = if model == CODE_MODE { long_code(host) } else { long_work(host) };
        let thread = worked(&rig, steps);
        let (before, source) = (hashes(host), host.rollout(&thread));
        let seen = fs::read(&source).unwrap();
        let mut server = host.app_server();
        server.resume(&thread);
        assert_eq!(compacts(&mut server, &thread), "interrupted");
        let [path] = new_rollouts(host, &before).try_into().unwrap();
        let fork = fork_in(&path);
        let [warning, stop] = told(&server).try_into().unwrap();
        let said = warning["text"].as_str().unwrap();
        assert!(said.starts_with("compactd: a fork of this session is ready, "), "{said}");
        assert!(said.ends_with(&go_on(&fork, model)), "{said}");
        assert_eq!((&warning["kind"], &stop["kind"]), (&json!("warning"), &json!("stop")));
        server.finish();
        assert_eq!(api.of_kind(Kind::CompactLocal).len(), 0);
        assert!(fs::read(&source).unwrap().starts_with(&seen), "the host only appends");
        assert_eq!(compactions(&source), 0);
        assert_eq!(rig.known(&thread), (0, Value::Null), "no text waits");
        let known = rig.daemon().client.get(&format!("/v1/sessions/{}", fork.thread)).good();
        assert_eq!(known["path"], path.to_str().unwrap());
        resumes(host, &fork);

        // It compacts by itself later: never a fork, and it is the first.
        let before = hashes(host);
        api.script([Step::text("More.").tokens(9_000)]);
        let run = host.clone().compacting_at(20_000).resume(&thread, &prompt("Go on.")).good();
        assert_eq!(run.kinds(), [Kind::CompactLocal, Kind::Turn]);
        assert_eq!(texts(run.last()), [1]);
        rig.has_delivered(&thread, 1);
        assert_eq!(new_rollouts(host, &before), [] as [PathBuf; 0]);
    }
}

#[test]
fn without_a_fork_the_host_compacts_and_the_person_is_told_why() {
    let Some(codex) = codex() else { return };
    let api = Responses::start([]);
    let rig = Rig::forking(&codex, &api, &Config::default());
    let host = &rig.host;
    let short = worked(&rig, vec![Step::text("Seen.").tokens(9_000)]);
    let mut records = rollout::records(&host.rollout(&short));
    // A compaction of the old kind: the host makes do with its summary.
    records.push(json!({ "timestamp": "2026-11-30T08:00:00.000Z", "ordinal": 0,
        "type": "compacted", "payload": { "message": "All of it is seen." } }));
    let said = json!([{ "type": "input_text", "text": prompt("Go on.") }]);
    records.push(json!({ "timestamp": "2026-11-30T08:00:00.000Z", "ordinal": 0,
        "type": "response_item", "payload": { "type": "message", "role": "user", "content": said } }));
    let old = "01a22bab-0000-7000-8000-0000000001d0".to_owned();
    write(host, &old, records);
    let mut server = host.app_server();
    for (thread, why) in [(&short, "nothing in the history can go"), (&old, "summary only")] {
        let (before, count) = (hashes(host), compactions(&host.rollout(thread)));
        let (asked, entries) = (api.of_kind(Kind::CompactLocal).len(), told(&server).len());
        server.resume(thread);
        assert_eq!(compacts(&mut server, thread), "completed");
        let told = told(&server);
        let [entry] = &told[entries..] else { panic!("{told:?}") };
        let said = entry["text"].as_str().unwrap();
        assert!(said.starts_with("compactd: no fork, the host compacts by itself: "), "{said}");
        assert!(said.contains(why), "{said}");
        assert_eq!(entry["kind"], "warning");
        assert_eq!(api.of_kind(Kind::CompactLocal).len(), asked + 1);
        assert_eq!(compactions(&host.rollout(thread)), count + 1);
        assert_eq!(new_rollouts(host, &before), [] as [PathBuf; 0]);
        let number = count as u64 + 1;
        api.script([Step::text("And on.")]);
        server.turn(thread, &prompt("Go on."));
        assert_eq!(texts(&api.last_turn()), [number]);
    }
    server.finish();
}

#[test]
fn without_the_setting_nobody_is_told_anything() {
    let Some(codex) = codex() else { return };
    let api = Responses::start([]);
    let rig = Rig::new(&codex, Home::new(), &api, &Config::default());
    let host = &rig.host;
    let thread = worked(&rig, long_work(host));
    let before = hashes(host);
    let mut server = host.app_server();
    server.resume(&thread);
    server.compact(&thread);
    assert_eq!(told(&server), [] as [Value; 0]);
    server.finish();
    assert_eq!(api.of_kind(Kind::CompactLocal).len(), 1);
    assert_eq!(compactions(&host.rollout(&thread)), 1);
    assert_eq!(new_rollouts(host, &before), [] as [PathBuf; 0]);
}

#[test]
fn on_a_screen() {
    let (Some(codex), Some(_)) = (codex(), tmux()) else { return };
    let api = Responses::start([]);
    let rig = Rig::forking(&codex, &api, &Config::default());
    let host = &rig.host;
    api.script(long_work(host));
    let Some(terminal) = host.terminal() else { return };
    terminal.type_line("Write a note and check it.");
    terminal.wait_for("holds heron_7713_quartz and an owner.");
    let thread = api.last_turn().thread.clone();
    let (before, source) = (hashes(host), host.rollout(&thread));
    terminal.type_line("/compact");
    let path = eventually("a fork", || new_rollouts(host, &before).pop());
    let fork = fork_in(&path);
    // It can be copied from there: the id and the model stand in it whole.
    terminal.wait_for(&go_on(&fork, DIRECT));
    // The thread can be gone on with all the same.
    api.script([Step::text("Here I am still.")]);
    terminal.type_line("Are you there?");
    terminal.wait_for("Here I am still.");
    assert!(wire::has(&api.last_turn().body, "unused_name_3_7"), "its history is whole");
    terminal.type_line("/quit");
    terminal.wait_for_end();
    assert_eq!(api.of_kind(Kind::CompactLocal).len(), 0);
    assert_eq!(compactions(&source), 0);

    let Some(terminal) = host.terminal_resumed(&fork.thread) else { return };
    api.script([Step::text("Back again.")]);
    terminal.type_line("And on it goes.");
    terminal.wait_for("Back again.");
    assert_eq!(wire::differs_from_resume(&api.last_turn(), &fork.history()), None);
    terminal.type_line("/quit");
    terminal.wait_for_end();
}
