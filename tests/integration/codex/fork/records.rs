//! The records behind the body: each is needed, and the host says so.

use compactd_tests::harness::Home;
use compactd_tests::harness::host::codex;
use compactd_tests::harness::host::codex::wire::differs_from_resume;
use compactd_tests::harness::host::codex::{Codex, Kind, Responses, Step};
use serde_json::Value;

use super::kit::{Fork, LIMIT, PROMPT, contexts, long_work, write};

/// What the host does with a fork: the kinds of its requests, and whether the last one holds the
/// history exactly, with the initial context once.
fn outcome(host: &Codex, thread: &str, history: &[Value]) -> (Vec<Kind>, bool) {
    host.api().script([Step::text("resumed")]);
    let run = host.clone().compacting_at(LIMIT).resume(thread, PROMPT).good();
    let last = run.last();
    let is_exact = differs_from_resume(last, history).is_none() && contexts(last) == 1;
    (run.kinds(), is_exact)
}

#[test]
fn none_can_be_left_out() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    api.script(long_work(&host));
    let first = host.exec("Write a note and check it.").good();
    let fork = Fork::of(&home, &host, &first.thread, &[]);
    let records = fork.records();
    let compacted = records.iter().position(|record| record["type"] == "compacted").unwrap();
    let kinds: Vec<&str> = records[compacted..]
        .iter()
        .map(|record| record["payload"]["type"].as_str().or(record["type"].as_str()).unwrap())
        .collect();
    assert_eq!(kinds, ["compacted", "world_state", "turn_context", "token_count"]);

    let mut next = 0;
    let mut variant = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut records = records.clone();
        change(&mut records);
        next += 1;
        let id = format!("01a22bab-0000-7000-8000-00000000000{next}");
        write(&host, &id, records);
        outcome(&host, &id, &fork.history())
    };
    let exact = (vec![Kind::Turn], true);
    assert_eq!(variant(&|_| {}), exact, "as it is");
    let compacts = (vec![Kind::CompactLocal, Kind::Turn], false);
    let without = |kind: &'static str| {
        move |records: &mut Vec<Value>| {
            let at = records.iter().rposition(|record| record["type"] == kind).unwrap();
            records.remove(at);
        }
    };
    assert_eq!(variant(&without("world_state")), (vec![Kind::Turn], false), "world_state");
    assert_eq!(variant(&without("turn_context")), (vec![Kind::Turn], false), "turn_context");
    let count = |records: &mut Vec<Value>| drop(records.pop());
    let window = |records: &mut Vec<Value>| {
        records[compacted]["payload"].as_object_mut().unwrap().remove("window_number");
    };
    // The two of them say the same to the host; without both it goes by the body's usage.
    assert_eq!(
        variant(&|records| {
            count(records);
            window(records);
        }),
        compacts,
        "the usage"
    );
    // And whatever the host makes of the number, it is ours that it trusts.
    let full = |records: &mut Vec<Value>| {
        let last = records.last_mut().unwrap();
        last["payload"]["info"]["last_token_usage"]["total_tokens"] = (LIMIT + 1).into();
    };
    assert_eq!(variant(&full), compacts, "a count above the limit");
    assert!(!variant(&without("compacted")).1, "the whole conversation");
}
