use proptest::prelude::*;

use super::*;
use crate::record::{Leaf, MAX_LINE_BYTES, Record, Skip, read_line};

fn shape(text: &str) -> Vec<(String, u8, bool, String)> {
    let own =
        |leaf: Leaf<'_>| (leaf.key.into_owned(), leaf.depth, leaf.string, leaf.text.into_owned());
    leaves(value(text).unwrap()).into_iter().map(own).collect()
}

#[test]
fn text_without_an_escape_is_borrowed() {
    assert!(matches!(unescape("plain \u{e9}"), Cow::Borrowed(_)));
    assert_eq!(unescape(r#"a\n\t\"\\\/\r\b\fz"#), "a\n\t\"\\/\r\u{8}\u{c}z");
    assert_eq!(unescape(r"\u00e9\ud83d\ude00"), "\u{e9}\u{1f600}");
}

#[test]
fn lone_surrogates_and_strange_escapes_become_replacement_characters() {
    assert_eq!(unescape(r"a\ud83dz"), "a\u{fffd}z");
    assert_eq!(unescape(r"\ud83d\u0041"), "\u{fffd}A");
    assert_eq!(unescape(r"\ude00\ud83d\ud83d\ude00"), "\u{fffd}\u{fffd}\u{1f600}");
    assert_eq!(unescape(r"\ud83d"), "\u{fffd}");
    assert_eq!(unescape("\\u12"), "\u{fffd}12");
    assert_eq!(unescape("\\\u{e9}\\"), "\u{fffd}\u{e9}\u{fffd}");
}

#[test]
fn leaves_carry_key_and_depth() {
    let found = shape(
        r#"{"a":"x","b":[1,"y",{"c":-2.5e3,"d":[["z"]]},"w"],"e":true,"f":null,"g":{}, "h" : "\n"}"#,
    );
    let want = [
        ("a", 1, true, "x"),
        ("b", 2, false, "1"),
        ("b", 2, true, "y"),
        ("c", 3, false, "-2.5e3"),
        ("d", 5, true, "z"),
        ("b", 2, true, "w"),
        ("h", 1, true, "\n"),
    ];
    assert_eq!(found, want.map(|(k, d, s, t)| (k.to_owned(), d, s, t.to_owned())));
    assert_eq!(shape("\"top\""), [(String::new(), 0, true, "top".to_owned())]);
    assert_eq!(shape("[7]"), [(String::new(), 1, false, "7".to_owned())]);
    assert_eq!(shape("null"), []);
    assert_eq!(shape(r#"{"a":{},"b":[],"c":"k","d":["a:b,{"]}"#).len(), 2);
}

#[test]
fn any_depth_is_walked() {
    let deep = format!("{}\"x\"{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(shape(&deep), [(String::new(), 255, true, "x".to_owned())]);
    let deep = format!("{}1{}", "{\"k\":".repeat(100_000), "}".repeat(100_000));
    assert_eq!(shape(&deep), [("k".to_owned(), 255, false, "1".to_owned())]);
}

#[test]
fn the_last_of_equal_keys_wins_and_odd_keys_do_not_hurt() {
    let mut seen = Vec::new();
    assert!(object(r#"{"a":1,"\ud83d":2,"a":3,"\u0061":4}"#, |key, raw| seen
        .push((key.to_owned(), raw.get().to_owned()))));
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[1].0, "\u{fffd}");
    assert_eq!(seen[3].0, "a");
    assert_eq!(value(r#"{"a":1,"b":0,"a":3}"#).unwrap().member("a").unwrap().get(), "3");
    for bad in ["", "[]", "1", "{", r#"{"a":1"#, r#"{"a":1}x"#, r#"{"a":"\x"}"#, "{\"a\":\"\t\"}"] {
        assert!(!object(bad, |_, _| {}), "{bad}");
    }
}

#[test]
fn hosts_are_told_apart() {
    for (line, host) in [
        (r#"{"type":"user","message":{}}"#, Some(Host::Claude)),
        (r#"{"parentUuid":null,"type":"novel"}"#, Some(Host::Claude)),
        (r#"{"type":"permission-mode"}"#, Some(Host::Claude)),
        (r#"{"timestamp":"t","type":"session_meta","payload":{}}"#, Some(Host::Codex)),
        (r#"{"type":"event_msg","payload":{}}"#, Some(Host::Codex)),
        (r#"{"id":"a","timestamp":"t","instructions":null}"#, Some(Host::Codex)),
        (r#"{"type":"message","role":"user"}"#, Some(Host::Codex)),
        (r#"{"type":"session_meta"}"#, None),
        (r#"{"a":1}"#, None),
        ("", None),
        ("[1]", None),
    ] {
        assert_eq!(sniff(line.as_bytes()), host, "{line}");
    }
}

#[test]
fn long_and_blank_lines_are_skipped() {
    for host in [Host::Claude, Host::Codex] {
        assert_eq!(read_line(host, &vec![b' '; MAX_LINE_BYTES + 1]), Err(Skip::TooLong));
        assert_eq!(read_line(host, b" \t\r"), Err(Skip::Blank));
        assert_eq!(read_line(host, b"\xff\xfe"), Err(Skip::Malformed));
        let nested = [vec![b'['; MAX_LINE_BYTES / 2], vec![b']'; MAX_LINE_BYTES / 2]].concat();
        assert_eq!(read_line(host, &nested), Err(Skip::Malformed));
    }
    let filler = "x".repeat(MAX_LINE_BYTES - 100);
    let line = format!(r#"{{"type":"user","uuid":"u","message":{{"content":"{filler}"}}}}"#);
    assert!(matches!(read_line(Host::Claude, line.as_bytes()), Ok(Record::Row(_))));
}

const LINES: [&str; 7] = [
    r#"{"type":"assistant","uuid":"u","parentUuid":"p","message":{"id":"m","usage":{"input_tokens":3},"content":[{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"/a\nb","n":[1,{"k":"v"}]}}]}}"#,
    r#"{"type":"user","uuid":"u","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":"\ud83d\u00e9"},{"type":"image"}]}]}}"#,
    r#"{"type":"system","subtype":"compact_boundary","uuid":"b","compactMetadata":{"trigger":"auto","preservedMessages":{"uuids":["a","b"]}}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"n","namespace":"s","call_id":"c","arguments":"{\"cmd\":\"ls \\\"x\\\"\"}"}}"#,
    r#"{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"Script completed\nOutput:\n"},{"type":"input_text","text":"{\"exit_code\":1,\"output\":\"a\\nb\"}"}]}}"#,
    r#"{"type":"compacted","payload":{"message":"s","window_number":2,"replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"s"}]}]}}"#,
    r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"i","command":["/bin/bash","-lc","cat x"],"cwd":"file:///a%20b","parsed_cmd":[{"type":"read","path":"x"}],"exit_code":1}}}"#,
];

proptest! {
    #[test]
    fn unescape_equals_serde(text in any::<String>()) {
        let written = serde_json::to_string(&text).unwrap();
        let decoded = value(&written).unwrap().text().unwrap();
        prop_assert_eq!(decoded.as_ref(), text.as_str());
        let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        prop_assert_eq!(unescape(&units).into_owned(), text);
    }

    #[test]
    fn reading_is_total_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for host in [Host::Claude, Host::Codex] {
            drop(read_line(host, &bytes));
        }
        let _ = sniff(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        drop(unescape(&text));
        // The scanner must be safe even where nothing was checked.
        drop(leaves(Raw(&text)));
        let _ = Raw(&text).members().count() + Raw(&text).elements().count();
    }

    #[test]
    fn reading_is_total_on_changed_lines(
        which in 0..LINES.len(),
        edits in proptest::collection::vec((any::<usize>(), any::<u8>(), 0..3u8), 0..4),
        torn in proptest::option::of(any::<usize>()),
    ) {
        let mut line = LINES[which].as_bytes().to_vec();
        for (at, byte, kind) in edits {
            let at = at % line.len();
            match kind {
                0 => line[at] = byte,
                1 => line.insert(at, byte),
                _ => drop(line.remove(at)),
            }
        }
        if let Some(torn) = torn {
            line.truncate(torn % line.len());
        }
        for host in [Host::Claude, Host::Codex] {
            drop(read_line(host, &line));
        }
    }

    #[test]
    fn bad_bytes_inside_a_text_only_replace_it(byte in 0x80u8..) {
        let mut line = br#"{"type":"user","uuid":"u","message":"a?z"}"#.to_vec();
        let at = line.iter().position(|b| *b == b'?').unwrap();
        line[at] = byte;
        let Ok(Record::Row(row)) = read_line(Host::Claude, &line) else { panic!("lost") };
        prop_assert_eq!(&row.items, &[crate::record::Item::Text("a\u{fffd}z".into())]);
    }
}
