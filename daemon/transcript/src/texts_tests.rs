use super::*;

fn row(id: &str, content: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"u","parentUuid":null,"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":{content}}}]}}}}"#
    )
}

fn call(id: &str, input: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"a","parentUuid":null,"message":{{"id":"m","content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{input}}}]}}}}"#
    )
}

fn search(lines: &[String], id: &str) -> Search {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    Search::file(&path, id).unwrap()
}

#[test]
fn bytes_are_exact() {
    for (content, text) in [
        (r#""a\r\nb\r\n""#, "a\r\nb\r\n"),
        (r#""nul \u0000 and \u001b[0m""#, "nul \0 and \u{1b}[0m"),
        (r#""\ud83d\ude00 é""#, "😀 é"),
        (r#""lone \ud83d end""#, "lone \u{fffd} end"),
        (r#""""#, ""),
        (r#"[{"type":"text","text":"one\n"},{"type":"text","text":"two"}]"#, "one\n\ntwo"),
    ] {
        let found = search(&[row("t0", "\"x\""), row("t1", content)], "t1").original.unwrap();
        assert_eq!((found.text.as_str(), found.raw.as_str()), (text, content));
        assert!(!found.is_opaque);
    }
}

#[test]
fn notes_are_passed_over_wherever_they_stand() {
    let dropped = format!("\"{}\"", note::dropped(900));
    let cut =
        r#""start\n[output cut by compactd: 7 of 12 chars removed; re-run the call to see it]""#;
    let shown = cut.replace("start", "the rules say");
    let lines =
        [row("t1", &dropped), row("t1", cut), row("t1", "\"the thing\""), row("t1", "\"a copy\"")];
    let found = search(&lines, "t1");
    assert_eq!(found.original.as_ref().unwrap().text, "the thing");
    assert!(found.has_note && found.is_done(false) && !found.is_done(true));
    let only = search(&lines[..2], "t1");
    assert!(only.original.is_none() && only.has_note && only.has_any());
    assert!(!search(&lines, "t2").has_any());
    let shows = search(&[row("t1", &shown)], "t1").original.unwrap();
    assert!(shows.text.starts_with("the rules say\n["), "output that only shows a note");
}

#[test]
fn what_a_host_left_of_an_image_is_no_original_beside_one() {
    let reduced = serde_json::json!(format!("a\n{}", note::NON_TEXT)).to_string();
    let whole = r#"[{"type":"text","text":"a"},{"type":"image","source":{}}]"#;
    for lines in [[whole, &reduced], [&reduced, whole]] {
        let found = search(&lines.map(|content| row("t1", content)), "t1");
        assert!(found.is_done(false));
        assert_eq!(found.original.unwrap().raw, whole);
    }
    let alone = search(&[row("t1", &reduced), row("t1", &reduced)], "t1");
    assert!(!alone.is_done(false));
    assert!(alone.original.unwrap().is_doubtful());
}

#[test]
fn a_call_is_the_first_that_is_whole() {
    let shortened = r#"{"command":"echo [input cut by compactd: 500 chars]"}"#;
    let whole = r#"{"command": "echo long",  "n":1}"#;
    let found = search(&[call("t1", shortened), call("t1", whole), call("t1", "{}")], "t1");
    assert_eq!(found.call.as_deref(), Some(whole));
    assert!(found.is_done(true));
    let found = search(&[call("t1", shortened)], "t1");
    assert_eq!(found.call.as_deref(), Some(shortened));
    assert!(!found.is_done(true));
}

#[test]
fn a_result_without_text_is_opaque() {
    let image = r#"[{"type":"image","source":{"type":"base64","data":"AAAA"}}]"#;
    let found = search(&[row("t1", image)], "t1").original.unwrap();
    assert!(found.is_opaque && found.text.is_empty());
    assert_eq!(found.raw, image);
}

#[test]
fn lines_by_offset() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let long = "y".repeat(100_000);
    std::fs::write(&path, format!("first\n{long}\nlast")).unwrap();
    let mut file = Transcript::open(&path).unwrap();
    let mut at = |offset, max| line_at(&mut file, offset, max).unwrap();
    assert_eq!(at(0, 10).unwrap(), b"first");
    assert_eq!(at(6, 200_000).unwrap(), long.as_bytes());
    assert_eq!(at(6, 99_999), None, "too long");
    assert_eq!(at(100_007, 10).unwrap(), b"last");
    for none in [1, 7, 100_008, 1_000_000] {
        assert_eq!(at(none, 10), None, "{none}");
    }
}
