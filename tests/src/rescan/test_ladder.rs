//! Every rule of the ladder, and what is left (§4 to §7).

use serde_json::json;

use super::test_kit::{
    Claude, answer, call, codex_call, codex_output, codex_says, codex_user, decision, open_options,
    result, rule, run,
};
use super::{CallFate, Decision, Host, Options, Profile};

const LINE: &str = "a line that is long enough to be recognised as a quote";

#[test]
fn pinned() {
    let mut session = Claude::default();
    session.bash("a", "ls", "x");
    session.bash("b", "ls", "x");
    session.calls("c", "Bash", json!({"command": "ls"}));
    session.user(json!([{"type": "tool_result", "tool_use_id": "c", "content": "x",
        "is_error": true}]));
    session.bash("d", "ls", "x");
    session.read("e", "/w/src/a.rs", "x");
    session.read("f", "/w/src/a.rs", "y");
    session.says("done");
    let mut options = open_options();
    options.pinned_ids.insert("d".to_owned());
    options.pinned_files.insert("src/a.rs".to_owned());
    let outcome = session.run(&options);
    assert_eq!(rule(&outcome, "a"), "unreferenced");
    assert_eq!(rule(&outcome, "b"), "unreferenced");
    for id in ["c", "d", "e", "f"] {
        assert_eq!(rule(&outcome, id), "pinned", "{id}");
    }
    let outcome = session.run(&Options { pin_last: 3, ..open_options() });
    assert_eq!(rule(&outcome, "e"), "unreferenced");
    assert_eq!(rule(&outcome, "f"), "pinned");
}

#[test]
fn the_first_message_is_pinned() {
    let mut session = Claude::default();
    session.block("m", call("a", "Bash", json!({"command": "ls"})));
    // The result is message 1, so only a user row in front can make it message 0: none can.
    session.answers("a", "x");
    assert_eq!(rule(&session.open(), "a"), "unreferenced");
}

#[test]
fn a_stub_pins_the_read_it_points_to() {
    let mut session = Claude::new();
    session.read("a", "/w/a.rs", "one");
    session.read("b", "/w/a.rs", "two");
    session.read("c", "/w/a.rs", "File unchanged since last read. Refer to it.");
    session.read("d", "/w/a.rs", "Wasted call — file unchanged since your last Read.");
    let outcome = session.open();
    assert_eq!(rule(&outcome, "a"), "unreferenced");
    for id in ["b", "c", "d"] {
        assert_eq!(rule(&outcome, id), "pinned", "{id}");
    }
}

#[test]
fn quoted_results_stay() {
    let quoted = |text: &str, said: &str| {
        let mut session = Claude::new();
        session.bash("a", "ls", text);
        session.says(said);
        rule(&session.open(), "a")
    };
    assert_eq!(quoted(&format!("x\n  {LINE} \ny"), &format!("so:\n> 1. `{LINE}`")), "never_drop");
    assert_eq!(quoted(&format!("x {LINE}"), LINE), "unreferenced");
    let short = &LINE[..39];
    assert_eq!(quoted(short, short), "unreferenced");
    let enough = "forty characters, and not a single more.";
    assert_eq!(enough.len(), 40);
    assert_eq!(quoted(enough, enough), "never_drop");
}

#[test]
fn a_quote_must_be_in_a_later_message() {
    let mut session = Claude::new();
    session.block("m", json!({"type": "text", "text": LINE}));
    session.block("m", call("a", "Bash", json!({"command": "ls"})));
    session.answers("a", LINE);
    session.block("m", json!({"type": "text", "text": LINE}));
    assert_eq!(rule(&session.open(), "a"), "unreferenced");
}

