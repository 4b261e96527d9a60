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
            .with_plugin(&plugin(&home))
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
        let (before, answered) = (last(session), answer(&session.events));
        let events = session.prompt("/compact");
        assert!(events.iter().any(|event| event["compact_result"] == "success"), "{events:?}");
        let decisions = self.decisions(&session.id);
        session.prompt("What now?");
        Compacted::by_hand(decisions, before, last(session), &answered, "What now?")
    }
}

/// The newest text of the session's model.
#[track_caller]
fn answer(events: &[Value]) -> String {
    let own = |event: &&Value| {
        event["type"] == "assistant" && event["parent_tool_use_id"].as_str().is_none()
    };
    let newest = events.iter().rev().find(own).expect("an answer");
    wire::all_text(&newest["message"])
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
    /// What was said between the two requests, as [`said`] gives it.
    pub(super) between: Vec<Value>,
}

impl Compacted {
    /// By hand: between the two are the model's answer, the host's echo of the command and the next
    /// prompt.
    pub(super) fn by_hand(
        decisions: BTreeMap<String, String>,
        before: Value,
        after: Value,
        answer: &str,
        prompt: &str,
    ) -> Self {
        let between = vec![
            json!({"kind": "text", "role": "assistant", "text": answer}),
            json!({"kind": "echo", "text": "<command-name>/compact"}),
            json!({"kind": "echo", "text": "<local-command-stdout>Compacted"}),
            json!({"kind": "text", "role": "user", "text": prompt}),
        ];
        Self { decisions, before, after, between }
    }

    /// That the request behind it holds exactly what the one before held, but for what was decided,
    /// and what was said since: every call, every text and every result in its old order, kept ones
    /// byte for byte, and nothing else. What the host itself had told the model is there too. Gives
    /// the ids of what went.
    #[track_caller]
    pub(super) fn assert_exact(&self) -> Vec<String> {
        let before = said(&self.before).into_iter().map(|block| self.decided(block));
        let wanted: Vec<Value> = before.chain(self.between.iter().cloned()).collect();
        let told = reminders(&self.before);
        let mut carried = Vec::new();
        let mut got = said(&self.after);
        // The host's words of before may be carried as texts of their own.
        got.retain(|block| {
            let text = block["text"].as_str().unwrap_or_default();
            let is_carried = block["kind"] == "text"
                && block["role"] == "user"
                && !wanted.contains(block)
                && told.iter().any(|told| told.contains(bare(text)));
            if is_carried {
                carried.push(bare(text).to_owned());
            }
            !is_carried
        });
        let outline = || wire::outline(&self.after);
        for at in 0..wanted.len().max(got.len()) {
            let (wanted, got) = (wanted.get(at), got.get(at));
            let is_echoed = |wanted: &Value, got: &Value| {
                let text = |block: &Value| block["text"].as_str().unwrap_or_default().to_owned();
                wanted["kind"] == "echo"
                    && got["kind"] == "echo"
                    && text(got).starts_with(&text(wanted))
            };
            let fits = wanted == got
                || wanted.zip(got).is_some_and(|(wanted, got)| is_echoed(wanted, got));
            assert!(fits, "block {at}: {wanted:#?} became {got:#?} in\n{}", outline());
        }
        carried.extend(reminders(&self.after));
        assert_told(&told, &carried, outline);
        let gone = self.decisions.iter().filter(|(_, decision)| *decision != "keep");
        gone.map(|(id, _)| id.clone()).collect()
    }

    /// A block as it must be now.
    fn decided(&self, mut block: Value) -> Value {
        if block["kind"] == "result" {
            let text = block["text"].as_str().unwrap();
            let id = block["id"].as_str().unwrap();
            block["text"] = json!(left(text, self.decisions.get(id)));
        }
        block
    }
}

