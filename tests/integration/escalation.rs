//! What goes beyond the ladder: enough and no more, nothing that is protected, and the same again.

use std::collections::HashMap;

use compactd_core::escalate::{
    Escalation, Held, Level, Occasion, Sizes, Verdict, budget, escalate, totals,
};
use compactd_core::index::{History, Index};
use compactd_core::note;
use compactd_core::record::Host;
use compactd_core::rules::{Decided, Decision, Pass, Profile, Reason, Rule};
use compactd_tests::apply::{apply_escalated, normalised, text_of_row};
use compactd_tests::compare::{left, result_of};
use compactd_tests::session::Rng;

use crate::kit::{Case, fed, report, seeds};

type Checked<T> = Result<T, String>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked<()> {
    if holds { Ok(()) } else { Err(what()) }
}

fn text_at(host: Host, lines: &[Vec<u8>], decided: &Decided<'_>) -> String {
    let found = result_of(host, &lines[decided.line as usize], decided.id);
    found.map(|result| result.text.into_owned()).unwrap_or_default()
}

/// A budget somewhere below the size, and what the host might say.
fn sizes(rng: &mut Rng, index: &Index, pass: &Pass<'_>) -> Sizes {
    let mut sizes = Sizes::of(index.ratio(), pass.chars());
    let whole = sizes.left(0);
    sizes.budget = Some(whole * (20 + rng.below(85) as u64) / 100);
    if rng.chance(50) {
        sizes.window = Some(2 * whole);
        sizes.tokens = Some(whole * (50 + rng.below(120) as u64) / 100);
    }
    sizes
}

fn pass<'i>(case: &Case, index: &'i Index) -> Pass<'i> {
    index.pass(History::Context, Profile::Standard, &case.pins)
}

/// The last thing that went: without it the target would be missed.
fn last_freed(escalation: &Escalation<'_>) -> Option<i64> {
    if let Some(text) = escalation.texts.last() {
        let kept = i64::from(text.keep) + note::text_chars(text.chars, text.keep);
        return Some(i64::from(text.chars) - kept);
    }
    let class = |decided: &Decided<'_>| match decided.ruling.reason {
        Reason::OverBudget(class) => class,
        other => panic!("{other:?}"),
    };
    let last = escalation.results.iter().max_by_key(|(ordinal, cut)| (class(cut), *ordinal));
    last.map(|(_, cut)| cut.freed_chars)
}

fn keeps_its_word(
    pass: &Pass<'_>,
    sizes: &Sizes,
    occasion: Occasion,
    held: &Held,
    escalation: &Escalation<'_>,
) -> Checked<()> {
    let Escalation { verdict, level, results, texts, freed, target, .. } = escalation;
    for (ordinal, cut) in results {
        let ladder = pass.get(*ordinal as usize).ok_or("no such result")?;
        ensure(
            matches!(ladder.ruling.rule, Rule::LatestRead | Rule::Referenced | Rule::Undecided)
                && ladder.ruling.decision == Decision::Keep
                && !pass.is_opaque(*ordinal as usize),
            || format!("{}: {:?} is protected", cut.id, ladder.ruling),
        )?;
        ensure(cut.ruling.rule == Rule::OverBudget && cut.freed_chars > 0, || {
            format!("{}: {cut:?}", cut.id)
        })?;
    }
    let more: i64 = results.iter().map(|(_, cut)| cut.freed_chars).sum();
    let kept = |text: &compactd_core::escalate::TextCut| {
        i64::from(text.chars) - i64::from(text.keep) - note::text_chars(text.chars, text.keep)
    };
    let shortened: i64 = texts.iter().map(kept).sum();
    ensure(held.freed + more + shortened == *freed, || "freed does not add up".into())?;
    let sums = totals(pass, escalation);
    ensure(sums.chars_before - sums.chars_after == *freed as u64, || format!("{sums:?}"))?;
    ensure(escalation.left == sizes.left(*freed), || "left is another size".into())?;
    let Some(target) = *target else {
        ensure(results.is_empty() && texts.is_empty() && *level == Level::Rules, || {
            format!("went on without need: {escalation:?}")
        })?;
        return ensure(sizes.budget.is_none_or(|budget| escalation.left <= budget), || {
            "above the budget".into()
        });
    };
    ensure(sizes.budget.is_none_or(|budget| target <= budget), || {
        "the target is no budget".into()
    })?;
    if let Some(last) = last_freed(escalation) {
        ensure(sizes.left(freed - last) > target, || "the last cut was not needed".into())?;
    }
    let reached = escalation.left <= target;
    match (verdict, level) {
        (Verdict::Apply, Level::Rules) => {
            ensure(texts.is_empty() && results.is_empty(), || "more than the rules".into())?;
        }
        (Verdict::Apply, Level::Cuts) => {
            ensure(texts.is_empty() && !results.is_empty(), || "other than cuts".into())?;
        }
        (Verdict::Apply, Level::Texts) => ensure(!texts.is_empty(), || "no text".into())?,
        (Verdict::Escalate, Level::Summary) => {}
        other => return Err(format!("{other:?}")),
    }
    let summary = *level == Level::Summary;
    ensure(reached != summary || occasion.refilled, || format!("{level:?}, {reached}"))?;
    ensure(!occasion.refilled || summary, || "refilled without a summary".into())
}

