//! The focus text: what a host's own summary should keep word for word (`docs/hooks.md`).
//!
//! The index says which few rows to read again ([`crate::index::Index::focus_plan`]), an edge reads them, and
//! [`Material::write`] makes the text. Nothing depends on the length of the session. What comes from
//! tools stands only as short quoted data in backticks, never as a heading or a line of its own words.

mod mask;
mod plan;
mod quote;

use std::collections::BTreeMap;

use hashbrown::HashSet;

use crate::hash::Identity;
use crate::lines::has_rule_word;
use crate::record::{Call, Host, Item, Record, Row, ToolResult, read_line};
use crate::terms::Scanner;

pub use mask::mask;
pub use plan::{Kind, Plan, Wanted};
use quote::{quoted, said};

/// Length of the text in characters, where nothing else is set.
pub const MAX_CHARS: usize = 2_000;
/// A line of a transcript longer than this is not read for it.
pub const MAX_LINE_BYTES: usize = 256 * 1024;
/// Of one text at most so much is looked at: its beginning and its end.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// How the row begins that Claude Code writes in the person's name when a turn is stopped.
const INTERRUPTED: &str = "[Request interrupted";

/// How the text begins.
pub const HEAD: &str = "Keep these exactly, character for character:";

/// What was read again, and what it came to.
#[derive(Debug, Default)]
pub struct Material {
    /// The person's prompts, by the place of their row: a row may hold several texts.
    prompts: BTreeMap<u32, Vec<String>>,
    /// The agent's texts.
    said: BTreeMap<u32, Vec<String>>,
    /// Texts of results that are errors.
    failed: BTreeMap<u32, (String, String)>,
    /// What calls asked for, by their id.
    commands: BTreeMap<String, String>,
    /// The files that calls changed, the place of the row first.
    changed: BTreeMap<u32, String>,
}

impl Material {
    /// Takes in the line at a wanted place. False: it is another line than the index saw there.
    pub fn take(&mut self, host: Host, wanted: &Wanted, line: &[u8]) -> bool {
        match read_line(host, line) {
            Ok(Record::Row(row)) => self.take_row(wanted, &row),
            Ok(Record::Compacted(compacted)) => {
                // Several rows stand in one line; all that fit are looked at.
                compacted.rows.iter().fold(false, |any, row| self.take_row(wanted, row) | any)
            }
            _ => false,
        }
    }

    fn take_row(&mut self, wanted: &Wanted, row: &Row<'_>) -> bool {
        let mut is_it = false;
        for item in &row.items {
            match (item, &wanted.kind) {
                (Item::Text(text), Kind::Prompt | Kind::Said)
                    if text.chars().count() == wanted.chars as usize =>
                {
                    let place = wanted.place;
                    let texts = if wanted.kind == Kind::Prompt {
                        &mut self.prompts
                    } else {
                        &mut self.said
                    };
                    is_it = true;
                    // The host's word for the person's stop.
                    if wanted.kind == Kind::Prompt && text.starts_with(INTERRUPTED) {
                        continue;
                    }
                    let (texts, text) = (texts.entry(place).or_default(), ends_of(text));
                    if !texts.contains(&text) {
                        texts.push(text);
                    }
                }
                (Item::Result(result), Kind::Failed { id }) if result.id == **id => {
                    self.take_failed(wanted, result);
                    is_it = true;
                }
                (Item::Call(call), Kind::Ran { id } | Kind::Changed { id }) if call.id == **id => {
                    self.take_call(wanted, call);
                    is_it = true;
                }
                _ => {}
            }
        }
        is_it
    }

    fn take_failed(&mut self, wanted: &Wanted, result: &ToolResult<'_>) {
        let text = ends_of(result.body());
        self.failed.insert(wanted.place, (result.id.clone().into_owned(), text));
    }

