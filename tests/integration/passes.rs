//! Profile `standard` on the texts: a pass applied to a transcript, then the next pass over it.

use std::collections::{HashMap, HashSet};

use compactd_core::index::{History, Index};
use compactd_core::record::Host;
use compactd_core::rules::{CallFate, Decided, Decision, Profile, Rule};
use compactd_tests::apply::{apply, normalised, shortened_leaves};
use compactd_tests::compare::{items, result_of};
use compactd_tests::session::{Kind, Rng};

use crate::kit::{Case, fed, report, seeds};

type Checked<T> = Result<T, String>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked<()> {
    if holds { Ok(()) } else { Err(what()) }
}

fn text_at(host: Host, lines: &[Vec<u8>], decided: &Decided<'_>) -> String {
    let line = &lines[decided.line as usize];
    result_of(host, line, decided.id).map(|result| result.text.into_owned()).unwrap_or_default()
}

fn head(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

/// What `docs/rules.md` §7 puts in the place of a text.
fn expected(text: &str, decision: Decision, keep: usize) -> String {
    let chars = text.chars().count();
    match decision {
        Decision::Keep => text.to_owned(),
        Decision::Drop => {
            format!("[output removed by compactd: {chars} chars; re-run the call to see it]")
        }
        Decision::Truncate => format!(
            "{}\n[output cut by compactd: {} of {chars} chars removed; re-run the call to see it]",
            head(text, keep),
            chars - keep
        ),
    }
}

/// One standard pass over the context, applied and checked against the lines before it.
fn pass(case: &Case, lines: &[Vec<u8>], profile: Profile) -> (Vec<Vec<u8>>, Index) {
    let index = fed(case.session.host, &case.settings, lines);
    let after = apply(case.session.host, lines, &index.pass(History::Context, profile, &case.pins));
    (after, index)
}

/// What one pass may do to the texts.
fn only_what_it_says(
    case: &Case,
    before: &[Vec<u8>],
    after: &[Vec<u8>],
    index: &Index,
) -> Checked<()> {
    let host = case.session.host;
    let keep = case.settings.rerunnable_chars as usize;
    let pass = index.pass(History::Context, Profile::Standard, &case.pins);
    ensure(before.len() == after.len(), || "lines came or went".to_owned())?;
    let mut edited = HashSet::new();
    let mut shortened = HashSet::new();
    for decided in pass.iter() {
        let (old, new) = (text_at(host, before, &decided), text_at(host, after, &decided));
        let wanted = expected(&old, decided.ruling.decision, keep);
        ensure(new == wanted, || format!("{}: left {new:?}, not {wanted:?}", decided.id))?;
        let decision = decided.ruling.decision;
        if decision != Decision::Keep {
            edited.insert(decided.line as usize);
            ensure(decided.freed_chars > 0, || format!("{}: nothing freed", decided.id))?;
        }
        ensure(decided.call != CallFate::Removed, || format!("{}: call removed", decided.id))?;
        if decided.call == CallFate::Shortened {
            ensure(decision == Decision::Drop, || {
                format!("{}: shortened, not dropped", decided.id)
            })?;
            shortened.insert(decided.id.to_owned());
        }
        let untouchable = matches!(
            decided.ruling.rule,
            Rule::Pinned | Rule::NeverDrop | Rule::Superseder | Rule::LatestRead | Rule::Noted
        );
        ensure(!untouchable || decision == Decision::Keep, || format!("{}: touched", decided.id))?;
    }
    // Byte for byte: a line without a removal, and without the call of one, is the same.
    for (number, (old, new)) in before.iter().zip(after).enumerate() {
        if old == new {
            continue;
        }
        let has_call = items(host, old).iter().any(|item| {
            matches!(item, compactd_core::record::Item::Call(call) if shortened.contains(&*call.id))
        });
        ensure(edited.contains(&number) || has_call, || {
            let text = |line: &Vec<u8>| String::from_utf8_lossy(line).into_owned();
            format!("line {number} changed:\n{}\n{}", text(old), text(new))
        })?;
        let kept_texts = items(host, old).into_iter().zip(items(host, new)).all(|(old, new)| {
            use compactd_core::record::Item::{Call, Opaque, Result, Text};
            match (&old, &new) {
                (Text(old), Text(new)) => old == new,
                (Opaque, Opaque) => true,
                (Result(old), Result(new)) => old.id == new.id,
                (Call(old), Call(new)) => {
                    old.id == new.id
                        && old.tool == new.tool
                        && old.leaves.len() == new.leaves.len()
                        && old.leaves.iter().zip(&new.leaves).all(|(old, new)| {
                            let chars = old.text.chars().count();
                            let cut = format!(
                                "{}[input cut by compactd: {} chars]",
                                head(&old.text, 200),
                                chars.saturating_sub(200)
                            );
                            old.key == new.key
                                && (old.text == new.text || (chars > 400 && new.text == cut))
                        })
                }
                _ => false,
            }
        });
        ensure(kept_texts, || format!("line {number}: more than texts changed"))?;
    }
    // Every call and every result is still there.
    let again = fed(host, &case.settings, after);
    let then = again.pass(History::Context, Profile::Standard, &case.pins);
    ensure(pass.messages() == then.messages(), || "messages came or went".to_owned())?;
    let ids = |pass: &compactd_core::rules::Pass<'_>| {
        pass.iter()
            .map(|decided| (decided.id.to_owned(), decided.tool.to_owned(), decided.line))
            .collect::<Vec<_>>()
    };
    ensure(ids(&pass) == ids(&then), || "results came or went".to_owned())?;
    ensure(then.iter().all(|decided| then.has_call(decided.id)), || "a call is gone".to_owned())?;
    Ok(())
}

