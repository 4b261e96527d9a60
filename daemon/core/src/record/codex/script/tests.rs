use super::super::super::{Item, Record, ToolResult, read_line};
use crate::record::Host;

const HEADER: &str = "Script completed\nWall time 0.1 seconds\nOutput:\n";

fn result(output: &serde_json::Value) -> ToolResult<'static> {
    let line = serde_json::json!({"type": "response_item", "payload":
        {"type": "custom_tool_call_output", "call_id": "c", "output": output}});
    let row = match read_line(Host::Codex, line.to_string().into_bytes().leak()) {
        Ok(Record::Row(row)) => row,
        other => panic!("{other:?}"),
    };
    match row.items.into_iter().next() {
        Some(Item::Result(result)) => result,
        other => panic!("{other:?}"),
    }
}

fn of(parts: &[&str]) -> ToolResult<'static> {
    let part = |text: &&str| serde_json::json!({"type": "input_text", "text": text});
    result(&parts.iter().map(part).collect())
}

/// The pieces of a script that showed these parts, and whether it failed.
fn shown(parts: &[&str]) -> (Vec<String>, bool) {
    let all: Vec<&str> = std::iter::once(HEADER).chain(parts.iter().copied()).collect();
    let result = of(&all);
    let pieces: Vec<String> = result.pieces().map(str::to_owned).collect();
    assert_eq!(result.body(), pieces.join("\n"));
    (pieces, result.is_error)
}

fn pieces(parts: &[&str]) -> Vec<String> {
    let (pieces, failed) = shown(parts);
    assert!(!failed, "{parts:?}");
    pieces
}

#[test]
fn each_part_is_a_piece() {
    let answer = r#"{"chunk_id":"83a9","wall_time_seconds":0.1,"exit_code":0,"original_token_count":172,"output":"a\nb\n"}"#;
    assert_eq!(pieces(&[answer, "plain", "{}"]), ["a\nb\n", "plain", "{}"]);
    let text = of(&[HEADER, answer]).text;
    assert!(text.starts_with("Script completed\nWall time 0.1 seconds\nOutput:\n\n{\"chunk_id\""));
    // Nothing shown: the host writes a string.
    let silent = result(&serde_json::json!(HEADER));
    assert_eq!((silent.body(), silent.is_error, silent.pieces().count()), ("", false, 0));
    // A `wait` is answered as an ordinary function call.
    let line = serde_json::json!({"type": "response_item", "payload": {"type": "function_call_output",
        "call_id": "c", "output": [{"type": "input_text", "text": HEADER},
            {"type": "input_text", "text": answer}]}});
    let Ok(Record::Row(row)) = read_line(Host::Codex, line.to_string().into_bytes().leak()) else {
        panic!()
    };
    assert!(matches!(&row.items[..], [Item::Result(result)] if result.body() == "a\nb\n"));
}