    fn take_call(&mut self, wanted: &Wanted, call: &Call<'_>) {
        let leaf = |names: &[&str]| {
            let found = |name: &&str| call.leaves.iter().find(|leaf| leaf.key == **name);
            names.iter().find_map(found).map(|leaf| leaf.text.clone().into_owned())
        };
        match &wanted.kind {
            Kind::Changed { .. } => {
                let path = leaf(&["file_path", "notebook_path", "path", "filePath", "target_file"]);
                if let Some(path) = path {
                    self.changed.insert(wanted.place, path);
                }
            }
            _ => {
                let whole = || {
                    let texts: Vec<&str> = call.leaves.iter().map(|leaf| &*leaf.text).collect();
                    texts.join(" ")
                };
                let command = leaf(&["command", "cmd"]).unwrap_or_else(whole);
                self.commands.insert(call.id.clone().into_owned(), ends_of(&command));
            }
        }
    }

    /// The text, of at most so many characters; `None` where there is nothing to keep.
    #[must_use]
    pub fn write(&self, plan: &Plan, max_chars: usize) -> Option<String> {
        let mut scanner = Scanner::new();
        let request = self.request();
        let changed = self.changed_files(plan);
        let sections = [
            ("The open request, in the person's words:", request.iter().cloned().collect(), 18),
            ("What the person laid down:", self.constraints(request.as_deref()), 38),
            ("Failed, and not seen to pass since:", self.failures(plan, &mut scanner), 62),
            ("Files changed, the newest first:", list(&changed), 76),
            ("Names and numbers in use:", list(&self.names(&changed, &mut scanner)), 90),
            ("Files read, the newest first:", list(&files(&plan.read, &changed)), 100),
        ];
        let mut text = HEAD.to_owned();
        let mut chars = HEAD.chars().count();
        let mut any = false;
        for (heading, lines, percent) in sections {
            let limit = max_chars * percent / 100;
            let mut is_open = false;
            for line in lines {
                let start = if is_open { String::new() } else { format!("\n\n{heading}") };
                let more = format!("{start}\n- {line}");
                let length = more.chars().count();
                if chars + length > limit {
                    break;
                }
                text.push_str(&more);
                chars += length;
                is_open = true;
                any = true;
            }
        }
        any.then_some(text)
    }

    fn request(&self) -> Option<String> {
        let newest = self.prompts.values().next_back()?;
        Some(said(&newest.join("\n"), 300)).filter(|text| text.len() > 2)
    }

