//! What a Codex tool answered: its text, where the tool's own output starts, and whether it failed.

use std::borrow::Cow;

use super::super::json::{self, Raw};
use super::super::{Body, ToolResult};
use super::script;

/// How many lines the host's header may have up to its `Output:` line.
const HEADER_LINES: usize = 12;

/// Lines that a header starts with.
const HEADER_STARTS: [&str; 9] = [
    "Command:",
    "Chunk ID:",
    "Wall time",
    "Process exited",
    "Process running",
    "Exit code:",
    "Original token count:",
    "Total output lines:",
    "Script ",
];

/// What the host itself answers when a call could not be run.
const HOST_FAILURES: [&str; 13] = [
    "unsupported call:",
    "unsupported custom tool call:",
    "aborted by user",
    "exec_command failed",
    "exec expects raw JavaScript",
    "write_stdin failed",
    "failed to parse function arguments",
    "failed in sandbox",
    "command timed out",
    "apply_patch verification failed",
    "patch rejected",
    "unable to locate image",
    "collab spawn failed",
];

/// Reads the output of a call.
pub(super) fn result<'a>(id: Cow<'a, str>, output: Option<Raw<'a>>) -> ToolResult<'a> {
    let mut found = Found::default();
    if let Some(output) = output {
        found.read(output);
    }
    let mut failed = found.failed;
    if let [text] = found.texts.as_mut_slice()
        && let Some((inner, inner_failed)) = unwrapped(text)
    {
        *text = Cow::Owned(inner);
        failed |= inner_failed;
    }
    let shown = script::shown(&found.texts);
    failed |= found.texts.iter().any(|text| text.starts_with("Script error:"));
    let first_part =
        (found.texts.len() > 1).then(|| found.texts.first().map_or(0, |text| text.len()));
    let text = joined(found.texts);
    let mut header = Header::of(&text);
    if header.body > 0 && first_part == Some(header.body) {
        // The header is a part of its own: the newline behind it is ours.
        header.body += 1;
    }
    let body = text.get(header.body..).unwrap_or_default();
    failed |= header.failed
        || text == "aborted"
        || HOST_FAILURES.iter().any(|start| text.starts_with(start))
        || (text.starts_with("Wall time") && second_line(&text).starts_with("aborted by user"))
        || (header.body > 0 && body.starts_with("Script error:"));
    let running = running(text.get(..header.body).unwrap_or_default()).map(str::to_owned);
    let body = match shown {
        Some(shown) => {
            failed |= shown.failed;
            let mut body = String::new();
            let mut ends = Vec::with_capacity(shown.pieces.len());
            for (at, piece) in shown.pieces.iter().enumerate() {
                if at > 0 {
                    body.push('\n');
                }
                body.push_str(piece);
                ends.push(body.len());
            }
            Body::Parts { text: Cow::Owned(body), ends }
        }
        None if header.body == 0 => Body::From(0),
        None => {
            let (skipped, inner_failed) = inner_header(body);
            failed |= inner_failed;
            Body::From(header.body + skipped)
        }
    };
    let running = running.map(Cow::Owned);
    ToolResult { id, text, body, is_error: failed, opaque: found.opaque, running }
}

fn second_line(text: &str) -> &str {
    text.lines().nth(1).unwrap_or_default()
}

/// The id that the header gives for what goes on running.
fn running(header: &str) -> Option<&str> {
    let id = header.lines().find_map(|line| {
        line.strip_prefix("Script running with cell ID ")
            .or_else(|| line.strip_prefix("Process running with session ID "))
    })?;
    (!id.trim().is_empty()).then(|| id.trim())
}

/// What else of the host stands at the start of a body: the header of `apply_patch` that a shell
/// command was turned into, and a warning that the output was shortened. Gives its length, and
/// whether it tells of a failure.
pub(super) fn inner_header(body: &str) -> (usize, bool) {
    let mut inner = Header::default();
    if body.starts_with("Exit code:") {
        inner = Header::of(body);
        if inner.body == 0 {
            return (0, false);
        }
    }
    let rest = body.get(inner.body..).unwrap_or_default();
    (inner.body + warning(rest), inner.failed)
}

/// Length of `Warning: truncated output …`, `Total output lines: …` and the empty line behind.
pub(super) fn warning(body: &str) -> usize {
    let mut length = 0;
    let mut lines = body.split_inclusive('\n').peekable();
    for start in ["Warning: truncated output (", "Total output lines: "] {
        length += lines.next_if(|line| line.starts_with(start)).map_or(0, str::len);
    }
    let blank = lines.next_if(|line| length > 0 && line.trim_end_matches(['\r', '\n']).is_empty());
    length + blank.map_or(0, str::len)
}

