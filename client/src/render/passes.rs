//! A pass that really ran: what it did with every result, and how it ended.

use compactd_api::DecisionKind;
use compactd_api::passes::{Pass, PassItem, PassReport, PassResult, PassState, ReportOutcome};
use compactd_api::sessions::ExplainedResult;
use jiff::Timestamp;

use super::explain::{Detail, every, kept, largest};
use super::figures::{ago, freed_percent, number, rough};
use crate::table::clean;
use crate::terminal::{Paint, Ui};

/// The whole view; the time of now is passed in.
#[must_use]
pub fn view(pass: &Pass, detail: Detail, now: Timestamp, ui: &Ui) -> String {
    let mut text = ui.paint(Paint::Bold, &clean(&head(&pass.item, now)));
    text.push('\n');
    for line in about(pass) {
        text.push_str(&ui.paint(Paint::Dim, &clean(&line)));
        text.push('\n');
    }
    let results: Vec<ExplainedResult<'_>> = pass.results.iter().map(explained).collect();
    match detail {
        Detail::All if !results.is_empty() => {
            text.push('\n');
            text.push_str(&every(&results, ui));
        }
        Detail::All => {}
        Detail::Largest(most) => {
            for (kind, title, paint) in [
                (DecisionKind::Drop, "went", Paint::Red),
                (DecisionKind::Truncate, "was cut", Paint::Yellow),
            ] {
                text.push_str(&largest(&results, kind, (title, paint), most, ui));
            }
            text.push_str(&kept(&results, "stayed", ui));
        }
    }
    text
}

/// One line: which pass, what started it, when, how it ended, and what it freed.
fn head(item: &PassItem, now: Timestamp) -> String {
    let report = item.report.as_ref();
    let tokens = report.and_then(|report| Some((report.tokens_before?, report.tokens_after?)));
    let is_exact = tokens.is_some();
    let counters = item.counters;
    let (before, after) = tokens.unwrap_or((counters.tokens_before, counters.tokens_after));
    let about = if is_exact { "" } else { "about " };
    let millis = report.and_then(|report| report.millis).filter(|millis| millis.is_finite());
    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
    let millis = millis.unwrap_or(counters.micros as f64 / 1_000.0);
    format!(
        "pass {}, {}, {}: {}; {about}{} → {} tokens in {millis:.1} ms",
        item.number,
        item.trigger,
        ago(&item.at, now),
        ended(item),
        rough(before),
        rough(after),
    )
}

fn ended(item: &PassItem) -> &'static str {
    let is_told = |report: &PassReport| report.outcome == ReportOutcome::HandedOver;
    match item.state {
        PassState::Answered => "answered, nothing heard since",
        PassState::Applied => "applied",
        PassState::HandedOver if !item.report.as_ref().is_some_and(is_told) => {
            "the host made its own summary"
        }
        PassState::HandedOver => "handed over to the host's own summary",
        PassState::Left => "not used by the host",
        PassState::Unknown | PassState::Other => "answered, its end is not known",
    }
}

fn about(pass: &Pass) -> Vec<String> {
    let Pass { host, session, item, .. } = pass;
    let counters = item.counters;
    let level = item.level.as_ref().map_or_else(String::new, |level| format!(", level {level}"));
    let mut lines = vec![format!(
        "{host} {session}, profile {}{level}: {} results, {} kept, {} cut, {} dropped, \
         {} → {} characters, about {}% freed",
        item.profile,
        number(counters.results),
        number(counters.kept),
        number(counters.truncated),
        number(counters.dropped),
        rough(counters.chars_before),
        rough(counters.chars_after),
        freed_percent(counters.chars_before, counters.chars_after),
    )];
    lines.extend(item.reason.clone());
    if item.focus {
        lines.push("a focus text went along for the host's summary".to_owned());
    }
    if let Some(alone @ 1..) = item.report.as_ref().and_then(|report| report.left_alone) {
        lines.push(format!(
            "{alone} of them stayed whole in the host: their text was another there"
        ));
    }
    lines
}