/// What the texts are afterwards: the notes of what goes, every other byte as before.
fn only_what_it_says(
    host: Host,
    before: &[Vec<u8>],
    after: &[Vec<u8>],
    pass: &Pass<'_>,
    escalation: &Escalation<'_>,
) -> Checked<()> {
    let mut edited: Vec<u32> = Vec::new();
    let cuts: HashMap<u32, &Decided<'_>> =
        escalation.results.iter().map(|(ordinal, cut)| (*ordinal, cut)).collect();
    let mut call_goes = false;
    for (ordinal, ladder) in pass.iter().enumerate() {
        let decided = cuts.get(&(ordinal as u32)).map_or(ladder, |cut| **cut);
        let wanted =
            left(host, &decided, before).unwrap_or_else(|| text_at(host, before, &decided));
        let found = text_at(host, after, &decided);
        ensure(found == wanted, || format!("{}: left {found:?}, not {wanted:?}", decided.id))?;
        if decided.ruling.decision != Decision::Keep {
            edited.push(decided.line);
        }
        call_goes |= !decided.leaves.is_empty();
    }
    for cut in &escalation.texts {
        let place = cut.row as usize;
        let (old, new) =
            (text_of_row(host, before, pass, place), text_of_row(host, after, pass, place));
        ensure(new == note::cut_text(&old, cut.keep as usize), || format!("text: {new:?}"))?;
        edited.extend(pass.row_line(place));
    }
    let untouched = |at: usize| call_goes || edited.contains(&(at as u32));
    let changed = (0..before.len()).find(|&at| before[at] != after[at] && !untouched(at));
    ensure(before.len() == after.len() && changed.is_none(), || format!("line {changed:?} changed"))
}

fn once_and_again(case: &Case, lines: &[Vec<u8>]) -> Checked<()> {
    let host = case.session.host;
    let mut rng = Rng::new(case.seed ^ 0xB0D6);
    let lines = normalised(host, lines);
    let index = fed(host, &case.settings, &lines);
    let first = pass(case, &index);
    let sizes = sizes(&mut rng, &index, &first);
    let occasion = Occasion { automatic: rng.chance(30), refilled: rng.chance(10) };
    let held = Held::whole(&first);
    let escalation = escalate(&first, &held, &sizes, occasion);
    keeps_its_word(&first, &sizes, occasion, &held, &escalation)?;
    if escalation.verdict == Verdict::Skip {
        return Ok(());
    }
    let after = apply_escalated(host, &lines, &first, &escalation);
    only_what_it_says(host, &lines, &after, &first, &escalation)?;

    // The same budget again, and the host's count less what went.
    let index = fed(host, &case.settings, &after);
    let second = pass(case, &index);
    let chars = second.chars();
    // Not what was said to be freed: a row may stand there twice.
    let gone = sizes.ratio.tokens(sizes.chars).saturating_sub(sizes.ratio.tokens(chars));
    let tokens = sizes.tokens.map(|tokens| tokens.saturating_sub(gone));
    let again = Sizes { chars, tokens, ..sizes };
    let held = Held::whole(&second);
    let then = escalate(&second, &held, &again, Occasion::default());
    ensure(held.gone.is_empty(), || {
        let gone = held.gone.iter().filter_map(|at| second.get(*at as usize));
        let was = held.gone.iter().filter_map(|at| first.get(*at as usize));
        format!(
            "the ladder takes more: {:?}\nbefore: {:?}",
            gone.collect::<Vec<_>>(),
            was.collect::<Vec<_>>()
        )
    })?;
    ensure(then.results.is_empty() && then.texts.is_empty(), || {
        format!("{sizes:?} {again:?}\nfirst {escalation:?}\nthen {then:?}")
    })
}

#[test]
fn a_second_pass_to_the_same_budget_changes_nothing() {
    for seed in seeds(600) {
        let case = Case::new(seed ^ 0x3000_0000, 90, None);
        let lines = &case.session.lines;
        if once_and_again(&case, lines).is_err() {
            panic!("{}", report(&case, lines, |lines| once_and_again(&case, lines)));
        }
    }
}

