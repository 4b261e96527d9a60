use super::*;

fn row(line: &str) -> Row<'_> {
    match read(line.as_bytes()) {
        Ok(Record::Row(row)) => row,
        other => panic!("{other:?}"),
    }
}

fn user(content: &str) -> Vec<Item<'static>> {
    let line =
        format!(r#"{{"type":"user","uuid":"u","message":{{"role":"user","content":{content}}}}}"#);
    // Bad UTF-8 behind the text makes the record own its text.
    let mut bytes = line.into_bytes();
    bytes.splice(1..1, *b"\"\xff\":0,");
    match read(bytes.leak()) {
        Ok(Record::Row(row)) => row.items,
        other => panic!("{other:?}"),
    }
}

fn result(content: &str) -> ToolResult<'static> {
    match user(&format!(r#"[{{"type":"tool_result","tool_use_id":"t","content":{content}}}]"#))
        .pop()
    {
        Some(Item::Result(result)) => result,
        other => panic!("{other:?}"),
    }
}

fn text(text: &str) -> Item<'_> {
    Item::Text(text.into())
}

#[test]
fn a_row_carries_its_facts() {
    let row = row(
        r#"{"uuid":"u","parentUuid":"p","isSidechain":true,"isMeta":true,"sessionId":"s","agentId":"a","cwd":"/w","version":"2.1.332",
        "timestamp":"T","type":"assistant","toolUseResult":{"x":["\ud83d"]},"message":{"id":"m","model":"claude","content":[
        {"type":"thinking","thinking":"no"},{"type":"text","text":"hi\n"},{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"/a","limit":5}}],
        "usage":{"input_tokens":1,"cache_read_input_tokens":10,"cache_creation_input_tokens":100,"output_tokens":7}}}"#,
    );
    assert_eq!(
        (row.uuid.as_deref(), row.parent.as_deref(), row.message_id.as_deref()),
        (Some("u"), Some("p"), Some("m"))
    );
    assert_eq!(
        (row.role, row.sidechain, row.meta, row.summary),
        (Role::Assistant, true, true, false)
    );
    let about = row.about;
    assert_eq!(
        (about.session.as_deref(), about.agent.as_deref(), about.cwd.as_deref()),
        (Some("s"), Some("a"), Some("/w"))
    );
    assert_eq!(
        (about.version.as_deref(), about.model.as_deref(), about.timestamp.as_deref()),
        (Some("2.1.332"), Some("claude"), Some("T"))
    );
    assert_eq!(
        about.usage,
        Some(Usage { input_tokens: 111, output_tokens: 7, window_tokens: None })
    );
    let [Item::Text(words), Item::Call(call)] = row.items.as_slice() else {
        panic!("{:?}", row.items)
    };
    assert_eq!(
        (words.as_ref(), call.id.as_ref(), call.tool.as_ref(), call.leaves.len()),
        ("hi\n", "t", "Read", 2)
    );
    assert_eq!(
        (call.leaves[1].key.as_ref(), call.leaves[1].string, call.leaves[1].text.as_ref()),
        ("limit", false, "5")
    );
}

