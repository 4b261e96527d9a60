//! Giving back what passes took away: with a daemon and without, after several passes, byte for byte.

use std::fs;

use compactd_core::note;
use compactd_tests::harness::{Claude, Codex, Home, Process, Ran, fixtures};
use serde_json::json;

use super::id;

/// What a host can write and a terminal would not.
const ODD: &str =
    "line one\r\nline two\r\n\u{0}nul \u{1b}[31m 😀 é\u{301}\u{feff} end without newline";

fn text(length: usize) -> String {
    "fn value() -> u32 { 48_213 }\n".repeat(length)
}

/// A session that was compacted three times: the results, and notes in their place; and the note.
fn compacted(id: &str) -> (String, String) {
    let left = note::dropped(ODD.chars().count());
    let cut = note::cut(&text(40), 200).unwrap().left;
    let mut session = Claude::new(id);
    session.prompt("Go.").bash("toolu_odd", "printf odd", ODD).bash(
        "toolu_long",
        "cat x",
        &text(40),
    );
    for round in 0..3 {
        // The first pass leaves the long one whole: a copy of it.
        let long = if round == 0 { text(40) } else { cut.clone() };
        session.boundary().prompt("Go.");
        session.bash("toolu_odd", "printf odd", &left).bash("toolu_long", "cat x", &long);
        session.bash(&format!("toolu_new{round}"), "ls", "src\n");
    }
    (session.take(), left)
}

#[track_caller]
fn is_exact(ran: &Ran, expected: &str) {
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), expected), "{ran:?}");
}

