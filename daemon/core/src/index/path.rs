//! Which rows are in the context (`docs/rules.md` §1).
//!
//! [`Path`] follows Claude Code's tree of rows and says for each new row whether the context simply
//! grows by it; if not, [`context`] computes the sequence anew from the log.

use hashbrown::{HashMap, HashSet, HashTable};

use super::intern::NONE;
use super::log::{Item, Log, RowEntry, RowKind, row_flag};
use crate::hash::Identity as Prehashed;
use crate::record::Host;

/// Whether a row that was just logged extends the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The context is what it was, then this row.
    Extends,
    /// The row is no part of the context.
    Out,
    /// Another context: it has to be computed again.
    Anew,
}

/// A row is in the context.
const WITHIN: u8 = 1;
/// A row is on the active path.
const ON_PATH: u8 = 2;

/// The tree of the current epoch (Claude Code). Each row of the log knows its parent; here is which
/// rows are in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Path {
    /// Rows by uuid, of equal ones the first of the newest epoch that has it.
    by_uuid: HashTable<u32>,
    /// [`WITHIN`] and [`ON_PATH`] of the epoch's rows.
    marks: Vec<u8>,
    /// Message ids of the answers that are out: a new row with one of them brings them back.
    ids_out: HashSet<u64, Prehashed>,
    leaf: Option<u32>,
    first: u32,
    /// The epoch starts with a boundary.
    bounded: bool,
    /// The context begins with preserved rows whose place a first summary row still changes.
    awaits_summary: bool,
}

/// Where a new row belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Its parent in the tree, or [`NONE`].
    pub(crate) up: u32,
    /// [`row_flag::SEEN`] and [`row_flag::TWICE`].
    pub(crate) flags: u8,
}

impl Path {
    /// The tree of a log that was read from a snapshot, with an epoch that starts at `first`. The
    /// context is still to be computed.
    pub(crate) fn of(log: &Log, first: u32) -> Self {
        let mut path = Self::default();
        for at in 0..log.len() {
            let row = log.row(at);
            if row.kind == RowKind::Boundary {
                path.begin(at);
            }
            if row.uuid != 0 && row.flags & row_flag::TWICE == 0 {
                path.remember(log, at, row.uuid);
            }
        }
        path.first = first;
        path
    }

