use compactd_core::record::Item as Part;

use super::*;

fn history(lines: &[&str]) -> History {
    let mut history = History::default();
    for (at, line) in lines.iter().enumerate() {
        let whole = json::value(line).unwrap();
        let kind = whole.kind().unwrap();
        let payload = whole.member("payload").unwrap();
        history.record(line, u32::try_from(at).unwrap(), &kind, payload);
    }
    history
}

fn user(text: &str) -> String {
    format!(
        r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
    )
}

fn texts(history: &History) -> Vec<String> {
    let text = |item: &Item| {
        let row = codex::item(item.value()?).ok()?;
        row.items.into_iter().find_map(|part| match part {
            Part::Text(text) => Some(text.into_owned()),
            Part::Result(result) => Some(format!("{}={}", result.id, result.text)),
            Part::Call(call) => Some(call.id.into_owned()),
            Part::Opaque => None,
        })
    };
    history.items.iter().filter_map(text).collect()
}

#[test]
fn the_newest_sound_compaction_replaces_what_was_before() {
    let good = r#"{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]}]}}"#;
    let bad = r#"{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","content":[]}]}}"#;
    let history = history(&[&user("a"), good, &user("b"), bad, &user("c")]);
    assert_eq!(texts(&history), ["kept", "b", "c"]);
    assert!(history.is_compacted && !history.is_summary_only);
    assert_eq!(history.items.iter().map(|item| item.line).collect::<Vec<_>>(), [1, 2, 4]);
}

/// A `compacted` record with one message, and these members beside it.
fn compacted(text: &str, beside: &str) -> String {
    format!(
        r#"{{"type":"compacted","payload":{{"message":"","replacement_history":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}]{beside}}}}}"#
    )
}

