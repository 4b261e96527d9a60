//! Which rows count, and how they make messages (§1, §2).

use serde_json::{Value, json};

use super::test_kit::{
    Claude, answer, call, codex_call, codex_output, codex_says, codex_user, ids, item, result, run,
};
use super::{History, rescan};
use super::{Host, Options, Outcome, standin::Standin};

fn whole() -> Options {
    Options { history: History::Whole, ..Options::default() }
}

fn context(session: &Claude) -> Outcome {
    session.run(&Options::default())
}

#[test]
fn a_rewound_branch_is_out() {
    let mut session = Claude::new();
    session.bash("a", "ls", "x");
    let fork = session.says("one way");
    session.bash("b", "ls", "y");
    session.calls("c", "Bash", json!({"command": "pwd"}));
    session.rows.last_mut().unwrap()["parentUuid"] = json!(fork);
    session.answers("c", "z");
    assert_eq!(ids(&context(&session)), ["a", "c"]);
    assert_eq!(ids(&session.run(&whole())), ["a", "b", "c"]);
}

#[test]
fn parallel_results_hang_on_their_own_calls() {
    let mut session = Claude::new();
    let first = session.block("m", call("a", "Bash", json!({"command": "ls"})));
    let second = session.block("m", call("b", "Bash", json!({"command": "pwd"})));
    session.answers("b", "y");
    session.rows.last_mut().unwrap()["parentUuid"] = json!(second);
    session.answers("a", "x");
    session.rows.last_mut().unwrap()["parentUuid"] = json!(first);
    session.says("done");
    let outcome = context(&session);
    assert_eq!(ids(&outcome), ["b", "a"]);
    assert_eq!(outcome.messages, 4);
}

#[test]
fn a_row_beside_the_path_with_words_is_out() {
    let mut session = Claude::new();
    let first = session.block("m", call("a", "Bash", json!({"command": "ls"})));
    session.user(json!([answer("a", "x"), {"type": "text", "text": "words"}]));
    session.says("hidden");
    session.says("seen");
    session.rows.last_mut().unwrap()["parentUuid"] = json!(first);
    assert_eq!(ids(&context(&session)), Vec::<&str>::new());
}

fn boundary(preserved: &[&str]) -> Value {
    json!({"type": "system", "subtype": "compact_boundary", "parentUuid": null,
        "compactMetadata": {"preservedMessages": {"uuids": preserved}}})
}

#[test]
fn a_boundary_keeps_what_it_preserved() {
    let mut session = Claude::new();
    session.bash("a", "ls", "x");
    let call = session.calls("b", "Bash", json!({"command": "pwd"}));
    let result = session.answers("b", "y");
    session.row(boundary(&[&call, "unknown", &result]));
    session.row(json!({"type": "user", "isCompactSummary": true,
        "message": {"content": "the story so far"}}));
    session.bash("c", "ls", "z");
    let outcome = context(&session);
    assert_eq!(ids(&outcome), ["b", "c"]);
    // Summary, preserved call, preserved result, call, result.
    assert_eq!(outcome.messages, 5);
    assert_eq!(ids(&session.run(&whole())), ["a", "b", "c"]);
}

#[test]
fn preserved_rows_come_first_without_a_summary() {
    let mut session = Claude::new();
    let first = session.says("old words");
    session.row(boundary(&[&first]));
    session.user(json!("go on"));
    assert_eq!(context(&session).messages, 2);
}

#[test]
fn copies_of_a_rewrite_are_the_same_results() {
    let mut session = Claude::new();
    session.bash("a", "ls", "long ago");
    let old = session.rows[1]["uuid"].clone();
    session.row(boundary(&[]));
    session.user(json!("please look"));
    session.block("m1", call("a", "Bash", json!({"command": "ls"})));
    session.answers("a", "cut");
    // The copy of a result names the call before the boundary: it hangs on the row before it.
    session.rows.last_mut().unwrap()["parentUuid"] = old;
    session.says("on");
    let outcome = context(&session);
    assert_eq!(ids(&outcome), ["a"]);
    assert_eq!(result(&outcome, "a").chars, 3);
    assert_eq!(outcome.messages, 4);
    let all = session.run(&whole());
    assert_eq!(ids(&all), ["a"]);
    assert_eq!(result(&all, "a").chars, 8);
}

#[test]
fn a_repeated_uuid_is_out_in_its_epoch_only() {
    let mut session = Claude::new();
    session.row(json!({"type": "user", "uuid": "u0", "message": {"content": "again"}}));
    session.row(boundary(&[]));
    session.row(json!({"type": "user", "uuid": "u0", "message": {"content": "again"}}));
    assert_eq!(context(&session).messages, 1);
    assert_eq!(session.run(&whole()).messages, 1);
}

