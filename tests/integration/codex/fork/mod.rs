//! Forks of real threads, resumed by the real host: what the model sees is what the fork says.

mod kit;
mod live;
mod manual;
mod prune;
mod real;
mod records;
mod sources;

use compactd_tests::harness::Home;
use compactd_tests::harness::host::codex;
use compactd_tests::harness::host::codex::wire::has;
use compactd_tests::harness::host::codex::{CODE_MODE, Codex, Config, Responses, Step, rollout};
use serde_json::{Value, json};

use kit::{Fork, compactctl, contexts, long_code, long_work, notes, only_request, resumes, write};

#[test]
fn a_history_that_is_only_a_made_up_word() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([Step::shell("ls"), Step::text("Seen.")]));
    let host = Codex::new(&codex, &home, &api);
    let first = host.exec("Look around in the old conversation.").good();
    // A thread whose newest compaction left nothing but the word.
    let mut records = rollout::records(&host.rollout(&first.thread));
    let canary = json!([{ "type": "message", "role": "user",
        "content": [{ "type": "input_text", "text": "CANARY-heron-7713" }] }]);
    records
        .push(json!({ "timestamp": "2026-11-30T08:00:00.000Z", "ordinal": 0, "type": "compacted",
        "payload": { "message": "", "replacement_history": canary, "window_number": 1 } }));
    let thread = "01a22bab-0000-7000-8000-00000000ca1a";
    write(&host, thread, records);
    let fork = Fork::of(&home, &host, thread, &[]);
    assert_eq!(Value::from(fork.history()), canary);
    let request = only_request(&host, &fork.thread);
    assert!(has(&request.body, "CANARY-heron-7713"));
    assert!(!has(&request.body, "old conversation") && !has(&request.body, "Seen."));
}

#[test]
fn a_pruned_history_is_all_that_the_model_sees() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    api.script(long_work(&host));
    let first = host.exec("Write a note and check it.").good();
    let fork = Fork::of(&home, &host, &first.thread, &[]);
    assert!(fork.counter("dropped") > 0, "{}", fork.answer);
    let number = |name: &str| fork.answer[name].as_u64().unwrap();
    assert!(number("tokens_after") < number("tokens_before"), "{}", fork.answer);
    let command = format!("codex resume {} -m gpt-5.5", fork.thread);
    assert_eq!(fork.answer["resume_command"], command);
    // The file is one that the host would have written: whole, in one piece, numbered.
    let records = fork.records();
    assert_eq!(number("records"), records.len() as u64);
    let last = records.last().unwrap();
    assert_eq!(last["payload"]["type"], "token_count");
    assert_eq!(last["payload"]["info"]["last_token_usage"]["total_tokens"], number("tokens_after"));
    assert!(last["payload"]["rate_limits"].is_null());
    let request = resumes(&host, &fork);
    assert!(has(&request.body, "heron_7713_quartz"), "what was used later");
    assert!(!has(&request.body, "unused_name_3_7"), "what nothing used");
    // What went can be had back from the fork itself, byte for byte.
    let gone = notes(&fork.history()).into_iter().next().unwrap();
    let id = gone["call_id"].as_str().unwrap();
    let recalled = compactctl(&home, &host, &["recall", id, "--session", &fork.thread]);
    let source = rollout::records(&host.rollout(&first.thread));
    let original = rollout::payloads(&source, "response_item")
        .into_iter()
        .find(|item| item["call_id"] == id && item.get("output").is_some())
        .unwrap();
    assert_eq!(recalled.stdout, original["output"].as_str().unwrap().as_bytes(), "{recalled:?}");
}

#[test]
fn a_fork_of_a_fork_changes_no_note() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    api.script(long_work(&host));
    let first = host.exec("Write a note and check it.").good();
    let fork = Fork::of(&home, &host, &first.thread, &[]);
    // Twice in a row is once.
    let again = Fork::of(&home, &host, &fork.thread, &[]);
    assert_eq!(again.history(), fork.history());
    resumes(&host, &fork);
    // More work in the fork, and a fork of that.
    api.script(long_work(&host));
    drop(host.resume(&fork.thread, "Once more.").good());
    let second = Fork::of(&home, &host, &fork.thread, &[]);
    let (old, new) = (notes(&fork.history()), notes(&second.history()));
    assert!(!old.is_empty() && new.len() > old.len(), "{} {}", old.len(), new.len());
    assert!(old.iter().all(|note| new.contains(note)), "a note has changed");
    resumes(&host, &second);
    let numbers: Vec<Value> = rollout::payloads(&second.records(), "compacted")
        .iter()
        .map(|compacted| compacted["window_number"].clone())
        .collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn code_mode() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::set_up(&codex, &home, &api, &Config::default().model(CODE_MODE));
    api.script(long_code(&host));
    let first = host.exec("Write a note and check it.").good();
    let fork = Fork::of(&home, &host, &first.thread, &[]);
    assert!(fork.counter("dropped") > 0, "{}", fork.answer);
    let command = format!("codex resume {} -m {CODE_MODE}", fork.thread);
    assert_eq!(fork.answer["resume_command"], command);
    resumes(&host, &fork);
}

#[test]
fn a_budget_cuts_further_and_says_when_that_is_not_enough() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    api.script(long_work(&host));
    let first = host.exec("Write a note and check it.").good();
    let rules = Fork::of(&home, &host, &first.thread, &[]);
    let after = |fork: &Fork| fork.answer["tokens_after"].as_u64().unwrap();
    let budget = (after(&rules) - 200).to_string();
    let further = Fork::of(&home, &host, &first.thread, &["--budget", &budget]);
    assert!(after(&further) < after(&rules), "{}", further.answer);
    assert_ne!(further.answer["level"], "rules");
    resumes(&host, &further);
    let little = Fork::of(&home, &host, &first.thread, &["--budget", "1"]);
    assert_eq!(little.answer["over_target"], true, "{}", little.answer);
    let request = resumes(&host, &little);
    assert_eq!(contexts(&request), 1);
    // A look writes nothing.
    let before = kit::hashes(&host);
    let look = compactctl(&home, &host, &["fork", &first.thread, "--dry-run", "--json"]);
    let look: Value = serde_json::from_slice(&look.stdout).unwrap();
    assert_eq!((&look["dry_run"], &look["counters"]), (&json!(true), &rules.answer["counters"]));
    assert_eq!(kit::hashes(&host), before);
}