#[test]
fn a_compaction_that_the_host_drops_is_doubted() {
    let sound = [
        "",
        r#","window_id":7,"retained_context":null,"resume_metadata":{"a":1}"#,
        r#","retained_context":{"verified_answers":[],"incomplete":false}"#,
        r#","latest_token_usage_record":{"thread_id":"t","turn_id":"u","usage":{}}"#,
        r#","replacement_history_metadata":[{"history_sequence":3}]"#,
    ];
    for beside in sound {
        let history = history(&[&user("a"), &compacted("kept", beside)]);
        assert_eq!((texts(&history), history.doubt), (vec!["kept".to_owned()], None), "{beside}");
    }
    for (beside, place) in [
        (r#","first_window_id":5"#, "/first_window_id"),
        (r#","resume_metadata":"junk""#, "/resume_metadata"),
        (r#","replacement_history_metadata":[7]"#, "/replacement_history_metadata/0"),
        (r#","retained_context":"junk""#, "/retained_context"),
        (r#","retained_context":{}"#, "/retained_context/verified_answers"),
        (r#","latest_token_usage_record":"junk""#, "/latest_token_usage_record"),
        (r#","mcp_resource_origins":{}"#, "/mcp_resource_origins"),
        (r#","compaction_response_id":9"#, "/compaction_response_id"),
    ] {
        let dropped = compacted("dropped", beside);
        let doubted = history(&[&user("a"), &dropped, &user("b")]);
        assert_eq!(texts(&doubted), ["a", "b"], "{beside}");
        let (line, flaw) = doubted.doubt.unwrap();
        assert_eq!((line, flaw.place.as_str()), (1, place));
        let settled = history(&[&user("a"), &dropped, &compacted("kept", "")]);
        assert_eq!((texts(&settled), settled.doubt), (vec!["kept".to_owned()], None), "{beside}");
    }
}

#[test]
fn a_compaction_with_sound_is_taken() {
    let audio = compacted("a", "").replace(
        r#""content":["#,
        r#""content":[{"type":"input_audio","audio_url":"data:audio/wav;base64,AAAA"},"#,
    );
    let history = history(&[&user("gone"), &audio]);
    assert_eq!((texts(&history), history.doubt), (vec!["a".to_owned()], None));
}

#[test]
fn system_messages_are_taken_from_a_compaction_only() {
    let system = |line: String| line.replace(r#""role":"user""#, r#""role":"system""#);
    let lines = [system(compacted("kept", "")), system(user("left out")), user("a")];
    assert_eq!(texts(&history(&lines.each_ref().map(String::as_str))), ["kept", "a"]);
}

fn back(turns: &str) -> String {
    format!(
        r#"{{"type":"event_msg","payload":{{"type":"thread_rolled_back","num_turns":{turns}}}}}"#
    )
}

#[test]
fn turns_are_taken_back() {
    let context = user("<environment_context></environment_context>");
    let aborted = user("<turn_aborted></turn_aborted>");
    let agent = r#"{"type":"response_item","payload":{"type":"agent_message","author":"x","recipient":"y","content":[{"type":"input_text","text":"agent"}]}}"#.to_owned();
    let skill = user("<skill> please explain this tag");
    let left = |turns: &str| {
        let (a, back, z) = (user("a"), back(turns), user("z"));
        let lines = [&context, &a, &skill, &aborted, &agent, &back, &z].map(|line| line as &str);
        let history = history(&lines);
        assert!(!history.is_torn_up);
        assert_eq!(history.has_taken_back, history.items.len() < 6, "{turns}");
        texts(&history).len()
    };
    for (turns, items) in [("0", 6), ("1", 5), ("2", 3), ("3", 2), ("4", 2), ("4294967295", 2)] {
        assert_eq!(left(turns), items, "{turns}");
    }
    for ignored in ["4294967296", "-1", "1.5", "\"1\"", "null"] {
        assert_eq!(left(ignored), 6, "{ignored}");
    }
    let none = history(&[&context, &back("1")]);
    assert_eq!(none.items.len(), 1, "no prompt, nothing to take back");
}

#[test]
fn a_compaction_is_torn_up_by_more_turns_than_stand_behind_it() {
    let torn = |turns: &[&str]| {
        let mut lines = vec![user("a"), compacted("kept", ""), user("b"), user("c")];
        lines.extend(turns.iter().map(|turns| back(turns)));
        history(&lines.iter().map(String::as_str).collect::<Vec<_>>()).is_torn_up
    };
    assert!(!torn(&["2"]) && !torn(&["1", "1"]));
    assert!(torn(&["3"]) && torn(&["1", "2"]) && torn(&["1", "1", "1", "0"]));
}

fn response(item: &str) -> String {
    format!(r#"{{"type":"response_item","payload":{item}}}"#)
}

fn call(kind: &str, ids: &str) -> String {
    response(&format!(
        r#"{{"type":"{kind}",{ids},"name":"x","arguments":"{{}}","input":"","execution":"client","status":"completed","action":{{"type":"exec","command":["ls"]}}}}"#
    ))
}

fn output(kind: &str, id: &str) -> String {
    response(&format!(
        r#"{{"type":"{kind}","call_id":"{id}","output":"ok","execution":"client","status":"completed","tools":[7]}}"#
    ))
}

/// Kind, id and what is answered, of each item behind the pairing of these lines.
fn paired(lines: &[String], expected: (usize, usize)) -> Vec<String> {
    let mut history = history(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(history.pair(), expected);
    assert_eq!(history.pair(), (0, 0), "once is enough");
    let said = |item: &Item| {
        let value: serde_json::Value = serde_json::from_str(&item.raw).unwrap();
        let text = |key: &str| value[key].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", text("type"), text("call_id"), text("output"))
    };
    history.items.iter().map(said).collect()
}

#[test]
fn pairs_are_whole() {
    for (kind, answer) in [
        ("function_call", "function_call_output"),
        ("local_shell_call", "function_call_output"),
        ("custom_tool_call", "custom_tool_call_output"),
    ] {
        let id = |id: &str| format!(r#""call_id":"{id}""#);
        let lines = [
            call(kind, &id("c1")),
            call(kind, &id("c2")),
            output(answer, "c1"),
            output(answer, "gone"),
        ];
        let expected = [
            format!("{kind} c1 -"),
            format!("{kind} c2 -"),
            format!("{answer} c2 aborted"),
            format!("{answer} c1 ok"),
        ];
        assert_eq!(paired(&lines, (1, 1)), expected);
    }
}

#[test]
fn an_output_of_another_kind_is_none() {
    let lines = [
        call("function_call", r#""call_id":"c1""#),
        output("custom_tool_call_output", "c1"),
        call("custom_tool_call", r#""call_id":"c2""#),
        output("function_call_output", "c2"),
    ];
    let expected = [
        "function_call c1 -",
        "function_call_output c1 aborted",
        "custom_tool_call c2 -",
        "custom_tool_call_output c2 aborted",
    ];
    assert_eq!(paired(&lines, (2, 2)), expected);
}

#[test]
fn an_id_alone_is_no_call_id() {
    let lines = [
        call("local_shell_call", r#""id":"c1""#),
        output("function_call_output", "c1"),
        call("local_shell_call", r#""id":"c2","call_id":null"#),
    ];
    assert_eq!(paired(&lines, (1, 0)), ["local_shell_call - -"; 2]);
}

#[test]
fn searches_of_tools_are_pairs_too() {
    let by_provider = output("tool_search_output", "s4").replace("client", "server");
    let lines = [
        call("tool_search_call", r#""call_id":"s1""#),
        call("tool_search_call", r#""call_id":"s2""#),
        output("tool_search_output", "s1"),
        output("tool_search_output", "s3"),
        by_provider,
        call("tool_search_call", r#""id":"s5""#),
    ];
    let expected = [
        "tool_search_call s1 -",
        "tool_search_call s2 -",
        "tool_search_output s2 -",
        "tool_search_output s1 ok",
        "tool_search_output s4 ok",
        "tool_search_call - -",
    ];
    assert_eq!(paired(&lines, (1, 1)), expected);
    let mut history = history(&[&lines[1]]);
    history.pair();
    assert_eq!(shape::item(&history.items[1].raw), Ok(shape::Kind::Output));
}
