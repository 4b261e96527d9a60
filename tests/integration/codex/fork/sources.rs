//! Every kind of source that a thread can have.

use std::fs;

use compactd_tests::harness::Home;
use compactd_tests::harness::host::codex;
use compactd_tests::harness::host::codex::wire::has;
use compactd_tests::harness::host::codex::{Call, Codex, Config, Responses, Step, rollout};
use serde_json::json;

use super::kit::{Fork, PROMPT, long_work, only_request, pack, refusal, resumes, write};

#[test]
fn after_a_native_compaction() {
    let Some(codex) = codex() else { return };
    for provider in ["mock", "OpenAI"] {
        let (home, api) = (Home::new(), Responses::start([]));
        let host = Codex::set_up(&codex, &home, &api, &Config::default().provider(provider));
        api.script([Step::shell("ls"), Step::text("Seen in the old conversation.")]);
        let first = host.exec("Look around.").good();
        host.compact(&first.thread);
        api.script(long_work(&host));
        drop(host.resume(&first.thread, "Write a note and check it.").good());
        let fork = Fork::of(&home, &host, &first.thread, &[]);
        assert!(fork.counter("dropped") > 0, "{}", fork.answer);
        let request = resumes(&host, &fork);
        assert!(!has(&request.body, "Seen in the old conversation."), "{provider}");
        let sealed = request.input().iter().any(|item| item["type"] == "compaction");
        assert_eq!(sealed, provider == "OpenAI", "a sealed history goes along as it is");
        let compacted = rollout::payloads(&fork.records(), "compacted");
        let numbers: Vec<_> = compacted.iter().map(|it| it["window_number"].clone()).collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(compacted[1]["previous_window_id"], compacted[0]["window_id"]);
        assert_eq!(compacted[1]["first_window_id"], compacted[0]["first_window_id"]);
    }
}

#[test]
fn from_a_legacy_rollout() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    let mut server = host.app_server();
    let thread = server.new_thread(&json!({ "historyMode": "legacy" }));
    api.script(long_work(&host));
    server.turn(&thread, "Write a note and check it.");
    server.finish();
    let records = rollout::records(&host.rollout(&thread));
    assert!(records.iter().all(|record| record.get("ordinal").is_none()), "it is not legacy");
    let fork = Fork::of(&home, &host, &thread, &[]);
    assert!(fork.counter("dropped") > 0, "{}", fork.answer);
    assert!(fork.records().iter().all(|record| record.get("ordinal").is_none()));
    resumes(&host, &fork);
    // Turns that were taken back in it must not take the fork's records with them.
    let mut back = records;
    back.push(json!({ "timestamp": "2026-11-30T08:00:00.000Z", "type": "event_msg",
        "payload": { "type": "thread_rolled_back", "num_turns": 1 } }));
    let id = "01a22bab-0000-7000-8000-0000000bac00";
    write(&host, id, back);
    api.script([Step::text("A new turn.")]);
    drop(host.resume(id, "Something else.").good());
    let fork = Fork::of(&home, &host, id, &[]);
    let request = only_request(&host, &fork.thread);
    assert!(has(&request.body, "A new turn.") && !has(&request.body, "Write a note"));
}

#[test]
fn from_a_native_fork_and_a_packed_file() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    api.script(long_work(&host));
    let first = host.exec("Write a note and check it.").good();
    api.script([Step::shell("cat note.txt"), Step::text("Read again in the native fork.")]);
    let native = host.fork(&first.thread, "Read the note again.").good();
    assert_ne!(native.thread, first.thread);
    let records = rollout::records(&host.rollout(&native.thread));
    assert!(records[0]["payload"]["history_base"].is_object(), "{}", records[0]);
    let fork = Fork::of(&home, &host, &native.thread, &[]);
    assert!(fork.counter("dropped") > 0, "{}", fork.answer);
    let request = resumes(&host, &fork);
    assert!(has(&request.body, "Read again in the native fork."));
    // Its history lies in its own file: it goes on without its parents.
    let again = Fork::of(&home, &host, &native.thread, &[]);
    fs::remove_file(host.rollout(&native.thread)).unwrap();
    fs::remove_file(host.rollout(&first.thread)).unwrap();
    resumes(&host, &again);

    let packed = pack(&host.rollout(&again.thread));
    let fork = Fork::of(&home, &host, &again.thread, &[]);
    assert_eq!(fork.answer["source"]["path"], packed.to_str().unwrap());
    resumes(&host, &fork);
}

#[test]
fn from_a_sub_agent() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    api.script([
        Step::calls([Call::spawn("Look around for me.")]),
        Step::text("The agent works."),
        Step::shell("ls").for_agent(),
        Step::text("The agent has looked.").for_agent(),
    ]);
    let run = host.exec("Let somebody look around.").good();
    let all = rollout::all(&host.codex_home());
    let agent = all
        .iter()
        .map(|path| rollout::records(path)[0]["payload"].clone())
        .find(|meta| meta["id"] != run.thread.as_str())
        .unwrap();
    // It becomes a person's thread, with the tools that it had.
    let fork = Fork::of(&home, &host, agent["id"].as_str().unwrap(), &[]);
    resumes(&host, &fork);
    let meta = &fork.records()[0]["payload"];
    assert_eq!((&meta["thread_source"], meta.get("parent_thread_id")), (&"user".into(), None));
}

#[test]
fn what_cannot_be_forked_is_refused_with_the_reason() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([Step::text("Seen.")]));
    let host = Codex::new(&codex, &home, &api);
    let first = host.exec(PROMPT).good();
    let records = rollout::records(&host.rollout(&first.thread));
    let item = |payload: serde_json::Value| json!({ "timestamp": "t", "ordinal": 0, "type": "response_item", "payload": payload });
    let compacted = |history: serde_json::Value| {
        json!({ "timestamp": "t", "ordinal": 0, "type": "compacted",
            "payload": { "message": "sum", "replacement_history": history } })
    };
    let cases = [
        (item(json!({ "type": "telepathy" })), "/type"),
        (
            item(
                json!({ "type": "message", "role": "user", "content": [{ "type": "input_text" }] }),
            ),
            "/content/0/text",
        ),
        (compacted(json!([{ "type": "compaction", "encrypted_content": "" }])), "sealed"),
        (compacted(json!(null)), "summary only"),
    ];
    for (number, (record, said)) in cases.into_iter().enumerate() {
        let id = format!("01a22bab-0000-7000-8000-00000000000{number}");
        let mut records = records.clone();
        records.push(record);
        write(&host, &id, records);
        let refused = refusal(&home, &host, &id);
        assert!(refused.starts_with("error: ") && refused.contains(said), "{refused}");
        assert!(refused.contains("\nhint: "), "{refused}");
    }
    assert!(refusal(&home, &host, "01ffffff").contains("no session 01ffffff"));
}