fn explained(result: &PassResult) -> ExplainedResult<'_> {
    let reason = match result.decision {
        DecisionKind::Keep => result.reason.clone(),
        _ => format!("{}: {}", result.rule, result.reason),
    };
    ExplainedResult {
        id: result.id.as_str().into(),
        tool: result.tool.as_str().into(),
        chars: result.chars,
        tokens_est: 0,
        decision: result.decision,
        call: result.call,
        rule: result.rule.as_str().into(),
        reason: reason.into(),
        left: None,
    }
}

#[cfg(test)]
mod tests {
    use compactd_api::CallFate;
    use compactd_api::compact::{Counters, Outcome};
    use compactd_api::{Host, Profile, Trigger};

    use super::*;

    fn result(id: &str, decision: DecisionKind, chars: u64, rule: &str, why: &str) -> PassResult {
        PassResult {
            id: id.to_owned(),
            tool: "Bash".to_owned(),
            chars,
            decision,
            call: CallFate::Kept,
            rule: rule.to_owned(),
            reason: why.to_owned(),
        }
    }

    fn pass() -> Pass {
        let item = PassItem {
            number: 3,
            at: "2026-11-30T09:00:00Z".to_owned(),
            trigger: Trigger::Auto,
            outcome: Outcome::Apply,
            level: None,
            profile: Profile::Standard,
            state: PassState::Applied,
            focus: false,
            reason: None,
            counters: Counters {
                results: 4,
                kept: 2,
                truncated: 1,
                dropped: 1,
                chars_before: 100_000,
                chars_after: 60_000,
                tokens_before: 41_000,
                tokens_after: 25_000,
                micros: 180,
                budget: None,
            },
            report: None,
        };
        let results = vec![
            result("big", DecisionKind::Drop, 9_000, "unreferenced", "none of its terms was used"),
            result("ls", DecisionKind::Truncate, 800, "rerunnable", "cheap to run again"),
            result("a", DecisionKind::Keep, 5, "referenced", "used later: 1 of its terms"),
            result("b", DecisionKind::Keep, 6, "referenced", "used later: 7 of its terms"),
        ];
        Pass { host: Host::Claude, session: "s".to_owned(), item, results }
    }

    #[test]
    fn a_pass_is_shown_with_its_end_and_its_rules() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let show = |pass: &Pass| view(pass, Detail::Largest(9), now, &Ui::plain(100));
        assert_eq!(
            show(&pass()),
            "\
pass 3, auto, 3 h ago: applied; about 41k → 25k tokens in 0.2 ms
claude s, profile standard: 4 results, 2 kept, 1 cut, 1 dropped, 100k → 60k characters, about 40% freed

went: 1, 9k characters
  result  tool  chars  why
  big     Bash  9,000  unreferenced: none of its terms was used

was cut: 1, 800 characters
  result  tool  chars  why
  ls      Bash    800  rerunnable: cheap to run again

stayed: 2, 11 characters
  results  chars  why
        2     11  used later: 1 to 7 of its terms
"
        );
        let mut told = pass();
        told.item.report = Some(PassReport {
            tokens_before: Some(52_000),
            tokens_after: Some(31_000),
            left_alone: Some(2),
            millis: Some(6.3),
            ..PassReport::of(ReportOutcome::Applied)
        });
        let text = show(&told);
        assert!(text.starts_with("pass 3, auto, 3 h ago: applied; 52k → 31k tokens in 6.3 ms\n"));
        assert!(text.contains("\n2 of them stayed whole in the host"), "{text}");
    }

    #[test]
    fn an_id_cannot_steer_the_terminal() {
        let mut pass = pass();
        pass.session = "\u{1b}c".to_owned();
        pass.results[0].id = "\u{1b}[2J".to_owned();
        pass.item.reason = Some("\u{1b}[2J".to_owned());
        for detail in [Detail::All, Detail::Largest(5)] {
            let now = Timestamp::UNIX_EPOCH;
            assert!(!view(&pass, detail, now, &Ui::plain(100)).contains('\u{1b}'));
        }
    }
}
