//! The live index of one session: fed line by line, asked at any time.
//!
//! A line's text is looked at once (`extract`); what it means is kept as numbers in the `log`.
//! The `live` structure holds the verdict-relevant state of the current context and is kept
//! current row by row; when the context changes otherwise (a rewind, a boundary) it is built again
//! from the log, never from the text. `docs/rules.md` defines what must come out; the full rescan
//! in `tests` holds it to that on every prefix.

mod extract;
mod files;
mod intern;
pub(crate) mod live;
pub(crate) mod log;
mod open;
mod path;
mod quotable;
mod snapshot;
mod wire;

use std::borrow::Cow;

pub use log::LeafCut;
pub use snapshot::{FORMAT as SNAPSHOT_FORMAT, SnapshotError};

use crate::record::{self, About, Compacted, Host, Record, Role, Row, Skip, Usage};
use crate::settings::Settings;
use crate::tokens::{self, Meter, Ratio};
use extract::{Extractor, JOIN_RUN, Place, id_hash};
use intern::NONE;
use live::Live;
use log::{Log, RowEntry, RowKind, row_flag};
use open::Open;
use path::{Path, Step};

/// Which rows count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// What the host would send next: the default, and what runs live.
    Context,
    /// The file as one history, boundaries and branches ignored: for grading.
    Whole,
}

/// What is known of a session beside its rows. Never content.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The host's id of the session or thread, as the transcript says it.
    pub session: Option<String>,
    /// Id of the sub-agent whose transcript this is.
    pub agent: Option<String>,
    /// Thread that spawned or forked this one.
    pub parent_thread: Option<String>,
    /// Working directory of the newest row.
    pub cwd: Option<String>,
    /// Version of the host.
    pub version: Option<String>,
    /// Model of the newest answer.
    pub model: Option<String>,
    /// RFC 3339 time of the newest row.
    pub timestamp: Option<String>,
    /// What the newest request cost.
    pub usage: Option<Usage>,
    /// Lines read, skipped ones too.
    pub lines: u64,
    /// Lines skipped, by reason ([`Skip::ALL`] gives the order).
    pub skipped: [u64; 6],
    /// Compactions seen: boundaries and `compacted` records.
    pub compactions: u64,
    /// The newest compaction left history that only the vendor can read.
    pub sealed: bool,
}

/// The index of one transcript.
#[derive(Debug)]
pub struct Index {
    host: Host,
    settings: Settings,
    extractor: Extractor,
    log: Log,
    live: Live,
    path: Path,
    open: Open,
    facts: Facts,
    tokens: Meter,
    /// The file is a sub-agent's: its sidechain rows are the conversation.
    sidechain_file: Option<bool>,
    /// Rows were logged that the live structure does not hold yet.
    stale: bool,
}

impl Index {
    /// An empty index for a transcript of `host`.
    #[must_use]
    pub fn new(host: Host, settings: &Settings) -> Self {
        Self {
            host,
            extractor: Extractor::new(settings),
            log: Log::default(),
            live: Live::new(settings),
            path: Path::default(),
            open: Open::default(),
            facts: Facts::default(),
            tokens: Meter::new(host),
            sidechain_file: None,
            stale: false,
            settings: settings.clone(),
        }
    }

    /// The host that wrote the transcript.
    #[must_use]
    pub fn host(&self) -> Host {
        self.host
    }

