//! The live structure: what every result in the context is worth, kept current item by item.
//!
//! Each (term, result) pair is flipped at most twice, once by its first use and once if the term
//! becomes generic, so the work is constant per term occurrence.
//! Reading a verdict touches one [`LiveResult`]; nothing depends on the bytes of the session.

use hashbrown::HashMap;

use super::files::Files;
use super::intern::NONE;
use super::log::{self, Item, Log, RowKind, row_flag, text_flag};
use crate::hash::Identity as Prehashed;
use crate::settings::Settings;

/// Bits of [`LiveResult::flags`].
pub(crate) mod live_flag {
    pub(crate) const QUOTED: u8 = 1;
    pub(crate) const RULE_WORD: u8 = 2;
    /// An earlier read was superseded by it, or may have been by an earlier pass.
    pub(crate) const SUPERSEDER: u8 = 4;
    /// A later "unchanged" stub points to it.
    pub(crate) const STUB_TARGET: u8 = 8;
    /// Counts as a read of its path.
    pub(crate) const READ: u8 = 16;
}

/// A result that counts in this context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LiveResult {
    /// Index in the log's results.
    pub(crate) entry: u32,
    /// Index in the log's calls.
    pub(crate) call: u32,
    pub(crate) message: u32,
    /// Deciding terms that are not generic and were used later.
    pub(crate) referenced: u32,
    /// Ordinal of the read that superseded it, or [`NONE`].
    pub(crate) superseded_by: u32,
    pub(crate) flags: u8,
}

/// A term's results that wait for a use, oldest first.
#[derive(Debug, Clone, Copy)]
struct TermState {
    first: u32,
    more: u32,
    /// Results that hold it, saturating one above the limit.
    count: u16,
    /// So many of the waiting results were flipped by a use.
    matched: u16,
}

const EMPTY_TERM: TermState = TermState { first: NONE, more: NONE, count: 0, matched: 0 };