#[test]
fn rule_words_keep_the_result_before_them() {
    let said = |text: &str| {
        let mut session = Claude::new();
        session.bash("a", "ls", "x");
        session.says(text);
        rule(&session.open(), "a")
    };
    for text in ["We MUST stop", "never.", "Don't", "don’t", "(always)", "do not"] {
        assert_eq!(said(text), "never_drop", "{text}");
    }
    for text in ["mustard", "do  not", "nevertheless", "dont"] {
        assert_eq!(said(text), "unreferenced", "{text}");
    }
    let mut session = Claude::new();
    session.bash("a", "ls", "x");
    session.calls("b", "Bash", json!({"command": "pwd"}));
    session.says("you must");
    session.answers("b", "x");
    let outcome = session.open();
    assert_eq!(rule(&outcome, "a"), "never_drop");
    session.says("we");
    assert_eq!(rule(&session.open(), "b"), "unreferenced");
    let mut session = Claude::new();
    session.bash("a", "ls", "x");
    session.bash("b", "ls", "x");
    session.says(" \n");
    session.says("you must");
    let outcome = session.open();
    assert_eq!(rule(&outcome, "a"), "unreferenced");
    assert_eq!(rule(&outcome, "b"), "never_drop");
}

#[test]
fn superseded_reads() {
    let mut session = Claude::new();
    session.read("a", "/w/a.rs", "     2\ttwo\n     3\tthree  \n");
    session.bash("x", "cat b.txt > c.txt", "");
    session.read(
        "b",
        "/w/a.rs",
        "1→one\n2→two\n3→three\n4→four\n<system-reminder>\nx\n</system-reminder>",
    );
    session.read("c", "/w/a.rs", "1→one\n2→two");
    let outcome = session.open();
    assert_eq!(rule(&outcome, "a"), "superseded_read");
    assert_eq!(rule(&outcome, "b"), "superseder");
    assert_eq!(rule(&outcome, "c"), "latest_read");
    assert_eq!(result(&outcome, "a").call, CallFate::Kept);
    assert_eq!(
        result(&outcome, "a").left.as_deref(),
        Some("[output removed by compactd: 26 chars; re-run the call to see it]")
    );
}

#[test]
fn a_write_between_separates_reads() {
    let between = |tool: &str, input: serde_json::Value, error: bool| {
        let mut session = Claude::new();
        session.read("a", "/w/a.rs", "one\ntwo");
        session.calls("x", tool, input);
        session.user(json!([{"type": "tool_result", "tool_use_id": "x", "content": "ok",
            "is_error": error}]));
        session.read("b", "/w/a.rs", "one\ntwo");
        rule(&session.open(), "a")
    };
    let edit = json!({"file_path": "/w/a.rs", "old_string": "", "new_string": ""});
    assert_eq!(between("Edit", edit.clone(), false), "unreferenced");
    assert_eq!(between("Edit", edit, true), "superseded_read");
    assert_eq!(between("Edit", json!({"file_path": "/other/a.rs"}), false), "unreferenced");
    assert_eq!(between("Edit", json!({"file_path": "/w/b.rs"}), false), "superseded_read");
    let shell = json!({"command": "sed -i s/x/y/ a.rs"});
    assert_eq!(between("Bash", shell, true), "unreferenced");
    assert_eq!(between("Bash", json!({"command": "git stash"}), false), "unreferenced");
}

#[test]
fn a_write_takes_effect_at_its_result() {
    let mut session = Claude::new();
    session.calls("x", "Edit", json!({"file_path": "/w/a.rs"}));
    session.read("a", "/w/a.rs", "one");
    session.answers("x", "ok");
    session.read("b", "/w/a.rs", "one");
    assert_eq!(rule(&session.open(), "a"), "unreferenced");
}

#[test]
fn a_read_without_lines_is_none() {
    let mut session = Claude::new();
    session.read("a", "/w/a.rs", "one");
    session.read("b", "/w/a.rs", " \n\n");
    assert_eq!(rule(&session.open(), "a"), "latest_read");
}

fn referenced_by(text: &str, said: &str) -> &'static str {
    let mut session = Claude::new();
    session.bash("a", "run job_name", text);
    session.says(said);
    rule(&session.open(), "a")
}

#[test]
fn references() {
    assert_eq!(referenced_by("see foo_bar", "so foo_bar"), "referenced");
    assert_eq!(referenced_by("see foo_bar", "so foo_baz"), "unreferenced");
    assert_eq!(referenced_by("see job_name", "so job_name"), "unreferenced");
    let mut session = Claude::new();
    session.bash("a", "run", "see foo_bar");
    session.user(json!("foo_bar"));
    session.bash("b", "grep foo_bar", "");
    assert_eq!(rule(&session.open(), "a"), "referenced");
    session.rows.truncate(4);
    assert_eq!(rule(&session.open(), "a"), "unreferenced");
}

