//! The recorded sessions: what the index holds is what the host sent.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use compactd_core::hash::hash;
use compactd_core::index::{History, Index};
use compactd_core::record::codex::shape;
use compactd_core::record::{self, Host, Item, Record, Role, Skip};
use compactd_core::rules::{Pins, Profile};
use compactd_core::settings::Settings;
use compactd_tests::compare::result_of;
use compactd_transcript::load::for_each_line;
use serde_json::Value;

use crate::kit::fed;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn lines(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// What a context shows, in order: calls, results with their text, and words.
#[derive(Debug, Clone, PartialEq)]
enum Shown {
    Call(String),
    Result(String, String),
    Said(Role, String),
}

/// Words of the host that a transcript does not hold, or holds in another form.
fn is_hosts(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("(host text") || text.starts_with('<') || text.trim().is_empty()
}

fn shown_item(role: Role, item: &Item<'_>) -> Option<Shown> {
    match item {
        Item::Call(call) => Some(Shown::Call(call.id.to_string())),
        Item::Result(result) => Some(Shown::Result(result.id.to_string(), result.text.to_string())),
        Item::Text(text) if !is_hosts(text) => Some(Shown::Said(role, text.to_string())),
        _ => None,
    }
}

/// The rows of the context, by the uuids that the index gives.
fn context(index: &Index, lines: &[Vec<u8>]) -> Vec<Shown> {
    let mut by_uuid = HashMap::new();
    for line in lines {
        if let Ok(Record::Row(row)) = record::read_line(Host::Claude, line)
            && let Some(uuid) = &row.uuid
            && !row.items.is_empty()
        {
            by_uuid.insert(hash(uuid.as_bytes()), row);
        }
    }
    let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
    let mut shown = Vec::new();
    for (uuid, _) in pass.rows() {
        let row = &by_uuid[&uuid];
        if !row.summary {
            shown.extend(row.items.iter().filter_map(|item| shown_item(row.role, item)));
        }
    }
    shown
}

/// A request as the host sent it: its messages read as if they were rows.
fn sent(request: &Value) -> Vec<Shown> {
    let mut shown = Vec::new();
    for message in request["messages"].as_array().unwrap() {
        if message["role"] == "system" {
            continue;
        }
        let row = serde_json::json!({"type": message["role"], "uuid": "x", "message": message});
        let line = row.to_string().into_bytes();
        let Ok(Record::Row(row)) = record::read_line(Host::Claude, &line) else { panic!("{row}") };
        shown.extend(row.items.iter().filter_map(|item| shown_item(row.role, item)));
    }
    shown
}

/// Adjacent texts of one role as one: on the wire the host joins some with newlines.
fn flat(shown: Vec<Shown>) -> Vec<Shown> {
    let mut flat: Vec<Shown> = Vec::new();
    for next in shown {
        match (flat.last_mut(), next) {
            (Some(Shown::Said(role, text)), Shown::Said(of, more)) if *role == of => {
                text.push_str(&more);
            }
            (_, next) => flat.push(next),
        }
    }
    for shown in &mut flat {
        if let Shown::Said(_, text) | Shown::Result(_, text) = shown {
            text.retain(|char| !char.is_whitespace());
            // The frame around a sub-agent's report belongs to the host and was shortened.
            if text.starts_with("[Subagenthand-back]") {
                text.truncate("[Subagenthand-back]".len());
            }
        }
    }
    flat
}

/// Context of a transcript at each of its requests: the host notes them as `api-request` rows.
fn at_requests(path: &Path) -> Vec<Vec<Shown>> {
    let lines = lines(path);
    let mut index = Index::new(Host::Claude, &Settings::default());
    let mut contexts = Vec::new();
    for line in &lines {
        let kind: Value = serde_json::from_slice(line).unwrap();
        if kind["type"] == "api-request" {
            index.settle();
            contexts.push(context(&index, &lines));
        }
        index.apply(line, 0);
    }
    contexts
}

fn claude(name: &str) -> (PathBuf, PathBuf) {
    let folder = folder("claude-code").join(name);
    let all = files(&folder, ".jsonl");
    let main = all.iter().find(|path| path.parent() == Some(folder.as_path())).unwrap();
    (folder, main.clone())
}

/// Every request of a run against the context at its time. Requests of sub-agents are held against
/// their own files.
fn check_requests(name: &str, wire: &str, skip: usize) -> usize {
    let (folder, main) = claude(name);
    let mut expected: VecDeque<_> = at_requests(&main).into_iter().skip(skip).collect();
    let mut agents: VecDeque<_> = files(&folder, ".jsonl")
        .iter()
        .filter(|path| path.to_string_lossy().contains("/subagents/"))
        .flat_map(|path| at_requests(path))
        .collect();
    let mut checked = 0;
    for request in json(&folder.join(wire)).as_array().unwrap() {
        // The host asks for its own summary over the whole context; the row of that is no request.
        if request["kind"] != "turn" {
            continue;
        }
        let number = &request["n"];
        let sent = flat(sent(request));
        let of_agent =
            agents.front().is_some_and(|agent| flat(agent.clone()).first() == sent.first());
        let queue = if of_agent { &mut agents } else { &mut expected };
        let Some(held) = queue.pop_front() else {
            panic!("{name}: request {number} has no row in the transcript");
        };
        same(&flat(held), &sent, &format!("{name}: request {number}"));
        checked += 1;
    }
    assert!(agents.is_empty(), "{name}: requests of agents are left");
    checked
}

fn same(held: &[Shown], sent: &[Shown], what: &str) {
    let differing = (0..held.len().max(sent.len())).find(|at| held.get(*at) != sent.get(*at));
    if let Some(at) = differing {
        panic!("{what}, item {at}:\nheld {:?}\nsent {:?}", held.get(at), sent.get(at));
    }
}

#[test]
fn native_compaction() {
    assert_eq!(check_requests("native-compact", "wire.json", 0), 18);
}

#[test]
fn rewrites() {
    assert_eq!(check_requests("rewrite-safe", "wire.json", 0), 18);
    assert_eq!(check_requests("rewrite-safe-resumed", "wire.json", 16), 1);
    assert_eq!(check_requests("rewrite-handles-kept", "wire.json", 0), 18);
}

#[test]
fn compaction_in_mid_turn() {
    assert_eq!(check_requests("auto-compact", "wire.json", 0), 6);
}

#[test]
fn an_interactive_session() {
    // The last request was sent after `/clear`: that is another session, in another file.
    let (folder, main) = claude("interactive-rewrite");
    let wire = json(&folder.join("wire.json"));
    let held = at_requests(&main);
    let requests = wire.as_array().unwrap();
    assert_eq!((held.len(), requests.len()), (7, 8));
    for (held, request) in held.into_iter().zip(requests) {
        let number = request["n"].to_string();
        same(&flat(held), &flat(sent(request)), &format!("request {number}"));
    }
}

/// A rewrite that keeps the host's handles: after a resume the host sends the *original* rows too,
/// because the copies' `parentUuid` leads across the boundary and their uuids are the old ones
///. We hold what the transcript's newest epoch says, which is what
/// the host sends until it is resumed; what comes back on resume is known by its ids all the same:
/// no result is missing and none is decided twice.
#[test]
fn a_rewrite_that_the_host_takes_back() {
    let (folder, main) = claude("rewrite-handles-kept");
    let lines = lines(&main);
    let index = fed(Host::Claude, &Settings::default(), &lines);
    let held = context(&index, &lines);
    let wire = json(&folder.join("wire-after-resume.json"));
    let sent = sent(&wire[0]);
    let ids = |shown: &[Shown]| -> Vec<Shown> {
        let ids = shown.iter().filter_map(|shown| match shown {
            Shown::Call(id) => Some(Shown::Call(id.clone())),
            Shown::Result(id, _) => Some(Shown::Result(id.clone(), String::new())),
            Shown::Said(..) => None,
        });
        ids.collect()
    };
    same(&ids(&held), &ids(&sent), "calls and results after the resume");
    let texts = |shown: &[Shown]| {
        shown.iter().filter(|shown| matches!(shown, Shown::Said(Role::Assistant, _))).count()
    };
    println!("assistant texts: held {}, sent {}", texts(&held), texts(&sent));
    assert!(texts(&sent) > texts(&held), "the host sends texts more than once");
}

/// A rollout with the files before it, and how its lines were skipped.
fn rollout(path: &Path) -> Index {
    let mut index = Index::new(Host::Codex, &Settings::default());
    let loaded = for_each_line(path, None, |host, offset, line| {
        assert_eq!(host, Host::Codex);
        index.apply(line, offset);
    });
    let loaded = loaded.unwrap();
    assert!(loaded.gap.is_none() && !loaded.is_torn, "{}", path.display());
    index.settle();
    for bad in [Skip::Malformed, Skip::Unknown, Skip::Odd, Skip::TooLong] {
        assert_eq!(index.facts().skipped[bad as usize], 0, "{bad:?} in {}", path.display());
    }
    index
}

fn results(index: &Index, history: History) -> Vec<String> {
    let pass = index.pass(history, Profile::Standard, &Pins::default());
    pass.iter().map(|decided| decided.id.to_owned()).collect()
}

/// The rollout of a folder whose name ends so.
fn codex(name: &str, end: &str) -> PathBuf {
    let mut all = files(&folder("codex").join(name), ".jsonl");
    all.retain(|path| path.to_string_lossy().ends_with(end));
    assert!(!all.is_empty());
    all.pop().unwrap()
}

#[test]
fn rollouts_are_read_whole() {
    for (name, whole, context) in [
        ("classic", 21, 21),
        ("code-mode", 4, 4),
        ("legacy", 14, 14),
        ("archived", 14, 14),
        ("compacted-local", 23, 0),
        ("compacted-remote", 12, 0),
        // The newest file of these: with the files that it continues.
        ("native-fork", 15, 15),
        ("revert-segment", 12, 12),
        ("subagent", 1, 1),
        ("fork-resume", 21, 21),
    ] {
        let index = rollout(&codex(name, ".jsonl"));
        let found =
            (results(&index, History::Whole).len(), results(&index, History::Context).len());
        println!("{name}: {found:?} sealed {}", index.facts().sealed);
        assert_eq!(found, (whole, context), "{name}");
        assert_eq!(index.facts().sealed, name == "compacted-remote", "{name}");
    }
}

/// What the host sent on the first turn of a fork is the fork's context, without that turn's answer.
#[test]
fn a_fork_is_what_the_host_sends() {
    let request = json(&folder("codex").join("fork-resume/request-1.json"));
    let sent = request["input"].as_array().unwrap();
    let path = codex("fork-resume", ".jsonl");
    let lines = lines(&path);
    // The forked rows stand in the last `compacted` record; what follows is the turn.
    let mut index = Index::new(Host::Codex, &Settings::default());
    let mut contexts = Vec::new();
    for line in &lines {
        let value: Value = serde_json::from_slice(line).unwrap();
        if value["payload"]["type"] == "message" && value["payload"]["role"] == "assistant" {
            index.settle();
            contexts.push(results(&index, History::Context));
        }
        index.apply(line, 0);
    }
    let outputs = sent
        .iter()
        .filter(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output")));
    let outputs: Vec<(String, String)> = outputs
        .map(|item| {
            let line = serde_json::json!({"type": "response_item", "payload": item}).to_string();
            let id = item["call_id"].as_str().unwrap().to_owned();
            let text = result_of(Host::Codex, line.as_bytes(), &id).unwrap().text.into_owned();
            (id, text)
        })
        .collect();
    let ids: Vec<String> = outputs.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(contexts.last(), Some(&ids));
    index.settle();
    let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
    for (decided, (id, text)) in pass.iter().zip(&outputs) {
        let held = result_of(Host::Codex, &lines[decided.line as usize], id).unwrap();
        assert_eq!(held.text, *text, "{id}");
    }
}

#[test]
fn what_the_host_wrote_has_the_shapes_that_it_takes() {
    let rollouts = files(&folder("codex"), ".jsonl");
    let rollouts = rollouts.iter().filter(|path| path.to_string_lossy().contains("rollout-"));
    let mut count = 0;
    for path in rollouts {
        for (line, number) in lines(path).iter().zip(1..) {
            count += 1;
            match shape::record(line) {
                Ok(()) => {}
                // What the host keeps beside a history of its own is not for others to write.
                Err(flaw) if flaw.place == "/payload/retained_context" => {}
                Err(flaw) => panic!("{}:{number}: {flaw}", path.display()),
            }
        }
    }
    assert!(count > 500, "{count}");
}
