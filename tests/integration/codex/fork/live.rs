//! A thread that the host works on while it is forked.

use std::fs;

use compactd_tests::harness::Home;
use compactd_tests::harness::host::codex::wire::has;
use compactd_tests::harness::host::codex::{Codex, Kind, Responses};
use compactd_tests::harness::host::{Gate, codex};

use super::kit::{Fork, long_work, resumes};

#[test]
fn source_and_host_go_on_unharmed() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    let gate = Gate::new();
    let mut steps = long_work(&host);
    let end = steps.pop().unwrap();
    let before_the_end = steps.len();
    steps.push(end.gate(&gate));
    api.script(steps);
    let running = host.start("Write a note and check it.");
    let thread = running.thread();
    api.wait_for_requests(before_the_end + 1);
    let source = host.rollout(&thread);
    let seen = fs::read(&source).unwrap();
    let fork = Fork::of(&home, &host, &thread, &[]);
    assert_eq!(fork.answer["source"]["live"], cfg!(target_os = "linux"), "{}", fork.answer);
    gate.open();
    let run = running.finish().good();
    assert!(run.kinds().iter().all(|kind| *kind == Kind::Turn));
    // The host's own file is what it would be without us.
    let after = fs::read(&source).unwrap();
    assert!(after.starts_with(&seen) && after.len() > seen.len());
    let request = resumes(&host, &fork);
    assert!(!has(&request.body, "holds heron_7713_quartz and an owner"), "that came later");
    let whole = Fork::of(&home, &host, &thread, &[]);
    assert_eq!(whole.answer["source"]["live"], false);
    assert!(has(&resumes(&host, &whole).body, "holds heron_7713_quartz and an owner"));
}
