use super::super::{Body, Compacted, InnerCommand, ToolResult, Usage};
use super::*;

fn of(kind: &str, payload: &str) -> Result<Record<'static>, Skip> {
    let line = format!(
        r#"{{"timestamp":"T","ordinal":3,"type":"{kind}","payload":{payload},"metadata":{{"x":"\ud83d"}}}}"#
    );
    read(line.into_bytes().leak())
}

fn item(payload: &str) -> Row<'static> {
    match of("response_item", payload) {
        Ok(Record::Row(row)) => row,
        other => panic!("{other:?}"),
    }
}

fn call(payload: &str) -> Call<'static> {
    match item(payload).items.pop() {
        Some(Item::Call(call)) => call,
        other => panic!("{other:?}"),
    }
}

fn result_of(kind: &str, output: &str) -> ToolResult<'static> {
    let row = item(&format!(r#"{{"type":"{kind}","call_id":"c","output":{output}}}"#));
    assert_eq!(row.role, Role::User);
    match row.items.into_iter().next() {
        Some(Item::Result(result)) => result,
        other => panic!("{other:?}"),
    }
}

fn result(output: &str) -> ToolResult<'static> {
    result_of("function_call_output", output)
}

fn leaf(key: &'static str, depth: u8, string: bool, text: &'static str) -> Leaf<'static> {
    Leaf { key: key.into(), depth, string, text: text.into() }
}

