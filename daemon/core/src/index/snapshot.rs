//! The index as bytes: written to disk so that a restart reads only what is new.
//!
//! Layout: magic, format, fingerprint of the settings that shaped the index, checksum of what
//! follows, then the log and the facts. The live structure is not stored: it is built again from
//! the log. A snapshot of another format is refused, never guessed at; it can always be deleted.

use hashbrown::HashMap;

use super::extract::Extractor;
use super::intern::{Hashes, Names};
use super::live::Live;
use super::log::{CallEntry, Item, LeafCut, Log, ResultEntry, RowEntry, RowKind, Span, TextEntry};
use super::open::{Cell, Input, Open, OpenCall, Ran};
use super::path::Path;
use super::quotable::{More, Quotable};
use super::wire::{Wire, wire_struct};
use super::{Facts, Index};
use crate::hash::hash;
use crate::record::{Host, InnerCommand, Usage};
use crate::settings::Settings;
use crate::tokens::{Between, Interval, Meter, Request};
use crate::tools::{Action, Class, Rerunnable, ToolKind, Writes};

/// Number of the layout. Raise it with every change of what is stored or of what terms are.
pub const FORMAT: u32 = 3;

const MAGIC: &[u8; 8] = b"cpdindex";

/// Why bytes are no snapshot to go on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotError {
    /// Not one of ours, or torn.
    NotASnapshot,
    /// Written by another version (its format number).
    Format(u32),
    /// Built with other settings.
    Settings,
    /// The bytes are not those that were written.
    Checksum,
}

impl std::fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotASnapshot => write!(f, "not an index snapshot"),
            Self::Format(format) => {
                write!(f, "index snapshot of format {format}, this version reads {FORMAT}")
            }
            Self::Settings => write!(f, "index snapshot made with other settings"),
            Self::Checksum => write!(f, "index snapshot is damaged: its checksum does not match"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl Index {
    /// The index as bytes, for [`Index::decode`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.log.heap_bytes() / 2);
        self.host.put(&mut body);
        self.sidechain_file.put(&mut body);
        self.facts.put(&mut body);
        self.tokens.put(&mut body);
        self.log.put(&mut body);
        self.open.put(&mut body);
        self.path_start().put(&mut body);
        let mut out = Vec::with_capacity(body.len() + 28);
        out.extend_from_slice(MAGIC);
        FORMAT.put(&mut out);
        fingerprint(&self.settings).put(&mut out);
        hash(&body).put(&mut out);
        out.append(&mut body);
        out
    }

    /// Reads what [`Index::encode`] wrote. The result is settled.
    ///
    /// # Errors
    /// When the bytes are not a snapshot of this format with these settings; the caller rebuilds
    /// from the transcript.
    pub fn decode(bytes: &[u8], settings: &Settings) -> Result<Self, SnapshotError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(SnapshotError::NotASnapshot)?;
        let mut rest = rest;
        let format = u32::take(&mut rest).ok_or(SnapshotError::NotASnapshot)?;
        if format != FORMAT {
            return Err(SnapshotError::Format(format));
        }
        let made_with = u64::take(&mut rest).ok_or(SnapshotError::NotASnapshot)?;
        let sum = u64::take(&mut rest).ok_or(SnapshotError::NotASnapshot)?;
        if hash(rest) != sum {
            return Err(SnapshotError::Checksum);
        }
        if made_with != fingerprint(settings) {
            return Err(SnapshotError::Settings);
        }
        Self::take_body(&mut rest, settings).ok_or(SnapshotError::NotASnapshot)
    }

    fn take_body(rest: &mut &[u8], settings: &Settings) -> Option<Self> {
        let host = Host::take(rest)?;
        let sidechain_file = Wire::take(rest)?;
        let facts = Facts::take(rest)?;
        let tokens = Meter::take(rest)?;
        let log = Log::take(rest)?;
        let open = Open::take(rest)?;
        let path = Path::of(&log, u32::take(rest)?);
        let mut index = Self {
            host,
            extractor: Extractor::new(settings),
            log,
            live: Live::new(settings),
            path,
            open,
            facts,
            tokens,
            sidechain_file,
            stale: true,
            settings: settings.clone(),
        };
        index.settle();
        Some(index)
    }

    fn path_start(&self) -> u32 {
        self.path.first()
    }
}

/// Settings that shape what is stored (the rules' other numbers are applied when asked).
fn fingerprint(settings: &Settings) -> u64 {
    let shaping = (
        settings.rerunnable_chars,
        settings.text_fraction,
        &settings.rerunnable,
        &settings.rerunnable_tests,
        env!("CARGO_PKG_VERSION"),
    );
    hash(format!("{shaping:?}").as_bytes())
}

