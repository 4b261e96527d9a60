//! Reads of the same file: which one a later one makes needless (§6, rules 1, 3 and 4).

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::history::History;
use super::lines::{hold_run, read_lines};
use super::notes::is_noted;
use super::terms::regex;
use super::{Action, ToolSemantics, Writes};

static STUB: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)\bfile unchanged since (?:your )?last read\b"));

/// The host answers a needless read with a sentence, not with the file.
const STUB_CHARS: usize = 400;

#[derive(Default)]
pub(super) struct Reads {
    /// Reads that a later read replaces.
    pub(super) superseded: HashSet<usize>,
    /// Reads that replaced an earlier one.
    pub(super) superseders: HashSet<usize>,
    /// The last read of each path.
    pub(super) latest: HashSet<usize>,
    /// Stubs, and the reads that they point to.
    pub(super) stubs: HashSet<usize>,
}

/// What every call with a result did.
pub(super) fn actions(history: &History, tools: &dyn ToolSemantics) -> Vec<Action> {
    let action = |answer: &super::history::Answer| {
        let call = &history.calls[answer.call];
        let cwd = call.cwd.as_deref();
        let mut action =
            tools.whole(history.host.name(), &call.tool, &call.input, cwd, &call.commands);
        if answer.result.is_error && tools.is_edit_tool(&call.tool) {
            action.writes = Writes::None;
        }
        action
    };
    history.results.iter().map(action).collect()
}

pub(super) fn reads(history: &History, actions: &[Action]) -> Reads {
    let mut reads = Reads::default();
    let mut by_path: HashMap<&str, Vec<(usize, Vec<String>)>> = HashMap::new();
    // Reads that an earlier pass dropped: one behind may have been kept in their stead.
    let mut noted: Vec<(usize, &str)> = Vec::new();
    for (number, answer) in history.results.iter().enumerate() {
        let Some(path) = actions[number].read.as_deref() else {
            continue;
        };
        let result = &answer.result;
        if result.is_error {
            continue;
        }
        if is_noted(&result.text) {
            noted.push((number, path));
            continue;
        }
        let earlier = by_path.entry(path).or_default();
        if result.body.chars().count() <= STUB_CHARS && STUB.is_match(&result.body) {
            reads.stubs.insert(number);
            reads.stubs.extend(earlier.last().map(|(number, _)| *number));
            continue;
        }
        let lines = read_lines(&result.body);
        if !lines.is_empty() {
            earlier.push((number, lines));
        }
    }
    for (path, same) in &by_path {
        reads.latest.extend(same.last().map(|(number, _)| *number));
        for (place, (number, lines)) in same.iter().enumerate() {
            for (later, later_lines) in &same[place + 1..] {
                if actions[number + 1..*later].iter().any(|action| writes(action, path)) {
                    break;
                }
                if hold_run(later_lines, lines) {
                    reads.superseded.insert(*number);
                    reads.superseders.insert(*later);
                    break;
                }
            }
        }
    }
    for (number, path) in noted {
        for (later, _) in by_path.get(path).into_iter().flatten() {
            let is_behind = *later > number;
            if is_behind && !actions[number..*later].iter().any(|action| writes(action, path)) {
                reads.superseders.insert(*later);
            }
        }
    }
    reads
}

/// Whether a call wrote to a file of that name.
fn writes(action: &Action, path: &str) -> bool {
    match &action.writes {
        Writes::None => false,
        Writes::All => true,
        Writes::Names(names) => names.iter().any(|name| file_name(name) == file_name(path)),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