    /// Lines of the person's prompts with a rule word, the newest first.
    fn constraints(&self, request: Option<&str>) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for prompt in self.prompts.values().rev() {
            let lines = prompt.iter().flat_map(|text| text.lines());
            for line in lines.filter(|line| has_rule_word(line)) {
                let long = line.chars().count() > 200;
                let parts: Vec<&str> =
                    if long { line.split_inclusive(". ").collect() } else { vec![line] };
                for part in parts.into_iter().filter(|part| has_rule_word(part)) {
                    let part = said(part, 200);
                    let inner = part.trim_matches('"');
                    let is_known = request.is_some_and(|request| request.contains(inner));
                    if !is_known && !found.contains(&part) {
                        found.push(part);
                    }
                }
            }
        }
        found
    }

    /// The newest failure of each command that no later run of it passed.
    fn failures(&self, plan: &Plan, scanner: &mut Scanner) -> Vec<String> {
        let mut seen: Vec<&str> = Vec::new();
        let mut found = Vec::new();
        for (place, (id, text)) in self.failed.iter().rev() {
            let command = self.commands.get(id).map(String::as_str);
            if let Some(command) = command {
                let has_passed = plan.passed.iter().any(|(at, later)| {
                    at > place && self.commands.get(later).is_some_and(|ran| ran == command)
                });
                if has_passed || seen.contains(&command) {
                    continue;
                }
                seen.push(command);
            }
            let lines = error_lines(text, scanner);
            if lines.is_empty() {
                continue;
            }
            let lines: Vec<String> = lines.iter().map(|line| quoted(line, 160)).collect();
            let command = command.map(|command| quoted(command, 100));
            found.push(match command {
                Some(command) => format!("{command}: {}", lines.join(" ")),
                None => lines.join(" "),
            });
        }
        found
    }

    /// Paths of the files that were changed; where only a name is known, that of a file read before.
    fn changed_files(&self, plan: &Plan) -> Vec<String> {
        let mut by_place: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (place, path) in &self.changed {
            by_place.entry(*place).or_default().push(path.clone());
        }
        for (place, name) in &plan.changed {
            if self.changed.contains_key(place) {
                continue;
            }
            let ends_so = |path: &&String| path.rsplit('/').next() == Some(name);
            let path = plan.read.iter().find(ends_so).unwrap_or(name);
            by_place.entry(*place).or_default().push(path.clone());
        }
        let all: Vec<String> = by_place.into_values().rev().flatten().collect();
        files(&all, &[])
    }

    /// Distinctive terms of the agent's newest texts, the most used first, then the newest.
    fn names(&self, changed: &[String], scanner: &mut Scanner) -> Vec<String> {
        let mut order: Vec<String> = Vec::new();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut seen: HashSet<u64, Identity> = HashSet::default();
        for text in self.said.values().rev().flatten() {
            scanner.for_each(text, |term| {
                let is_name = term.len() <= 80
                    && !term.contains(|c: char| c.is_whitespace() || c.is_control() || c == '`');
                if !is_name {
                    return;
                }
                *counts.entry(term.to_owned()).or_default() += 1;
                if seen.insert(crate::hash::hash(term.as_bytes())) {
                    order.push(term.to_owned());
                }
            });
        }
        order.retain(|term| !changed.iter().any(|path| path == term) && mask(term) == *term);
        order.sort_by_key(|term| std::cmp::Reverse(counts.get(term).copied().unwrap_or(0)));
        order
    }
}

/// The beginning and the end of a text that is too long to be looked at whole.
fn ends_of(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let mut head = MAX_TEXT_BYTES / 4;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - MAX_TEXT_BYTES * 3 / 4;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head}\n{tail}")
}

/// At most three lines that say what failed, tests first.
fn error_lines(text: &str, scanner: &mut Scanner) -> Vec<String> {
    let mut errors: HashSet<u64, Identity> = HashSet::default();
    scanner.for_each(text, |term| {
        errors.insert(crate::hash::hash(term.as_bytes()));
    });
    let mut tests: Vec<String> = Vec::new();
    let mut others: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        let list = if names_a_failed_test(line) {
            &mut tests
        } else if is_error_line(line) && errors.contains(&crate::hash::hash(line.as_bytes())) {
            &mut others
        } else {
            continue;
        };
        if list.len() < 3 && !list.iter().any(|known| known == line) {
            list.push(line.to_owned());
        }
    }
    tests.extend(others);
    if tests.is_empty() {
        // A failure without a word that says so: its last line.
        let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        tests.extend(last.map(str::to_owned));
    }
    tests.truncate(3);
    tests
}

fn is_error_line(line: &str) -> bool {
    // The host's own first line tells nothing that the command's text does not.
    !line.starts_with("Exit code") && line.contains(' ')
}

fn names_a_failed_test(line: &str) -> bool {
    ["FAILED", "--- FAIL", "FAIL ", "not ok ", "✗ ", "✕ ", "× ", "● "]
        .iter()
        .any(|mark| line.starts_with(mark))
        || (line.starts_with("test ") && line.ends_with("FAILED"))
}

/// Paths without repetition and without those that are listed already.
fn files(paths: &[String], known: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for path in paths {
        if path.chars().count() <= 300 && !known.contains(path) && !found.contains(path) {
            found.push(path.clone());
        }
    }
    found
}

/// Names in backticks, some in a line.
fn list(names: &[String]) -> Vec<String> {
    let names: Vec<String> = names.iter().map(|name| quoted(name, 300)).collect();
    names.chunks(4).map(|some| some.join(", ")).collect()
}

#[cfg(test)]
mod tests;
