//! Lines that are compared: of reads, and of quotes (§5).

use std::sync::LazyLock;

use regex::Regex;

use super::terms::regex;

static REMINDER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?s)<system-reminder>.*?</system-reminder>"));
static NUMBERED: LazyLock<Regex> = LazyLock::new(|| regex(r"\A *[0-9]{1,7}(?:\t|→|: )"));
static LIST_MARKS: LazyLock<Regex> = LazyLock::new(|| regex(r"\A(?:[\s>*+`-]|[0-9]+\.(?:\s|\z))*"));

/// The lines of a read, or none if nothing is left.
pub(super) fn read_lines(body: &str) -> Vec<String> {
    let body = REMINDER.replace_all(body, "");
    let mut lines = body.split('\n').collect::<Vec<_>>();
    if lines.iter().filter(|line| !line.trim().is_empty()).all(|line| NUMBERED.is_match(line)) {
        for line in &mut lines {
            *line = NUMBERED.find(line).map_or(*line, |prefix| &line[prefix.end()..]);
        }
    }
    let mut lines = lines.iter().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Whether `lines` hold `part` as a run.
pub(super) fn hold_run(lines: &[String], part: &[String]) -> bool {
    !part.is_empty() && lines.windows(part.len()).any(|run| run == part)
}

/// The lines of a result that can be recognised when they are quoted.
pub(super) fn quotable_lines(body: &str) -> impl Iterator<Item = &str> {
    body.split('\n').map(str::trim).filter(|line| long_enough(line))
}

/// The lines of an assistant text that may be quotes.
pub(super) fn quoting_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
        .map(|line| {
            let line = LIST_MARKS.find(line).map_or(line, |marks| &line[marks.end()..]);
            line.trim_end_matches(|end: char| end.is_whitespace() || end == '`')
        })
        .filter(|line| long_enough(line))
}

fn long_enough(line: &str) -> bool {
    line.chars().count() >= 40
}
