//! Which rows are in the context (`docs/rules.md` §1).
//!
//! [`Path`] follows Claude Code's tree of rows and says for each new row whether the context simply
//! grows by it; if not, [`context`] computes the sequence anew from the log.

use hashbrown::{HashMap, HashSet};

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

/// The tree of the current epoch (Claude Code).
#[derive(Debug, Clone, Default)]
pub(crate) struct Path {
    by_uuid: HashMap<u64, u32, Prehashed>,
    /// Parent of every row with a uuid of the epoch, [`NONE`] at a root.
    parents: HashMap<u32, u32, Prehashed>,
    /// Rows of the context, and of them those on the active path.
    within: HashSet<u32, Prehashed>,
    on_path: HashSet<u32, Prehashed>,
    /// Message ids of the answers that are out: a new row with one of them brings them back.
    ids_out: HashSet<u64, Prehashed>,
    leaf: Option<u32>,
    first: u32,
    /// The context begins with preserved rows whose place a first summary row still changes.
    awaits_summary: bool,
}

impl Path {
    /// A path whose tree is still to be computed, for an epoch that starts at a row of the log.
    pub(crate) fn starting_at(first: u32) -> Self {
        Self { first, ..Self::default() }
    }

    /// Where the epoch starts in the log.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Starts an epoch at a boundary row.
    pub(crate) fn start(&mut self, log: &Log, at: u32) -> Step {
        *self = Self { first: at, ..Self::default() };
        self.awaits_summary = !log.preserved(at).is_empty();
        self.adopt(log, at);
        self.within.insert(at);
        self.on_path.insert(at);
        Step::Anew
    }

    /// Takes in a row of the epoch.
    pub(crate) fn add(&mut self, log: &Log, at: u32) -> Step {
        let row = log.row(at);
        if self.awaits_summary && !log.items(at).is_empty() {
            self.awaits_summary = false;
            if row.uuid != 0 && self.by_uuid.contains_key(&row.uuid) {
                return Step::Anew;
            }
            self.adopt(log, at);
            return Step::Anew;
        }
        if row.uuid == 0 {
            self.within.insert(at);
            return Step::Extends;
        }
        if self.by_uuid.contains_key(&row.uuid) {
            return Step::Out;
        }
        let leaf = self.leaf;
        let parent = self.adopt(log, at);
        if row.kind == RowKind::Assistant && self.ids_out.contains(&row.message) {
            return Step::Anew;
        }
        if leaf == parent || (leaf.is_none() && parent.is_none()) {
            self.within.insert(at);
            self.on_path.insert(at);
            return Step::Extends;
        }
        if self.moves_along(log, at, parent, leaf) { Step::Extends } else { Step::Anew }
    }

    /// Gives the row its place in the tree and makes it the leaf; returns its parent.
    fn adopt(&mut self, log: &Log, at: u32) -> Option<u32> {
        let row = log.row(at);
        if row.uuid == 0 {
            return None;
        }
        let parent = if row.parent == 0 {
            (row.kind != RowKind::Boundary && self.leaf.is_some_and(|leaf| leaf == self.first))
                .then_some(self.first)
                .filter(|&first| log.row(first).kind == RowKind::Boundary)
        } else {
            self.by_uuid.get(&row.parent).copied().or(self.leaf)
        };
        self.by_uuid.insert(row.uuid, at);
        self.parents.insert(at, parent.unwrap_or(NONE));
        self.leaf = Some(at);
        parent
    }

    /// A row that hangs on an earlier one than the leaf: true if nothing leaves the context by it
    /// and nothing comes back, as with parallel calls, whose results hang on their own call.
    fn moves_along(&mut self, log: &Log, at: u32, parent: Option<u32>, old: Option<u32>) -> bool {
        // From the parent up to the path: these rows must be in the context already.
        let mut joins = Vec::new();
        let mut fork = parent;
        while let Some(row) = fork.filter(|row| !self.on_path.contains(row)) {
            if !self.within.contains(&row) {
                return false;
            }
            joins.push(row);
            fork = self.parent(row);
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
            up = self.parent(row);
        }
        if !self.path_has_ids(log, fork, &leaving, joins.iter().chain([&at])) {
            return false;
        }
        for row in leaving {
            self.on_path.remove(&row);
            if log.items(row).is_empty() {
                // Without items it has no part in the context, only in the tree.
                self.within.remove(&row);
            }
        }
        self.on_path.extend(joins);
        self.on_path.insert(at);
        self.within.insert(at);
        true
    }

    fn parent(&self, row: u32) -> Option<u32> {
        self.parents.get(&row).copied().filter(|&up| up != NONE)
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
        let is_answer = |row: &RowEntry| {
            row.kind == RowKind::Assistant && row.message != 0
        };
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
            up = self.parent(row);
        }
        wanted.is_empty()
    }

    /// Whether every result of the row answers a call that stands in an earlier row of the context.
    fn answers(&self, log: &Log, row: u32) -> bool {
        log.items(row).iter().all(|item| {
            let Item::Result(result) = item else { return false };
            let id = log.result(*result).id;
            let calls_it = |&item: &Item| matches!(item, Item::Call(call) if log.call(call).id == id);
            (self.first..row)
                .rev()
                .filter(|before| self.within.contains(before))
                .any(|before| log.items(before).iter().any(calls_it))
        })
    }

    /// Takes over a context that was computed anew.
    fn set(&mut self, log: &Log, rows: &[u32], path: Vec<u32>) {
        self.within = rows.iter().copied().collect();
        self.within.extend(path.iter().copied());
        self.on_path = path.into_iter().collect();
        self.ids_out = (self.parents.keys())
            .filter(|row| !self.within.contains(*row))
            .map(|&row| log.row(row))
            .filter(|row| row.kind == RowKind::Assistant && row.message != 0)
            .map(|row| row.message)
            .collect();
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.by_uuid.allocation_size()
            + self.parents.allocation_size()
            + self.within.allocation_size()
            + self.on_path.allocation_size()
            + self.ids_out.allocation_size()
    }
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
                .nth(usize::try_from(row.parent.saturating_sub(1)).unwrap_or(usize::MAX))
                .map_or(0, |(place, _)| place);
            if row.parent > 0 {
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
    // The tree of the epoch, from scratch.
    *path = Path { first, ..Path::default() };
    let mut out = HashSet::<u32, Prehashed>::default();
    for at in first..log.len() {
        let row = log.row(at);
        if row.uuid != 0 && path.by_uuid.contains_key(&row.uuid) {
            out.insert(at);
        } else {
            path.adopt(log, at);
        }
    }
    path.awaits_summary = !log.preserved(first).is_empty()
        && (first..log.len()).all(|at| log.items(at).is_empty());
    let mut chain = Vec::new();
    let mut up = path.leaf;
    while let Some(row) = up {
        chain.push(row);
        up = path.parents.get(&row).copied().filter(|&up| up != NONE);
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
        let within = !out.contains(&at)
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
    path.set(log, &rows, chain);
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
