//! From a row's text to the log's numbers: the one place where text is looked at, once.

use super::intern::{Hashes, NONE};
use super::log::{
    self, CallEntry, Item, LeafCut, Log, ResultEntry, Span, TextEntry, call_flag, result_flag,
    text_flag,
};
use super::open::{Input, Open, OpenCall, Ran};
use crate::hash::{Identity as Prehashed, hash};
use crate::lines;
use crate::note;
use crate::record::{self, Call, Host, Leaf, Role, Row, ToolResult};
use crate::settings::{LEAF_KEEP_CHARS, LONG_LEAF_CHARS, Settings};
use crate::terms::Scanner;
use crate::tools::{Action, Class, ToolKind, Tools, Writes, shows_failure, writes_despite_error};

/// Message id of rows that join the run of assistant rows before them (Codex).
pub(crate) const JOIN_RUN: u64 = 1;

/// Of a script that shows more files than this nothing is told.
const MAX_FILES: usize = 32;
/// A result of more pieces than this is compared as one.
const MAX_PIECES: usize = 32;

/// An input of at most this size is kept as text until its result comes.
const INPUT_TEXT_BYTES: usize = 4096;

/// Where a row stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) host: Host,
    /// The working directory there.
    pub(crate) cwd: Option<&'a str>,
    /// Its number in the log.
    pub(crate) at: u32,
    /// In the history that a compaction left.
    pub(crate) copy: bool,
}

/// Scratch space and tables for reading rows.
#[derive(Debug)]
pub(crate) struct Extractor {
    tools: Tools,
    rerunnable_chars: usize,
    text_fraction: f64,
    scanner: Scanner,
    hashes: Vec<u64>,
    more: Vec<u64>,
    numbers: Vec<u32>,
}

impl Extractor {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            tools: Tools::new(&settings.rerunnable, &settings.rerunnable_tests),
            rerunnable_chars: settings.rerunnable_chars as usize,
            text_fraction: settings.text_fraction,
            scanner: Scanner::default(),
            hashes: Vec::new(),
            more: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Appends the row's items to the log; `row_at` is the row's own place there.
    pub(crate) fn items(
        &mut self,
        log: &mut Log,
        open: &mut Open,
        row: &Row<'_>,
        place: &Place<'_>,
    ) {
        for item in &row.items {
            let entry = match item {
                record::Item::Text(text) => {
                    let entry = self.text(log, row.role, text);
                    log::push(&mut log.texts, entry);
                    Item::Text(last(log.texts.len()))
                }
                record::Item::Call(call) => {
                    let entry = self.call(log, open, place, call);
                    log::push(&mut log.calls, entry);
                    Item::Call(last(log.calls.len()))
                }
                record::Item::Result(result) => {
                    let mut entry = self.result(log, open, result, place.copy);
                    entry.row = place.at;
                    log::push(&mut log.results, entry);
                    Item::Result(last(log.results.len()))
                }
                record::Item::Opaque => Item::Opaque,
            };
            log::push(&mut log.items, entry);
        }
    }

    fn text(&mut self, log: &mut Log, role: Role, text: &str) -> TextEntry {
        let mut entry = TextEntry { chars: narrow(text.chars().count()), ..TextEntry::default() };
        if text.trim().is_empty() {
            entry.flags |= text_flag::BLANK;
        }
        if role != Role::Assistant {
            return entry;
        }
        let keep = note::text_keep(entry.chars, self.text_fraction)
            .filter(|_| note::text_note(text).is_none());
        let head = keep.map(|keep| {
            let end = text.char_indices().nth(keep as usize).map_or(text.len(), |(at, _)| at);
            text.get(..end).unwrap_or(text)
        });
        self.hashes.clear();
        self.scanner.scan(note::strip_notes(text), &mut self.hashes);
        self.more.clear();
        if let Some(head) = head {
            self.scanner.scan(head, &mut self.more);
        }
        self.part(head.is_some());
        entry.uses = push_known(log, &self.hashes, &mut self.numbers);
        entry.cut_uses = push_known(log, &self.more, &mut self.numbers);

        self.hashes.clear();
        self.more.clear();
        lines::quoting_lines(text, &mut self.hashes);
        self.hashes.retain(|&line| log.quotable.holds(line));
        if let Some(head) = head {
            lines::quoting_lines(head, &mut self.more);
        }
        self.part(head.is_some());
        entry.quotes = push_all(&mut log.quotes, &self.hashes);
        entry.cut_quotes = push_all(&mut log.quotes, &self.more);

        if lines::has_rule_word(text) {
            entry.flags |= text_flag::RULE_WORD;
            if head.is_some_and(|head| !lines::has_rule_word(head)) {
                entry.flags |= text_flag::RULE_WORD_IN_CUT;
            }
        }
        if head.is_some() {
            entry.flags |= text_flag::LONG;
        }
        entry
    }

