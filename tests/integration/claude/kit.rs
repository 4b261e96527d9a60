//! A stage for the plugin in the real host: home, API, daemon; and what a rewrite must look like.

use std::collections::BTreeMap;

use compactd_core::note;
use compactd_tests::harness::host::{Host, Kind, MockApi, Run, Session, claude, wire};
use compactd_tests::harness::{Home, Process};
use serde_json::{Value, json};

use super::plugin;

/// Everything that a session with the plugin needs. Fields are dropped in this order.
pub(super) struct Stage {
    pub(super) daemon: Option<Process>,
    pub(super) host: Host,
    pub(super) api: MockApi,
    pub(super) home: Home,
}

impl Stage {
    /// With a daemon that runs; nothing without the host.
    pub(super) fn new() -> Option<Self> {
        let mut stage = Self::without_daemon()?;
        stage.daemon = Some(Process::start(&stage.home, &[]));
        Some(stage)
    }

    /// Without a daemon, and hooks that start none.
    pub(super) fn without_daemon() -> Option<Self> {
        let claude = claude()?;
        let (home, api) = (Home::new(), MockApi::start([]));
        home.put_shim();
        let host = Host::new(&claude, &home, &api)
            .with_plugin(&plugin())
            .with_env("COMPACTD_HOOK_START", "0");
        Some(Self { daemon: None, host, api, home })
    }

    /// What the daemon's newest answer for a session says of each result, by id: `keep`, `truncate` or
    /// `drop`.
    #[track_caller]
    pub(super) fn decisions(&self, session: &str) -> BTreeMap<String, String> {
        let path = format!("/v1/sessions/{session}/passes/last");
        let pass = self.daemon.as_ref().unwrap().client.get(&path).good();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let results = pass["results"].as_array().unwrap();
        results.iter().map(|result| (text(&result["id"]), text(&result["decision"]))).collect()
    }

    /// Compacts by hand and says one more prompt. Gives the decisions, the request before the
    /// compaction and the one behind it.
    #[track_caller]
    pub(super) fn compact(&self, session: &mut Session) -> Compacted {
        let before = last(session).clone();
        let events = session.prompt("/compact");
        assert!(events.iter().any(|event| event["compact_result"] == "success"), "{events:?}");
        let decisions = self.decisions(&session.id);
        session.prompt("What now?");
        Compacted { decisions, before, after: last(session) }
    }
}

/// The session's newest request for its next message.
#[track_caller]
pub(super) fn last(session: &Session) -> Value {
    let turns = session.api().of_kind(Kind::Turn);
    let mut own = turns.iter().rev().filter(|request| {
        request.agent.is_none() && request.session.as_deref().is_none_or(|id| id == session.id)
    });
    own.next().expect("a request").body.clone()
}

/// A compaction as the wire shows it.
pub(super) struct Compacted {
    pub(super) decisions: BTreeMap<String, String>,
    pub(super) before: Value,
    pub(super) after: Value,
}

impl Compacted {
    /// That the request behind it holds exactly what the one before held, but for what was decided:
    /// every call, every text and every result in its old order, kept ones byte for byte. Gives the
    /// ids of what went.
    #[track_caller]
    pub(super) fn assert_exact(&self) -> Vec<String> {
        let wanted: Vec<Value> = skeleton(&self.before)
            .into_iter()
            .map(|mut block| {
                if block["kind"] == "result" {
                    let text = block["text"].as_str().unwrap();
                    let id = block["id"].as_str().unwrap();
                    block["text"] = json!(left(text, self.decisions.get(id)));
                }
                block
            })
            .collect();
        let mut got = skeleton(&self.after);
        got.truncate(wanted.len());
        for (at, (wanted, got)) in wanted.iter().zip(&got).enumerate() {
            assert_eq!(wanted, got, "block {at} of\n{}", wire::outline(&self.after));
        }
        assert_eq!(wanted.len(), got.len(), "{}", wire::outline(&self.after));
        let gone = self.decisions.iter().filter(|(_, decision)| *decision != "keep");
        gone.map(|(id, _)| id.clone()).collect()
    }
}

/// What stands in the place of a result's text.
fn left(text: &str, decision: Option<&String>) -> String {
    match decision.map(String::as_str) {
        Some("drop") => note::dropped(text.chars().count()),
        Some("truncate") => note::cut(text, 200).unwrap().left,
        _ => match text.strip_suffix("[image]") {
            Some(kept) => format!("{kept}{}", note::NON_TEXT),
            None => text.to_owned(),
        },
    }
}

/// What a session's messages say, without what the host adds to them by itself: the prompts, the
/// texts, the calls and the results, in order.
pub(super) fn skeleton(body: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or("?");
        for block in wire::blocks(message) {
            match block["type"].as_str() {
                Some("text") if role == "system" => {}
                Some("text") => {
                    let text = block["text"].as_str().unwrap();
                    // What the host says about its commands and itself comes and goes as it likes.
                    let hosts = ["<system-reminder>", "<local-command-", "<command-name>"];
                    if !hosts.iter().any(|tag| text.starts_with(tag)) {
                        out.push(json!({"kind": "text", "role": role, "text": text}));
                    }
                }
                Some("tool_use") => out.push(json!({"kind": "call", "id": block["id"],
                    "text": {"name": block["name"], "input": block["input"]}})),
                Some("tool_result") => out.push(json!({"kind": "result",
                    "id": block["tool_use_id"], "is_error": block["is_error"] == true,
                    "text": wire::result_text(&block["content"])})),
                _ => {}
            }
        }
    }
    out
}

/// That no summary was asked for.
#[track_caller]
pub(super) fn assert_no_summary(run: &Run) {
    assert!(run.of_kind(Kind::Summary).is_empty(), "{}", wire::outlines(&run.requests));
}

/// Ids of the results that are notes of ours on the wire, and the notes.
pub(super) fn notes(body: &Value) -> BTreeMap<String, String> {
    let ours =
        |text: &str| text.contains(" by compactd: ") || text.contains(" removed by compactd;");
    let results = wire::results(body).into_iter();
    results.filter(|sent| ours(&sent.text)).map(|sent| (sent.id, sent.text)).collect()
}