/// One cell of a list in an arena.
#[derive(Debug, Clone, Copy)]
struct Node {
    ordinal: u32,
    next: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Newest {
    None,
    User,
    Assistant,
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    generic_above: u16,
    messages: u32,
    chars: u64,
    newest: Newest,
    by_message_id: HashMap<u64, u32, Prehashed>,
    calls: HashMap<u32, u32, Prehashed>,
    /// By call, the results that were referenced first by the part of its input that shortening
    /// would take away.
    bears: HashMap<u32, Vec<u32>, Prehashed>,
    /// The same by assistant text, those too that it quotes or answers with a rule.
    text_bears: HashMap<u32, Vec<u32>, Prehashed>,
    results: Vec<LiveResult>,
    by_id: HashMap<u32, u32, Prehashed>,
    /// Rows with items and the message that each belongs to, in context order.
    rows: Vec<(u32, u32)>,
    /// Rows with text that the host sends behind a result or an answer and that a plugin does not get,
    /// each with the place in `rows` that it stands behind.
    attached: Vec<(u32, u32)>,
    /// Place in `rows` of the newest row that a plugin gets.
    anchor: u32,
    terms: Vec<TermState>,
    nodes: Vec<Node>,
    free: u32,
    /// Quoted lines, and up to which result of the log all that show it are marked.
    quoted: HashMap<u64, u32, Prehashed>,
    files: Files,
    /// Results behind which no assistant text has come yet.
    unanswered: Vec<u32>,
}

impl Live {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            generic_above: u16::try_from(settings.generic_above).unwrap_or(u16::MAX - 1),
            messages: 0,
            chars: 0,
            newest: Newest::None,
            by_message_id: HashMap::default(),
            calls: HashMap::default(),
            bears: HashMap::default(),
            text_bears: HashMap::default(),
            results: Vec::new(),
            by_id: HashMap::default(),
            rows: Vec::new(),
            attached: Vec::new(),
            anchor: NONE,
            terms: Vec::new(),
            nodes: Vec::new(),
            free: NONE,
            quoted: HashMap::default(),
            files: Files::default(),
            unanswered: Vec::new(),
        }
    }

    /// API messages in the context.
    pub(crate) fn messages(&self) -> u32 {
        self.messages
    }

    /// Characters of all texts, inputs and results in the context.
    pub(crate) fn chars(&self) -> u64 {
        self.chars
    }

    /// The results that count, by ordinal.
    pub(crate) fn results(&self) -> &[LiveResult] {
        &self.results
    }

    /// Ordinal of the result that answers the call with this name number.
    pub(crate) fn ordinal(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// Index in the log of the call with this name number.
    pub(crate) fn call(&self, id: u32) -> Option<u32> {
        self.calls.get(&id).copied()
    }

    /// Ordinals of the results that only the long part of this call's input referenced first.
    pub(crate) fn borne_by(&self, call: u32) -> &[u32] {
        self.bears.get(&call).map_or(&[], Vec::as_slice)
    }

    /// Ordinals of the results that may stay only because of the end of this text, which shortening
    /// would take away.
    pub(crate) fn borne_by_text(&self, text: u32) -> &[u32] {
        self.text_bears.get(&text).map_or(&[], Vec::as_slice)
    }

    /// Rows with items and the message that each belongs to, in context order.
    pub(crate) fn rows(&self) -> &[(u32, u32)] {
        &self.rows
    }

    /// Rows with text that only the host keeps, and the place among [`Live::rows`] each stands behind.
    pub(crate) fn attached(&self) -> &[(u32, u32)] {
        &self.attached
    }

    /// Whether the result is the newest read of its path.
    pub(crate) fn is_latest_read(&self, log: &Log, ordinal: u32, result: LiveResult) -> bool {
        result.flags & live_flag::READ != 0
            && self.files.is_latest(log, log.result(result.entry), ordinal)
    }

    /// Bytes on the heap, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.results.capacity() * size_of::<LiveResult>()
            + self.rows.capacity() * 8
            + self.attached.capacity() * 8
            + self.terms.capacity() * size_of::<TermState>()
            + self.nodes.capacity() * size_of::<Node>()
            + self.quoted.allocation_size()
            + self.bears.allocation_size()
            + self.bears.values().map(|borne| borne.capacity() * 4).sum::<usize>()
            + self.text_bears.allocation_size()
            + self.text_bears.values().map(|borne| borne.capacity() * 4).sum::<usize>()
            + self.unanswered.capacity() * 4
            + self.by_message_id.allocation_size()
            + self.calls.allocation_size()
            + self.by_id.allocation_size()
            + self.files.heap_bytes()
    }

    /// Takes in one row of the log, as the next of the context.
    pub(crate) fn feed(&mut self, log: &Log, at: u32) {
        let items = log.items(at);
        let row = log.row(at);
        let is_attached = row.flags & row_flag::ATTACHED != 0;
        if is_attached && self.loses_what_follows(log) {
            log::push(&mut self.attached, (at, self.anchor));
        }
        // Codex: reasoning alone is a message of the model too.
        let thought = row.kind == RowKind::Assistant && row.message == super::extract::JOIN_RUN;
        if items.is_empty() && !thought {
            return;
        }
        let message = match row.kind {
            RowKind::Assistant => self.assistant_message(row.message),
            RowKind::User => self.user_message(),
            _ => return,
        };
        log::push(&mut self.rows, (at, message));
        if !is_attached {
            self.anchor = index(self.rows.len() - 1);
        }
        for &item in items {
            self.chars += u64::from(match item {
                Item::Text(text) => log.text(text).chars,
                Item::Call(call) => log.call(call).chars,
                Item::Result(result) => log.result(result).chars,
                Item::Opaque => 0,
            });
            match item {
                Item::Text(text) if row.kind == RowKind::Assistant => {
                    self.feed_text(log, text, message);
                }
                Item::Call(call) => self.feed_call(log, call, message),
                Item::Result(result) => self.feed_result(log, result, message),
                Item::Text(_) | Item::Opaque => {}
            }
        }
    }

    /// Whether what the host attaches now would be lost with the row that it stands behind: a prompt
    /// keeps what follows it, a result and an answer do not.
    fn loses_what_follows(&self, log: &Log) -> bool {
        let Some(&(row, _)) = self.rows.get(self.anchor as usize) else { return false };
        log.row(row).kind == RowKind::Assistant
            || log.items(row).iter().any(|item| matches!(item, Item::Result(_)))
    }

    fn user_message(&mut self) -> u32 {
        if self.newest != Newest::User {
            self.newest = Newest::User;
            self.messages += 1;
        }
        self.messages - 1
    }

    /// `id` 0 on Codex and on old Claude rows: there each host's neighbourhood rule was applied
    /// when the row was logged (see `extract`).
    fn assistant_message(&mut self, id: u64) -> u32 {
        if id == super::extract::JOIN_RUN {
            if self.newest != Newest::Assistant {
                self.newest = Newest::Assistant;
                self.messages += 1;
            }
            return self.messages - 1;
        }
        if id != 0
            && let Some(&message) = self.by_message_id.get(&id)
        {
            return message;
        }
        self.newest = Newest::Assistant;
        self.messages += 1;
        if id != 0 {
            self.by_message_id.insert(id, self.messages - 1);
        }
        self.messages - 1
    }

    fn feed_text(&mut self, log: &Log, at: u32, message: u32) {
        let text = log.text(at);
        let mut borne = Vec::new();
        self.use_terms(log.term_refs(text.uses), message, |_| {});
        self.use_terms(log.term_refs(text.cut_uses), message, |ordinal| borne.push(ordinal));
        for &line in log.quotes(text.quotes) {
            self.quote(log, line, message, |_| {});
        }
        for &line in log.quotes(text.cut_quotes) {
            self.quote(log, line, message, |ordinal| borne.push(ordinal));
        }
        if text.flags & text_flag::BLANK == 0 {
            let in_cut = text.flags & text_flag::RULE_WORD_IN_CUT != 0;
            let results = &mut self.results;
            self.unanswered.retain(|&ordinal| {
                let Some(result) = results.get_mut(ordinal as usize) else { return false };
                if result.message >= message {
                    return true;
                }
                if text.flags & text_flag::RULE_WORD != 0 && message - result.message <= 2 {
                    result.flags |= live_flag::RULE_WORD;
                    borne.extend(in_cut.then_some(ordinal));
                }
                false
            });
        }
        if !borne.is_empty() {
            borne.sort_unstable();
            borne.dedup();
            self.text_bears.insert(at, borne);
        }
    }

    fn feed_call(&mut self, log: &Log, at: u32, message: u32) {
        let call = log.call(at);
        if self.calls.contains_key(&call.id) {
            return;
        }
        self.calls.insert(call.id, at);
        self.use_terms(log.term_refs(call.uses), message, |_| {});
        let mut borne = Vec::new();
        self.use_terms(log.term_refs(call.cut_uses), message, |ordinal| borne.push(ordinal));
        if !borne.is_empty() {
            borne.sort_unstable();
            borne.dedup();
            self.bears.insert(call.id, borne);
        }
    }

    fn feed_result(&mut self, log: &Log, at: u32, message: u32) {
        let entry = log.result(at);
        let Some(&call) = self.calls.get(&entry.id) else { return };
        if self.by_id.contains_key(&entry.id) {
            return;
        }
        let ordinal = u32::try_from(self.results.len()).unwrap_or(NONE);
        self.by_id.insert(entry.id, ordinal);
        log::push(
            &mut self.results,
            LiveResult { entry: at, call, message, referenced: 0, superseded_by: NONE, flags: 0 },
        );
        self.unanswered.push(ordinal);
        if self.terms.len() < log.terms.len() {
            let more = log.terms.len() - self.terms.len();
            self.terms.reserve_exact(more.max(self.terms.len() / 8));
            self.terms.resize(log.terms.len(), EMPTY_TERM);
        }
        for &term in log.term_refs(entry.deciding) {
            self.hold(term, Some(ordinal));
        }
        for &term in log.term_refs(entry.known) {
            self.hold(term, None);
        }
        self.files.feed(log, log.result(at), ordinal, &mut self.results);
    }

    /// Counts a result that holds `term`; a deciding one waits for a use.
    fn hold(&mut self, term: u32, waiting: Option<u32>) {
        let Some(state) = self.terms.get_mut(term as usize) else { return };
        if state.count > self.generic_above {
            return;
        }
        state.count += 1;
        if state.count > self.generic_above {
            let freed = std::mem::replace(state, TermState { count: state.count, ..EMPTY_TERM });
            self.release(freed);
            return;
        }
        let Some(ordinal) = waiting else { return };
        if state.first == NONE {
            state.first = ordinal;
            return;
        }
        let node = Node { ordinal, next: NONE };
        let at = if self.free == NONE {
            log::push(&mut self.nodes, node);
            index(self.nodes.len() - 1)
        } else {
            let at = self.free;
            if let Some(slot) = self.nodes.get_mut(at as usize) {
                self.free = slot.next;
                *slot = node;
            }
            at
        };
        if state.more == NONE {
            state.more = at;
            return;
        }
        let mut last = state.more;
        while let Some(node) = self.nodes.get_mut(last as usize) {
            if node.next == NONE {
                node.next = at;
                return;
            }
            last = node.next;
        }
    }

    /// A term became generic: takes its flips back and frees its list.
    fn release(&mut self, state: TermState) {
        let mut flipped = state.matched;
        let mut unflip = |ordinal: u32| {
            if flipped > 0 {
                flipped -= 1;
                if let Some(result) = self.results.get_mut(ordinal as usize) {
                    result.referenced = result.referenced.saturating_sub(1);
                }
            }
        };
        if state.first != NONE {
            unflip(state.first);
        }
        let mut at = state.more;
        while let Some(node) = self.nodes.get_mut(at as usize) {
            unflip(node.ordinal);
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = at;
            at = next;
        }
    }

    /// Uses of terms at a message; `first` is told each result that one of them is the first use
    /// of some term of.
    fn use_terms(&mut self, terms: &[u32], message: u32, mut first: impl FnMut(u32)) {
        for &term in terms {
            let Some(state) = self.terms.get_mut(term as usize) else { continue };
            if state.first == NONE {
                continue;
            }
            let mut place = 0;
            let (mut ordinal, mut next) = (state.first, state.more);
            loop {
                if place >= state.matched {
                    let Some(result) = self.results.get_mut(ordinal as usize) else { break };
                    if result.message >= message {
                        break;
                    }
                    result.referenced += 1;
                    state.matched += 1;
                    first(ordinal);
                }
                place += 1;
                let Some(node) = self.nodes.get(next as usize) else { break };
                (ordinal, next) = (node.ordinal, node.next);
            }
        }
    }

    /// An assistant text quotes a line at a message; `first` is told each result that was not quoted
    /// before.
    fn quote(&mut self, log: &Log, line: u64, message: u32, mut first: impl FnMut(u32)) {
        // Results come newest first, and their messages never grow on the way back: those at or
        // behind the mark are done.
        let done = self.quoted.get(&line).copied();
        let mut newest = None;
        for entry in
            log.quotable.results(line).take_while(|&entry| done.is_none_or(|done| entry > done))
        {
            let Some(&ordinal) = self.by_id.get(&log.result(entry).id) else { continue };
            let Some(result) = self.results.get_mut(ordinal as usize) else { continue };
            if result.entry != entry || result.message >= message {
                continue;
            }
            if result.flags & live_flag::QUOTED == 0 {
                first(ordinal);
            }
            result.flags |= live_flag::QUOTED;
            newest.get_or_insert(entry);
        }
        if let Some(newest) = newest {
            self.quoted.insert(line, newest);
        }
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}
