//! The log: every row of a transcript that can matter, in file order, as numbers instead of text.
//!
//! It is the source of truth of the index. The live structure can be built again from it for any
//! context (a rewind, a boundary, the whole history) without reading the transcript again.

use std::ops::Range;

use super::intern::{Hashes, NONE, Names};
use super::quotable::Quotable;

/// What a row of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum RowKind {
    #[default]
    User,
    Assistant,
    Link,
    /// Claude `compact_boundary`.
    Boundary,
    /// Codex `compacted`: a new context starts with the replacement rows behind it.
    Compacted,
    /// Codex `thread_rolled_back`; `up` holds the number of turns.
    RolledBack,
}

impl RowKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::User,
        Self::Assistant,
        Self::Link,
        Self::Boundary,
        Self::Compacted,
        Self::RolledBack,
    ];
}

/// Bits of [`RowEntry::flags`].
pub(crate) mod row_flag {
    pub(crate) const SUMMARY: u8 = 1;
    /// A person's prompt (what a rolled-back turn starts with).
    pub(crate) const PROMPT: u8 = 2;
    /// Part of a `compacted` record's replacement history.
    pub(crate) const REPLACEMENT: u8 = 4;
    /// Has a uuid that the whole history saw before: a copy.
    pub(crate) const SEEN: u8 = 8;
    /// Has a uuid that its own epoch saw before: no part of any context.
    pub(crate) const TWICE: u8 = 16;
    /// Holds text that the host sends beside the messages and that a plugin does not get.
    pub(crate) const ATTACHED: u8 = 32;
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RowEntry {
    /// Hash of the row's uuid, 0 = none.
    pub(crate) uuid: u64,
    /// Hash of the API message id, 0 = none.
    pub(crate) message: u64,
    /// Where the row's line starts in its file.
    pub(crate) offset: u64,
    /// Line number from 0.
    pub(crate) line: u32,
    /// End of its items in the log; they start where the row before ends.
    pub(crate) items_end: u32,
    /// Its parent in the tree, or [`NONE`].
    pub(crate) up: u32,
    pub(crate) kind: RowKind,
    pub(crate) flags: u8,
}

/// One part of a row: an index into one of the three tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    Text(u32),
    Call(u32),
    Result(u32),
    Opaque,
}

/// Start and end in a table of references.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TextEntry {
    /// Terms that some result had shown before: nothing else can be referenced by it.
    pub(crate) uses: Span,
    /// Quoting lines that some result had shown before, in the log's `quotes`.
    pub(crate) quotes: Span,
    /// The same of what only the part says that shortening would take away.
    pub(crate) cut_uses: Span,
    pub(crate) cut_quotes: Span,
    pub(crate) chars: u32,
    pub(crate) flags: u8,
}

/// Bits of [`TextEntry::flags`].
pub(crate) mod text_flag {
    pub(crate) const RULE_WORD: u8 = 1;
    /// Only the part has it that shortening would take away.
    pub(crate) const RULE_WORD_IN_CUT: u8 = 2;
    pub(crate) const BLANK: u8 = 4;
    /// Can be shortened.
    pub(crate) const LONG: u8 = 8;
}

/// Bits of [`CallEntry::flags`].
pub(crate) mod call_flag {
    /// Has string leaves that a removal shortens.
    pub(crate) const LONG: u8 = 1;
    /// Shortening would hide which files it reads or writes.
    pub(crate) const ACTS_IN_CUT: u8 = 2;
}

/// Where one long leaf of a call's input is cut when it is shortened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeafCut {
    /// Its place among the leaves of the input, from 0.
    pub leaf: u32,
    /// Its whole length in UTF-16 units.
    pub utf16: u32,
    /// Where it is cut, in UTF-16 units.
    pub cut_utf16: u32,
    /// Characters that go: the number in its note.
    pub removed: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CallEntry {
    pub(crate) id: u32,
    pub(crate) tool: u32,
    /// Terms that some result had shown before and that shortening would keep.
    pub(crate) uses: Span,
    /// The same for the part that shortening would take away.
    pub(crate) cut_uses: Span,
    pub(crate) chars: u32,
    /// Characters that shortening would free.
    pub(crate) cut_chars: u32,
    /// Its long leaves.
    pub(crate) leaves: Span,
    pub(crate) flags: u8,
}