#[test]
fn answers_are_found_wherever_they_stand() {
    let list = r#"[{"status":"fulfilled","value":{"wall_time_seconds":0.1,"exit_code":0,"output":"one"}},{"status":"fulfilled","value":{"chunk_id":"b","exit_code":0,"output":"two"}}]"#;
    assert_eq!(pieces(&[list]), ["one", "two"]);
    let named = r#"{"file":"a.rs","got":{"wall_time_seconds":0.1,"session_id":4,"output":"x"}}"#;
    assert_eq!(pieces(&[named]), ["a.rs", "x"]);
    let tool = r#"{"content":[{"type":"text","text":"{\"sku\": \"A-100\"}"}],"isError":false}"#;
    assert_eq!(pieces(&[tool]), [r#"{"sku": "A-100"}"#]);
    // A JSON file that was shown is no answer of the host, whatever keys it has.
    for file in [
        r#"{"output":"dist","name":"x"}"#,
        r#"[{"output":"c"},{"output":"d"}]"#,
        r#"{"content":["src/**"],"theme":{}}"#,
        r#"{"broken":"#,
        "[section]",
    ] {
        assert_eq!(pieces(&[file]), [file]);
    }
    let deep = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    assert_eq!(pieces(&[&deep]), [deep]);
}

#[test]
fn every_sign_of_an_error() {
    for failed in [
        r#"{"chunk_id":"8","wall_time_seconds":0.1,"exit_code":1,"output":""}"#,
        r#"[{"value":{"wall_time_seconds":0.1,"exit_code":127,"output":"x"}}]"#,
        r#"{"content":[{"type":"text","text":"error: unknown sku"}],"isError":true}"#,
        "{\"wall_time_seconds\":0,\"output\":\"Exit code: 1\\nWall time: 0 seconds\\nOutput:\\nno\"}",
        "Script error:\nError: boom_1234\n    at exec_main.mjs:1:7",
        "Warning: truncated output (original token count: 9000)\nTotal output lines: 1\n\n{\"chunk_id\":\"3\",\"exit_code\":2,\"output\":\"a\\nb\"}x",
    ] {
        assert!(shown(&[failed]).1, "{failed}");
    }
    let header = "Script failed\nWall time 0.0 seconds\nOutput:\n";
    let thrown = of(&[header, "some", "Script error:\nError: y"]);
    assert_eq!((thrown.body(), thrown.is_error), ("some\nScript error:\nError: y", true));
    assert!(of(&[header, "some"]).is_error);
    assert!(!shown(&["Error: words of a file", "exit_code: 1"]).1);
}

#[test]
fn a_header_inside_an_output_is_the_hosts_too() {
    let patch = "{\"wall_time_seconds\":0,\"output\":\"Exit code: 0\\nWall time: 0 seconds\\nOutput:\\nSuccess. Updated the following files:\\nA notes/plan.md\\n\"}";
    let all = ["Success. Updated the following files:\nA notes/plan.md\n"];
    assert_eq!(pieces(&[patch]), all);
    let warned = "Warning: truncated output (original token count: 2448)\nTotal output lines: 900\n\nrow_id=1\n…2148 tokens truncated…\nrow_id=900\n";
    assert_eq!(pieces(&[warned]), ["row_id=1\n…2148 tokens truncated…\nrow_id=900\n"]);
}

/// The host cuts long JSON in its middle: it is no JSON any more, and its output still is one.
#[test]
fn a_cut_answer_is_decoded_as_far_as_it_goes() {
    let cut = "Warning: truncated output (original token count: 29001)\nTotal output lines: 1\n\n{\"chunk_id\":\"3dce9c\",\"wall_time_seconds\":0.03,\"exit_code\":0,\"original_token_count\":26724,\"output\":\"row_id=1\\nrow_id=2\\nr…19001 tokens truncated…=8999\\n\\\"row\\\" 9000\\n\"}";
    assert_eq!(
        pieces(&[cut]),
        ["row_id=1\nrow_id=2\nr…19001 tokens truncated…=8999\n\"row\" 9000\n"]
    );
    // The next call's chunk and time differ, what was read does not.
    let again = cut.replace("3dce9c", "aaaaaa").replace("0.03", "0.04");
    assert_eq!(pieces(&[&again]), pieces(&[cut]));
}

#[test]
fn what_goes_on_is_named() {
    let running =
        of(&["Script running with cell ID 11\nWall time 0.0 seconds\nOutput:\n", "first"]);
    assert_eq!((running.running.as_deref(), running.body()), (Some("11"), "first"));
    assert_eq!(of(&[HEADER, "Script running with cell ID 11"]).running, None);
    let session = result(&serde_json::json!(
        "Chunk ID: 1\nWall time: 0.5 seconds\nProcess running with session ID 17723\nOriginal token count: 5\nOutput:\nready\n"
    ));
    assert_eq!((session.running.as_deref(), session.body()), (Some("17723"), "ready\n"));
    let words = result(&serde_json::json!("Process running with session ID 3"));
    assert_eq!(words.running, None);
}
