//! The terms of a text (`docs/rules.md` §3): what a later text must repeat for a result to count as
//! used.
//!
//! One pass in blocks: `class` marks the bytes around which a term may be, `shape` looks at
//! those closely, and a search for whole words finds the error lines. Every rule remembers how far
//! it has read, so no byte is read more than a fixed number of times, whatever the text.

mod class;
mod shape;
#[cfg(test)]
mod tests;

use crate::hash::hash;
use aho_corasick::packed;
use class::{BLOCK, Block, CHUNK, Marked, Marks, NUMBER, NUMBER_START, SLASH, WORD, is};
use std::ops::Range;

/// What makes a line an error line, in lower case. None is longer than [`class::AHEAD`] and one.
const ERROR_WORDS: [&str; 11] = [
    "error",
    "exception",
    "traceback",
    "panic",
    "fatal",
    "fail",
    "assert",
    "cannot",
    "denied",
    "not found",
    "undefined",
];

/// Finds the terms of texts. Owns the scratch memory: keep one and use it again.
#[derive(Debug, Clone)]
pub struct Scanner {
    block: Block,
    words: ErrorWords,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// A scanner; building the word search costs some microseconds.
    #[must_use]
    pub fn new() -> Self {
        Self { block: Block::new(), words: ErrorWords::new() }
    }

    /// Appends the hashes of all terms of `text` to `out`. A term may come more than once.
    pub fn scan(&mut self, text: &str, out: &mut Vec<u64>) {
        let bytes = text.as_bytes();
        self.run(text, |term| out.push(hash(&bytes[term])));
    }

    /// Calls `f` with every term of `text`. A term may come more than once, in no special order.
    pub fn for_each(&mut self, text: &str, mut f: impl FnMut(&str)) {
        self.run(text, |term| f(text.get(term).unwrap_or_default()));
    }

    fn run(&mut self, text: &str, emit: impl FnMut(Range<usize>)) {
        let bytes = text.as_bytes();
        let mut state =
            State { text, bytes, word: 0, number: 0, chunk: 0, quote: 0, code: 0, error: 0, emit };
        let mut at = 0;
        while at < bytes.len() {
            let Marked { planes, marks, lower } = self.block.mark(bytes, at);
            for ((i, planes), marks) in planes.iter().enumerate().zip(marks.as_chunks().0) {
                state.marked(at + 64 * i, planes, marks);
            }
            let mut from = state.error.saturating_sub(at);
            while from < lower.len()
                && let Some(hit) = self.words.find(lower, from)
            {
                state.error = state.line(state.error, at + hit);
                from = state.error.saturating_sub(at).max(hit + 1);
            }
            at += BLOCK;
        }
    }
}

/// Where each rule stands in a text: what lies before is done.
struct State<'a, F> {
    text: &'a str,
    bytes: &'a [u8],
    word: usize,
    number: usize,
    chunk: usize,
    quote: usize,
    code: usize,
    error: usize,
    emit: F,
}

impl<F: FnMut(Range<usize>)> State<'_, F> {
    /// Looks at all marks of the 64 bytes at `at`.
    #[inline]
    fn marked(&mut self, at: usize, planes: &Marks, marks: &[u8; 64]) {
        let mut left = from(planes.identifier, at, self.word);
        while left != 0 {
            let run = self.word_around(at, planes.word, left.trailing_zeros() as usize);
            self.word = run.end;
            left = from(left, at, run.end);
            self.emit(shape::identifier(self.bytes, run));
        }
        let mut left = planes.other;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            let mark = marks[bit % 64];
            if mark & SLASH != 0 {
                self.slash_at(at + bit);
            } else if mark & NUMBER_START != 0 {
                self.number_at(at + bit);
            } else {
                self.quote_at(at + bit);
            }
        }
    }

    fn slash_at(&mut self, at: usize) {
        if at >= self.chunk {
            let chunk = self.chunk_around(at);
            self.chunk = chunk.end;
            self.emit(shape::drive_path(self.bytes, chunk.clone()));
            self.emit(shape::path(self.bytes, chunk));
        }
    }

    fn quote_at(&mut self, open: usize) {
        if open >= self.quote
            && let Some(found) = shape::quotation(self.text, open)
        {
            self.quote = found.close + 1;
            self.emit(found.term);
        }
    }

    fn number_at(&mut self, at: usize) {
        if at > 0 && self.bytes[at - 1] == b'E' {
            if at > self.code && shape::error_code(self.bytes, at) {
                self.code = self.line(self.code, at - 1);
            }
        } else if at >= self.number {
            let run = at..self.end(at, NUMBER);
            self.number = run.end;
            self.emit(shape::number(self.bytes, run));
        }
    }

    fn line(&mut self, from: usize, at: usize) -> usize {
        let (end, term) = shape::line(self.text, from, at);
        self.emit(term);
        end
    }

    #[inline]
    fn emit(&mut self, term: Option<Range<usize>>) {
        if let Some(term) = term {
            (self.emit)(term);
        }
    }

    /// The run of word bytes around byte `bit` of the 64 at `at`, but for what is done.
    #[inline]
    fn word_around(&self, at: usize, word: u64, bit: usize) -> Range<usize> {
        let others = !word;
        let before = (others & ((1 << bit) - 1)).leading_zeros() as usize;
        let start = if before < 64 {
            at + 64 - before
        } else {
            // It begins before these 64 bytes.
            let before = self.bytes[self.word.min(at)..at].iter().rev();
            at - before.take_while(|b| is(**b, WORD)).count()
        };
        let behind = (others >> bit).trailing_zeros() as usize;
        let end = if bit + behind < 64 { at + bit + behind } else { self.end(at + 64, WORD) };
        start..end
    }

    /// The chunk around `at`, but for what is done.
    fn chunk_around(&self, at: usize) -> Range<usize> {
        let before = self.bytes[self.chunk..at].iter().rev();
        let start = at - before.take_while(|b| is(**b, CHUNK)).count();
        start..self.end(at, CHUNK)
    }

    #[inline]
    fn end(&self, at: usize, classes: u8) -> usize {
        at + self
            .bytes
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take_while(|b| is(**b, classes))
            .count()
    }
}

/// The bits of 64 bytes at `at` that stand for bytes at or behind `done`.
#[inline]
fn from(bits: u64, at: usize, done: usize) -> u64 {
    match done.saturating_sub(at) {
        skip @ 0..64 => bits & (u64::MAX << skip),
        _ => 0,
    }
}

/// Search for the [`ERROR_WORDS`] in text in lower case.
#[derive(Debug, Clone)]
enum ErrorWords {
    /// All at once with vector instructions.
    Packed(packed::Searcher),
    /// Byte by byte, on machines for which the first is not built.
    Plain,
}

impl ErrorWords {
    fn new() -> Self {
        packed::Searcher::new(ERROR_WORDS).map_or(Self::Plain, Self::Packed)
    }

    /// Where the first word at or behind `from` starts.
    #[inline]
    fn find(&self, lower: &[u8], from: usize) -> Option<usize> {
        match self {
            Self::Packed(all) => {
                all.find_in(lower, (from..lower.len()).into()).map(|found| found.start())
            }
            Self::Plain => (from..lower.len()).find(|i| {
                matches!(lower[*i], b'e' | b't' | b'p' | b'f' | b'a' | b'c' | b'd' | b'n' | b'u')
                    && ERROR_WORDS.iter().any(|word| lower[*i..].starts_with(word.as_bytes()))
            }),
        }
    }
}