/// Bits of [`ResultEntry::flags`].
pub(crate) mod result_flag {
    pub(crate) const ERROR: u16 = 1;
    pub(crate) const OPAQUE: u16 = 2;
    /// Our own note or cut: decided by an earlier pass.
    pub(crate) const NOTED: u16 = 4;
    /// "File unchanged since last read".
    pub(crate) const STUB: u16 = 8;
    pub(crate) const RERUNNABLE: u16 = 16;
    pub(crate) const WRITES_ALL: u16 = 32;
    pub(crate) const BLANK: u16 = 64;
    /// Re-runnable even if it was used later.
    pub(crate) const EVEN_IF_USED: u16 = 128;
    /// Its kind of output ([`crate::tools::Class`]).
    pub(crate) const SEARCH: u16 = 256;
    pub(crate) const WEB: u16 = 512;
    pub(crate) const SHELL: u16 = 1024;
    /// Becomes shorter when it is cut.
    pub(crate) const CUTTABLE: u16 = 2048;
    /// Shows, or may show, something else beside files.
    pub(crate) const PARTIAL: u16 = 4096;
    /// Which files it shows cannot be told.
    pub(crate) const UNSURE: u16 = 8192;
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ResultEntry {
    pub(crate) id: u32,
    pub(crate) tool: u32,
    /// Path it shows, or [`NONE`].
    pub(crate) read: u32,
    /// Last path component of `read`, or [`NONE`].
    pub(crate) read_name: u32,
    pub(crate) row: u32,
    pub(crate) chars: u32,
    /// Terms that its own call's input does not hold: they decide.
    pub(crate) deciding: Span,
    /// Terms that its own call's input holds: they only count for being generic.
    pub(crate) known: Span,
    /// Hashes of its read lines, in the log's `read_lines`.
    pub(crate) read_lines: Span,
    /// Other files that it shows (path, last component), in the log's `also`.
    pub(crate) also: Span,
    /// Where the pieces of its read lines end, in the log's `pieces`; empty for one piece.
    pub(crate) pieces: Span,
    /// Names of files written.
    pub(crate) writes: Span,
    pub(crate) cut_utf16: u32,
    pub(crate) flags: u16,
}

impl Default for ResultEntry {
    fn default() -> Self {
        Self {
            id: NONE,
            tool: NONE,
            read: NONE,
            read_name: NONE,
            row: 0,
            chars: 0,
            deciding: Span::default(),
            known: Span::default(),
            read_lines: Span::default(),
            also: Span::default(),
            pieces: Span::default(),
            writes: Span::default(),
            cut_utf16: 0,
            flags: 0,
        }
    }
}

/// All rows of one transcript.
#[derive(Debug, Default, Clone)]
pub(crate) struct Log {
    pub(crate) names: Names,
    pub(crate) terms: Hashes,
    pub(crate) quotable: Quotable,
    pub(crate) rows: Vec<RowEntry>,
    pub(crate) items: Vec<Item>,
    pub(crate) texts: Vec<TextEntry>,
    pub(crate) calls: Vec<CallEntry>,
    pub(crate) results: Vec<ResultEntry>,
    pub(crate) term_refs: Vec<u32>,
    /// Half of each read line's hash: compared as whole runs.
    pub(crate) read_lines: Vec<u32>,
    /// Further files of results that show several.
    pub(crate) also: Vec<(u32, u32)>,
    /// Ends in `read_lines` of the pieces of results that have several.
    pub(crate) pieces: Vec<u32>,
    /// Hashes of quoting lines.
    pub(crate) quotes: Vec<u64>,
    pub(crate) name_refs: Vec<u32>,
    /// What boundaries preserved: the boundary's row, and the hashes of the uuids in order.
    pub(crate) preserved: Vec<(u32, Vec<u64>)>,
    pub(crate) leaf_cuts: Vec<LeafCut>,
}

impl Log {
    pub(crate) fn row(&self, at: u32) -> RowEntry {
        self.rows.get(at as usize).copied().unwrap_or_default()
    }

