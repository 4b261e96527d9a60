//! Recorded Codex sessions of many tools: what each call does, which results failed, and what the
//! rules make of it. `tests/fixtures/codex-tools` says how they were made.

use std::collections::BTreeMap;
use std::path::Path;

use compactd_core::escalate::{Held, Occasion, Sizes, escalate};
use compactd_core::index::{History, Index};
use compactd_core::record::Host;
use compactd_core::rules::{Class, Pins, Profile, Reason, Rule};
use compactd_core::settings::Settings;
use compactd_tests::apply::{apply, apply_escalated, normalised};
use compactd_tests::compare::{Question, result_of};
use serde_json::{Value, json};

use crate::kit::{differs, fed};

const ALL: [&str; 8] = [
    "cells",
    "direct",
    "interrupted",
    "interrupted-script",
    "read-only",
    "refused",
    "refused-script",
    "scripts",
];

fn lines(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/codex-tools");
    let bytes = std::fs::read(folder.join(name).with_extension("jsonl")).unwrap();
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Nothing is pinned or too recent but by what it is.
fn open() -> Settings {
    Settings { recent_results: 0, pin_last: 0, ..Settings::default() }
}

fn rules(index: &Index) -> BTreeMap<String, Rule> {
    let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
    let rules = pass.iter().map(|decided| (decided.id.to_owned(), decided.ruling.rule));
    rules.collect()
}

/// The calls of a recorded session: id and what was given to it.
fn calls(lines: &[Vec<u8>]) -> BTreeMap<String, String> {
    let mut calls = BTreeMap::new();
    for line in lines {
        let value: Value = serde_json::from_slice(line).unwrap();
        let item = &value["payload"];
        let input = [&item["input"], &item["arguments"]].into_iter().find_map(Value::as_str);
        if let (Some(id), Some(input)) = (item["call_id"].as_str(), input) {
            calls.insert(id.to_owned(), input.to_owned());
        }
    }
    calls
}

/// Ids of the calls whose input holds one of these, in their order.
fn holding(lines: &[Vec<u8>], marks: &[&str]) -> Vec<String> {
    let calls = calls(lines);
    let mut found = Vec::new();
    for mark in marks {
        let before = found.len();
        found.extend(
            calls.iter().filter(|(_, input)| input.contains(mark)).map(|(id, _)| id.clone()),
        );
        assert!(found.len() > before, "no call with {mark}");
    }
    found.sort();
    found.dedup();
    found
}

fn failed(lines: &[Vec<u8>]) -> Vec<String> {
    // What is an error is pinned, and nothing else is under these settings but the first message.
    let rules = rules(&fed(Host::Codex, &open(), lines));
    rules.into_iter().filter(|(_, rule)| *rule == Rule::Pinned).map(|(id, _)| id).collect()
}

#[test]
fn the_index_says_what_the_rescan_says() {
    for name in ALL {
        let lines = lines(name);
        for settings in [open(), Settings::default()] {
            let mut index = Index::new(Host::Codex, &settings);
            for (number, line) in lines.iter().enumerate() {
                index.apply(line, 0);
                index.settle();
                for question in Question::all(&settings, &Pins::default()) {
                    let difference = differs(&question, &index, &lines[..=number]);
                    assert_eq!(difference, None, "{name} after line {number}");
                }
            }
        }
    }
}

#[test]
fn failures_of_scripts() {
    let lines = lines("scripts");
    let wanted = holding(
        &lines,
        &[
            "docs/missing.md", // exit code, once in the answer, once in the event alone
            "no such line",    // a patch that does not fit
            "Z-999",           // a tool's isError, once shown, once in the event alone
            "boom_1234",
            "no_such_tool",
            "syntax error here",
            "allSettled", // one of two commands
        ],
    );
    let mut found = failed(&lines);
    // An empty script and an unknown custom tool have no word that is theirs alone.
    let nameless: Vec<String> = ["call_003100", "call_003200"].map(str::to_owned).to_vec();
    assert!(nameless.iter().all(|id| found.contains(id)), "{found:?}");
    found.retain(|id| !nameless.contains(id));
    assert_eq!(found, wanted);
}

#[test]
fn failures_of_direct_tools() {
    let lines = lines("direct");
    let wanted = holding(
        &lines,
        &[
            "exit 3",
            "no such line",
            "nothing like it",       // `apply_patch` as a shell command
            "cd src && apply_patch", // no such program
            "sys.exit(5)",           // the end of a session
            "999999",                // no such session
            "nowhere.png",
            "nonsense",
            "in_progress", // a tool that this model does not have
            "Z-999",       // a server's tool: the event says it; and none of that name
            "nothere.txt",
            "[\"bash\", \"-lc\", \"ls\"]",
        ],
    );
    let mut found = failed(&lines);
    assert!(found.contains(&"call_001800".to_owned()), "an unknown custom tool: {found:?}");
    found.retain(|id| id != "call_001800");
    assert_eq!(found, wanted);
}

#[test]
fn refusals_and_interrupts_are_failures() {
    for (name, fine) in [
        ("refused", 0),
        ("refused-script", 0),
        ("read-only", 1),
        ("interrupted", 1),
        ("interrupted-script", 0),
    ] {
        let lines = lines(name);
        let all = rules(&fed(Host::Codex, &open(), &lines));
        assert_eq!(all.len() - failed(&lines).len(), fine, "{name}: {all:?}");
    }
}

/// Ids of the results that show a file, told by what pinning it keeps.
fn showing(lines: &[Vec<u8>], path: &str) -> Vec<String> {
    let settings = open();
    let index = fed(Host::Codex, &settings, lines);
    let pinned = |pins: &Pins| -> Vec<String> {
        let pass = index.pass(History::Context, Profile::Standard, pins);
        let pinned = pass.iter().filter(|decided| decided.ruling.rule == Rule::Pinned);
        pinned.map(|decided| decided.id.to_owned()).collect()
    };
    let mut pins = Pins::default();
    let without = pinned(&pins);
    pins.files.insert(path.to_owned());
    pinned(&pins).into_iter().filter(|id| !without.contains(id)).collect()
}

#[test]
fn commands_are_tied_to_their_scripts() {
    let scripts = lines("scripts");
    let of = |path: &str| showing(&scripts, &format!("/home/dev/work/{path}"));
    // The first shows two files; of the third answer's two scripts the second shows pricing.py, and
    // the host ran them in their order.
    let cart = ["call_000100", "call_001300", "call_002700", "call_003400"];
    assert_eq!(of("src/cart.py"), cart);
    let pricing = ["call_000100", "call_000301", "call_002500", "call_002600", "call_003400"];
    assert_eq!(of("src/pricing.py"), pricing);
    assert_eq!(of("config/limits.toml"), ["call_000200", "call_002500"]);
    assert_eq!(of("README.md"), ["call_001200"]);
    // Later reads show all of an earlier one, but not of the one that shows another file too.
    let rules = rules(&fed(Host::Codex, &open(), &scripts));
    assert_eq!(rules["call_002600"], Rule::SupersededRead);
    assert_eq!(rules["call_002700"], Rule::SupersededRead);
    assert_eq!(rules["call_003400"], Rule::Superseder);
    assert_eq!(rules["call_002500"], Rule::LatestRead);
}

#[test]
fn beside_a_cell_nothing_is_sure() {
    let cells = lines("cells");
    let rules = rules(&fed(Host::Codex, &open(), &cells));
    // It goes on as cell 1; the next script ran beside it, and `wait` had what it read.
    let ids = ["call_000100", "call_000200", "call_000300"];
    assert_eq!(ids.map(|id| rules[id]), [Rule::Undecided; 3]);
    // When it is over, all is sure again: no such cell any more, and a patch told by its event.
    assert_eq!(rules["call_000400"], Rule::Pinned);
    assert_eq!(rules["call_000500"], Rule::Undecided);
    assert_ne!(rules["call_000900"], Rule::Undecided);
}

/// A session of scripts: each is what it ran, and the parts that it showed.
fn session(scripts: &[(&[&str], &[&str])]) -> Vec<Vec<u8>> {
    let item = |payload: Value| json!({"type": "response_item", "payload": payload});
    let event = |item: Value| json!({"type": "event_msg", "payload": {"type": "item_completed", "item": item}});
    let mut rows = vec![
        json!({"type": "session_meta", "payload": {"id": "t", "cwd": "/w"}}),
        item(
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}),
        ),
        item(
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}),
        ),
    ];
    for (number, (ran, shown)) in scripts.iter().enumerate() {
        let id = number.to_string();
        let js = ran.iter().find_map(|command| command.strip_prefix("js ")).unwrap_or("run()");
        rows.push(item(
            json!({"type": "custom_tool_call", "name": "exec", "call_id": id, "input": js}),
        ));
        for command in ran.iter().filter(|command| !command.starts_with("js ")) {
            rows.push(match command.strip_prefix("patch ") {
                Some(file) => event(json!({"type": "FileChange", "id": "exec-1", "status": "completed", "changes": {file: {}}})),
                None => event(json!({"type": "CommandExecution", "id": "exec-1", "cwd": "file:///w", "exit_code": 0,
                    "command": ["bash", "-lc", command], "parsed_cmd": []})),
            });
        }
        let mut parts = vec!["Script completed\nWall time 0.1 seconds\nOutput:\n".to_owned()];
        parts.extend(shown.iter().map(|text| {
            json!({"chunk_id": id, "wall_time_seconds": 0.1, "exit_code": 0, "output": text})
                .to_string()
        }));
        let parts: Vec<Value> =
            parts.iter().map(|text| json!({"type": "input_text", "text": text})).collect();
        rows.push(item(json!({"type": "custom_tool_call_output", "call_id": id, "output": parts})));
        rows.push(item(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]})));
    }
    rows.iter().map(|row| row.to_string().into_bytes()).collect()
}