    /// Sorts `hashes` of a whole text; where it can be shortened, those that its beginning does not
    /// have (`more`) go from there to `more`.
    fn part(&mut self, can_be_shortened: bool) {
        sort(&mut self.hashes);
        if !can_be_shortened {
            return;
        }
        sort(&mut self.more);
        let head = std::mem::take(&mut self.more);
        let in_head = |hash: &u64| head.binary_search(hash).is_ok();
        self.more.extend(self.hashes.iter().filter(|&hash| !in_head(hash)));
        self.hashes.retain(in_head);
    }

    fn call(
        &mut self,
        log: &mut Log,
        open: &mut Open,
        place: &Place<'_>,
        call: &Call<'_>,
    ) -> CallEntry {
        let id = log.names.intern(&call.id);
        let tool = log.names.intern(&call.tool);
        let mut entry = CallEntry { id, tool, ..CallEntry::default() };
        let action = self.tools.action(place.host, &call.tool, &call.leaves, place.cwd);
        self.hashes.clear();
        self.more.clear();
        let mut shortened = Vec::new();
        let first_leaf = narrow(log.leaf_cuts.len());
        for (number, leaf) in call.leaves.iter().enumerate() {
            let chars = leaf.text.chars().count();
            entry.chars = entry.chars.saturating_add(narrow(chars));
            let text = note::strip_notes(&leaf.text);
            let long = leaf.string && chars > LONG_LEAF_CHARS;
            let left = if long { note::shortened_leaf(&leaf.text, LEAF_KEEP_CHARS) } else { None };
            let Some(left) = left else {
                self.scanner.scan(text, &mut self.hashes);
                continue;
            };
            entry.flags |= call_flag::LONG;
            entry.cut_chars =
                entry.cut_chars.saturating_add(narrow(chars.saturating_sub(left.chars().count())));
            log::push(&mut log.leaf_cuts, leaf_cut(number, &leaf.text, chars));
            self.scanner.scan(note::strip_notes(&left), &mut self.hashes);
            self.scanner.scan(text, &mut self.more);
            shortened.push((leaf, left));
        }
        entry.leaves = Span { start: first_leaf, end: narrow(log.leaf_cuts.len()) };
        sort(&mut self.hashes);
        sort(&mut self.more);
        let kept = &self.hashes;
        self.more.retain(|term| kept.binary_search(term).is_err());
        entry.uses = push_known(log, &self.hashes, &mut self.numbers);
        entry.cut_uses = push_known(log, &self.more, &mut self.numbers);
        if entry.flags & call_flag::LONG != 0 && self.acts_in_cut(place, call, &shortened, &action)
        {
            entry.flags |= call_flag::ACTS_IN_CUT;
        }
        let input = self.input(call);
        let cell = action.cell.as_ref().map_or(NONE, |cell| log.names.intern(cell));
        let ran = Ran::default();
        open.called(id, OpenCall { tool, input, action, cell, ran }, place.copy);
        entry
    }

    /// The input as its result will need it; the scratch space still holds its terms.
    fn input(&mut self, call: &Call<'_>) -> Input {
        let bytes: usize = call.leaves.iter().map(|leaf| leaf.text.len() + 1).sum();
        if bytes <= INPUT_TEXT_BYTES {
            let texts: Vec<&str> = call.leaves.iter().map(|leaf| &*leaf.text).collect();
            return Input::Text(texts.join("\n"));
        }
        self.hashes.append(&mut self.more);
        self.hashes.sort_unstable();
        Input::Terms(self.hashes.clone())
    }