/// That the host's words of before are there, none more often than before.
#[track_caller]
fn assert_told(before: &[String], after: &[String], outline: impl Fn() -> String) {
    let is_fleeting = |text: &str| FLEETING.iter().any(|kind| text.contains(kind));
    let count = |texts: &[String], wanted: &str| -> usize {
        texts.iter().map(|text| text.matches(wanted).count()).sum()
    };
    for text in before.iter().filter(|text| !is_fleeting(text)) {
        // One that several were joined in may be carried in parts.
        let is_there = count(after, text) > 0
            || text.split("\n\n").all(|part| part.trim().is_empty() || count(after, part) > 0);
        assert!(is_there, "the host's words are gone: {text:?} in\n{}", outline());
    }
    for text in after.iter().filter(|text| !is_fleeting(text)) {
        let (was, is) = (count(before, text), count(after, text));
        assert!(is <= was, "{was} times before, {is} times now: {text:?} in\n{}", outline());
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

/// What a session's messages say: the prompts, the texts, the calls, the results and the host's echo
/// of commands, in order. Its other words are [`reminders`].
pub(super) fn said(body: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or("?");
        for block in wire::blocks(message) {
            match block["type"].as_str() {
                Some("text") => {
                    let text = block["text"].as_str().unwrap();
                    if ECHO.iter().any(|tag| text.starts_with(tag)) {
                        out.push(json!({"kind": "echo", "text": plain(text)}));
                    } else if !is_reminder(role, text) && !text.starts_with(CAVEAT) {
                        out.push(json!({"kind": "text", "role": role, "text": text}));
                    }
                }
                Some("tool_use") => out.push(json!({"kind": "call", "id": block["id"],
                    "text": {"name": block["name"], "input": block["input"]}})),
                Some("tool_result") => out.push(json!({"kind": "result",
                    "id": block["tool_use_id"], "is_error": block["is_error"] == true,
                    "text": wire::result_text(&block["content"])})),
                // Thoughts do not outlive a compaction.
                Some("thinking" | "redacted_thinking") => {}
                kind => panic!("a block of kind {kind:?}"),
            }
        }
    }
    out
}

/// The host's echo of a command.
const ECHO: [&str; 2] = ["<command-name>", "<local-command-stdout>"];

/// What the host puts before an echo, once or more often as it likes.
const CAVEAT: &str = "<local-command-caveat>";

/// By these words those texts of the host are known that it says again by itself when they are gone,
/// or that were of the moment.
const FLEETING: [&str; 0] = [];

/// Without the colours that the host prints on a screen.
fn plain(text: &str) -> String {
    text.replace("\u{1b}[2m", "").replace("\u{1b}[22m", "")
}

fn is_reminder(role: &str, text: &str) -> bool {
    role == "system" || text.starts_with("<system-reminder>")
}

/// Without the tags that the host puts around its words.
fn bare(text: &str) -> &str {
    let inner = text.trim().strip_prefix("<system-reminder>").unwrap_or(text).trim();
    inner.strip_suffix("</system-reminder>").unwrap_or(inner).trim()
}

/// What the host itself tells the model, in order, without tags.
pub(super) fn reminders(body: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or("?");
        let blocks = wire::blocks(message).into_iter();
        let texts = blocks.filter_map(|block| block["text"].as_str().map(str::to_owned));
        let own = texts.filter(|text| is_reminder(role, text));
        out.extend(own.map(|text| bare(&text).to_owned()));
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

/// What the kit must not let pass: each of these is a compaction gone wrong.
#[test]
fn a_compaction_that_is_not_exact_is_told() {
    let said = |role: &str, texts: &[&str]| {
        let blocks: Vec<_> =
            texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
        json!({"role": role, "content": blocks})
    };
    let result = |text: &str| {
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": text},
            {"type": "text", "text": "<system-reminder>\nA hook said alpha.\n</system-reminder>"}]})
    };
    let call = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "x"}}]});
    let before = json!({"messages": [said("user", &["Mend it."]),
        said("system", &["The folder is /w."]), call, result("0123")]});
    let echo = [
        CAVEAT,
        "<command-name>/compact</command-name>",
        "<local-command-stdout>Compacted </local-command-stdout>",
        "What now?",
    ];
    let dropped = note::dropped(4);
    let good = json!({"messages": [said("user", &["Mend it."]),
        said("system", &["The folder is /w."]), call, result(&dropped),
        said("assistant", &["Done."]), said("user", &echo)]});
    let decisions = BTreeMap::from([("toolu_1".to_owned(), "drop".to_owned())]);
    let is_exact = |after: &Value| {
        let decisions = decisions.clone();
        let (before, after) = (before.clone(), after.clone());
        let compacted = Compacted::by_hand(decisions, before, after, "Done.", "What now?");
        std::panic::catch_unwind(|| compacted.assert_exact()).is_ok()
    };
    assert!(is_exact(&good));
    let mut carried = good.clone();
    carried["messages"][3]["content"][1]["text"] = json!("A hook said alpha.");
    assert!(is_exact(&carried), "without its tags");
    let wrong: [fn(&mut Value); 8] = [
        |after| after["messages"][3]["content"] = json!([after["messages"][3]["content"][0]]),
        |after| after["messages"][1]["content"] = json!([]),
        |after| {
            let again = after["messages"][1].clone();
            after["messages"].as_array_mut().unwrap().push(again);
        },
        |after| {
            let again = after["messages"][3]["content"][1].clone();
            after["messages"][5]["content"].as_array_mut().unwrap().push(again);
        },
        |after| {
            let again = after["messages"][0].clone();
            after["messages"].as_array_mut().unwrap().push(again);
        },
        |after| after["messages"][3]["content"][0]["content"] = json!("0123"),
        |after| after["messages"][4]["content"][0]["text"] = json!("Done. Done."),
        |after| {
            let more = json!({"type": "text", "text": "<local-command-stdout>x"});
            after["messages"][5]["content"].as_array_mut().unwrap().push(more);
        },
    ];
    for (number, change) in wrong.iter().enumerate() {
        let mut after = good.clone();
        change(&mut after);
        assert!(!is_exact(&after), "change {number} passes");
    }
}