fn decided(scripts: &[(&[&str], &[&str])]) -> Vec<Rule> {
    let lines = session(scripts);
    let settings = open();
    let index = fed(Host::Codex, &settings, &lines);
    for question in Question::all(&settings, &Pins::default()) {
        assert_eq!(differs(&question, &index, &lines), None);
    }
    rules(&index).into_values().collect()
}

const A: &str = "first line of a\nsecond line of a\nthe words of a_file and nothing else, so that it is long enough to go\n";
const B: &str = "first line of b\nsecond line of b\nthe words of b_file and nothing else, so that it is long enough to go\n";

/// As recorded: both calls stand first, then what the first ran and its result, then the second's.
#[test]
fn the_oldest_script_that_waits_is_the_one_that_runs() {
    let mut lines = session(&[(&["cat a.rs"], &[A]), (&["cat b.rs"], &[B])]);
    // Header, prompt and answer, then four lines each: call, command, result, words.
    let second = lines.remove(7);
    lines.remove(6);
    lines.insert(4, second);
    assert_eq!(showing(&lines, "/w/a.rs"), ["0"]);
    assert_eq!(showing(&lines, "/w/b.rs"), ["1"]);
    // One that was never answered does not wait behind a person's prompt.
    lines.retain(|line| {
        !String::from_utf8_lossy(line).contains("_output\"") || line.ends_with(b"x")
    });
    let unanswered = lines.len();
    let more = session(&[(&["cat b.rs"], &[B])]);
    lines.extend(more.iter().skip(1).map(|line| {
        String::from_utf8_lossy(line).replace("\"call_id\":\"0\"", "\"call_id\":\"9\"").into_bytes()
    }));
    assert!(lines.len() > unanswered);
    assert_eq!(showing(&lines, "/w/b.rs"), ["9"]);
}