    /// The settings that it was built with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What is known of the session.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// How many tokens its characters take.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.tokens
    }

    /// Characters per token now, by [`Index::meter`].
    #[must_use]
    pub fn ratio(&self) -> Ratio {
        self.tokens.ratio()
    }

    /// API messages in the context. Call [`Index::settle`] first.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.live.messages() as usize
    }

    /// Results in the context. Call [`Index::settle`] first.
    #[must_use]
    pub fn results(&self) -> usize {
        self.live.results().len()
    }

    /// Bytes on the heap, about.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.log.heap_bytes()
            + self.live.heap_bytes()
            + self.path.heap_bytes()
            + self.open.heap_bytes()
            + self.tokens.heap_bytes()
    }

    /// Takes in one complete line, without its newline, that starts at byte `offset` of its file.
    pub fn apply(&mut self, line: &[u8], offset: u64) {
        match record::read_line(self.host, line) {
            Ok(record) => self.apply_record(&record, offset),
            Err(skip) => self.skip(skip),
        }
    }

    /// Counts a line that was not read (too long to be held).
    pub fn skip(&mut self, skip: Skip) {
        self.facts.lines += 1;
        if let Some(count) = self.facts.skipped.get_mut(skip as usize) {
            *count += 1;
        }
    }

    /// Takes in one record; every line of a transcript is one.
    pub fn apply_record(&mut self, record: &Record<'_>, offset: u64) {
        let line = u32::try_from(self.facts.lines).unwrap_or(NONE);
        self.facts.lines += 1;
        match record {
            Record::Row(row) => self.apply_row(row, line, offset),
            Record::Boundary(boundary) => {
                if boundary.sidechain != self.is_sidechain_file(boundary.sidechain) {
                    return;
                }
                self.facts.compactions += 1;
                self.tokens.cut();
                let at = self.log.len();
                let preserved: Vec<u64> =
                    boundary.preserved.iter().map(|uuid| id_hash(Some(uuid))).collect();
                let preserves = !preserved.is_empty();
                if preserves {
                    self.log.preserved.push((at, preserved));
                }
                let uuid = id_hash(boundary.uuid.as_deref());
                self.path.start(&self.log, at, uuid, preserves);
                self.push(RowEntry { uuid, kind: RowKind::Boundary, line, offset, ..EMPTY });
                self.stale = true;
            }
            Record::Compacted(compacted) => self.apply_compacted(compacted, line, offset),
            Record::Session(meta) => {
                let facts = &mut self.facts;
                // A fork repeats the metas of its ancestors behind its own.
                if facts.session.is_none() {
                    note(&mut facts.session, &meta.id);
                    note(&mut facts.parent_thread, &meta.parent_thread);
                }
                note(&mut facts.cwd, &meta.cwd);
                note(&mut facts.version, &meta.version);
                note(&mut facts.timestamp, &meta.timestamp);
            }
            Record::Turn { cwd, model } => {
                note(&mut self.facts.cwd, cwd);
                note(&mut self.facts.model, model);
                model.iter().for_each(|model| self.tokens.model(model));
            }
            Record::InnerCommand(inner) => {
                self.open.ran(inner, self.log.names.find(&inner.id));
            }
            Record::RolledBack { turns } => {
                let up = *turns;
                self.tokens.cut();
                self.push(RowEntry { up, kind: RowKind::RolledBack, line, offset, ..EMPTY });
                self.stale = true;
            }
            Record::Usage(usage) => {
                self.facts.usage = Some(*usage);
                self.tokens.count(usage);
            }
        }
    }

    fn is_sidechain_file(&mut self, first: bool) -> bool {
        *self.sidechain_file.get_or_insert(first)
    }

    fn apply_row(&mut self, row: &Row<'_>, line: u32, offset: u64) {
        if row.sidechain != self.is_sidechain_file(row.sidechain) {
            return;
        }
        self.note_about(&row.about);
        let leaf = self.path.leaf();
        let Some(at) = self.log_row(row, line, offset, 0) else { return };
        self.measure(row, at);
        if self.stale {
            return;
        }
        let step = match self.host {
            Host::Codex => Step::Extends,
            Host::Claude => self.path.add(&self.log, at, leaf),
        };
        match step {
            Step::Extends => self.live.feed(&self.log, at),
            Step::Out => {}
            Step::Anew => self.stale = true,
        }
    }

    fn measure(&mut self, row: &Row<'_>, at: u32) {
        let RowEntry { uuid, message, up, flags, .. } = self.log.row(at);
        match self.host {
            Host::Codex => self.tokens.codex(row),
            // A row that stands there already is no part of any context.
            Host::Claude if flags & row_flag::TWICE != 0 => {}
            Host::Claude => {
                let in_tree = uuid != 0;
                self.tokens.claude(row, tokens::Place { at, up, message, in_tree });
            }
        }
    }

    fn apply_compacted(&mut self, compacted: &Compacted<'_>, line: u32, offset: u64) {
        self.facts.compactions += 1;
        self.facts.sealed = compacted.sealed;
        self.tokens.cut();
        self.push(RowEntry { kind: RowKind::Compacted, line, offset, ..EMPTY });
        self.live = Live::new(&self.settings);
        for row in &compacted.rows {
            self.log_row(row, line, offset, row_flag::REPLACEMENT);
        }
        self.stale = true;
    }

    /// Appends a row to the log; `None` for a row that can have no part in any context.
    fn log_row(&mut self, row: &Row<'_>, line: u32, offset: u64, flags: u8) -> Option<u32> {
        let uuid = id_hash(row.uuid.as_deref());
        if row.items.is_empty() && uuid == 0 && row.role == Role::Link {
            return None;
        }
        let cwd = row.about.cwd.as_deref().or(self.facts.cwd.as_deref());
        let at = self.log.len();
        let copy = flags & row_flag::REPLACEMENT != 0;
        if !copy && row.is_prompt() {
            self.open.prompted();
        }
        let stands = Place { host: self.host, cwd, at, copy };
        self.extractor.items(&mut self.log, &mut self.open, row, &stands);
        let parent = id_hash(row.parent.as_deref());
        let place = self.path.place(&self.log, at, uuid, parent);
        let mut entry = RowEntry {
            uuid,
            up: place.up,
            message: id_hash(row.message_id.as_deref()),
            line,
            offset,
            kind: match row.role {
                Role::User => RowKind::User,
                Role::Assistant => RowKind::Assistant,
                Role::Link => RowKind::Link,
            },
            flags: flags | place.flags,
            ..EMPTY
        };
        if self.host == Host::Codex && row.role == Role::Assistant {
            entry.message = JOIN_RUN;
        }
        if row.summary {
            entry.flags |= row_flag::SUMMARY;
        }
        if row.is_prompt() {
            entry.flags |= row_flag::PROMPT;
        }
        if row.attached {
            entry.flags |= row_flag::ATTACHED;
        }
        self.push(entry);
        Some(at)
    }

    fn push(&mut self, mut entry: RowEntry) {
        entry.items_end = u32::try_from(self.log.items.len()).unwrap_or(NONE);
        log::push(&mut self.log.rows, entry);
    }

    fn note_about(&mut self, about: &About<'_>) {
        let facts = &mut self.facts;
        note(&mut facts.session, &about.session);
        note(&mut facts.agent, &about.agent);
        note(&mut facts.cwd, &about.cwd);
        note(&mut facts.version, &about.version);
        note(&mut facts.model, &about.model);
        note(&mut facts.timestamp, &about.timestamp);
        about.model.iter().for_each(|model| self.tokens.model(model));
        if about.usage.is_some() {
            facts.usage = about.usage;
        }
    }

    /// Brings the live structure up to date after a rewind or a boundary. Cheap when there was
    /// none; call it after each batch of lines.
    pub fn settle(&mut self) {
        if !self.stale {
            return;
        }
        self.stale = false;
        self.live = Live::new(&self.settings);
        for at in path::context(self.host, &self.log, &mut self.path) {
            self.live.feed(&self.log, at);
        }
    }

    /// Whether [`Index::settle`] has nothing to do.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.stale
    }

    /// The live structure of the context, or one built for the whole history.
    pub(crate) fn live(&self, history: History) -> Cow<'_, Live> {
        match history {
            History::Context => Cow::Borrowed(&self.live),
            History::Whole => {
                let mut live = Live::new(&self.settings);
                for at in path::whole(&self.log) {
                    live.feed(&self.log, at);
                }
                Cow::Owned(live)
            }
        }
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }
}

/// A row without anything.
const EMPTY: RowEntry = RowEntry {
    uuid: 0,
    message: 0,
    offset: 0,
    line: 0,
    items_end: 0,
    up: NONE,
    kind: RowKind::Link,
    flags: 0,
};

fn note(fact: &mut Option<String>, seen: &Option<Cow<'_, str>>) {
    if let Some(seen) = seen
        && fact.as_deref() != Some(&**seen)
    {
        *fact = Some(seen.clone().into_owned());
    }
}