    /// Where the epoch starts in the log.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    fn begin(&mut self, at: u32) {
        self.first = at;
        self.bounded = true;
        self.leaf = None;
        self.marks.clear();
        self.ids_out.clear();
    }

    /// Starts an epoch at a boundary row, which is about to be logged as row `at`.
    pub(crate) fn start(&mut self, log: &Log, at: u32, uuid: u64, preserves: bool) {
        self.begin(at);
        self.awaits_summary = preserves;
        self.mark(at, WITHIN | ON_PATH);
        if uuid != 0 {
            self.remember(log, at, uuid);
        }
    }

    /// The place of a row that is about to be logged as row `at`, with the hashes of its own and
    /// its parent's uuid.
    pub(crate) fn place(&mut self, log: &Log, at: u32, uuid: u64, parent: u64) -> Place {
        if uuid == 0 {
            return Place { up: NONE, flags: 0 };
        }
        let known = self.find(log, uuid);
        let seen = if known.is_some() { row_flag::SEEN } else { 0 };
        if known.is_some_and(|row| row >= self.first) {
            return Place { up: NONE, flags: seen | row_flag::TWICE };
        }
        let up = if parent == 0 {
            self.leaf.filter(|&leaf| self.bounded && leaf == self.first)
        } else {
            self.find(log, parent).filter(|&row| row >= self.first).or(self.leaf)
        };
        self.remember(log, at, uuid);
        Place { up: up.unwrap_or(NONE), flags: seen }
    }

    fn find(&self, log: &Log, uuid: u64) -> Option<u32> {
        self.by_uuid.find(uuid, |&row| log.row(row).uuid == uuid).copied()
    }

    /// Makes a row the one that its uuid means, and the leaf.
    fn remember(&mut self, log: &Log, at: u32, uuid: u64) {
        let found = self.by_uuid.find_mut(uuid, |&row| log.row(row).uuid == uuid);
        match found {
            Some(row) => *row = at,
            None => {
                self.by_uuid.insert_unique(uuid, at, |&row| log.row(row).uuid);
            }
        }
        self.leaf = Some(at);
    }

    fn mark(&mut self, row: u32, marks: u8) {
        let place = (row - self.first) as usize;
        if self.marks.len() <= place {
            self.marks.resize(place + 1, 0);
        }
        self.marks[place] |= marks;
    }

    fn unmark(&mut self, row: u32, marks: u8) {
        if let Some(slot) = self.marks.get_mut((row - self.first) as usize) {
            *slot &= !marks;
        }
    }

    fn is(&self, row: u32, mark: u8) -> bool {
        row.checked_sub(self.first)
            .and_then(|place| self.marks.get(place as usize))
            .is_some_and(|marks| marks & mark != 0)
    }

    /// Takes in the row that was just logged; `leaf` is the leaf before it.
    pub(crate) fn add(&mut self, log: &Log, at: u32, leaf: Option<u32>) -> Step {
        let row = log.row(at);
        if self.awaits_summary && !log.items(at).is_empty() {
            self.awaits_summary = false;
            return Step::Anew;
        }
        if row.flags & row_flag::TWICE != 0 {
            return Step::Out;
        }
        if row.uuid == 0 {
            self.mark(at, WITHIN);
            return Step::Extends;
        }
        if row.kind == RowKind::Assistant && self.ids_out.contains(&row.message) {
            return Step::Anew;
        }
        let parent = above(log, at);
        if leaf == parent {
            self.mark(at, WITHIN | ON_PATH);
            return Step::Extends;
        }
        if self.moves_along(log, at, parent, leaf) { Step::Extends } else { Step::Anew }
    }

    /// The last row with a uuid.
    pub(crate) fn leaf(&self) -> Option<u32> {
        self.leaf
    }

    /// A row that hangs on an earlier one than the leaf: true if nothing leaves the context by it
    /// and nothing comes back, as with parallel calls, whose results hang on their own call.
    fn moves_along(&mut self, log: &Log, at: u32, parent: Option<u32>, old: Option<u32>) -> bool {
        // From the parent up to the path: these rows must be in the context already.
        let mut joins = Vec::new();
        let mut fork = parent;
        while let Some(row) = fork.filter(|&row| !self.is(row, ON_PATH)) {
            if !self.is(row, WITHIN) {
                return false;
            }
            joins.push(row);
            fork = above(log, row);
        }
        let Some(fork) = fork else { return false };
        // From the old leaf up to the fork: these leave the path and must stay for another reason.
        let mut leaving = Vec::new();
        let mut up = old;
        while let Some(row) = up.filter(|&row| row > fork) {
            if !self.stays_beside(log, row) {
                return false;
            }
            leaving.push(row);
            up = above(log, row);
        }
        if !self.path_has_ids(log, fork, &leaving, joins.iter().chain([&at])) {
            return false;
        }
        for row in leaving {
            // Without items it has no part in the context, only in the tree.
            let marks = if log.items(row).is_empty() { WITHIN | ON_PATH } else { ON_PATH };
            self.unmark(row, marks);
        }
        for row in joins {
            self.mark(row, ON_PATH);
        }
        self.mark(at, WITHIN | ON_PATH);
        true
    }

    /// Whether a row could be in the context without being on the path.
    fn stays_beside(&self, log: &Log, row: u32) -> bool {
        let entry = log.row(row);
        match entry.kind {
            _ if log.items(row).is_empty() => true,
            RowKind::Assistant => entry.message != 0,
            RowKind::User => only_results(log, row) && self.answers(log, row),
            _ => false,
        }
    }

    /// Whether every message id of the rows that leave the path still occurs on it: on the rows
    /// that join, or from the fork up.
    fn path_has_ids<'a>(
        &self,
        log: &Log,
        fork: u32,
        leaving: &[u32],
        joins: impl Iterator<Item = &'a u32>,
    ) -> bool {
        let is_answer = |row: &RowEntry| row.kind == RowKind::Assistant && row.message != 0;
        let mut wanted: HashSet<u64, Prehashed> = leaving
            .iter()
            .filter(|&&row| !log.items(row).is_empty())
            .map(|&row| log.row(row))
            .filter(is_answer)
            .map(|row| row.message)
            .collect();
        for &row in joins {
            wanted.remove(&log.row(row).message);
        }
        let mut up = Some(fork);
        while let Some(row) = up.filter(|_| !wanted.is_empty()) {
            wanted.remove(&log.row(row).message);
            up = above(log, row);
        }
        wanted.is_empty()
    }

    /// Whether every result of the row answers a call that stands in an earlier row of the context.
    fn answers(&self, log: &Log, row: u32) -> bool {
        log.items(row).iter().all(|item| {
            let Item::Result(result) = item else { return false };
            let id = log.result(*result).id;
            let calls_it =
                |&item: &Item| matches!(item, Item::Call(call) if log.call(call).id == id);
            (self.first..row)
                .rev()
                .filter(|&before| self.is(before, WITHIN))
                .any(|before| log.items(before).iter().any(calls_it))
        })
    }

    /// Takes over a context that was computed anew.
    fn set(&mut self, log: &Log, rows: &[u32], path: &[u32]) {
        self.marks.clear();
        self.ids_out.clear();
        for &row in rows {
            self.mark(row, WITHIN);
        }
        for &row in path {
            self.mark(row, WITHIN | ON_PATH);
        }
        for at in self.first..log.len() {
            let row = log.row(at);
            if row.kind == RowKind::Assistant && row.message != 0 && !self.is(at, WITHIN) {
                self.ids_out.insert(row.message);
            }
        }
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.by_uuid.allocation_size() + self.marks.capacity() + self.ids_out.allocation_size()
    }
}