#[test]
fn messages_by_role() {
    let assistant = item(
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}],"phase":"x"}"#,
    );
    assert_eq!(
        (assistant.role, assistant.meta, assistant.items),
        (Role::Assistant, false, vec![Item::Text("hi".into())])
    );
    assert_eq!(assistant.about.timestamp.as_deref(), Some("T"));
    let user = item(
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:"},"b"]}"#,
    );
    assert_eq!((user.role, user.meta), (Role::User, false));
    assert_eq!(user.items, [Item::Text("a".into()), Item::Opaque, Item::Text("b".into())]);
    let developer = item(r#"{"type":"message","role":"developer","content":"rules"}"#);
    assert_eq!(
        (developer.role, developer.meta, developer.items),
        (Role::User, true, vec![Item::Text("rules".into())])
    );
    assert_eq!(item(r#"{"type":"message","role":"user","content":null}"#).items, []);
    assert_eq!(of("response_item", r#"{"type":"message","content":[]}"#), Err(Skip::Odd));
}

#[test]
fn calls_and_their_leaves() {
    let mcp = call(
        r#"{"type":"function_call","name":"lookup","namespace":"mcp__inv","call_id":"c","arguments":"{\"sku\":\"A\\n1\",\"n\":2}"}"#,
    );
    assert_eq!((mcp.id.as_ref(), mcp.tool.as_ref()), ("c", "mcp__inv__lookup"));
    assert_eq!(mcp.leaves, [leaf("sku", 1, true, "A\n1"), leaf("n", 1, false, "2")]);
    let object =
        call(r#"{"type":"function_call","name":"n","call_id":"c","arguments":{"a":["x"]}}"#);
    assert_eq!(object.leaves, [leaf("a", 2, true, "x")]);
    let free =
        call(r#"{"type":"function_call","name":"n","call_id":"c","arguments":"not json {"}"#);
    assert_eq!(free.leaves, [leaf("", 0, true, "not json {")]);
    assert_eq!(
        call(r#"{"type":"function_call","name":"n","call_id":"c","arguments":""}"#).leaves,
        []
    );
    let patch = call(
        r#"{"type":"custom_tool_call","name":"apply_patch","call_id":"c","input":"*** Begin\n"}"#,
    );
    assert_eq!(
        (patch.tool.as_ref(), patch.leaves),
        ("apply_patch", vec![leaf("", 0, true, "*** Begin\n")])
    );
    let json = call(
        r#"{"type":"custom_tool_call","name":"shell","call_id":"c","input":" {\"k\":\"v\"}"}"#,
    );
    assert_eq!(json.leaves, [leaf("k", 1, true, "v")]);
    let shell = call(
        r#"{"type":"local_shell_call","id":"i","call_id":null,"status":"completed","action":{"type":"exec","command":["ls","-l"]}}"#,
    );
    assert_eq!(
        (shell.id.as_ref(), shell.tool.as_ref(), shell.leaves.len()),
        ("i", "local_shell", 3)
    );
    let row = item(r#"{"type":"function_call","name":"n","arguments":"{}"}"#);
    assert_eq!((row.role, row.items.len()), (Role::Assistant, 0));
}

#[test]
fn the_header_is_no_part_of_the_body() {
    let found = result(
        r#""Chunk ID: 83a9\nWall time: 0.1 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\nOutput:\nx""#,
    );
    assert_eq!((found.body(), found.is_error, found.opaque), ("Output:\nx", false, false));
    let failed = result(
        r#""Command: /bin/zsh -lc \"cat <<E\na\nOutput:\nProcess exited with code 9\nE\"\nChunk ID: 1\nWall time: 1\nProcess exited with code 2\nOutput:\nbody""#,
    );
    assert_eq!((failed.body(), failed.is_error), ("body", true));
    let many = format!(
        "\"Command: x\\n{}Chunk ID: 1\\nProcess running with session ID 4\\nOutput:\\nb\"",
        "line\\n".repeat(40)
    );
    assert_eq!((result(&many).body(), result(&many).is_error), ("b", false));
    let patch = result_of(
        "custom_tool_call_output",
        r#""Exit code: 1\nWall time: 0 seconds\nTotal output lines: 2\nOutput:\nno""#,
    );
    assert_eq!((patch.body(), patch.is_error), ("no", true));
    for whole in ["plain\\nOutput:\\nx", "Plan updated", "", "Exit code: 0"] {
        let found = result(&format!("\"{whole}\""));
        assert_eq!((found.body, found.is_error), (Body::From(0), false), "{whole}");
    }
    let late = format!("\"Wall time: 1\\n{}Exit code: 3\\nOutput:\\nx\"", "text\\n".repeat(5));
    assert_eq!(result(&late).body(), "x");
    let none = format!("\"Wall time: 1\\n{}Exit code: 3\"", "text\\n".repeat(5));
    assert!(!result(&none).is_error);
}

/// `apply_patch` as a shell command: the host runs the tool, and puts both headers before its words.
#[test]
fn a_header_may_stand_behind_a_header() {
    let patch = |code: &str| {
        result(&format!(
            r#""Wall time: 0.0000 seconds\nOutput:\nExit code: {code}\nWall time: 0 seconds\nOutput:\nSuccess""#
        ))
    };
    assert_eq!((patch("0").body(), patch("0").is_error), ("Success", false));
    assert_eq!((patch("1").body(), patch("1").is_error), ("Success", true));
    let cut = result(
        r#""Chunk ID: e\nWall time: 0.0 seconds\nProcess exited with code 0\nOriginal token count: 9\nOutput:\nWarning: truncated output (original token count: 11724)\nTotal output lines: 4000\n\nrow_id=1\n""#,
    );
    assert_eq!((cut.body(), cut.is_error), ("row_id=1\n", false));
    let old = result(
        r#""Chunk ID: e\nWall time: 0.0 seconds\nProcess exited with code 0\nOutput:\nTotal output lines: 974\n\nx""#,
    );
    assert_eq!(old.body(), "x");
    // Without a header of the host these are words of the tool.
    assert_eq!(
        result(r#""Warning: truncated output (x)\n\ny""#).body(),
        "Warning: truncated output (x)\n\ny"
    );
}

#[test]
fn outputs_of_any_shape() {
    let mcp = result(
        r#"[{"type":"input_text","text":"Wall time: 0.1 seconds\nOutput:"},{"type":"input_text","text":"{\"sku\":1}"},{"type":"input_image","image_url":"d"}]"#,
    );
    assert_eq!(
        (mcp.text.as_ref(), mcp.body(), mcp.opaque),
        ("Wall time: 0.1 seconds\nOutput:\n{\"sku\":1}", "{\"sku\":1}", true)
    );
    let old = result(
        r#""{\"output\":\"boom\\n\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}""#,
    );
    assert_eq!((old.text.as_ref(), old.is_error), ("boom\n", true));
    assert!(!result(r#""{\"output\":\"ok\",\"metadata\":{\"exit_code\":0}}""#).is_error);
    let agent = result(r#""{\"output\":\"ok\"}""#);
    assert_eq!(agent.text, "{\"output\":\"ok\"}");
    let object = result(r#"{"content":"text","success":false}"#);
    assert_eq!((object.text.as_ref(), object.is_error), ("text", true));
    assert_eq!(
        result(r#"{"type":"input_text","text":"a","detail":null,"image_url":null}"#).text,
        "a"
    );
    assert_eq!(result(r#"{"output":[{"text":"a"},"b"]}"#).text, "a\nb");
    assert!(result(r#"{"strange":1}"#).opaque);
    assert_eq!((result("null").text.as_ref(), result("null").opaque), ("", false));
    for failed in [
        "unsupported call: x",
        "aborted",
        "aborted by user after 1s",
        "exec_command failed for x",
        "apply_patch verification failed: y",
        "unsupported custom tool call: nope",
        "exec expects raw JavaScript source text (non-empty). Provide JS only",
        "patch rejected by user",
        "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings",
        "exec_command failed: CreateProcess { message: \\\"Rejected(x)\\\" }",
        "write_stdin failed: Unknown process id 999999",
        "failed to parse function arguments: missing field `cmd`",
        "unable to locate image at `/x.png`: No such file",
        "failed in sandbox: x",
        "command timed out after 1000 milliseconds",
        "Wall time: 0.9 seconds\\naborted by user",
        "Script error:\\nno",
    ] {
        assert!(result(&format!("\"{failed}\"")).is_error, "{failed}");
    }
    for fine in ["aborted midway", "Wall time: 0.9 seconds\\nOutput:\\naborted by user", "patch"] {
        assert!(!result(&format!("\"{fine}\"")).is_error, "{fine}");
    }
    assert_eq!(item(r#"{"type":"function_call_output","output":"x"}"#).items, []);
}

#[test]
fn other_items() {
    let reasoning = item(r#"{"type":"reasoning","summary":[],"encrypted_content":"x"}"#);
    assert_eq!((reasoning.role, reasoning.items), (Role::Assistant, vec![]));
    assert_eq!(item(r#"{"type":"web_search_call","action":{}}"#).items, []);
    assert_eq!(item(r#"{"type":"image_generation_call","result":"x"}"#).items, [Item::Opaque]);
    let agent = item(
        r#"{"type":"agent_message","author":"a","content":[{"type":"input_text","text":"t"},{"type":"encrypted_content","encrypted_content":"e"}]}"#,
    );
    assert_eq!(
        (agent.role, agent.meta, agent.items),
        (Role::User, true, vec![Item::Text("t".into()), Item::Opaque])
    );
    assert_eq!(of("response_item", r#"{"type":"ghost_snapshot"}"#), Err(Skip::Bookkeeping));
    assert_eq!(of("response_item", r#"{"type":"brand_new"}"#), Err(Skip::Unknown));
    assert_eq!(of("response_item", r#"{"role":"user"}"#), Err(Skip::Odd));
    assert_eq!(of("response_item", r#""text""#), Err(Skip::Odd));
}

fn compacted(members: &str) -> Result<Compacted<'static>, Skip> {
    match of("compacted", &format!("{{{members}}}"))? {
        Record::Compacted(compacted) => Ok(compacted),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_compaction_replaces_the_context() {
    let found = compacted(
        r#""message":"sum","window_number":2,"extra":{},"replacement_history_metadata":[{},{},{},{}],"replacement_history":[
        {"type":"message","role":"developer","content":[{"type":"input_text","text":"d","more":1}],"encrypted_content":"x"},
        {"type":"ghost_snapshot"},{"type":"reasoning","summary":[]},{"type":"message","role":"user","content":[{"type":"input_text","text":"sum"}]}]"#,
    )
    .unwrap();
    assert_eq!((found.rows.len(), found.sealed, found.window_number), (3, false, Some(2)));
    assert_eq!(
        found.rows.iter().map(|row| (row.meta, row.summary)).collect::<Vec<_>>(),
        [(true, false), (false, false), (true, true)]
    );
    let sealed = compacted(
        r#""message":"","replacement_history":[{"type":"compaction","encrypted_content":"x"}]"#,
    )
    .unwrap();
    assert_eq!((sealed.rows[0].items.as_slice(), sealed.sealed), ([Item::Opaque].as_slice(), true));
    let old = compacted(r#""message":"only this""#).unwrap();
    assert_eq!(
        (old.rows.len(), old.rows[0].summary, &old.rows[0].items),
        (1, true, &vec![Item::Text("only this".into())])
    );
    assert_eq!(
        compacted(r#""message":"","replacement_history":null,"window_number":null"#).unwrap().rows,
        []
    );
}

#[test]
fn one_unsound_item_voids_a_compaction() {
    let with = |entry: &str| {
        compacted(&format!(
            r#""message":"","replacement_history":[{{"type":"reasoning","summary":[]}},{entry}]"#
        ))
    };
    for bad in [
        r#"{"type":"message","content":[]}"#,
        r#"{"type":"message","role":"user","content":"text"}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":null}]}"#,
        r#"{"type":"message","role":"user","content":[{"type":"novel","text":"x"}]}"#,
        r#"{"type":"function_call","name":"n","call_id":"c","arguments":{}}"#,
        r#"{"type":"function_call_output","call_id":"c","output":{"content":"x"}}"#,
        r#"{"type":"function_call_output","output":"x"}"#,
        r#"{"role":"user"}"#,
        "7",
    ] {
        assert_eq!(with(bad), Err(Skip::Odd), "{bad}");
    }
    for good in [
        r#"{"type":"novel"}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"d"}]}"#,
        r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"x"}]}"#,
        r#"{"type":"custom_tool_call","name":"n","call_id":"c","input":"x","status":"completed"}"#,
    ] {
        assert!(with(good).is_ok(), "{good}");
    }
    for bad in [
        r#""replacement_history":[]"#,
        r#""message":null,"replacement_history":[]"#,
        r#""message":"","replacement_history":{}"#,
        r#""message":"","replacement_history":[],"window_number":"2""#,
        r#""message":"","replacement_history":[],"replacement_history_metadata":[{}]"#,
    ] {
        assert_eq!(compacted(bad), Err(Skip::Odd), "{bad}");
    }
}

#[test]
fn events() {
    let usage = of(
        "event_msg",
        r#"{"type":"token_count","info":{"total_token_usage":{"input_tokens":9},"last_token_usage":{"input_tokens":5,"output_tokens":2},"model_context_window":100}}"#,
    );
    assert_eq!(
        usage,
        Ok(Record::Usage(Usage { input_tokens: 5, output_tokens: 2, window_tokens: Some(100) }))
    );
    let estimate = of(
        "event_msg",
        r#"{"type":"token_count","info":{"last_token_usage":{"input_tokens":0,"output_tokens":0,"total_tokens":77}}}"#,
    );
    assert_eq!(
        estimate,
        Ok(Record::Usage(Usage { input_tokens: 77, output_tokens: 0, window_tokens: None }))
    );
    assert_eq!(of("event_msg", r#"{"type":"token_count","info":null}"#), Err(Skip::Bookkeeping));
    let want = |id: &'static str, command: &'static str, failed| {
        Ok(Record::InnerCommand(InnerCommand {
            id: id.into(),
            cwd: Some("/a b".into()),
            command: command.into(),
            reads: vec!["x".into()],
            writes: Vec::new(),
            failed,
        }))
    };
    let inner = of(
        "event_msg",
        r#"{"type":"item_completed","item":{"type":"CommandExecution","id":"exec-1","command":["/bin/bash","-lc","cat x"],"cwd":"file:///a%20b","parsed_cmd":[{"type":"list_files","path":null},{"type":"read","path":"x"}],"exit_code":0,"status":"completed"}}"#,
    );
    assert_eq!(inner, want("exec-1", "cat x", false));
    let old = of(
        "event_msg",
        r#"{"type":"exec_command_end","call_id":"c","command":["cat","x"],"cwd":"/a b","parsed_cmd":[{"type":"read","name":"x"}],"exit_code":2}"#,
    );
    assert_eq!(old, want("c", "cat x", true));
    let inner = |payload: &str| match of("event_msg", payload) {
        Ok(Record::InnerCommand(inner)) => (inner.is_of_script(), inner.writes, inner.failed),
        other => panic!("{other:?}"),
    };
    let patch = |status: &str| {
        inner(&format!(
            r#"{{"type":"item_completed","item":{{"type":"FileChange","id":"exec-1","changes":{{"/a/b.py":{{"type":"update","move_path":"/a/c.py"}},"/d":{{"type":"add"}}}},"status":"{status}"}}}}"#
        ))
    };
    let files: Vec<Cow<'_, str>> = vec!["/a/b.py".into(), "/a/c.py".into(), "/d".into()];
    assert_eq!(patch("completed"), (true, files.clone(), false));
    assert_eq!(patch("failed"), (true, files.clone(), true));
    assert_eq!(patch("declined"), (true, files, true));
    let mcp = |status: &str, result: &str| {
        inner(&format!(
            r#"{{"type":"item_completed","item":{{"type":"McpToolCall","id":"call_1","status":"{status}","result":{result}}}}}"#
        ))
    };
    assert_eq!(mcp("completed", r#"{"content":[],"isError":false}"#), (false, vec![], false));
    assert_eq!(mcp("failed", "null"), (false, vec![], true));
    assert_eq!(mcp("completed", r#"{"content":[],"isError":true}"#), (false, vec![], true));
    let old = |result: &str| {
        inner(&format!(r#"{{"type":"mcp_tool_call_end","call_id":"c","result":{result}}}"#)).2
    };
    assert!(old(r#"{"Err":"no"}"#) && old(r#"{"Ok":{"isError":true}}"#));
    assert!(!old(r#"{"Ok":{"isError":false}}"#));
    assert_eq!(
        of("event_msg", r#"{"type":"thread_rolled_back","num_turns":3}"#),
        Ok(Record::RolledBack { turns: 3 })
    );
    assert_eq!(of("event_msg", r#"{"type":"thread_rolled_back"}"#), Err(Skip::Odd));
    for other in [
        r#"{"type":"agent_message","message":"x"}"#,
        r#"{"type":"item_completed","item":{"type":"AgentMessage"}}"#,
        r#"{"type":"novel"}"#,
    ] {
        assert_eq!(of("event_msg", other), Err(Skip::Bookkeeping), "{other}");
    }
}

#[test]
fn sessions_and_turns() {
    let session = of(
        "session_meta",
        r#"{"id":"i","session_id":"s","cwd":"/w","cli_version":"0.171.0","source":{"subagent":{"thread_spawn":{"parent_thread_id":"p"}}},
        "history_base":{"thread_id":"t","end_ordinal_exclusive":7,"end_byte_offset":900}}"#,
    );
    let want = SessionMeta {
        id: Some("i".into()),
        session: Some("s".into()),
        parent_thread: Some("p".into()),
        cwd: Some("/w".into()),
        version: Some("0.171.0".into()),
        base: Some(HistoryBase { thread: "t".into(), end_ordinal: 7, end_offset: Some(900) }),
        timestamp: Some("T".into()),
    };
    assert_eq!(session, Ok(Record::Session(Box::new(want))));
    let turn = of("turn_context", r#"{"cwd":"/w","model":"gpt"}"#);
    assert_eq!(turn, Ok(Record::Turn { cwd: Some("/w".into()), model: Some("gpt".into()) }));
}

#[test]
fn the_oldest_files_hold_bare_items() {
    assert!(
        matches!(read(br#"{"id":"i","timestamp":"T","instructions":null,"git":{}}"#), Ok(Record::Session(meta)) if meta.id.as_deref() == Some("i"))
    );
    assert_eq!(read(br#"{"record_type":"state"}"#), Err(Skip::Bookkeeping));
    let row =
        read(br#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#);
    assert!(matches!(row, Ok(Record::Row(row)) if row.items == [Item::Text("hi".into())]));
}

#[test]
fn skips_have_reasons() {
    assert_eq!(of("world_state", "{}"), Err(Skip::Bookkeeping));
    assert_eq!(of("novel", "{}"), Err(Skip::Unknown));
    assert_eq!(read(b"{}"), Err(Skip::Unknown));
    assert_eq!(read(br#"{"type":"response_item"}"#), Err(Skip::Odd));
    assert_eq!(of("event_msg", "[]"), Err(Skip::Odd));
    assert_eq!(read(br#"{"type":"response_item","payload":{"ty"#), Err(Skip::Malformed));
    let twice = r#"{"type":"x","type":"response_item","payload":1,"payload":{"type":"message","role":"user","role":"assistant","content":[]}}"#;
    assert!(matches!(read(twice.as_bytes()), Ok(Record::Row(row)) if row.role == Role::Assistant));
    let mut bad = br#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"a?"}}"#.to_vec();
    let at = bad.iter().position(|byte| *byte == b'?').unwrap();
    bad[at] = 0xff;
    let Ok(Record::Row(row)) = read(&bad) else { panic!() };
    assert!(matches!(row.items.as_slice(), [Item::Result(result)] if result.text == "a\u{fffd}"));
}
