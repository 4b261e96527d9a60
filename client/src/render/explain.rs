//! What a compaction would do with one session: what goes, what stays, why, how much is freed.

use compactd_api::DecisionKind;
use compactd_api::sessions::{Escalation, Explain, ExplainedResult, Totals};

use super::figures::{freed_percent, number, rough};
use crate::table::{Align, Table, clean};
use crate::terminal::{Paint, Ui};

/// How much of the rows to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The largest of those that go, so many in each group, and the kept ones by reason.
    Largest(usize),
    /// Every result, in order.
    All,
}

/// The whole view.
#[must_use]
pub fn view(explain: &Explain<'_>, detail: Detail, ui: &Ui) -> String {
    let mut text = ui.paint(Paint::Bold, &summary(&explain.totals));
    text.push('\n');
    text.push_str(&ui.paint(Paint::Dim, &clean(&about(explain))));
    text.push('\n');
    if let Some(escalation) = &explain.escalation {
        text.push_str(&ui.paint(Paint::Dim, &budget(escalation)));
        text.push('\n');
    }
    match detail {
        Detail::All if !explain.results.is_empty() => {
            text.push('\n');
            text.push_str(&every(&explain.results, ui));
        }
        Detail::All => {}
        Detail::Largest(most) => {
            for (kind, title, paint) in [
                (DecisionKind::Drop, "goes", Paint::Red),
                (DecisionKind::Truncate, "is cut", Paint::Yellow),
            ] {
                text.push_str(&largest(&explain.results, kind, (title, paint), most, ui));
            }
            text.push_str(&kept(&explain.results, "stays", ui));
        }
    }
    text
}

/// One line: how many results, how many go, how much that frees.
#[must_use]
pub fn summary(totals: &Totals) -> String {
    if totals.results == 0 {
        return "no tool results yet: nothing to free".to_owned();
    }
    let Totals { results, truncated, dropped, chars_before, chars_after, .. } = *totals;
    let plural = if results == 1 { "" } else { "s" };
    format!(
        "{} result{plural}, {} cut, {} dropped: {} → {} characters, about {}% freed",
        number(results),
        number(truncated),
        number(dropped),
        rough(chars_before),
        rough(chars_after),
        freed_percent(chars_before, chars_after),
    )
}

fn about(explain: &Explain<'_>) -> String {
    let Explain { host, session, profile, history, lines, messages, totals, .. } = explain;
    format!(
        "{host} {session}, profile {profile}, history {history}: {} lines, {} messages, \
         about {} → {} tokens",
        number(*lines),
        number(*messages),
        rough(totals.tokens_before),
        rough(totals.tokens_after),
    )
}

fn budget(escalation: &Escalation) -> String {
    let Escalation { budget, left, level, texts } = escalation;
    let chars: u64 = texts.iter().map(|text| text.chars.saturating_sub(text.keep)).sum();
    let shortened = match texts.len() {
        0 => String::new(),
        1 => format!(", one text shortened by {} characters", rough(chars)),
        texts => {
            format!(", {} texts shortened by {} characters", number(texts as u64), rough(chars))
        }
    };
    format!(
        "budget {} tokens, level {level}: about {} left{shortened}",
        rough(*budget),
        rough(*left)
    )
}

