//! Code mode: what a script showed. Each `text(…)` of it is a part of the result, and a command's
//! answer is JSON with its output escaped in it.

use std::borrow::Cow;

use super::super::json::{self, Raw, unescape};
use super::output::{Header, has_bad_exit, inner_header, warning};

/// JSON nested deeper than this is taken as it is.
const MAX_DEPTH: usize = 8;

/// What the host's answer about a command starts with.
const ANSWERS: [&str; 2] = ["{\"chunk_id\":", "{\"wall_time_seconds\":"];

/// What a script showed.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) pieces: Vec<String>,
    /// Some of it says that it failed.
    pub(super) failed: bool,
}

/// The pieces that the parts of a result show; `None` for what is no script's result.
pub(super) fn shown(texts: &[Cow<'_, str>]) -> Option<Shown> {
    let first = texts.first().filter(|text| text.starts_with("Script "))?;
    let header = Header::of(first);
    if header.body == 0 {
        return None;
    }
    let mut shown = Shown::default();
    let behind = first.get(header.body..).unwrap_or_default();
    if !behind.is_empty() {
        shown.part(behind);
    }
    for part in texts.iter().skip(1) {
        shown.part(part);
    }
    Some(shown)
}

impl Shown {
    fn part(&mut self, text: &str) {
        let behind = text.get(warning(text)..).unwrap_or_default();
        let trimmed = behind.trim();
        let brackets = matches!(
            (trimmed.as_bytes().first(), trimmed.as_bytes().last()),
            (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))
        );
        let mut found = Found::default();
        if let Some(raw) = brackets.then(|| json::value(trimmed)).flatten() {
            found.walk(raw, 0);
        } else if ANSWERS.iter().any(|start| trimmed.starts_with(start)) {
            found.cut_answer(trimmed);
        }
        self.failed |= found.failed;
        if found.any {
            self.pieces.append(&mut found.pieces);
        } else {
            self.pieces.push(behind.to_owned());
        }
    }
}

/// Texts inside the JSON of one part.
#[derive(Default)]
struct Found {
    pieces: Vec<String>,
    /// The host's answer about a command or a tool is among them.
    any: bool,
    failed: bool,
}

impl Found {
    fn walk(&mut self, raw: Raw<'_>, depth: usize) {
        if let Some(text) = raw.text() {
            self.push(&text);
        } else if depth > MAX_DEPTH {
            self.push(raw.get());
        } else if raw.is_list() {
            raw.elements().for_each(|element| self.walk(element, depth + 1));
        } else if raw.is_object() && !self.answer(raw) {
            for (key, value) in raw.members() {
                // Of a settled promise; says nothing.
                if key != "status" {
                    self.walk(value, depth + 1);
                }
            }
        }
    }

    /// Takes the host's answer about a command or a tool of an MCP server.
    fn answer(&mut self, object: Raw<'_>) -> bool {
        let (mut output, mut content, mut is_error) = (None, None, None);
        let mut of_command = false;
        for (key, value) in object.members() {
            match key.as_ref() {
                "output" => output = value.text(),
                "content" => content = Some(value).filter(|value| value.is_list()),
                "isError" => is_error = Some(value.is_true()),
                "chunk_id" | "wall_time_seconds" | "exit_code" | "session_id" => of_command = true,
                _ => {}
            }
        }
        if let (Some(output), true) = (output, of_command) {
            self.failed |= has_bad_exit(object);
            self.output(&output);
        } else if let (Some(content), Some(is_error)) = (content, is_error) {
            self.failed |= is_error;
            self.any = true;
            let texts = content.elements().filter_map(|part| part.member("text")?.text());
            texts.for_each(|text| self.push(&text));
        } else {
            return false;
        }
        true
    }

    fn output(&mut self, output: &str) {
        let (skipped, failed) = inner_header(output);
        self.failed |= failed;
        self.any = true;
        self.push(output.get(skipped..).unwrap_or_default());
    }

    /// The host cuts the middle out of a long part, JSON or not: what is left of the output.
    fn cut_answer(&mut self, text: &str) {
        const OUTPUT: &str = "\"output\":\"";
        let Some(at) = text.find(OUTPUT) else { return };
        let (front, output) = text.split_at(at);
        let code = front.split("\"exit_code\":").nth(1).unwrap_or("0");
        let code = code.split([',', '}']).next().unwrap_or_default().trim();
        self.failed |= code != "0";
        let output = output.get(OUTPUT.len()..).unwrap_or_default();
        let output = output.strip_suffix("\"}").unwrap_or(output);
        self.output(&unescape(output));
    }

    fn push(&mut self, text: &str) {
        self.pieces.push(text.to_owned());
    }
}

#[cfg(test)]
mod tests;
