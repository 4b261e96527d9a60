//! The live index says on every prefix of a session what the full rescan says.

use std::collections::HashMap;

use compactd_core::index::{History, Index};
use compactd_core::record::Host;
use compactd_core::tokens::Ratio;
use compactd_tests::compare::{Question, count};
use compactd_tests::session::Rng;

use crate::kit::{Case, differs, fed, report, seeds};

/// After every line, settled.
fn every_prefix(case: &Case, lines: &[Vec<u8>]) -> Result<(), String> {
    let mut index = case.index();
    let questions = Question::all(&case.settings, &case.pins);
    for (number, line) in lines.iter().enumerate() {
        index.apply(line, 0);
        index.settle();
        // The live context after every line, the three other questions in turn.
        let other = 1 + number % 3;
        for (place, question) in questions.iter().enumerate() {
            if place != 0 && place != other && number + 1 != lines.len() {
                continue;
            }
            if let Some(difference) = differs(question, &index, &lines[..=number]) {
                return Err(format!(
                    "{:?} {:?} after line {number}: {difference}",
                    question.history, question.profile
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn every_prefix_of_generated_sessions() {
    for seed in seeds(150) {
        let case = Case::new(seed, 26, None);
        let lines = &case.session.lines;
        if every_prefix(&case, lines).is_err() {
            panic!("{}", report(&case, lines, |lines| every_prefix(&case, lines)));
        }
    }
}

/// Fed in batches, settled after each; sometimes stored and read back in between.
fn in_batches(case: &Case, lines: &[Vec<u8>]) -> Result<(), String> {
    let mut rng = Rng::new(case.seed ^ 0xBA7C);
    let mut index = case.index();
    let mut done = 0;
    while done < lines.len() {
        let end = (done + 1 + rng.below(12)).min(lines.len());
        for line in &lines[done..end] {
            index.apply(line, 0);
        }
        done = end;
        if rng.chance(85) {
            index.settle();
        }
        if rng.chance(30) {
            // Not settled either: a snapshot may be taken at any time.
            let bytes = index.encode();
            let facts = index.facts().clone();
            index = Index::decode(&bytes, &case.settings).map_err(|error| error.to_string())?;
            if facts != *index.facts() {
                return Err("the snapshot lost facts".to_owned());
            }
        }
        if index.meter() != fed(case.session.host, &case.settings, &lines[..done]).meter() {
            return Err(format!("batch up to {done}: the token estimate differs"));
        }
        if !index.is_settled() {
            continue;
        }
        for question in Question::all(&case.settings, &case.pins) {
            if let Some(difference) = differs(&question, &index, &lines[..done]) {
                return Err(format!("batch up to {done}, {:?}: {difference}", question.history));
            }
        }
    }
    Ok(())
}

#[test]
fn batches_and_snapshots() {
    for seed in seeds(40) {
        let case = Case::new(seed ^ 0x5000_0000, 60, None);
        let lines = &case.session.lines;
        if in_batches(&case, lines).is_err() {
            panic!("{}", report(&case, lines, |lines| in_batches(&case, lines)));
        }
    }
}

/// Settled once, at the end; and the numbers of an index settled often and of one settled once.
fn at_the_end(case: &Case, lines: &[Vec<u8>]) -> Result<(), String> {
    let index = fed(case.session.host, &case.settings, lines);
    for question in Question::all(&case.settings, &case.pins) {
        if let Some(difference) = differs(&question, &index, lines) {
            return Err(format!("at the end, {:?}: {difference}", question.history));
        }
    }
    let mut often = case.index();
    for line in lines {
        often.apply(line, 0);
        often.settle();
    }
    if index.meter() != often.meter() {
        return Err("settled once and settled often: the token estimate differs".to_owned());
    }
    for history in [History::Context, History::Whole] {
        let (a, b) = (
            index.pass(history, compactd_core::rules::Profile::Standard, &case.pins),
            often.pass(history, compactd_core::rules::Profile::Standard, &case.pins),
        );
        if !a.iter().eq(b.iter()) {
            return Err(format!("{history:?}: settled once and settled often differ"));
        }
        if a.totals() != b.totals() || !a.rows().eq(b.rows()) {
            return Err(format!("{history:?}: totals or rows differ"));
        }
        let freed: i64 = a.iter().map(|decided| decided.freed_chars).sum();
        let totals = a.totals();
        if i128::from(totals.chars_before) - i128::from(freed) != i128::from(totals.chars_after) {
            return Err(format!("{history:?}: sums do not add up"));
        }
    }
    Ok(())
}

#[test]
fn settled_at_the_end() {
    for seed in seeds(300) {
        let case = Case::new(seed ^ 0xE000_0000, 90, None);
        let lines = &case.session.lines;
        if at_the_end(&case, lines).is_err() {
            panic!("{}", report(&case, lines, |lines| at_the_end(&case, lines)));
        }
    }
}

/// The sessions have usage from which tokens can be estimated.
#[test]
fn generated_sessions_calibrate_the_token_estimate() {
    for host in [Host::Claude, Host::Codex] {
        let mut calibrated = 0;
        for seed in 0..200 {
            let case = Case::new(seed, 60, None);
            if case.session.host != host {
                continue;
            }
            let index = fed(host, &case.settings, &case.session.lines);
            let (intervals, newest) = index.meter().measured();
            assert!((intervals > 0) == (newest.tokens > 0));
            calibrated += usize::from(index.ratio() != Ratio::of(host, None));
        }
        assert!(calibrated > 2, "{host:?}: {calibrated}");
    }
}

/// The sessions reach every rule, in every form.
#[test]
fn generated_sessions_reach_every_rule() {
    for host in [Host::Claude, Host::Codex] {
        let mut counts = HashMap::new();
        for seed in 0..300 {
            let case = Case::new(seed, 60, None);
            if case.session.host != host {
                continue;
            }
            let lines = &case.session.lines;
            let index = fed(host, &case.settings, lines);
            for question in Question::all(&case.settings, &case.pins) {
                count(&mut counts, &question.ask(&index, lines));
            }
        }
        let mut sorted: Vec<_> = counts.iter().collect();
        sorted.sort();
        println!("{host:?}: {sorted:#?}");
        for form in [
            "latest_read keep kept",
            "never_drop keep kept",
            "no_gain keep kept",
            "noted keep kept",
            "pinned keep kept",
            "referenced keep kept",
            "rerunnable cut kept",
            "superseded_read drop kept",
            "superseder keep kept",
            "too_recent keep kept",
            "undecided keep kept",
            "unreferenced drop kept",
            "unreferenced drop removed",
            "unreferenced drop shortened",
        ] {
            assert!(counts.get(form).is_some_and(|count| *count > 30), "{host:?}: {form}");
        }
    }
}