pub(super) fn every(results: &[ExplainedResult<'_>], ui: &Ui) -> String {
    let mut table = Table::new(
        &[
            ("decision", Align::Left),
            ("result", Align::Left),
            ("tool", Align::Left),
            ("chars", Align::Right),
            ("call", Align::Left),
            ("why", Align::Left),
        ],
        5,
    );
    for result in results {
        let paint = match result.decision {
            DecisionKind::Drop => Paint::Red,
            DecisionKind::Truncate => Paint::Yellow,
            DecisionKind::Keep | DecisionKind::Other => Paint::Plain,
        };
        let cells = vec![
            result.decision.to_string(),
            result.id.to_string(),
            result.tool.to_string(),
            number(result.chars),
            result.call.to_string(),
            result.reason.to_string(),
        ];
        table.row(cells, paint);
    }
    table.draw(ui)
}

pub(super) fn largest(
    results: &[ExplainedResult<'_>],
    kind: DecisionKind,
    (title, paint): (&str, Paint),
    most: usize,
    ui: &Ui,
) -> String {
    let mut group: Vec<&ExplainedResult<'_>> =
        results.iter().filter(|result| result.decision == kind).collect();
    if group.is_empty() {
        return String::new();
    }
    group.sort_by_key(|result| std::cmp::Reverse(result.chars));
    let chars: u64 = group.iter().map(|result| result.chars).sum();
    let mut text = heading(title, paint, group.len(), chars, ui);
    let mut table = Table::new(
        &[
            ("result", Align::Left),
            ("tool", Align::Left),
            ("chars", Align::Right),
            ("why", Align::Left),
        ],
        3,
    );
    for result in group.iter().take(most) {
        let cells = vec![
            result.id.to_string(),
            result.tool.to_string(),
            number(result.chars),
            result.reason.to_string(),
        ];
        table.row(cells, Paint::Plain);
    }
    text.push_str(&table.draw(ui));
    if let Some(more @ 1..) = group.len().checked_sub(most) {
        let line = format!("  and {} smaller (explain --all lists them)\n", number(more as u64));
        text.push_str(&ui.paint(Paint::Dim, &line));
    }
    text
}

fn heading(title: &str, paint: Paint, results: usize, chars: u64, ui: &Ui) -> String {
    let title = ui.paint(paint, title);
    format!("\n{title}: {}, {} characters\n", number(results as u64), rough(chars))
}

/// Kept results that share a reason.
struct Group {
    /// The reason with a mark in the place of its number.
    shape: String,
    /// The smallest and largest number in its place.
    numbers: Option<(u64, u64)>,
    results: u64,
    chars: u64,
}

pub(super) fn kept(results: &[ExplainedResult<'_>], title: &str, ui: &Ui) -> String {
    let mut groups: Vec<Group> = Vec::new();
    for result in results.iter().filter(|result| result.decision == DecisionKind::Keep) {
        let (shape, at) = shape(&result.reason);
        let known = groups.iter().position(|group| group.shape == shape);
        let known = known.unwrap_or_else(|| {
            groups.push(Group { shape, numbers: None, results: 0, chars: 0 });
            groups.len() - 1
        });
        let Some(group) = groups.get_mut(known) else { continue };
        group.results += 1;
        group.chars += result.chars;
        if let Some(at) = at {
            let (low, high) = group.numbers.unwrap_or((at, at));
            group.numbers = Some((low.min(at), high.max(at)));
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.chars));
    let results: u64 = groups.iter().map(|group| group.results).sum();
    let chars = groups.iter().map(|group| group.chars).sum();
    let results = usize::try_from(results).unwrap_or(usize::MAX);
    let mut text = heading(title, Paint::Green, results, chars, ui);
    let mut table =
        Table::new(&[("results", Align::Right), ("chars", Align::Right), ("why", Align::Left)], 2);
    for group in groups {
        let why = match group.numbers {
            None => group.shape,
            Some((low, high)) if low == high => group.shape.replace(MARK, &low.to_string()),
            Some((low, high)) => group.shape.replace(MARK, &format!("{low} to {high}")),
        };
        table.row(vec![number(group.results), number(group.chars), why], Paint::Plain);
    }
    text.push_str(&table.draw(ui));
    text
}

const MARK: char = '\u{0}';

/// A reason with its first number taken out.
fn shape(reason: &str) -> (String, Option<u64>) {
    let Some(start) = reason.find(|c: char| c.is_ascii_digit()) else {
        return (reason.to_owned(), None);
    };
    let (before, rest) = reason.split_at(start);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    match digits.parse() {
        Ok(number) => (format!("{before}{MARK}{after}"), Some(number)),
        Err(_) => (reason.to_owned(), None),
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