wire_struct!(Span { start, end });
wire_struct!(RowEntry { uuid, message, offset, line, items_end, up, kind, flags });
wire_struct!(TextEntry { uses, quotes, cut_uses, cut_quotes, chars, flags });
wire_struct!(CallEntry { id, tool, uses, cut_uses, chars, cut_chars, leaves, flags });
wire_struct!(LeafCut { leaf, utf16, cut_utf16, removed });
wire_struct!(ResultEntry {
    id,
    tool,
    read,
    read_name,
    row,
    chars,
    deciding,
    known,
    read_lines,
    also,
    pieces,
    writes,
    cut_utf16,
    flags
});
wire_struct!(Log {
    names,
    terms,
    quotable,
    rows,
    items,
    texts,
    calls,
    results,
    term_refs,
    read_lines,
    also,
    pieces,
    quotes,
    name_refs,
    preserved,
    leaf_cuts
});
wire_struct!(More { result, next });
wire_struct!(Usage { input_tokens, output_tokens, window_tokens });
wire_struct!(Facts {
    session,
    agent,
    parent_thread,
    cwd,
    version,
    model,
    timestamp,
    usage,
    lines,
    skipped,
    compactions,
    sealed
});
wire_struct!(Between { chars, result_chars, results, opaque });
wire_struct!(Interval { chars, result_chars, results, tokens });
wire_struct!(Request { message, row, input, output });
wire_struct!(Meter {
    host,
    prior,
    ratios,
    request,
    earlier,
    between,
    ahead,
    called,
    newest,
    intervals
});
wire_struct!(Rerunnable { needs_pass, even_if_used });
wire_struct!(Action { kind, read, also, partial, writes, rerunnable, mixed, cell, class });
wire_struct!(Ran { commands, loose, failed, unsure });
wire_struct!(OpenCall { tool, input, action, cell, ran });
wire_struct!(Cell { id, ran });
wire_struct!(Open { calls, scripts, cells, done });

impl Wire for Hashes {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.all().iter().for_each(|value| value.put(out));
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        Vec::take(rest).map(Self::from_all)
    }
}

impl Wire for Names {
    fn put(&self, out: &mut Vec<u8>) {
        let (text, ends) = self.parts();
        text.to_owned().put(out);
        ends.to_vec().put(out);
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        Self::from_parts(&String::take(rest)?, &Vec::take(rest)?)
    }
}

impl<T: Wire, S: Default + std::hash::BuildHasher> Wire for HashMap<u32, T, S> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        for (id, value) in self {
            id.put(out);
            value.put(out);
        }
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let len = u64::take(rest)?;
        (0..len).map(|_| Some((u32::take(rest)?, T::take(rest)?))).collect()
    }
}

impl Wire for InnerCommand<'static> {
    fn put(&self, out: &mut Vec<u8>) {
        self.id.put(out);
        self.cwd.put(out);
        self.command.put(out);
        self.reads.put(out);
        self.writes.put(out);
        self.failed.put(out);
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        Some(Self {
            id: Wire::take(rest)?,
            cwd: Wire::take(rest)?,
            command: Wire::take(rest)?,
            reads: Wire::take(rest)?,
            writes: Wire::take(rest)?,
            failed: Wire::take(rest)?,
        })
    }
}

impl Wire for Quotable {
    fn put(&self, out: &mut Vec<u8>) {
        let (lines, more) = self.parts();
        lines.put(out);
        more.to_vec().put(out);
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let lines = Vec::take(rest)?;
        Some(Self::from_parts(&lines, Vec::take(rest)?))
    }
}

impl Wire for Input {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => {
                0_u8.put(out);
                text.put(out);
            }
            Self::Terms(terms) => {
                1_u8.put(out);
                terms.put(out);
            }
        }
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        match u8::take(rest)? {
            0 => String::take(rest).map(Self::Text),
            1 => Vec::take(rest).map(Self::Terms),
            _ => None,
        }
    }
}

impl Wire for Item {
    fn put(&self, out: &mut Vec<u8>) {
        let (kind, at) = match *self {
            Self::Text(at) => (0_u8, at),
            Self::Call(at) => (1, at),
            Self::Result(at) => (2, at),
            Self::Opaque => (3, 0),
        };
        kind.put(out);
        at.put(out);
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let (kind, at) = (u8::take(rest)?, u32::take(rest)?);
        match kind {
            0 => Some(Self::Text(at)),
            1 => Some(Self::Call(at)),
            2 => Some(Self::Result(at)),
            3 => Some(Self::Opaque),
            _ => None,
        }
    }
}

impl Wire for RowKind {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u8).put(out);
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        Self::ALL.get(usize::from(u8::take(rest)?)).copied()
    }
}

impl Wire for Host {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u8).put(out);
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        [Self::Claude, Self::Codex].get(usize::from(u8::take(rest)?)).copied()
    }
}

impl Wire for ToolKind {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u8).put(out);
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let number = u8::take(rest)?;
        Self::ALL.iter().copied().find(|&kind| kind as u8 == number)
    }
}

impl Wire for Class {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u8).put(out);
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        Self::ALL.get(usize::from(u8::take(rest)?)).copied()
    }
}

impl Wire for Writes {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => 0_u8.put(out),
            Self::All => 1_u8.put(out),
            Self::Names(names) => {
                2_u8.put(out);
                names.put(out);
            }
        }
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        match u8::take(rest)? {
            0 => Some(Self::None),
            1 => Some(Self::All),
            2 => Vec::take(rest).map(Self::Names),
            _ => None,
        }
    }
}