/// One result that shows two files goes only when both are shown again, and stays while it is the
/// last to show one of them.
#[test]
fn several_files_of_one_script() {
    use Rule::{LatestRead, SupersededRead, Superseder};
    let both: (&[&str], &[&str]) = (&["cat a.rs", "cat b.rs"], &[A, B]);
    let turned: (&[&str], &[&str]) = (&["cat b.rs", "cat a.rs"], &[B, A]);
    let a: (&[&str], &[&str]) = (&["cat a.rs"], &[A]);
    let b: (&[&str], &[&str]) = (&["cat b.rs"], &[B]);
    let git: (&[&str], &[&str]) = (&["git checkout ."], &[]);
    let patch: (&[&str], &[&str]) = (&["patch /w/b.rs"], &["{}"]);
    assert_eq!(decided(&[both, both]), [SupersededRead, Superseder]);
    // Which part is of which file is not said, and does not matter.
    assert_eq!(decided(&[both, turned]), [SupersededRead, Superseder]);
    // Shown again one by one.
    assert_eq!(decided(&[both, a, b]), [SupersededRead, Superseder, Superseder]);
    assert_eq!(decided(&[both, a, both]), [SupersededRead, SupersededRead, Superseder]);
    // One of them is not: neither read stands in for the other.
    assert_eq!(decided(&[both, a]), [LatestRead, LatestRead]);
    assert_eq!(decided(&[a, both]), [SupersededRead, Superseder]);
    // It changed in between, whichever of the two was read before that.
    for write in [git, patch] {
        assert!(!decided(&[both, write, both]).contains(&SupersededRead));
        assert!(!decided(&[both, a, write, b]).contains(&SupersededRead));
    }
    // Something else stands beside the files: it must be shown again too.
    let more: (&[&str], &[&str]) = (&["cat a.rs", "git status"], &[A, "on branch main"]);
    assert_eq!(decided(&[more, a]), [Rule::Unreferenced, LatestRead]);
    assert_eq!(decided(&[more, more]), [SupersededRead, Superseder]);
    // The words of two files in one part are found only together.
    let joined = [A, B].concat();
    let one: (&[&str], &[&str]) = (&["cat a.rs", "cat b.rs"], &[&joined]);
    assert!(!decided(&[one, a, b]).contains(&SupersededRead));
    assert_eq!(decided(&[one, one]), [SupersededRead, Superseder]);
}