    /// Whether a second pass, which reads the shortened input, would see another effect on files.
    fn acts_in_cut(
        &self,
        place: &Place<'_>,
        call: &Call<'_>,
        shortened: &[(&Leaf<'_>, String)],
        whole: &Action,
    ) -> bool {
        // Both in the order of the input.
        let mut shortened = shortened.iter().peekable();
        let leaves: Vec<Leaf<'_>> = call
            .leaves
            .iter()
            .map(|leaf| {
                let left = shortened.next_if(|(long, _)| std::ptr::eq(*long, leaf));
                let text = left.map_or(&*leaf.text, |(_, left)| left.as_str());
                Leaf { text: text.into(), key: (&*leaf.key).into(), ..*leaf }
            })
            .collect();
        let left = self.tools.action(place.host, &call.tool, &leaves, place.cwd);
        left.read != whole.read || left.writes != whole.writes
    }

    fn result(
        &mut self,
        log: &mut Log,
        open: &mut Open,
        result: &ToolResult<'_>,
        copy: bool,
    ) -> ResultEntry {
        let id = log.names.intern(&result.id);
        let running = result.running.as_ref().map(|running| log.names.intern(running));
        let call = open.answered(id, running, copy);
        let mut action = call.action;
        if action.kind == ToolKind::Code {
            action = self.tools.inner(action, &call.ran.commands, &call.ran.loose);
        }
        // A script that goes on has its name in its result: nothing may take that away.
        let goes_on = action.kind == ToolKind::Code && running.is_some();
        let unsure = call.ran.unsure || goes_on || action.also.len() >= MAX_FILES;
        if unsure {
            action = Action { kind: action.kind, writes: action.writes, ..Action::default() };
        }
        let mut entry = ResultEntry { id, tool: call.tool, ..ResultEntry::default() };
        entry.chars = narrow(result.text.chars().count());
        entry.flags = flags(result);
        entry.flags |= if call.ran.failed { result_flag::ERROR } else { 0 };
        entry.flags |= if unsure { result_flag::UNSURE } else { 0 };
        let body = note::strip_notes(result.body());

        self.result_terms(body, &call.input);
        entry.deciding = push_new(log, &self.hashes, &mut self.numbers);
        entry.known = push_new(log, &self.more, &mut self.numbers);

        self.hashes.clear();
        lines::quotable_lines(result.body(), &mut self.hashes);
        sort(&mut self.hashes);
        let own = narrow(log.results.len());
        self.hashes.iter().for_each(|&line| log.quotable.add(line, own));

        let error = entry.flags & result_flag::ERROR != 0;
        if let Some(path) = &action.read
            && !error
        {
            (entry.read, entry.read_name) = path_names(log, path);
            let also: Vec<(u32, u32)> =
                action.also.iter().map(|path| path_names(log, path)).collect();
            entry.also = push_all(&mut log.also, &also);
            if action.partial {
                entry.flags |= result_flag::PARTIAL;
            }
            if entry.flags & (result_flag::STUB | result_flag::NOTED) == 0 {
                self.pieces(log, result, &mut entry);
            }
        } else {
            // The same words mean nothing in the output of anything else.
            entry.flags &= !result_flag::STUB;
        }
        if !error || writes_despite_error(action.kind) {
            match &action.writes {
                Writes::None => {}
                Writes::All => entry.flags |= result_flag::WRITES_ALL,
                Writes::Names(names) => {
                    self.numbers.clear();
                    self.numbers.extend(names.iter().map(|name| log.names.intern(name)));
                    entry.writes = push_all(&mut log.name_refs, &self.numbers);
                }
            }
        }
        let rerunnable = action.rerunnable.filter(|how| {
            !(error || result.running.is_some() || how.needs_pass && shows_failure(body))
        });
        entry.flags |= class_flag(action.class);
        if (rerunnable.is_some() || action.class != Class::None)
            && let Some(cut) = note::cut(&result.text, self.rerunnable_chars)
        {
            entry.flags |= result_flag::CUTTABLE;
            entry.cut_utf16 = narrow(cut.at_utf16);
            if let Some(rerunnable) = rerunnable {
                entry.flags |= result_flag::RERUNNABLE;
                if rerunnable.even_if_used {
                    entry.flags |= result_flag::EVEN_IF_USED;
                }
            }
        }
        entry
    }

    /// The read lines of a result, piece by piece.
    fn pieces(&mut self, log: &mut Log, result: &ToolResult<'_>, entry: &mut ResultEntry) {
        let mut ends = Vec::new();
        entry.read_lines.start = narrow(log.read_lines.len());
        for piece in result.pieces() {
            self.hashes.clear();
            lines::read_lines(piece, &mut self.hashes);
            if self.hashes.is_empty() {
                continue;
            }
            self.numbers.clear();
            self.numbers.extend(self.hashes.iter().map(|&line| (line >> 32) as u32));
            ends.push(push_all(&mut log.read_lines, &self.numbers).end);
        }
        entry.read_lines.end = narrow(log.read_lines.len());
        if ends.len() > MAX_PIECES {
            // More than is looked through: as one, which is found only whole.
            ends.clear();
        }
        if ends.len() > 1 {
            entry.pieces = push_all(&mut log.pieces, &ends);
        }
    }

    /// The terms of a result's body: those that decide, and those that its call's input says.
    fn result_terms(&mut self, body: &str, input: &Input) {
        self.hashes.clear();
        self.more.clear();
        let (deciding, known) = (&mut self.hashes, &mut self.more);
        match input {
            Input::Text(input) => {
                let grams = Grams::of(input.as_bytes());
                let mut seen = hashbrown::HashSet::<u64, Prehashed>::default();
                self.scanner.for_each(body, |term| {
                    let number = hash(term.as_bytes());
                    if !seen.insert(number) {
                        return;
                    }
                    if grams.may_hold(term.as_bytes()) && input.contains(term) {
                        known.push(number);
                    } else {
                        deciding.push(number);
                    }
                });
            }
            Input::Terms(terms) => {
                self.scanner.scan(body, deciding);
                sort(deciding);
                deciding.retain(|term| {
                    let is_known = terms.binary_search(term).is_ok();
                    if is_known {
                        known.push(*term);
                    }
                    !is_known
                });
            }
        }
    }
}

/// Hash of a row's or message's id; never 0 or [`JOIN_RUN`], which have meanings of their own.
pub(crate) fn id_hash(id: Option<&str>) -> u64 {
    id.map_or(0, |id| hash(id.as_bytes()).max(2))
}

/// Numbers of a path and of its last component.
fn path_names(log: &mut Log, path: &str) -> (u32, u32) {
    let name = path.rsplit('/').next().unwrap_or(path);
    (log.names.intern(path), log.names.intern(name))
}

fn leaf_cut(place: usize, text: &str, chars: usize) -> LeafCut {
    let utf16 = |text: &mut dyn Iterator<Item = char>| text.map(char::len_utf16).sum();
    LeafCut {
        leaf: narrow(place),
        utf16: narrow(utf16(&mut text.chars())),
        cut_utf16: narrow(utf16(&mut text.chars().take(LEAF_KEEP_CHARS))),
        removed: narrow(chars.saturating_sub(LEAF_KEEP_CHARS)),
    }
}

fn flags(result: &ToolResult<'_>) -> u16 {
    let text = &*result.text;
    let mut flags = 0;
    let mut set = |flag: u16, on: bool| flags |= if on { flag } else { 0 };
    set(result_flag::ERROR, result.is_error);
    set(result_flag::OPAQUE, result.opaque);
    set(result_flag::NOTED, note::is_noted(text));
    set(result_flag::STUB, lines::is_unchanged_stub(result.body()));
    set(result_flag::BLANK, text.trim().is_empty());
    flags
}

fn class_flag(class: Class) -> u16 {
    match class {
        Class::None => 0,
        Class::Search => result_flag::SEARCH,
        Class::Web => result_flag::WEB,
        Class::Shell => result_flag::SHELL,
    }
}

/// Which three bytes in a row a text holds, approximately: says no for almost every text that does
/// not hold a term, without searching it.
struct Grams([u64; 64]);

impl Grams {
    fn of(text: &[u8]) -> Self {
        let mut grams = Self([0; 64]);
        for three in text.windows(3) {
            let (word, bit) = Self::place(three);
            grams.0[word] |= bit;
        }
        grams
    }

    fn may_hold(&self, term: &[u8]) -> bool {
        term.get(..3).is_none_or(|three| {
            let (word, bit) = Self::place(three);
            self.0[word] & bit != 0
        })
    }

    fn place(three: &[u8]) -> (usize, u64) {
        let sum = three.iter().fold(0_u32, |sum, &byte| sum.wrapping_mul(167) + u32::from(byte));
        ((sum >> 6 & 63) as usize, 1 << (sum & 63))
    }
}

fn push_new(log: &mut Log, hashes: &[u64], numbers: &mut Vec<u32>) -> Span {
    numbers.clear();
    let terms: &mut Hashes = &mut log.terms;
    numbers.extend(hashes.iter().map(|&term| terms.intern(term)));
    push_all(&mut log.term_refs, numbers)
}

fn push_known(log: &mut Log, hashes: &[u64], numbers: &mut Vec<u32>) -> Span {
    numbers.clear();
    numbers.extend(hashes.iter().filter_map(|&term| log.terms.find(term)));
    push_all(&mut log.term_refs, numbers)
}

fn push_all<T: Copy>(table: &mut Vec<T>, values: &[T]) -> Span {
    let start = narrow(table.len());
    log::extend(table, values);
    Span { start, end: narrow(table.len()) }
}

fn sort(hashes: &mut Vec<u64>) {
    hashes.sort_unstable();
    hashes.dedup();
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(NONE)
}

fn last(len: usize) -> u32 {
    narrow(len.saturating_sub(1))
}
