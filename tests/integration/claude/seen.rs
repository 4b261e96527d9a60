//! What the person sees of a compaction, and what can be had back.

use std::collections::BTreeMap;

use compactd_tests::harness::eventually;
use compactd_tests::harness::host::scenario::long_work;
use compactd_tests::harness::host::{Kind, wire};
use serde_json::Value;

use super::kit::{Compacted, Stage, assert_no_summary, notes, said};

/// The lines of our hooks that a transcript shows to the person.
fn lines(rows: &[Value]) -> Vec<String> {
    let shown = rows.iter().filter(|row| row["attachment"]["type"] == "hook_system_message");
    let texts = shown.filter_map(|row| row["attachment"]["content"].as_str());
    texts.filter(|text| text.starts_with("compactd: ")).map(str::to_owned).collect()
}

#[test]
fn one_line_for_each_compaction_and_the_pass_that_ran() {
    let Some(stage) = Stage::new() else { return };
    stage.api.script(long_work(&stage.host, "a", 5).steps);
    let mut session = stage.host.start();
    session.prompt("Mend all of it.");
    let compacted = stage.compact(&mut session);
    let gone = compacted.assert_exact();
    let run = session.finish();
    let lines = lines(&run.rows());
    assert_eq!(lines.len(), 1, "{lines:?}");
    let dropped = format!("dropped {} of {} tool results", gone.len(), compacted.decisions.len());
    assert!(lines[0].contains(&dropped), "{dropped}: {}", lines[0]);
    assert!(lines[0].contains(" ms") && lines[0].contains("tokens"), "{}", lines[0]);
    assert!(!wire::has(run.last(), "tool results, "), "the model does not get the line");

    let pass = eventually("the pass is known to be applied", || {
        let pass = stage.home.compactctl(&["explain", &run.id, "--pass", "last", "--json"]).json();
        (pass["state"] == "applied").then_some(pass)
    });
    let results = pass["results"].as_array().unwrap();
    let told: Vec<&str> = results
        .iter()
        .filter(|result| result["decision"] != "keep")
        .map(|result| result["id"].as_str().unwrap())
        .collect();
    let mut told: Vec<String> = told.into_iter().map(str::to_owned).collect();
    told.sort();
    assert_eq!(told, gone);
    let words = stage.home.compactctl(&["explain", &run.id]);
    assert_eq!(words.code, Some(0), "{words:?}");
    assert!(gone.iter().all(|id| words.out.contains(id.as_str())), "{}", words.out);
}

#[test]
fn every_removed_result_can_be_had_back_after_three_passes() {
    let Some(stage) = Stage::new() else { return };
    let mut session = stage.host.start();
    let mut whole: BTreeMap<String, String> = BTreeMap::new();
    for round in ["a", "b", "c"] {
        stage.api.script(long_work(&stage.host, round, 5).steps);
        session.prompt("Mend the next ones.");
        let compacted = stage.compact(&mut session);
        for sent in wire::results(&compacted.before) {
            whole.entry(sent.id).or_insert(sent.text);
        }
        compacted.assert_exact();
        if round == "c" {
            let gone = notes(&compacted.after);
            assert!(gone.len() > 20, "{}", gone.len());
            for id in gone.keys() {
                let recalled = stage.home.compactctl(&["recall", id]);
                assert_eq!(recalled.code, Some(0), "{recalled:?}");
                assert_eq!(recalled.out, whole[id], "{id}");
            }
        }
    }
    assert_no_summary(&session.finish());
    let unknown = stage.home.compactctl(&["recall", "toolu_none"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (Some(1), ""), "{unknown:?}");
}

#[test]
fn on_a_screen() {
    let Some(stage) = Stage::new() else { return };
    stage.api.script(long_work(&stage.host, "a", 5).steps);
    let Some(terminal) = stage.host.terminal() else { return };
    terminal.type_line("Mend all of it.");
    terminal.wait_for("All of it is mended.");
    let before = stage.api.last_turn().body.clone();
    terminal.type_line("/compact");
    terminal.wait_for("what went: compactctl explain");
    let decisions = stage.decisions(&terminal.id);
    stage.api.script([compactd_tests::harness::host::Step::text("Going on then.")]);
    terminal.type_line("What now?");
    terminal.wait_for("Going on then.");
    let after = stage.api.last_turn().body.clone();
    let (answer, prompt) = ("All of it is mended.", "What now?");
    let compacted = Compacted::by_hand(decisions, before, after.clone(), answer, prompt);
    assert!(!compacted.assert_exact().is_empty());
    terminal.type_line("/exit");
    terminal.wait_for_end();
    assert!(stage.api.of_kind(Kind::Summary).is_empty());

    // Resumed on a screen, and printing.
    let Some(terminal) = stage.host.terminal_resumed(&terminal.id) else { return };
    stage.api.script([compactd_tests::harness::host::Step::text("Back again.")]);
    terminal.type_line("And on it goes.");
    terminal.wait_for("Back again.");
    let resumed = said(&stage.api.last_turn().body);
    let live = said(&after);
    assert_eq!(resumed[..live.len()], live[..]);
    terminal.type_line("/exit");
    terminal.wait_for_end();
    let printing = stage.host.run_resumed(&terminal.id, &["Once more."]);
    let printed = said(printing.last());
    assert_eq!(printed[..live.len()], live[..]);
}