#[test]
fn a_use_must_be_behind_and_in_a_later_message() {
    let mut session = Claude::new();
    session.block("m", call("a", "Bash", json!({"command": "one"})));
    session.block("m", call("b", "Bash", json!({"command": "two"})));
    session.answers("a", "foo_bar");
    session.block("m", call("c", "Bash", json!({"command": "foo_bar"})));
    session.user(json!([answer("b", "x"), answer("c", "x")]));
    assert_eq!(rule(&session.open(), "a"), "unreferenced");
}

#[test]
fn generic_terms_decide_nothing() {
    let mut session = Claude::new();
    for number in 0..10 {
        session.bash(&format!("r{number}"), "run", "see foo_bar");
    }
    session.says("so foo_bar");
    assert_eq!(rule(&session.open(), "r0"), "referenced");
    // The eleventh makes it generic, even though its own call holds the term.
    session.bash("last", "run foo_bar", "see foo_bar");
    assert_eq!(rule(&session.open(), "r0"), "unreferenced");
}

#[test]
fn recent_and_undecided() {
    let mut session = Claude::new();
    session.calls("o", "Read", json!({}));
    session.user(json!([{"type": "tool_result", "tool_use_id": "o",
        "content": [{"type": "image"}]}]));
    session.calls("p", "Read", json!({}));
    session.user(json!([{"type": "tool_result", "tool_use_id": "p",
        "content": [{"type": "image"}, {"type": "text", "text": "foo_bar"}]}]));
    session.bash("e", "run", "");
    session.bash("a", "run", "x");
    for number in 0..10 {
        session.bash(&format!("r{number}"), "run", "x");
    }
    let outcome = session.run(&Options { recent_results: 10, ..open_options() });
    assert_eq!(rule(&outcome, "o"), "undecided");
    assert_eq!(rule(&outcome, "p"), "unreferenced");
    assert_eq!(rule(&outcome, "e"), "undecided");
    assert_eq!(rule(&outcome, "a"), "unreferenced");
    assert_eq!(rule(&outcome, "r0"), "too_recent");
    let dropped = result(&outcome, "a");
    assert_eq!((dropped.decision, dropped.call), (Decision::Drop, CallFate::Removed));
    assert_eq!(dropped.left, None);
}

#[test]
fn rerunnable_calls_are_cut() {
    let cut = |command: &str, text: &str| {
        let mut session = Claude::new();
        session.bash("a", command, text);
        session.says("so foo_bar");
        let outcome = session.open();
        (rule(&outcome, "a"), result(&outcome, "a").left.clone())
    };
    let text = format!("foo_bar é{}", "x".repeat(300));
    let note = "[output cut by compactd: 109 of 309 chars removed; re-run the call to see it]";
    let left = format!("foo_bar é{}\n{note}", "x".repeat(191));
    assert_eq!(cut("ls", &text), ("rerunnable", Some(left)));
    assert_eq!(cut("find", &text), ("referenced", None));
    assert_eq!(cut("ls", &text[..270]), ("referenced", None));
    assert_eq!(cut("cargo test", &text).0, "rerunnable");
    assert_eq!(cut("cargo test", &format!("{text}\n1 failed")).0, "referenced");
}

#[test]
fn decided_by_an_earlier_pass() {
    let mut session = Claude::new();
    let note = "[output removed by compactd: 4000 chars; re-run the call to see it]";
    session.read("a", "/w/a.rs", "one");
    session.read("b", "/w/a.rs", note);
    session.read("c", "/w/a.rs", &format!("{note} "));
    session.bash(
        "d",
        "ls",
        "foo\n[output cut by compactd: 2 of 5 chars removed; re-run the call to see it]",
    );
    let outcome = session.open();
    assert_eq!(rule(&outcome, "a"), "unreferenced");
    for id in ["b", "d"] {
        assert_eq!((decision(&outcome, id), rule(&outcome, id)), (Decision::Keep, "noted"));
    }
    // It stands behind a note in the place of a read of the same file.
    assert_eq!(rule(&outcome, "c"), "superseder");
}

