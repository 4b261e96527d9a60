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

/// More files than this are not told apart.
const MAX_FILES: usize = 32;

/// More pieces than this are compared as one.
const MAX_PIECES: usize = 32;

/// What every call with a result did.
pub(super) fn actions(history: &History, tools: &dyn ToolSemantics) -> Vec<Action> {
    let action = |answer: &super::history::Answer| {
        let call = &history.calls[answer.call];
        let cwd = call.cwd.as_deref();
        let result = &answer.result;
        let mut action =
            tools.whole(history.host.name(), &call.tool, &call.input, cwd, &result.ran);
        if result.ran.unsure || action.reads.len() > MAX_FILES {
            action = Action { writes: action.writes, unsure: true, ..Action::default() };
        }
        if result.is_error && tools.is_edit_tool(&call.tool) {
            action.writes = Writes::None;
        }
        if result.running.is_some() {
            action.rerunnable = None;
        }
        action
    };
    history.results.iter().map(action).collect()
}

/// A result that shows files.
struct Read<'a> {
    number: usize,
    paths: &'a [String],
    pieces: Vec<Vec<String>>,
}

impl Read<'_> {
    fn shows(&self, piece: &[String]) -> bool {
        self.pieces.iter().any(|own| hold_run(own, piece))
    }
}

pub(super) fn reads(history: &History, actions: &[Action]) -> Reads {
    let mut reads = Reads::default();
    let mut all: Vec<Read<'_>> = Vec::new();
    // The newest read of each path.
    let mut latest: HashMap<&str, usize> = HashMap::new();
    // Reads that an earlier pass dropped: one behind may have been kept in their stead.
    let mut noted: Vec<(usize, &str)> = Vec::new();
    for (number, answer) in history.results.iter().enumerate() {
        let paths = actions[number].reads.as_slice();
        let result = &answer.result;
        if paths.is_empty() || result.is_error {
            continue;
        }
        if is_noted(&result.text) {
            noted.extend(paths.iter().map(|path| (number, path.as_str())));
            continue;
        }
        if result.body.chars().count() <= STUB_CHARS && STUB.is_match(&result.body) {
            reads.stubs.insert(number);
            reads.stubs.extend(latest.get(paths[0].as_str()));
            continue;
        }
        let mut pieces: Vec<Vec<String>> = result
            .pieces
            .iter()
            .map(|piece| read_lines(piece))
            .filter(|lines| !lines.is_empty())
            .collect();
        if pieces.len() > MAX_PIECES {
            pieces = vec![pieces.concat()];
        }
        if !pieces.is_empty() {
            latest.extend(paths.iter().map(|path| (path.as_str(), number)));
            all.push(Read { number, paths, pieces });
        }
    }
    reads.latest.extend(latest.values());
    for (place, read) in all.iter().enumerate() {
        let shown_by: Option<Vec<usize>> = read
            .pieces
            .iter()
            .map(|piece| shown_again(&all[place + 1..], read, piece, actions))
            .collect();
        if let Some(shown_by) = shown_by {
            reads.superseded.insert(read.number);
            reads.superseders.extend(shown_by);
        }
    }
    for (number, path) in noted {
        for later in all.iter().filter(|later| later.paths.iter().any(|own| own == path)) {
            let is_behind = later.number > number;
            if is_behind && !actions[number..later.number].iter().any(|action| writes(action, path))
            {
                reads.superseders.insert(later.number);
            }
        }
    }
    reads
}

/// The first of later reads that shares a file with a read and shows a piece of it, with no write to
/// any of its files between.
fn shown_again(
    later: &[Read<'_>],
    read: &Read<'_>,
    piece: &[String],
    actions: &[Action],
) -> Option<usize> {
    for later in
        later.iter().filter(|later| later.paths.iter().any(|path| read.paths.contains(path)))
    {
        let between = &actions[read.number..later.number];
        if between.iter().any(|action| read.paths.iter().any(|path| writes(action, path))) {
            return None;
        }
        if later.shows(piece) {
            return Some(later.number);
        }
    }
    None
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
