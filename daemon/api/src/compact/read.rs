//! Reads a request as callers write it — `rows` last, no white space, no escapes in them — some
//! times faster than serde does. Anything else is left to serde, which gives the same.

use memchr::{memchr, memmem};

use super::{CompactRequest, Ids, Row};
use crate::text::Text;
use crate::words::Role;

const ROWS: &str = ",\"rows\":[";

/// Bytes that a row takes at least about, to make room at once.
const ROW_BYTES: usize = 96;

/// The request; `None` if it is written otherwise, or wrong.
pub(super) fn read(body: &[u8]) -> Option<CompactRequest<'_>> {
    let body = std::str::from_utf8(body).ok()?;
    // No string holds these bytes: its quotes would have a backslash before them.
    let at = memmem::find(body.as_bytes(), ROWS.as_bytes())?;
    let (head, rows) = (body.get(..at)?, body.get(at + ROWS.len()..)?);
    let odd = rows.bytes().fold(false, |odd, byte| odd | (byte < b' ') | (byte == b'\\'));
    if odd {
        return None;
    }
    let rows = Rows(rows).all()?;
    let head = [head, ROWS, "]}"].concat();
    let head: CompactRequest<'_> = serde_json::from_str(&head).ok()?;
    let own = |text: Text<'_>| Text::from(text.into_owned());
    Some(CompactRequest {
        host: head.host,
        session: own(head.session),
        transcript: own(head.transcript),
        trigger: head.trigger,
        agent: head.agent.map(own),
        instructions: head.instructions.map(own),
        usage: head.usage,
        threshold: head.threshold,
        profile: head.profile,
        rows,
    })
}

/// What is left of the rows.
struct Rows<'a>(&'a str);

impl<'a> Rows<'a> {
    fn all(mut self) -> Option<Vec<Row<'a>>> {
        let mut rows = Vec::with_capacity(self.0.len() / ROW_BYTES + 1);
        loop {
            rows.push(self.row()?);
            if !self.eat(",") {
                return (self.0 == "]}").then_some(rows);
            }
        }
    }

    fn row(&mut self) -> Option<Row<'a>> {
        self.expect("{\"")?;
        let row = if self.eat("row\":\"") {
            let row = self.string()?;
            self.expect(",\"")?;
            row
        } else {
            ""
        };
        let role = if self.eat("role\":\"assistant\"") {
            Role::Assistant
        } else {
            self.expect("role\":\"user\"")?;
            Role::User
        };
        let mut ids = Ids::default();
        if self.eat(",\"ids\":[\"") {
            ids.push(Text::from(self.string()?));
            while self.eat(",\"") {
                ids.push(Text::from(self.string()?));
            }
            self.expect("]")?;
        }
        let chars = if self.eat(",\"chars\":") { self.number()? } else { 0 };
        let is_error = self.eat(",\"is_error\":true");
        self.expect("}")?;
        Some(Row { row: Text::from(row), role, ids, chars, is_error })
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.eat(text).then_some(())
    }

    /// Up to the closing quote, which goes too.
    fn string(&mut self) -> Option<&'a str> {
        let end = memchr(b'"', self.0.as_bytes())?;
        let (text, rest) = (self.0.get(..end)?, self.0.get(end + 1..)?);
        self.0 = rest;
        Some(text)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        let mut digits = 0;
        for byte in self.0.bytes().take_while(u8::is_ascii_digit) {
            number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            digits += 1;
        }
        let padded = digits > 1 && self.0.starts_with('0');
        self.0 = self.0.get(digits..)?;
        (digits > 0 && !padded).then_some(number)
    }
}