#[test]
fn the_first_row_comes_back_after_three_passes() {
    let home = Home::new();
    let one = id(1);
    let (all, left) = compacted(&one);
    assert_eq!(all.matches(&left).count(), 3, "three notes stand in the file");
    home.put(&home.claude(&one), all);
    let check = |home: &Home| {
        is_exact(&home.compactctl(&["recall", "toolu_odd"]), ODD);
        is_exact(&home.compactctl(&["recall", "toolu_long", "--session", &one[..8]]), &text(40));
        let call = home.compactctl(&["recall", "toolu_odd", "--call"]);
        is_exact(&call, r#"{"command":"printf odd"}"#);
        let raw = home.compactctl(&["recall", "toolu_odd", "--json"]);
        assert_eq!(serde_json::from_str::<String>(&raw.out).unwrap(), ODD);
        assert_eq!(raw.out, serde_json::to_string(ODD).unwrap(), "as it was written");
        let none = home.compactctl(&["recall", "toolu_none"]);
        assert_eq!((none.code, none.out.as_str()), (Some(1), ""), "{none:?}");
        assert!(none.err.starts_with("error: no result toolu_none was found\nhint: "), "{none:?}");
    };
    check(&home);
    let daemon = Process::start(&home, &[]);
    daemon.client.indexed(&one);
    let places = daemon.client.get("/v1/recall/toolu_odd").good();
    let results = places["found"][0]["results"].as_array().unwrap();
    let noted: Vec<bool> = results.iter().map(|place| place["noted"] == true).collect();
    assert_eq!(noted, [false, true, true, true], "{places}");
    assert!(!places.to_string().contains("line one"), "no text travels");
    check(&home);
    daemon.stop();
}

#[test]
fn lone_surrogates_blocks_images_and_persisted_outputs() {
    let home = Home::new();
    let one = id(1);
    let row = |id: &str, content: &str| {
        format!(
            r#"{{"type":"user","uuid":"u-{id}","parentUuid":null,"isSidechain":false,"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":{content}}}]}}}}"#
        ) + "\n"
    };
    let image = r#"[ {"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}} ]"#;
    let both = r#"[{"type":"text","text":"a\r\n"},{"type":"image","source":{}},{"type":"text","text":"b"}]"#;
    let persisted = "<persisted-output>\nOutput too large (171.5KB). Full output saved to: /w/tool-results/x.txt\n\nPreview (first 2KB):\nline 1\n</persisted-output>";
    let file = home.claude(&one);
    home.put(
        &file,
        [
            row("t_lone", r#""a\ud83db""#),
            row("t_image", image),
            row("t_both", both),
            row("t_empty", r#""""#),
            row("t_big", &serde_json::to_string(persisted).unwrap()),
        ]
        .concat(),
    );
    let daemon = Process::start(&home, &[]);
    daemon.client.indexed(&one);
    is_exact(&home.compactctl(&["recall", "t_lone"]), "a\u{fffd}b");
    is_exact(&home.compactctl(&["recall", "t_lone", "--json"]), r#""a\ud83db""#);
    is_exact(&home.compactctl(&["recall", "t_image", "--json"]), image);
    let no_text = home.compactctl(&["recall", "t_image"]);
    assert_eq!((no_text.code, no_text.out.as_str()), (Some(1), ""));
    assert!(no_text.err.contains("holds no text"), "{no_text:?}");
    let some = home.compactctl(&["recall", "t_both"]);
    is_exact(&some, "a\r\n\nb");
    assert!(some.err.contains("no text"), "{some:?}");
    is_exact(&home.compactctl(&["recall", "t_empty"]), "");
    let big = home.compactctl(&["recall", "t_big"]);
    is_exact(&big, persisted);
    assert!(big.err.contains("hint: ") && big.err.contains("/w/tool-results/x.txt"), "{big:?}");
    daemon.stop();
}

#[test]
fn an_id_of_two_sessions_needs_the_session() {
    let home = Home::new();
    let (one, two) = (id(1), id(2));
    for (id, output) in [(&one, "first"), (&two, "second")] {
        let mut session = Claude::new(id);
        session.prompt("Go.").bash("toolu_both", "echo", output).bash("toolu_same", "echo", "same");
        home.put(&home.claude(id), session.take());
    }
    let mut agent = Claude::new(&one);
    home.put(&home.agent(&one, "a1"), agent.prompt("Go.").bash("toolu_agent", "x", "deep").take());
    let check = |home: &Home| {
        let both = home.compactctl(&["recall", "toolu_both"]);
        assert_eq!((both.code, both.out.as_str()), (Some(1), ""), "{both:?}");
        assert!(both.err.contains("2 sessions have a result toolu_both"), "{both:?}");
        assert!(both.err.contains(&one) && both.err.contains(&two), "{both:?}");
        is_exact(&home.compactctl(&["recall", "toolu_both", "--session", &one]), "first");
        is_exact(&home.compactctl(&["recall", "toolu_both", "--session", &two[..8]]), "second");
        // Copies that are the same are one.
        is_exact(&home.compactctl(&["recall", "toolu_same"]), "same");
        is_exact(&home.compactctl(&["recall", "toolu_agent", "--session", &one]), "deep");
        let elsewhere = home.compactctl(&["recall", "toolu_agent", "--session", &two]);
        assert_eq!(elsewhere.code, Some(1));
    };
    check(&home);
    let daemon = Process::start(&home, &[]);
    for id in [one.as_str(), two.as_str(), "a1"] {
        daemon.client.indexed(id);
    }
    check(&home);
    daemon.stop();
    // Nothing is in memory: the files are searched all the same.
    let daemon = Process::start(&home, &["--set", "index.recent_days=0"]);
    check(&home);
    daemon.stop();
}

/// A host that can only build text writes an image as text and note; a fork may hold no more than that.
#[test]
fn a_fork_without_the_image_does_not_hide_the_original() {
    let home = Home::new();
    let (one, two) = (id(1), id(2));
    let row = |content: &serde_json::Value| {
        let row = json!({"type": "user", "uuid": "u", "parentUuid": null, "isSidechain": false,
            "message": {"role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t_image", "content": content}]}});
        format!("{row}\n")
    };
    let whole = json!([{"type": "text", "text": "a"}, {"type": "image", "source": {}}]);
    let left = format!("a\n{}", note::NON_TEXT);
    home.put(&home.claude(&one), row(&whole));
    home.put(&home.claude(&two), row(&json!(left)));
    let check = |home: &Home| {
        is_exact(&home.compactctl(&["recall", "t_image"]), "a");
        is_exact(&home.compactctl(&["recall", "t_image", "--json"]), &whole.to_string());
        is_exact(&home.compactctl(&["recall", "t_image", "--session", &two]), &left);
    };
    check(&home);
    let daemon = Process::start(&home, &[]);
    for id in [&one, &two] {
        daemon.client.indexed(id);
    }
    check(&home);
    daemon.stop();
}

#[test]
fn codex_rollouts_give_back_too() {
    let home = Home::new();
    let thread = "01a22bab-7fc4-7621-9bf6-c6757fc8279e";
    let file = home.codex(thread);
    home.put(&file, Codex::new(thread).shell("call_1", "printf odd", ODD).take());
    let daemon = Process::start(&home, &[]);
    daemon.client.indexed(thread);
    let check = |home: &Home| {
        let ran = home.compactctl(&["recall", "call_1"]);
        assert!(ran.out.ends_with(ODD), "{ran:?}");
        let call = home.compactctl(&["recall", "call_1", "--call"]);
        assert!(call.json().to_string().contains("printf odd"), "{call:?}");
    };
    check(&home);
    daemon.stop();
    check(&home);
    // A replacement history repeats it: the first row counts.
    let mut all = fs::read_to_string(&file).unwrap();
    let output =
        |text: &str| json!({"type": "function_call_output", "call_id": "call_1", "output": text});
    let compacted = json!({"timestamp": "2026-11-30T08:16:00.433Z", "type": "compacted",
        "payload": {"message": "", "replacement_history": [output(&note::dropped(9)), output("other")]}});
    all += &compacted.to_string();
    all.push('\n');
    home.put(&file, all);
    check(&home);
}

#[test]
fn every_result_of_the_recorded_sessions_comes_back() {
    let home = Home::new();
    let files = home.recorded_claude("rewrite-safe");
    let file = files.iter().find(|file| !file.to_string_lossy().contains("agent-")).unwrap();
    let one = file.file_stem().unwrap().to_str().unwrap().to_owned();
    let wire = fs::read_to_string(fixtures("claude-code/rewrite-safe/wire.json")).unwrap();
    let mut ids: Vec<String> = Vec::new();
    for line in fs::read_to_string(file).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        for block in row["message"]["content"].as_array().into_iter().flatten() {
            let id = block["tool_use_id"].as_str().map(str::to_owned);
            ids.extend(id.filter(|id| !ids.contains(id)));
        }
    }
    assert!(ids.len() > 5 && wire.contains(&ids[0]), "{ids:?}");
    for id in ids {
        let raw = home.compactctl(&["recall", &id, "--json", "--session", &one]);
        assert_eq!(raw.code, Some(0), "{id}: {raw:?}");
        assert!(!raw.out.contains("removed by compactd"), "{id}: {raw:?}");
        let call = home.compactctl(&["recall", &id, "--call", "--session", &one]);
        assert!(call.json().is_object(), "{id}: {call:?}");
    }
}