fn standard(before: &str, input: serde_json::Value, after: &str) -> CallFate {
    let mut session = Claude::new();
    session.bash("r", "run", "see foo_bar and zap_zip");
    if !before.is_empty() {
        session.says(before);
    }
    session.pair("a", "Task", input, &"x ".repeat(50));
    session.says(after);
    let outcome = session.run(&Options { profile: Profile::Standard, ..open_options() });
    assert_eq!(rule(&outcome, "a"), "unreferenced");
    result(&outcome, "a").call
}

#[test]
fn standard_shortens_long_inputs() {
    let filler = "word ".repeat(90);
    let short = "word ".repeat(80);
    assert_eq!(standard("", json!({"prompt": filler}), ""), CallFate::Shortened);
    assert_eq!(standard("", json!({"prompt": short}), ""), CallFate::Kept);
    // The first use stays, wherever the later ones are.
    let tail = format!("{filler}foo_bar");
    assert_eq!(standard("", json!({"prompt": tail}), ""), CallFate::Kept);
    assert_eq!(standard("", json!({"prompt": tail}), "foo_bar"), CallFate::Kept);
    assert_eq!(standard("foo_bar", json!({"prompt": tail}), ""), CallFate::Shortened);
    assert_eq!(standard("zap_zip", json!({"prompt": tail}), ""), CallFate::Kept);
    let head = format!("foo_bar {filler}foo_bar");
    assert_eq!(standard("", json!({"prompt": head}), ""), CallFate::Shortened);
    assert_eq!(standard("", json!({"a": filler, "b": [tail]}), ""), CallFate::Kept);
}

#[test]
fn standard_drops_only_what_gains() {
    let drop = |text: &str, input: &str| {
        let mut session = Claude::new();
        session.pair("a", "Task", json!({"prompt": input}), text);
        session.says("done");
        let options = Options { profile: Profile::Standard, ..open_options() };
        let outcome = session.run(&options);
        (rule(&outcome, "a"), result(&outcome, "a").call)
    };
    // The note of a text of two digits' length has 65 characters.
    assert_eq!(drop(&"x".repeat(65), ""), ("no_gain", CallFate::Kept));
    assert_eq!(drop(&"x".repeat(66), ""), ("unreferenced", CallFate::Kept));
    let long = "word ".repeat(90);
    assert_eq!(drop("x", &long), ("unreferenced", CallFate::Shortened));
}

#[test]
fn standard_keeps_what_a_call_does() {
    let mut session = Claude::new();
    let patch = |file: &str| {
        let filler = " word\n".repeat(90);
        json!({"patch": format!("*** Begin Patch\n*** Update File: a.rs\n{filler}{file}")})
    };
    session.pair("a", "apply_patch", patch("*** Update File: b.rs"), &"x ".repeat(50));
    session.pair("b", "apply_patch", patch(""), "x");
    session.says("done");
    let outcome = session.run(&Options { profile: Profile::Standard, ..open_options() });
    assert_eq!(result(&outcome, "a").call, CallFate::Kept);
    assert_eq!(result(&outcome, "b").call, CallFate::Shortened);
    assert!(result(&outcome, "a").left.is_some() && result(&outcome, "b").left.is_some());
}

#[test]
fn codex_terms_come_from_the_body() {
    let header = "Chunk ID: foo_bar\nWall time: 1234 seconds\nOutput:\n";
    let rows = [
        codex_user("go"),
        codex_says("on"),
        codex_call("a", "run"),
        codex_output("a", json!(format!("{header}x"))),
        codex_call("b", "run"),
        codex_output("b", json!(format!("{header}zap_zip"))),
        codex_says("foo_bar 1234 zap_zip"),
    ];
    let outcome = run(Host::Codex, &rows, &open_options());
    assert_eq!(rule(&outcome, "a"), "unreferenced");
    assert_eq!(rule(&outcome, "b"), "referenced");
}