#[test]
fn content_may_have_any_shape() {
    assert_eq!(user(r#""words""#), [text("words")]);
    assert_eq!(
        user(
            r#"["a",{"type":"text","text":"b"},{"text":"c"},{"type":"image"},{"type":"text","text":null},7]"#
        ),
        [text("a"), text("b"), text("c"), Item::Opaque]
    );
    assert_eq!(user(r#"{"type":"text","text":"one"}"#), [text("one")]);
    for nothing in [
        "null",
        "3",
        "[]",
        "{}",
        r#"[{"type":"tool_use","name":"x"}]"#,
        r#"[{"type":"tool_result","content":"x"}]"#,
    ] {
        assert_eq!(user(nothing), [], "{nothing}");
    }
    assert_eq!(row(r#"{"type":"user","message":"bare \ud83d"}"#).items, [text("bare \u{fffd}")]);
    assert_eq!(row(r#"{"type":"user","uuid":"u","message":{"parts":[]}}"#).items, []);
    assert_eq!(row(r#"{"type":"user","uuid":5,"message":null}"#).uuid.as_deref(), Some("5"));
    let twice = r#"{"type":"assistant","type":"user","message":{"content":"a","content":[{"type":"image","text":"c","type":"text"}]}}"#;
    assert_eq!((row(twice).role, row(twice).items), (Role::User, vec![text("c")]));
    let number = r#"{"type":"assistant","message":{"id":9,"content":[{"type":"tool_use","id":7,"name":null,"input":"x"}]}}"#;
    let Some(Item::Call(call)) = row(number).items.pop() else { panic!() };
    assert_eq!((call.id.as_ref(), call.tool.as_ref(), call.leaves[0].depth), ("7", "", 0));
    assert_eq!(row(number).message_id.as_deref(), Some("9"));
}

#[test]
fn results_join_their_texts() {
    let parts = result(
        r#"[{"type":"text","text":"a\t"},"b",{"type":"image","source":{}},{"type":"tool_reference"}]"#,
    );
    assert_eq!((parts.text.as_ref(), parts.opaque, parts.body()), ("a\t\nb", true, "a\t\nb"));
    assert_eq!(result(r#""x""#).text, "x");
    assert_eq!((result("null").text.as_ref(), result("null").opaque), ("", false));
    assert_eq!(result(r#"{"type":"text","text":"y"}"#).text, "y");
    assert_eq!((result("[]").text.as_ref(), result("[]").opaque), ("", false));
    let Some(Item::Result(failed)) =
        user(r#"[{"content":"e","is_error":true,"tool_use_id":"t","type":"tool_result"}]"#).pop()
    else {
        panic!()
    };
    assert!(failed.is_error);
    assert!(!result(r#""x""#).is_error);
}

#[test]
fn boundaries_and_links() {
    let line = r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"isSidechain":true,
        "compactMetadata":{"trigger":"manual","preservedMessages":{"anchorUuid":"x","uuids":["1","2"],"allUuids":["1","2","3"]}}}"#;
    let want = Boundary {
        uuid: Some("b".into()),
        preserved: vec!["1".into(), "2".into()],
        sidechain: true,
        trigger: Some("manual".into()),
    };
    assert_eq!(read(line.as_bytes()), Ok(Record::Boundary(want)));
    let bare = read(br#"{"type":"system","subtype":"compact_boundary"}"#);
    assert_eq!(
        bare,
        Ok(Record::Boundary(Boundary {
            uuid: None,
            preserved: vec![],
            sidechain: false,
            trigger: None
        }))
    );
    for link in [
        r#"{"type":"system","subtype":"turn_duration","uuid":"u"}"#,
        r#"{"type":"attachment","uuid":"u","attachment":{"type":"file"}}"#,
        r#"{"type":"progress","uuid":"u"}"#,
        r#"{"type":"brand-new","uuid":"u","message":{"content":"x"}}"#,
        r#"{"uuid":"u"}"#,
        r#"{"type":"assistant","uuid":"u","isApiErrorMessage":true,"message":{"id":"m","content":[{"type":"text","text":"no"}]}}"#,
    ] {
        let row = row(link);
        assert_eq!((row.role, row.items.len(), row.message_id), (Role::Link, 0, None), "{link}");
    }
}

#[test]
fn summaries_are_sent_and_built_rows_have_no_model() {
    let summary = row(
        r#"{"type":"user","uuid":"u","isCompactSummary":true,"isVisibleInTranscriptOnly":true,"message":{"content":"S"}}"#,
    );
    assert_eq!((summary.role, summary.summary, summary.items), (Role::User, true, vec![text("S")]));
    let built = row(
        r#"{"type":"assistant","uuid":"u","message":{"model":"<synthetic>","usage":{"input_tokens":0,"output_tokens":0},"content":"x"}}"#,
    );
    assert_eq!((built.about.model, built.about.usage), (None, None));
}

#[test]
fn skips_have_reasons() {
    for (line, why) in [
        (r#"{"type":"summary","summary":"s","leafUuid":"l"}"#, Skip::Bookkeeping),
        (
            r#"{"type":"api-request-blob","message":{"role":"user","content":"x"}}"#,
            Skip::Bookkeeping,
        ),
        (r#"{"type":"api-request","uuid":"u"}"#, Skip::Bookkeeping),
        (r#"{"type":"file-history-snapshot","snapshot":{}}"#, Skip::Bookkeeping),
        (r#"{"type":"brand-new"}"#, Skip::Unknown),
        (r#"{"type":7}"#, Skip::Unknown),
        ("{}", Skip::Unknown),
        (r#"{"type":"user"}"#, Skip::Odd),
        (r#"{"type":"assistant","message":null}"#, Skip::Odd),
        (r#"{"type":"user","uuid":"u","message":{"conte"#, Skip::Malformed),
        (r#"{"type":"user"}{"type":"user"}"#, Skip::Malformed),
        ("null", Skip::Malformed),
    ] {
        assert_eq!(read(line.as_bytes()), Err(why), "{line}");
    }
}

#[test]
fn deep_inputs_are_read() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let line = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t","input":{{"k":{open}"x"{close}}}}}]}}}}"#
    );
    let Some(Item::Call(call)) = row(&line).items.pop() else { panic!() };
    assert_eq!((call.leaves[0].key.as_ref(), call.leaves[0].depth), ("k", 255));
}