/// Above the budget a script that only read goes as a read; beside other output it is cut as that.
#[test]
fn a_script_that_only_read_is_a_read() {
    let class = |ran: &[&str]| {
        let long = A.repeat(8);
        let shown: &[&str] = &[&long];
        let filler: (&[&str], &[&str]) = (&["true"], &["done with it"]);
        let lines = session(&[(ran, shown), filler, filler, filler]);
        let index = fed(Host::Codex, &open(), &lines);
        let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
        assert_eq!(pass.get(0).unwrap().ruling.rule, Rule::LatestRead, "{ran:?}");
        let sizes = Sizes { budget: Some(1), ..Sizes::of(index.ratio(), pass.chars()) };
        let cuts = escalate(&pass, &Held::whole(&pass), &sizes, Occasion::default()).results;
        cuts.iter().find(|(ordinal, _)| *ordinal == 0).map(|(_, cut)| cut.ruling.reason)
    };
    assert_eq!(class(&["cat a.rs", "cat b.rs"]), Some(Reason::OverBudget(Class::UnusedRead)));
    assert_eq!(class(&["cat a.rs", "make"]), Some(Reason::OverBudget(Class::Shell)));
    // A tool of a server cannot be asked again as a file can.
    assert_eq!(class(&["js tools.mcp__inventory__lookup({})", "cat a.rs"]), None);
}

/// Free-form inputs, and arguments: what is left is what the host sends again, and reads.
#[test]
fn inputs_that_are_shortened_stay_inputs() {
    let long = "// a comment of the script\n".repeat(30);
    let js = format!("js {long}run()");
    let filler: (&[&str], &[&str]) = (&["true"], &["done with it"]);
    let talk = "words that nobody needs any more ".repeat(9);
    let lines = session(&[(&[&js, "true"], &[&talk]), filler, filler]);
    let mut with_arguments = lines;
    let arguments = json!({"cmd": format!("true {long}"), "n": 3}).to_string();
    for payload in [
        json!({"type": "function_call", "name": "exec_command", "call_id": "x", "arguments": arguments}),
        json!({"type": "function_call_output", "call_id": "x", "output": talk}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]}),
    ] {
        let row = json!({"type": "response_item", "payload": payload});
        with_arguments.push(row.to_string().into_bytes());
    }
    let lines = normalised(Host::Codex, &with_arguments);
    let index = fed(Host::Codex, &open(), &lines);
    let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
    let after = apply(Host::Codex, &lines, &pass);
    let calls = calls(&after);
    let script = &calls["0"];
    assert!(script.starts_with("// a comment") && script.ends_with(" chars]"), "{script}");
    assert!(script.chars().count() < 260);
    let arguments: Value = serde_json::from_str(&calls["x"]).unwrap();
    let cmd = arguments["cmd"].as_str().unwrap();
    assert!(cmd.starts_with("true //") && cmd.ends_with(" chars]") && arguments["n"] == 3, "{cmd}");
    // A patch that names a file behind what would stay is not cut.
    let patch = format!("*** Begin Patch\n*** Update File: a.rs\n{long}*** Update File: b.rs\n");
    let js = format!("js await tools.apply_patch({});", json!(patch));
    let lines = normalised(Host::Codex, &session(&[(&[&js], &[&talk]), filler, filler]));
    let index = fed(Host::Codex, &open(), &lines);
    let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
    let after = apply(Host::Codex, &lines, &pass);
    assert_ne!(after, lines);
    assert_eq!(self::calls(&after)["0"], self::calls(&lines)["0"]);
}

