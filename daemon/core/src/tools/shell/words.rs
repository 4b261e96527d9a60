//! The parts of a word: quotes, escapes, variables, substitutions.

use super::{Lexer, MAX_DEPTH, Open};

impl Lexer<'_> {
    /// A part of a word that is not blank and no operator.
    pub(super) fn part(&mut self, open: &mut Open) {
        match self.peek(0) {
            b'\'' => {
                self.skip(1);
                open.word().quoted = true;
                open.push(self.until(b'\''));
            }
            b'"' => {
                self.skip(1);
                open.word().quoted = true;
                self.double(open);
            }
            b'\\' if self.peek(1) == b'\n' => self.skip(2),
            b'\\' => {
                self.skip(1);
                open.word().quoted = true;
                open.push(self.run_one());
            }
            b'$' => self.dollar(open, false),
            b'`' => self.backtick(open),
            _ => {
                let text = self.run(b" \t\r\n;|&()<>'\"\\$`");
                let live = text.bytes().any(|b| matches!(b, b'*' | b'?' | b'[' | b'{'));
                let word = open.word();
                word.live |= live;
                word.text.push_str(text);
            }
        }
    }

    fn run_one(&mut self) -> &str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest.chars().next().map_or(0, char::len_utf8);
        self.at = self.at.saturating_add(end);
        rest.get(..end).unwrap_or_default()
    }

    /// Behind an opening `"`.
    fn double(&mut self, open: &mut Open) {
        while self.at < self.text.len() {
            match self.peek(0) {
                b'"' => {
                    self.skip(1);
                    return;
                }
                b'\\' if self.peek(1) == b'\n' => self.skip(2),
                b'\\' if matches!(self.peek(1), b'"' | b'\\' | b'$' | b'`') => {
                    self.skip(1);
                    open.push(self.run_one());
                }
                b'$' => self.dollar(open, true),
                b'`' => self.backtick(open),
                _ => open.push(self.run(b"\"\\$`")),
            }
        }
    }

    fn dollar(&mut self, open: &mut Open, in_double: bool) {
        match self.peek(1) {
            b'(' => {
                open.word().live = true;
                open.push("$()");
                self.skip(1);
                if self.peek(1) == b'(' {
                    self.script.compound = true;
                    self.arithmetic();
                } else {
                    self.skip(1);
                    self.nested();
                }
            }
            b'{' => {
                open.word().live = true;
                let mut level = 0_usize;
                let start = self.at;
                while self.at < self.text.len() {
                    let byte = self.peek(0);
                    self.skip(1);
                    match byte {
                        b'{' => level = level.saturating_add(1),
                        b'}' if level <= 1 => break,
                        b'}' => level = level.saturating_sub(1),
                        _ => {}
                    }
                }
                open.push(self.text.get(start..self.at).unwrap_or("${}"));
            }
            b'\'' if !in_double => {
                self.skip(2);
                open.word().quoted = true;
                self.ansi(open);
            }
            b'"' if !in_double => self.skip(1),
            next => {
                open.word().live |= next.is_ascii_alphanumeric() || b"_@*#?!$-".contains(&next);
                open.push("$");
                self.skip(1);
            }
        }
    }

    /// Behind `$'`.
    fn ansi(&mut self, open: &mut Open) {
        while self.at < self.text.len() {
            match self.peek(0) {
                b'\'' => {
                    self.skip(1);
                    return;
                }
                b'\\' => {
                    self.skip(1);
                    match self.run_one() {
                        "n" => open.push("\n"),
                        "t" => open.push("\t"),
                        other => open.push(other),
                    }
                }
                _ => open.push(self.run(b"'\\")),
            }
        }
    }

    fn backtick(&mut self, open: &mut Open) {
        self.skip(1);
        open.word().live = true;
        open.push("$()");
        self.script.compound = true;
        let start = self.at;
        let mut end = self.text.len();
        while self.at < self.text.len() {
            match self.peek(0) {
                b'\\' => self.skip(2),
                b'`' => {
                    end = self.at;
                    self.skip(1);
                    break;
                }
                _ => self.skip(1),
            }
        }
        if self.depth >= MAX_DEPTH {
            return;
        }
        let text = self.text.get(start..end).unwrap_or_default();
        let script = std::mem::take(&mut self.script);
        let mut inner = Lexer { text, at: 0, depth: self.depth.saturating_add(1), script };
        inner.list(false);
        self.script = inner.script;
    }
}