/// The row's parent in the tree.
fn above(log: &Log, row: u32) -> Option<u32> {
    Some(log.row(row).up).filter(|&up| up != NONE)
}

/// Whether all items of a row are tool results (and there are some).
fn only_results(log: &Log, row: u32) -> bool {
    let items = log.items(row);
    !items.is_empty() && items.iter().all(|item| matches!(item, Item::Result(_)))
}

/// The rows of the context in order, computed from the log alone.
pub(crate) fn context(host: Host, log: &Log, path: &mut Path) -> Vec<u32> {
    match host {
        Host::Codex => codex_context(log),
        Host::Claude => claude_context(log, path),
    }
}

/// The rows of the whole history in order: boundaries, branches and replacements ignored.
pub(crate) fn whole(log: &Log) -> Vec<u32> {
    (0..log.len())
        .filter(|&at| log.row(at).flags & (row_flag::REPLACEMENT | row_flag::SEEN) == 0)
        .collect()
}

fn codex_context(log: &Log) -> Vec<u32> {
    let start = (0..log.len())
        .rev()
        .find(|&at| log.row(at).kind == RowKind::Compacted)
        .map_or(0, |at| at + 1);
    let mut rows: Vec<u32> = Vec::new();
    for at in start..log.len() {
        let row = log.row(at);
        if row.kind == RowKind::RolledBack {
            let keep = rows
                .iter()
                .enumerate()
                .rev()
                .filter(|&(_, &row)| log.row(row).flags & row_flag::PROMPT != 0)
                .nth(row.up.saturating_sub(1) as usize)
                .map_or(0, |(place, _)| place);
            if row.up > 0 {
                rows.truncate(keep);
            }
        } else {
            rows.push(at);
        }
    }
    rows
}

fn claude_context(log: &Log, path: &mut Path) -> Vec<u32> {
    let first = path.first;
    path.awaits_summary =
        !log.preserved(first).is_empty() && (first..log.len()).all(|at| log.items(at).is_empty());
    let mut chain = Vec::new();
    let mut up = path.leaf;
    while let Some(row) = up {
        chain.push(row);
        up = above(log, row);
    }
    let on_path: HashSet<u32, Prehashed> = chain.iter().copied().collect();
    let ids: HashSet<u64, Prehashed> = chain
        .iter()
        .map(|&row| log.row(row))
        .filter(|row| row.kind == RowKind::Assistant && row.message != 0)
        .map(|row| row.message)
        .collect();
    let mut calls = HashSet::<u32, Prehashed>::default();
    let mut rows = Vec::new();
    for at in first..log.len() {
        let row = log.row(at);
        let within = row.flags & row_flag::TWICE == 0
            && (row.uuid == 0
                || on_path.contains(&at)
                || (row.kind == RowKind::Assistant && ids.contains(&row.message))
                || (row.kind == RowKind::User
                    && only_results(log, at)
                    && log.items(at).iter().all(|item| {
                        matches!(item, Item::Result(result) if calls.contains(&log.result(*result).id))
                    })));
        if within {
            rows.push(at);
            for item in log.items(at) {
                if let Item::Call(call) = item {
                    calls.insert(log.call(*call).id);
                }
            }
        }
    }
    path.set(log, &rows, &chain);
    let preserved = preserved_rows(log, first);
    if !preserved.is_empty() {
        let lead = rows.iter().position(|&row| !log.items(row).is_empty());
        let at = lead.map_or(rows.len(), |lead| {
            let summary = log.row(rows[lead]).flags & row_flag::SUMMARY != 0;
            lead + usize::from(summary)
        });
        rows.splice(at..at, preserved);
    }
    rows
}

/// The rows before the boundary that it names, in its order; of equal uuids the last.
fn preserved_rows(log: &Log, boundary: u32) -> Vec<u32> {
    let wanted = log.preserved(boundary);
    if wanted.is_empty() {
        return Vec::new();
    }
    let before: HashMap<u64, u32, Prehashed> =
        (0..boundary).map(|at| (log.row(at).uuid, at)).filter(|&(uuid, _)| uuid != 0).collect();
    wanted.iter().filter_map(|uuid| before.get(uuid).copied()).collect()
}
