//! Above the budget: further cuts, and then the host's own summary of what is left.

use std::fs;

use compactd_tests::harness::host::scenario::long_work;
use compactd_tests::harness::host::{Call, Host, Kind, Run, Step, wire};
use serde_json::{Value, json};

use super::kit::{Stage, assert_no_summary, last, notes};
use super::{SMALL_WINDOW, checkout};

/// How every focus text begins.
const FOCUS: &str = "Keep these exactly, character for character:";

/// With a window of 100,000 tokens the host compacts above 67,000, and 60,000 may be left.
fn small(stage: &Stage) -> Host {
    stage.host.clone().with_env(SMALL_WINDOW.0, SMALL_WINDOW.1)
}

/// Outputs of some 25 KB that are the newest reads of their files: the rules alone keep them.
fn large_reads(host: &Host, number: usize) -> Step {
    Step::tools((0..number).map(|of| {
        let line = |line: usize| format!("{of} entry {line} holds value_{of}_{line} and no more\n");
        let path = host.put(&format!("data/{of}.txt"), (0..600).map(line).collect::<String>());
        Call::new("Bash", json!({"command": format!("cat {}", path.display())}))
            .id(&format!("toolu_large_{of}"))
    }))
}

#[track_caller]
fn pass(stage: &Stage, session: &str) -> Value {
    let path = format!("/v1/sessions/{session}/passes/last");
    stage.daemon.as_ref().unwrap().client.get(&path).good()
}

#[track_caller]
fn summary_asked(run: &Run) -> &Value {
    let asked = run.of_kind(Kind::Summary);
    assert_eq!(asked.len(), 1, "{}", wire::outlines(&run.requests));
    &asked[0].body
}

#[test]
fn further_cuts_until_the_budget_is_met() {
    let Some(stage) = Stage::new() else { return };
    // By hand only: the results alone would start one.
    let host = small(&stage).with_env("DISABLE_AUTO_COMPACT", "1");
    stage.api.script([Step::text("Ready."), large_reads(&host, 8)]);
    stage.api.script(long_work(&host, "a", 3).steps);
    let mut session = host.start();
    session.prompt("Get ready.");
    session.prompt("Look at everything and mend it.");
    let compacted = stage.compact(&mut session);
    let gone = compacted.assert_exact();
    let pass = pass(&stage, &session.id);
    assert_eq!((&pass["outcome"], &pass["level"]), (&json!("apply"), &json!("cuts")), "{pass}");
    let sent = wire::results(&compacted.before).into_iter().map(|sent| sent.id);
    let large: Vec<String> = sent.filter(|id| id.starts_with("toolu_large_")).collect();
    let cut: Vec<bool> = large.iter().map(|id| gone.contains(id)).collect();
    assert!(
        cut.is_sorted_by(|older, newer| older >= newer),
        "the oldest first: {large:?} {gone:?}"
    );
    assert!(cut.contains(&true) && cut.contains(&false), "as many as needed: {gone:?}");
    assert_no_summary(&session.finish());
}

/// What the person wrote is never cut: a prompt above the budget leaves the summary alone.
#[test]
fn the_host_summarises_what_is_left_with_a_focus_text() {
    let Some(stage) = Stage::new() else { return };
    let host = small(&stage);
    let work = long_work(&host, "a", 4);
    stage.api.script([Step::text("Ready.")]);
    stage.api.script(work.steps.clone());
    let mut session = host.start();
    let number = |line: usize| format!("Requirement {line}: you must never change value {line}. ");
    let prompt: String = (0..3600).map(number).collect();
    session.prompt(&prompt);
    session.prompt("Mend all of it.");
    session.prompt("/compact and keep the numbers");
    session.prompt("What now?");
    let (live, id) = (last(&session), session.id.clone());
    let run = session.finish();
    assert_eq!(run.compactions(), ["success"]);
    let asked = summary_asked(&run);
    for id in &work.removed {
        assert!(notes(asked).contains_key(id), "the summary is asked of the pruned history: {id}");
    }
    let instructions = wire::texts(asked, "user").pop().unwrap();
    assert!(instructions.contains("and keep the numbers"), "the person's own words");
    assert_eq!(instructions.matches(FOCUS).count(), 1, "{instructions}");
    assert!(wire::has(run.last(), "MOCK-SUMMARY"));
    assert_eq!(pass(&stage, &id)["state"], "handed_over");
    let resumed = host.run_resumed(&id, &["And on it goes."]);
    wire::assert_continues("the resumed session", &live, resumed.last());
}

/// A context that is full again right after a pass is summarised: the host does not go in circles.
#[test]
fn a_context_that_stays_full_is_summarised() {
    let Some(stage) = Stage::new() else { return };
    let host = small(&stage);
    let mut work = long_work(&host, "a", 6);
    let steps = work.steps.len();
    for at in [steps - 3, steps - 2] {
        work.steps[at] = work.steps[at].clone().tokens(75_000);
    }
    stage.api.script(work.steps);
    let run = host.run(&["Mend all of it.", "And now?"]);
    assert_eq!(run.compactions(), ["success", "success"], "{}", wire::outlines(&run.requests));
    let asked = summary_asked(&run);
    assert!(!notes(asked).is_empty(), "the first compaction was a rewrite");
    assert!(wire::texts(asked, "user").pop().unwrap().contains(FOCUS));
}

/// Where mods are forbidden the command hooks are all there is.
#[test]
fn without_the_mod_the_hook_gives_the_focus_text() {
    let Some(stage) = Stage::new() else { return };
    let folder = stage.home.join("commands-only");
    for name in [".claude-plugin/plugin.json", "bin/compactd-hook"] {
        let to = folder.join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(checkout().join(name), to).unwrap();
    }
    let hooks = fs::read_to_string(checkout().join("hooks/hooks.json")).unwrap();
    let mut hooks: Value = serde_json::from_str(&hooks).unwrap();
    assert!(hooks.as_object_mut().unwrap().remove("modules").is_some());
    fs::create_dir(folder.join("hooks")).unwrap();
    fs::write(folder.join("hooks/hooks.json"), hooks.to_string()).unwrap();
    let host = stage.host.clone().without_plugins().with_plugin(&folder);
    stage.api.script(long_work(&host, "a", 4).steps);
    let mut session = host.start();
    session.prompt("Mend all of it, and never touch vendor/.");
    session.prompt("/compact");
    session.prompt("What now?");
    let run = session.finish();
    let instructions = wire::texts(summary_asked(&run), "user").pop().unwrap();
    assert_eq!(instructions.matches(FOCUS).count(), 1, "{instructions}");
    assert!(instructions.contains("never touch vendor/"), "{instructions}");
    assert!(notes(run.last()).is_empty());
}