/// The session grows between passes to one budget: what a pass left stays as it is.
fn grows(case: &Case, lines: &[Vec<u8>]) -> Checked<()> {
    let host = case.session.host;
    let lines = normalised(host, lines);
    let mut rng = Rng::new(case.seed ^ 0x6709);
    let ratio = case.index().ratio();
    let budget = 300 + rng.below(4_000) as u64;
    let mut left: Vec<Vec<u8>> = Vec::new();
    let mut notes: HashMap<(u32, String), String> = HashMap::new();
    let mut cut: Vec<(usize, String)> = Vec::new();
    while left.len() < lines.len() {
        let end = (left.len() + 5 + rng.below(40)).min(lines.len());
        left.extend_from_slice(&lines[left.len()..end]);
        let index = fed(host, &case.settings, &left);
        let pass = pass(case, &index);
        let sizes = Sizes { budget: Some(budget), ..Sizes::of(ratio, pass.chars()) };
        let occasion = Occasion { automatic: rng.chance(50), refilled: false };
        let held = Held::whole(&pass);
        let escalation = escalate(&pass, &held, &sizes, occasion);
        keeps_its_word(&pass, &sizes, occasion, &held, &escalation)?;
        let after = apply_escalated(host, &left, &pass, &escalation);
        only_what_it_says(host, &left, &after, &pass, &escalation)?;
        let goes = |ordinal: usize, decided: &Decided<'_>| {
            decided.ruling.decision != Decision::Keep
                || escalation.results.iter().any(|(cut, _)| *cut as usize == ordinal)
        };
        for (ordinal, decided) in pass.iter().enumerate() {
            let key = (decided.line, decided.id.to_owned());
            let text = text_at(host, &after, &decided);
            if let Some(note) = notes.get(&key) {
                ensure(decided.ruling.rule == Rule::Noted, || format!("{} came back", decided.id))?;
                ensure(text == *note, || format!("{}: its note changed", decided.id))?;
            }
            if goes(ordinal, &decided) {
                notes.insert(key, text);
            }
        }
        for (line, text) in &cut {
            let texts = String::from_utf8_lossy(&after[*line]);
            let written = serde_json::Value::from(text.as_str()).to_string();
            ensure(texts.contains(&written), || format!("a text changed again: {text:?}"))?;
        }
        for text in &escalation.texts {
            let line = pass.row_line(text.row as usize).unwrap_or_default() as usize;
            cut.push((line, text_of_row(host, &after, &pass, text.row as usize)));
        }
        left = after;
    }
    Ok(())
}

#[test]
fn passes_to_a_budget_over_a_growing_session_only_tighten() {
    for seed in seeds(150) {
        let case = Case::new(seed ^ 0x7000_0000, 110, None);
        let lines = &case.session.lines;
        if grows(&case, lines).is_err() {
            panic!("{}", report(&case, lines, |lines| grows(&case, lines)));
        }
    }
}

/// The sessions reach every level and every class.
#[test]
fn generated_sessions_reach_every_level() {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for seed in 0..300 {
        let case = Case::new(seed, 90, None);
        let lines = normalised(case.session.host, &case.session.lines);
        let index = fed(case.session.host, &case.settings, &lines);
        let pass = pass(&case, &index);
        let sizes = sizes(&mut Rng::new(seed), &index, &pass);
        let escalation = escalate(&pass, &Held::whole(&pass), &sizes, Occasion::default());
        *counts.entry(format!("{:?}", escalation.level)).or_default() += 1;
        *counts.entry("shortened".to_owned()).or_default() += escalation.texts.len();
        for (_, cut) in &escalation.results {
            *counts.entry(format!("{:?}", cut.ruling.reason)).or_default() += 1;
        }
    }
    for form in ["Rules", "Cuts", "Texts", "Summary", "shortened"] {
        assert!(counts.get(form).is_some_and(|count| *count > 2), "{form}: {counts:#?}");
    }
    for class in ["UnusedRead", "UsedRead", "Rerunnable", "Search", "Web", "Shell"] {
        let form = format!("OverBudget({class})");
        assert!(counts.get(&form).is_some_and(|count| *count > 5), "{form}: {counts:#?}");
    }
}

#[test]
fn budgets() {
    assert_eq!(budget(None, None), None);
    assert_eq!(budget(Some(200_000), None), Some(120_000));
    assert_eq!(budget(Some(200_000), Some(100_001)), Some(90_000));
    assert_eq!(budget(None, Some(u64::MAX)), Some(u64::MAX / 10 * 9 + 4));
}
