//! Which reads of which files stand open, and which later read shows one again.
//!
//! A result of a code-mode script may show several files in several pieces. Which piece is of which
//! file is not said, so each piece is looked for in the later reads of all of them, by what it shows.

use hashbrown::{HashMap, HashSet};

use super::intern::NONE;
use super::live::{LiveResult, live_flag};
use super::log::{Log, ResultEntry, result_flag};
use crate::hash::Identity as Prehashed;

/// A piece of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    ordinal: u32,
    at: u32,
}

impl Piece {
    /// A number that no other piece has (the multiplier is odd), well spread.
    fn hash(self) -> u64 {
        (u64::from(self.ordinal) << 32 | u64::from(self.at)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Reads of one path that no write separates from now.
#[derive(Debug, Clone, Default)]
struct PathReads {
    open: Vec<Piece>,
    latest: Option<u32>,
    /// A read that an earlier pass dropped stands here, and no write behind it: a later read may
    /// have been kept in its stead.
    noted: bool,
    /// Writes to everything that had happened when `open` was last touched.
    epoch: u32,
}

impl PathReads {
    /// A write came between.
    fn forget(&mut self, several: &mut HashMap<u32, Several, Prehashed>) {
        for piece in self.open.drain(..) {
            if let Some(of) = several.get_mut(&piece.ordinal) {
                of.closed = true;
            }
        }
        self.noted = false;
    }
}

/// A result with several files or pieces.
#[derive(Debug, Clone)]
struct Several {
    /// By piece, the read that shows it again, or [`NONE`].
    shown_by: Vec<u32>,
    /// One of its files was written, or all of it is shown again.
    closed: bool,
}

/// Files and their reads.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    paths: HashMap<u32, PathReads, Prehashed>,
    by_name: HashMap<u32, Vec<u32>, Prehashed>,
    several: HashMap<u32, Several, Prehashed>,
    write_epoch: u32,
}

impl Files {
    /// Bytes on the heap, about.
    pub(super) fn heap_bytes(&self) -> usize {
        self.paths.allocation_size()
            + self
                .paths
                .values()
                .map(|reads| reads.open.capacity() * size_of::<Piece>())
                .sum::<usize>()
            + self.by_name.allocation_size()
            + self.several.allocation_size()
            + self.several.values().map(|of| of.shown_by.capacity() * 4).sum::<usize>()
    }

    /// Whether no later read shows one of the files that this one shows.
    pub(super) fn is_latest(&self, log: &Log, entry: ResultEntry, ordinal: u32) -> bool {
        let latest = |path| self.paths.get(&path).and_then(|reads| reads.latest);
        log.reads(entry).any(|(path, _)| latest(path) == Some(ordinal))
    }

    /// What a result says about files: first as a read, then as a write.
    pub(super) fn feed(
        &mut self,
        log: &Log,
        entry: ResultEntry,
        ordinal: u32,
        results: &mut [LiveResult],
    ) {
        if entry.read != NONE {
            if entry.flags & result_flag::STUB != 0 {
                let latest = self.paths.get(&entry.read).and_then(|reads| reads.latest);
                if let Some(target) = latest.and_then(|at| results.get_mut(at as usize)) {
                    target.flags |= live_flag::STUB_TARGET;
                }
            } else if entry.flags & result_flag::NOTED != 0 {
                for (path, name) in log.reads(entry) {
                    self.reads(path, name).noted = true;
                }
            } else if Log::piece_count(entry) > 0 {
                self.feed_read(log, entry, ordinal, results);
            }
        }
        if entry.flags & result_flag::WRITES_ALL != 0 {
            self.write_epoch += 1;
        }
        for name in log.name_refs(entry.writes) {
            for path in self.by_name.get(name).into_iter().flatten() {
                if let Some(reads) = self.paths.get_mut(path) {
                    reads.forget(&mut self.several);
                }
            }
        }
    }

    /// The reads of a path that no write separates from now.
    fn reads(&mut self, path: u32, name: u32) -> &mut PathReads {
        let (epoch, by_name) = (self.write_epoch, &mut self.by_name);
        let reads = self.paths.entry(path).or_insert_with(|| {
            by_name.entry(name).or_default().push(path);
            PathReads { epoch, ..PathReads::default() }
        });
        if reads.epoch != epoch {
            reads.epoch = epoch;
            reads.forget(&mut self.several);
        }
        reads
    }

    fn feed_read(
        &mut self,
        log: &Log,
        entry: ResultEntry,
        ordinal: u32,
        results: &mut [LiveResult],
    ) {
        let count = Log::piece_count(entry);
        // First all that a write closed, whichever path shows it.
        for (path, name) in log.reads(entry) {
            self.reads(path, name);
        }
        let mut superseder = false;
        let mut differing: HashSet<u64, Prehashed> = HashSet::default();
        for (path, name) in log.reads(entry) {
            let mut open = std::mem::take(&mut self.reads(path, name).open);
            open.retain(|piece| {
                let Some(earlier) = results.get(piece.ordinal as usize).copied() else {
                    return false;
                };
                let several = self.several.get_mut(&piece.ordinal);
                let is_done = several.as_ref().is_some_and(|of| {
                    of.closed || of.shown_by.get(piece.at as usize) != Some(&NONE)
                });
                if is_done || piece.ordinal == ordinal {
                    return !is_done;
                }
                let shown = log.piece(log.result(earlier.entry), piece.at);
                let known = entry.also.start < entry.also.end && !differing.insert(piece.hash());
                if known || !(0..count).any(|at| holds_run(log.piece(entry, at), shown)) {
                    return true;
                }
                superseder |= show_again(piece, ordinal, several, results);
                false
            });
            let reads = self.reads(path, name);
            superseder |= reads.noted;
            open.extend((0..count).map(|at| Piece { ordinal, at }));
            reads.open = open;
            reads.latest = Some(ordinal);
        }
        if count > 1 || entry.also.start < entry.also.end {
            let shown_by = vec![NONE; count as usize];
            self.several.insert(ordinal, Several { shown_by, closed: false });
        }
        if let Some(result) = results.get_mut(ordinal as usize) {
            result.flags |= live_flag::READ;
            result.flags |= if superseder { live_flag::SUPERSEDER } else { 0 };
        }
    }
}

/// Notes that a read shows a piece of an earlier one again; true if that one is not needed any more.
fn show_again(
    piece: &Piece,
    by: u32,
    several: Option<&mut Several>,
    results: &mut [LiveResult],
) -> bool {
    let mut others = Vec::new();
    if let Some(of) = several {
        if let Some(shown_by) = of.shown_by.get_mut(piece.at as usize) {
            *shown_by = by;
        }
        if of.shown_by.contains(&NONE) {
            return false;
        }
        of.closed = true;
        others.clone_from(&of.shown_by);
    }
    if let Some(earlier) = results.get_mut(piece.ordinal as usize) {
        earlier.superseded_by = by;
    }
    for other in others {
        if let Some(result) = results.get_mut(other as usize) {
            result.flags |= live_flag::SUPERSEDER;
        }
    }
    true
}

/// Whether `lines` holds `run` as consecutive lines. Linear (Knuth-Morris-Pratt): transcripts are
/// not trusted, and a file of equal lines must not cost its square.
fn holds_run(lines: &[u32], run: &[u32]) -> bool {
    let (Some(first), true) = (run.first(), lines.len() >= run.len()) else { return false };
    if !lines.contains(first) {
        return false;
    }
    let mut fallback = vec![0_usize; run.len()];
    let mut matched = 0;
    for at in 1..run.len() {
        while matched > 0 && run[matched] != run[at] {
            matched = fallback[matched - 1];
        }
        matched += usize::from(run[matched] == run[at]);
        fallback[at] = matched;
    }
    matched = 0;
    for line in lines {
        while matched > 0 && run[matched] != *line {
            matched = fallback[matched - 1];
        }
        matched += usize::from(run[matched] == *line);
        if matched == run.len() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::holds_run;

    #[test]
    fn runs_are_found_only_whole_and_in_order() {
        assert!(holds_run(&[1, 2, 3, 4], &[2, 3]));
        assert!(holds_run(&[1, 1, 1, 2], &[1, 1, 2]));
        assert!(holds_run(&[5], &[5]));
        assert!(!holds_run(&[1, 2, 3], &[1, 3]));
        assert!(!holds_run(&[1, 2], &[1, 2, 3]));
        assert!(!holds_run(&[1, 2], &[]));
    }

    #[test]
    fn equal_lines_do_not_cost_their_square() {
        let lines = vec![7; 200_000];
        let mut run = vec![7; 100_000];
        run.push(8);
        assert!(!holds_run(&lines, &run));
    }
}