#[test]
fn sidechains() {
    let mut session = Claude::new();
    session.bash("a", "ls", "x");
    session.calls("s", "Bash", json!({"command": "ls"}));
    session.answers("s", "y");
    for row in &mut session.rows[3..] {
        row["isSidechain"] = json!(true);
    }
    session.bash("b", "ls", "z");
    session.rows[5]["parentUuid"] = json!("u2");
    assert_eq!(ids(&context(&session)), ["a", "b"]);
    assert_eq!(ids(&session.run(&whole())), ["a", "b"]);
    // The file of a sub-agent holds sidechain rows only.
    session.rows.drain(..3);
    session.rows[1]["parentUuid"] = session.rows[0]["uuid"].clone();
    assert_eq!(ids(&context(&session)), ["s"]);
    assert_eq!(ids(&session.run(&whole())), ["s"]);
}

#[test]
fn rows_without_uuid_are_in_and_lost_parents_hang_on_the_row_before() {
    let mut session = Claude::new();
    session.bash("a", "ls", "x");
    session.rows[1]["uuid"] = Value::Null;
    session.rows[2]["parentUuid"] = json!("lost");
    assert_eq!(ids(&context(&session)), ["a"]);
    assert_eq!(context(&session).messages, 3);
}

#[test]
fn an_assistant_message_is_one_wherever_its_rows_stand() {
    let mut session = Claude::new();
    session.block("m", call("a", "Bash", json!({"command": "ls"})));
    session.answers("a", "x");
    session.block("m", call("b", "Bash", json!({"command": "pwd"})));
    session.answers("b", "y");
    session.row(json!({"type": "assistant", "message": {"content": "no id"}}));
    session.row(json!({"type": "assistant", "message": {"content": "no id"}}));
    assert_eq!(context(&session).messages, 5);
}

#[test]
fn calls_and_results_count_once_and_in_order() {
    let mut session = Claude::new();
    session.answers("a", "before its call");
    session.bash("a", "ls", "first");
    session.bash("a", "pwd", "second time");
    let outcome = context(&session);
    assert_eq!(ids(&outcome), ["a"]);
    assert_eq!(result(&outcome, "a").chars, 5);
}

#[test]
fn codex_compactions() {
    let history = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "sum"}]},
        {"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "k"},
        {"type": "function_call_output", "call_id": "k", "output": "kept"}
    ]);
    let compacted = |payload: Value| json!({"type": "compacted", "payload": payload});
    let rows = |record: Value| {
        vec![
            codex_user("go"),
            codex_call("a", "ls"),
            codex_output("a", json!("x")),
            record,
            codex_call("b", "ls"),
            codex_output("b", json!("y")),
        ]
    };
    let found = |record: Value| {
        let outcome = run(Host::Codex, &rows(record), &Options::default());
        ids(&outcome).join(" ")
    };
    let good = json!({"message": "", "replacement_history": history});
    assert_eq!(found(compacted(good.clone())), "k b");
    assert_eq!(found(compacted(json!({"message": "old kind"}))), "b");
    let mut bad = good.clone();
    bad["replacement_history"][0]["content"] = json!("a string");
    assert_eq!(found(compacted(bad)), "a b");
    let mut bad = good.clone();
    bad["replacement_history_metadata"] = json!([{}]);
    assert_eq!(found(compacted(bad)), "a b");
    assert_eq!(found(compacted(json!({"replacement_history": history}))), "a b");
    let outcome = run(Host::Codex, &rows(compacted(good)), &whole());
    assert_eq!(ids(&outcome), ["a", "b"]);
}

#[test]
fn codex_rollback() {
    let back = |turns: u64| {
        let rows = [
            codex_user("<environment_context>"),
            codex_user("one"),
            codex_call("a", "ls"),
            codex_output("a", json!("x")),
            codex_user("two"),
            item(json!({"type": "message", "role": "developer",
                "content": [{"type": "input_text", "text": "meta"}]})),
            codex_call("b", "ls"),
            codex_output("b", json!("y")),
            json!({"type": "event_msg",
                "payload": {"type": "thread_rolled_back", "num_turns": turns}}),
        ];
        let outcome = run(Host::Codex, &rows, &Options::default());
        (ids(&outcome).join(" "), outcome.messages)
    };
    assert_eq!(back(0), ("a b".to_owned(), 5));
    assert_eq!(back(1), ("a".to_owned(), 3));
    assert_eq!(back(2), (String::new(), 1));
    assert_eq!(back(3), (String::new(), 0));
}

#[test]
fn codex_messages_are_runs() {
    let rows = [
        codex_user("go"),
        codex_says("on"),
        codex_call("a", "ls"),
        codex_call("b", "ls"),
        codex_output("b", json!("y")),
        codex_output("a", json!("x")),
        codex_user("and"),
        codex_says("ok"),
    ];
    assert_eq!(run(Host::Codex, &rows, &Options::default()).messages, 4);
}

#[test]
fn no_host_no_results() {
    assert_eq!(rescan(&[b"{}", b"x"], None, &Standin, &Options::default()), Outcome::default());
}