#[derive(Default)]
struct Found<'a> {
    texts: Vec<Cow<'a, str>>,
    opaque: bool,
    failed: bool,
}

impl<'a> Found<'a> {
    /// A string, a list of parts, or an object around either.
    fn read(&mut self, output: Raw<'a>) {
        if output.is_list() {
            for part in output.elements() {
                self.part(part);
            }
        } else if output.is_object() {
            self.object(output);
        } else if let Some(text) = output.text() {
            self.texts.push(text);
        }
    }

    fn part(&mut self, part: Raw<'a>) {
        match part.text().or_else(|| part.member("text").and_then(Raw::text)) {
            Some(text) => self.texts.push(text),
            None => self.opaque = true,
        }
    }

    fn object(&mut self, object: Raw<'a>) {
        let (mut content, mut text, mut output, mut metadata) = (None, None, None, None);
        for (key, value) in object.members() {
            match key.as_ref() {
                "content" => content = Some(value),
                "text" => text = Some(value),
                "output" => output = Some(value),
                "metadata" => metadata = Some(value),
                "success" => self.failed |= value.get() == "false",
                "image_url" => self.opaque |= !value.is_null(),
                _ => {}
            }
        }
        self.failed |= metadata.is_some_and(has_bad_exit);
        let holds = |raw: &Raw<'_>| raw.is_string() || raw.is_list();
        match [content, output, text].into_iter().flatten().find(holds) {
            Some(inner) if inner.is_list() => inner.elements().for_each(|part| self.part(part)),
            Some(inner) => self.texts.extend(inner.text()),
            None => self.opaque = true,
        }
    }
}

/// The parts in one text, a newline between them.
fn joined<'a>(texts: Vec<Cow<'a, str>>) -> Cow<'a, str> {
    let mut texts = texts.into_iter();
    let Some(mut all) = texts.next() else { return Cow::Borrowed("") };
    for text in texts {
        let all = all.to_mut();
        all.push('\n');
        all.push_str(&text);
    }
    all
}

/// Does this object say `exit_code` and mean a failure?
pub(super) fn has_bad_exit(object: Raw<'_>) -> bool {
    object.member("exit_code").is_some_and(|code| !code.is_null() && code.get() != "0")
}

/// Old versions: the output is JSON in a string, `{"output": ..., "metadata": {"exit_code": ...}}`.
fn unwrapped(text: &str) -> Option<(String, bool)> {
    let object = json::looks_like_object(text)?;
    let metadata = object.member("metadata").filter(|metadata| metadata.is_object())?;
    Some((object.member("output")?.text()?.into_owned(), has_bad_exit(metadata)))
}

/// The lines that the host puts before a tool's own output.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Header {
    /// Where the tool's own output starts: behind the line `Output:`, or 0 without one.
    pub(super) body: usize,
    /// The header says that the command failed.
    pub(super) failed: bool,
}

impl Header {
    pub(super) fn of(text: &str) -> Self {
        let mut header = Self::default();
        if !is_header_line(text) {
            return header;
        }
        // The command comes first and may have many lines, of any look.
        let mut in_command = text.starts_with("Command:");
        let mut unbroken = true;
        let (mut at, mut lines) = (0, 0);
        let mut failed = false;
        for line in text.split_inclusive('\n') {
            at += line.len();
            let line = line.trim_end_matches(['\n', '\r']);
            in_command =
                in_command && !line.starts_with("Chunk ID:") && !line.starts_with("Wall time");
            if in_command {
                continue;
            }
            if line == "Output:" {
                return Self { body: at, failed: failed || header.failed };
            }
            unbroken = unbroken && is_header_line(line);
            let line_failed = says_failed(line);
            failed |= line_failed;
            header.failed |= line_failed && unbroken;
            lines += 1;
            if lines == HEADER_LINES {
                break;
            }
        }
        header
    }
}

fn is_header_line(line: &str) -> bool {
    HEADER_STARTS.iter().any(|start| line.starts_with(start))
}

fn says_failed(line: &str) -> bool {
    let code =
        line.strip_prefix("Process exited with code").or_else(|| line.strip_prefix("Exit code:"));
    match code.map(str::trim) {
        Some(code) => code != "0",
        None => line.starts_with("Script failed") || line.starts_with("Script error:"),
    }
}
