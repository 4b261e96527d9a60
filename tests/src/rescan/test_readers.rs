//! What the two hosts' lines are read into.

use serde_json::json;

use super::reader::{Item, Record, Role, Row, ToolResult, parse, sniff};
use super::test_kit::{
    Claude, codex_call, codex_output, codex_says, codex_user, item, result, run,
};
use super::{Decision, Host, Options, reader_codex, test_kit};

fn output(value: serde_json::Value) -> ToolResult {
    let records = reader_codex::read(&[codex_output("c", value)]);
    match records.as_slice() {
        [Record::Row(Row { items, .. })] => match items.as_slice() {
            [Item::Result(result)] => result.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn bad_text_is_replaced() {
    let value = parse(br#"{"a":"x\ud800y\\ud800 \uD83D\uDE00 \udc00\ud800\ud83d\ude00"}"#).unwrap();
    assert_eq!(value["a"], "x\u{fffd}y\\ud800 😀 \u{fffd}\u{fffd}😀");
    assert_eq!(parse(b"{\"a\":\"\xff\"}").unwrap()["a"], "\u{fffd}");
    assert!(parse(b"[1]").is_none());
    assert!(parse(b"{\"a\":").is_none());
    assert!(parse(b"").is_none());
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(8 * 1024 * 1024));
    assert!(parse(long.as_bytes()).is_none());
    assert_eq!(parse(br#"{"a":1,"a":2}"#).unwrap()["a"], 2);
}

#[test]
fn hosts_are_told_apart() {
    assert_eq!(sniff(&json!({"type": "user"})), Some(Host::Claude));
    assert_eq!(sniff(&json!({"type": "x", "parentUuid": null})), Some(Host::Claude));
    assert_eq!(sniff(&json!({"type": "session_meta"})), Some(Host::Codex));
    assert_eq!(sniff(&json!({"type": "x"})), None);
}

#[test]
fn codex_header() {
    let text = "Chunk ID: 0f\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nhello\n";
    let found = output(json!(text));
    assert_eq!((found.text.as_str(), found.body.as_str()), (text, "hello\n"));
    assert!(!found.is_error);
    assert!(output(json!(text.replace("code 0", "code 2"))).is_error);
    assert!(output(json!("Exit code: 1\nWall time: 1 seconds\nOutput:\nno")).is_error);
    assert!(!output(json!("plain\nExit code: 1")).is_error);
    assert!(output(json!("unsupported call: x")).is_error);
    assert!(output(json!("aborted by user after 1s")).is_error);
    assert_eq!(output(json!("Output:\nx")).body, "Output:\nx");
    let command = "Command: /bin/sh -lc 'a\nb'\nChunk ID: 0\nOutput:\nOutput:\nx";
    assert_eq!(output(json!(command)).body, "Output:\nx");
}

#[test]
fn codex_old_and_list_outputs() {
    let old = json!({"output": "done", "metadata": {"exit_code": 1}}).to_string();
    let found = output(json!(old));
    assert_eq!((found.text.as_str(), found.is_error), ("done", true));
    let parts = json!([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]);
    assert_eq!(output(parts).text, "a\nb");
    let image = output(json!([{"type": "input_image", "image_url": "data:"}]));
    assert!(image.opaque && image.text.is_empty());
    assert!(output(json!({"content": "x", "success": false})).is_error);
}

#[test]
fn codex_code_mode() {
    let part = |text: &str| json!({"type": "input_text", "text": text});
    let header = "Script completed\nWall time 0.1 seconds\nOutput:\n";
    let one = json!({"exit_code": 0, "output": "a\nb"}).to_string();
    let found = output(json!([part(header), part(&one), part("c")]));
    assert_eq!(found.body, "a\nb\nc");
    assert!(found.text.starts_with(header) && !found.is_error);
    let bad = json!({"exit_code": 1, "output": ""}).to_string();
    assert!(output(json!([part(header), part(&bad)])).is_error);
    assert!(output(json!([part(&header.replace("completed", "failed"))])).is_error);
    assert!(output(json!([part(header), part("Script error:\nx")])).is_error);
}

#[test]
fn inner_commands_stand_for_code_mode_calls() {
    let call = |id: &str| {
        item(json!({"type": "custom_tool_call", "name": "exec", "call_id": id,
            "input": "text(await tools.exec_command({cmd: \"cat /w/cart.py\"}))"}))
    };
    let ran = json!({"type": "event_msg", "payload": {"type": "item_completed", "item": {
        "type": "CommandExecution", "id": "exec-1", "command": ["bash", "-lc", "cat cart.py"],
        "cwd": "file:///w", "status": "completed", "exit_code": 0}}});
    let header = json!({"type": "input_text", "text": "Script completed\nOutput:\n"});
    let body = json!({"type": "input_text",
        "text": json!({"exit_code": 0, "output": "one\ntwo"}).to_string()});
    let answer = |id: &str| {
        item(json!({"type": "custom_tool_call_output", "call_id": id, "output": [header, body]}))
    };
    let rows = [
        codex_user("go"),
        codex_says("yes"),
        call("a"),
        ran.clone(),
        answer("a"),
        call("b"),
        ran,
        answer("b"),
    ];
    let outcome = run(Host::Codex, &rows, &test_kit::open_options());
    assert_eq!(result(&outcome, "a").rule, "superseded_read");
    assert_eq!(result(&outcome, "b").rule, "superseder");
}

#[test]
fn codex_arguments_are_leaves() {
    // The path stands in the call's own input, so a later use of it decides nothing.
    let rows = [
        codex_user("go"),
        codex_says("yes"),
        codex_call("a", "grep -n main src/main.rs"),
        codex_output("a", json!("src/main.rs")),
        codex_says("src/main.rs it is"),
    ];
    let outcome = run(Host::Codex, &rows, &test_kit::open_options());
    assert_eq!(result(&outcome, "a").decision, Decision::Drop);
}

#[test]
fn odd_shapes_do_not_stop_the_reader() {
    let mut session = Claude::new();
    session.row(json!({"type": "user", "message": "bare text"}));
    session.block("m", json!({"type": "tool_use", "name": "Bash", "input": {}}));
    session.row(json!({"type": "assistant", "message": {"content": null, "id": 3}}));
    session.user(json!([{"type": "tool_result", "tool_use_id": "x", "content": 3}, 7, null]));
    session.row(json!({"type": "attachment", "message": []}));
    assert_eq!(session.run(&Options::default()).results, []);
    let shapes = [json!({"type": "response_item"}), item(json!({"type": 3})), item(json!([]))];
    assert_eq!(run(Host::Codex, &shapes, &Options::default()).messages, 0);
}

#[test]
fn thinking_opens_a_codex_message_only() {
    let rows = [codex_user("a"), item(json!({"type": "reasoning"})), codex_user("b")];
    assert_eq!(run(Host::Codex, &rows, &Options::default()).messages, 3);
    let records = reader_codex::read(&[item(json!({"type": "reasoning"}))]);
    assert!(matches!(&records[..], [Record::Row(row)] if row.role == Role::Assistant));
    let mut session = Claude::new();
    session.block("m", json!({"type": "thinking", "thinking": "hm"}));
    session.user(json!("b"));
    assert_eq!(session.run(&Options::default()).messages, 1);
}