/// A second pass over what the first left changes nothing.
fn twice_is_once(case: &Case, lines: &[Vec<u8>]) -> Checked<()> {
    let host = case.session.host;
    let lines = normalised(host, lines);
    let (once, index) = pass(case, &lines, Profile::Standard);
    only_what_it_says(case, &lines, &once, &index)?;
    let (twice, second) = pass(case, &once, Profile::Standard);
    let first = index.pass(History::Context, Profile::Standard, &case.pins);
    let second = second.pass(History::Context, Profile::Standard, &case.pins);
    for (before, after) in first.iter().zip(second.iter()) {
        ensure(after.ruling.decision == Decision::Keep, || {
            format!(
                "{}: first {} {:?} {:?}, then {} {:?} {:?}",
                after.id,
                before.ruling.rule.name(),
                before.ruling.decision,
                before.call,
                after.ruling.rule.name(),
                after.ruling.decision,
                after.call
            )
        })?;
        let removed = before.ruling.decision != Decision::Keep;
        ensure(!removed || after.ruling.rule == Rule::Noted, || {
            format!("{}: note not known", after.id)
        })?;
    }
    ensure(once == twice, || "the second pass changed something".to_owned())
}

#[test]
fn a_second_pass_changes_nothing() {
    for seed in seeds(800) {
        let case = Case::new(seed ^ 0x2000_0000, 70, None);
        let lines = &case.session.lines;
        if twice_is_once(&case, lines).is_err() {
            panic!("{}", report(&case, lines, |lines| twice_is_once(&case, lines)));
        }
    }
}

/// The session grows between passes: what a pass left stays as it is.
fn grows(case: &Case, lines: &[Vec<u8>]) -> Checked<()> {
    let host = case.session.host;
    let lines = normalised(host, lines);
    let mut rng = Rng::new(case.seed ^ 0x6707);
    let mut left: Vec<Vec<u8>> = Vec::new();
    // By line: what stands there since a pass changed it.
    let mut notes: HashMap<(u32, String), String> = HashMap::new();
    let mut leaves: Vec<String> = Vec::new();
    while left.len() < lines.len() {
        let end = (left.len() + 5 + rng.below(40)).min(lines.len());
        left.extend_from_slice(&lines[left.len()..end]);
        let (after, index) = pass(case, &left, Profile::Standard);
        only_what_it_says(case, &left, &after, &index)?;
        let pass = index.pass(History::Context, Profile::Standard, &case.pins);
        for decided in pass.iter() {
            let key = (decided.line, decided.id.to_owned());
            if let Some(note) = notes.get(&key) {
                ensure(decided.ruling.rule == Rule::Noted, || format!("{} came back", decided.id))?;
                let text = text_at(host, &after, &decided);
                ensure(text == *note, || format!("{}: its note changed", decided.id))?;
            }
            if decided.ruling.decision != Decision::Keep {
                notes.insert(key, text_at(host, &after, &decided));
            }
        }
        let mut now = shortened_leaves(host, &after);
        let found = now.clone();
        for leaf in &leaves {
            let at = now.iter().position(|other| other == leaf);
            ensure(at.is_some(), || format!("a shortened leaf changed: {leaf:?}"))?;
            at.map(|at| now.swap_remove(at));
        }
        leaves = found;
        left = after;
    }
    Ok(())
}

#[test]
fn passes_over_a_growing_session_only_tighten() {
    for seed in seeds(150) {
        let case = Case::new(seed ^ 0x6000_0000, 110, None);
        let lines = &case.session.lines;
        if grows(&case, lines).is_err() {
            panic!("{}", report(&case, lines, |lines| grows(&case, lines)));
        }
    }
}

/// Profile `reference` takes calls away, so messages move: it ends all the same.
fn ends(case: &Case, lines: &[Vec<u8>]) -> Checked<()> {
    let host = case.session.host;
    let mut lines = normalised(host, lines);
    for _ in 0..12 {
        let (after, index) = pass(case, &lines, Profile::Reference);
        let pass = index.pass(History::Context, Profile::Reference, &case.pins);
        for decided in pass.iter() {
            let kept = matches!(decided.ruling.rule, Rule::Pinned | Rule::NeverDrop | Rule::Noted);
            if kept {
                let same = text_at(host, &lines, &decided) == text_at(host, &after, &decided);
                ensure(same, || format!("{}: touched", decided.id))?;
            }
        }
        if after == lines {
            return Ok(());
        }
        lines = after;
    }
    Err("no fixed point in twelve passes".to_owned())
}

#[test]
fn reference_passes_end() {
    for seed in seeds(250) {
        let case = Case::new(seed ^ 0x4EF0_0000, 70, Some(Kind::Plain));
        let lines = &case.session.lines;
        if ends(&case, lines).is_err() {
            panic!("{}", report(&case, lines, |lines| ends(&case, lines)));
        }
    }
}