/// A copy of a result in the history that a compaction leaves stands without the host's lines about
/// it, and is still what it was.
#[test]
fn a_copy_keeps_what_ran() {
    for name in ALL {
        let mut lines = lines(name);
        let before = rules(&fed(Host::Codex, &open(), &lines));
        let items: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_slice::<Value>(line).unwrap())
            .filter(|value| value["type"] == "response_item")
            .map(|value| value["payload"].clone())
            .collect();
        let compacted = json!({"type": "compacted",
            "payload": {"message": "", "window_number": 1, "replacement_history": items}});
        lines.push(compacted.to_string().into_bytes());
        let after = rules(&fed(Host::Codex, &open(), &lines));
        assert_eq!(before, after, "{name}");
    }
}

/// What `notify` says comes as a second result of its call: the first one counts.
#[test]
fn a_call_may_have_two_results() {
    let lines = lines("scripts");
    let id = holding(&lines, &["notify("]).pop().unwrap();
    let texts: Vec<String> = lines
        .iter()
        .filter_map(|line| result_of(Host::Codex, line, &id))
        .map(|result| result.body().to_owned())
        .collect();
    assert_eq!(texts.len(), 2);
    assert_eq!(texts[1], "half way there 4711");
    let index = fed(Host::Codex, &open(), &lines);
    let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
    let at = pass.ordinal(&id).unwrap();
    let line = &lines[pass.get(at).unwrap().line as usize];
    assert_eq!(result_of(Host::Codex, line, &id).unwrap().body(), texts[0]);
}

/// Far above the budget: what a session, an agent, a server or a patch said stays, and so does all
/// that is no result, no input of a call and no text of the model.
#[test]
fn over_the_budget_the_rest_is_left_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/codex");
    let mut sessions: Vec<Vec<Vec<u8>>> = ALL.iter().map(|name| lines(name)).collect();
    for name in ["classic", "code-mode", "compacted-remote", "subagent"] {
        let path = folder.join(name).join("sessions/2026/11/30");
        for file in std::fs::read_dir(path).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            sessions.push(bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect());
        }
    }
    let (mut cut, mut texts) = (0, 0);
    for lines in sessions {
        let lines = normalised(Host::Codex, &lines);
        let index = fed(Host::Codex, &open(), &lines);
        let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
        let sizes = Sizes { budget: Some(1), ..Sizes::of(index.ratio(), pass.chars()) };
        let escalation = escalate(&pass, &Held::whole(&pass), &sizes, Occasion::default());
        for (_, decided) in &escalation.results {
            let shielded =
                ["write_stdin", "apply_patch", "spawn_agent", "wait", "mcp__", "view_image"];
            assert!(!shielded.iter().any(|tool| decided.tool.contains(tool)), "{decided:?}");
        }
        cut += escalation.results.len();
        texts += escalation.texts.len();
        let after = apply_escalated(Host::Codex, &lines, &pass, &escalation);
        for (before, after) in lines.iter().zip(&after).filter(|(before, after)| before != after) {
            let [before, after] =
                [before, after].map(|line| serde_json::from_slice::<Value>(line).unwrap());
            assert_eq!(before["type"], "response_item", "{before}");
            let item = &before["payload"];
            let kind = item["type"].as_str().unwrap();
            let may =
                kind.ends_with("_output") || kind.ends_with("_call") || item["role"] == "assistant";
            assert!(may, "{before}");
            assert_eq!(item["call_id"], after["payload"]["call_id"]);
        }
    }
    println!("{cut} results and {texts} texts cut over the budget");
    assert!(cut >= 10, "{cut}");
}
