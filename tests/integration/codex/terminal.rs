//! A thread on a screen.

use compactd_tests::harness::host::codex::{Codex, Kind, Responses, Step, rollout, wire};
use compactd_tests::harness::host::{codex, tmux};
use compactd_tests::harness::{Home, eventually};

use super::hooks::EVENTS;

#[test]
fn a_compaction_on_a_screen() {
    let (Some(codex), Some(_)) = (codex(), tmux()) else { return };
    let steps = [Step::shell("ls"), Step::text("All of it is seen.")];
    let (home, api) = (Home::new(), Responses::start(steps));
    let host = Codex::new(&codex, &home, &api);
    let log = host.log_hooks(EVENTS);
    let Some(terminal) = host.terminal() else { return };
    terminal.type_line("Look around.");
    terminal.wait_for("All of it is seen.");
    let titles = || (api.of_kind(Kind::Title).len() == 1).then_some(());
    eventually("a title is asked for", titles);
    terminal.type_line("/compact");
    terminal.wait_for("Context compacted");
    assert_eq!(api.of_kind(Kind::CompactLocal).len(), 1);
    let thread = api.last_turn().thread.clone();
    terminal.type_line("/quit");
    terminal.wait_for_end();
    let expected = [
        "SessionStart startup",
        "UserPromptSubmit",
        "PreToolUse Bash",
        "PostToolUse Bash",
        "Stop",
        "PreCompact manual",
        "PostCompact manual",
    ];
    assert_eq!(log.events(), expected);
    // The thread that makes the title leaves no file and runs no hook.
    assert!(log.inputs().iter().all(|input| input["session_id"] == thread.as_str()));
    assert_eq!(rollout::all(&host.codex_home()), [host.rollout(&thread)]);

    let Some(terminal) = host.terminal_resumed(&thread) else { return };
    api.script([Step::text("Back again.")]);
    terminal.type_line("And on it goes.");
    terminal.wait_for("Back again.");
    let kept = rollout::replacement_history(&rollout::records(&host.rollout(&thread))).unwrap();
    assert_eq!(wire::differs_from_resume(&api.last_turn(), &kept), None);
    terminal.type_line("/quit");
    terminal.wait_for_end();
    // It has put no server of its own there, which would outlive the test.
    assert!(!host.codex_home().join("packages").exists());
}