    /// The row's items.
    pub(crate) fn items(&self, at: u32) -> &[Item] {
        let before = at.checked_sub(1).map_or(0, |before| self.row(before).items_end);
        self.items.get(before as usize..self.row(at).items_end as usize).unwrap_or_default()
    }

    /// Hashes of the uuids that a boundary preserved.
    pub(crate) fn preserved(&self, at: u32) -> &[u64] {
        let found = self.preserved.binary_search_by_key(&at, |(row, _)| *row);
        found.ok().and_then(|place| self.preserved.get(place)).map_or(&[], |(_, uuids)| uuids)
    }

    pub(crate) fn text(&self, at: u32) -> TextEntry {
        self.texts.get(at as usize).copied().unwrap_or_default()
    }

    pub(crate) fn call(&self, at: u32) -> CallEntry {
        self.calls.get(at as usize).copied().unwrap_or_default()
    }

    pub(crate) fn result(&self, at: u32) -> ResultEntry {
        self.results.get(at as usize).copied().unwrap_or_default()
    }

    pub(crate) fn term_refs(&self, span: Span) -> &[u32] {
        self.term_refs.get(span.range()).unwrap_or_default()
    }

    /// The files that a result shows: path and last component.
    pub(crate) fn reads(&self, entry: ResultEntry) -> impl Iterator<Item = (u32, u32)> + '_ {
        let first = (entry.read != NONE).then_some((entry.read, entry.read_name));
        first
            .into_iter()
            .chain(self.also.get(entry.also.range()).unwrap_or_default().iter().copied())
    }

    /// How many pieces of read lines a result has.
    pub(crate) fn piece_count(entry: ResultEntry) -> u32 {
        let many = entry.pieces.end.saturating_sub(entry.pieces.start);
        many.max(u32::from(entry.read_lines.start < entry.read_lines.end))
    }

    /// One piece of a result's read lines.
    pub(crate) fn piece(&self, entry: ResultEntry, at: u32) -> &[u32] {
        let ends = self.pieces.get(entry.pieces.range()).unwrap_or_default();
        let Some(&end) = ends.get(at as usize) else {
            return self.read_lines.get(entry.read_lines.range()).unwrap_or_default();
        };
        let before = at.checked_sub(1).and_then(|before| ends.get(before as usize));
        let start = before.copied().unwrap_or(entry.read_lines.start);
        self.read_lines.get(start as usize..end as usize).unwrap_or_default()
    }

    pub(crate) fn quotes(&self, span: Span) -> &[u64] {
        self.quotes.get(span.range()).unwrap_or_default()
    }

    pub(crate) fn name_refs(&self, span: Span) -> &[u32] {
        self.name_refs.get(span.range()).unwrap_or_default()
    }

    pub(crate) fn leaf_cuts(&self, span: Span) -> &[LeafCut] {
        self.leaf_cuts.get(span.range()).unwrap_or_default()
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.rows.len()).unwrap_or(NONE)
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        fn of<T>(table: &Vec<T>) -> usize {
            table.capacity() * size_of::<T>()
        }
        self.names.heap_bytes()
            + self.terms.heap_bytes()
            + self.quotable.heap_bytes()
            + of(&self.rows)
            + of(&self.items)
            + of(&self.texts)
            + of(&self.calls)
            + of(&self.results)
            + of(&self.term_refs)
            + of(&self.read_lines)
            + of(&self.also)
            + of(&self.pieces)
            + of(&self.quotes)
            + of(&self.name_refs)
            + of(&self.preserved)
            + of(&self.leaf_cuts)
    }
}

/// Appends to a table that may become large: it grows by an eighth and not to the double, since
/// indexes are many and long-lived.
pub(crate) fn push<T>(table: &mut Vec<T>, value: T) {
    make_room(table, 1);
    table.push(value);
}

/// As [`push`] for several.
pub(crate) fn extend<T: Copy>(table: &mut Vec<T>, values: &[T]) {
    make_room(table, values.len());
    table.extend_from_slice(values);
}

fn make_room<T>(table: &mut Vec<T>, more: usize) {
    if table.capacity() - table.len() < more {
        table.reserve_exact(more.max(table.len() / 8).max(8));
    }
}
