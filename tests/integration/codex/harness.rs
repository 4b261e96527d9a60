//! The harness itself: what the other tests trust.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use compactd_tests::harness::Home;
use compactd_tests::harness::host::codex;
use compactd_tests::harness::host::codex::rollout::{payloads, records, replacement_history};
use compactd_tests::harness::host::codex::scenario::{SHORT_PROMPT, Tools, short_work};
use compactd_tests::harness::host::codex::wire::differs_from_resume;
use compactd_tests::harness::host::codex::{Codex, Kind, Responses, Step};
use serde_json::{Value, json};

#[test]
fn a_resume_sends_what_the_rollout_holds() {
    let Some(codex) = codex() else { return };
    for tools in Tools::ALL {
        let (home, api) = (Home::new(), Responses::start(short_work(tools)));
        let host = Codex::set_up(&codex, &home, &api, &tools.config());
        let thread = host.exec(SHORT_PROMPT).good().thread;
        let mut history = payloads(&records(&host.rollout(&thread)), "response_item");
        let resumed = host.resume(&thread, "And now?").good();
        assert_eq!(resumed.thread, thread);
        assert_eq!(resumed.kinds(), [Kind::Turn], "{tools:?}");
        assert_eq!(differs_from_resume(resumed.last(), &history), None, "{tools:?}");
        // It would be seen if it were not so.
        let removed = history.remove(history.len() / 2);
        let why = differs_from_resume(resumed.last(), &history);
        assert!(why.is_some(), "{tools:?}: {removed}");
        history.insert(history.len() / 2, json!({"type": "other"}));
        assert!(differs_from_resume(resumed.last(), &history).is_some());
    }
}

#[test]
fn after_a_compaction_its_history_is_sent() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start(short_work(Tools::Direct)));
    let host = Codex::new(&codex, &home, &api);
    let thread = host.exec(SHORT_PROMPT).good().thread;
    assert_eq!(replacement_history(&records(&host.rollout(&thread))), None);
    let before = api.count();
    host.compact(&thread);
    let asked = api.first_request_after(before);
    assert_eq!(asked.kind, Kind::CompactLocal);
    assert_eq!(asked.about["compaction"]["trigger"], "manual", "{}", asked.about);
    let kept = replacement_history(&records(&host.rollout(&thread))).unwrap();
    let resumed = host.resume(&thread, "And now?").good();
    assert_eq!(differs_from_resume(resumed.last(), &kept), None);
}

#[test]
fn failures_of_the_api() {
    let Some(codex) = codex() else { return };
    let steps = [
        Step::status(500, "out of order"),
        Step::failed("context_length_exceeded", "too long"),
        Step::text("Well."),
    ];
    let (home, api) = (Home::new(), Responses::start(steps));
    let host = Codex::new(&codex, &home, &api);
    for words in ["high demand", "context window"] {
        let run = host.exec("Go.");
        assert!(!run.status.success(), "{run:?}");
        let told = json!(run.events).to_string();
        assert!(told.contains(words), "{told}");
    }
    let run = host.exec("Go.").good();
    assert!(run.events.iter().any(|event| event["item"]["text"] == "Well."), "{:?}", run.events);
}

/// A marketplace with one plugin whose only hook writes a file.
fn marketplace(home: &Home) -> std::path::PathBuf {
    let folder = home.join("marketplace");
    let put = |name: &str, value: &Value| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    };
    put(
        ".agents/plugins/marketplace.json",
        &json!({"name": "shelf", "plugins": [{"name": "bell",
            "source": {"source": "local", "path": "./bell"}}]}),
    );
    put("bell/.codex-plugin/plugin.json", &json!({"name": "bell", "version": "0.1.0"}));
    put(
        "bell/hooks/hooks.json",
        &json!({"hooks": {"UserPromptSubmit": [{"hooks": [
            {"type": "command", "command": "\"${PLUGIN_ROOT}/ring\""}]}]}}),
    );
    let ring = folder.join("bell/ring");
    fs::write(&ring, "#!/bin/sh\ncat >\"$HOME/rung\"\n").unwrap();
    fs::set_permissions(&ring, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn hooks_of_a_plugin_run_when_they_are_approved() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    host.install_plugin(&marketplace(&home), "bell@shelf");
    let rung = home.join("rung");
    host.exec("Go.").good();
    assert!(!rung.exists(), "nobody has approved it");
    let found = host.trust();
    let keys: Vec<&Value> = found.iter().map(|hook| &hook["key"]).collect();
    assert_eq!(keys, ["bell@shelf:hooks/hooks.json:user_prompt_submit:0:0"]);
    assert_eq!(found[0]["trustStatus"], "untrusted");
    host.exec("Go.").good();
    let input: Value = serde_json::from_slice(&fs::read(&rung).unwrap()).unwrap();
    assert_eq!(input["prompt"], "Go.");
    assert_eq!(host.hooks()[0]["trustStatus"], "trusted");
}
