//! The texts of some results, read again from the transcript: the index holds none.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use compactd_core::focus::{MAX_LINE_BYTES, Material, Plan};
use compactd_core::note;
use compactd_core::record::{self, Host, Item, Record, Row, ToolResult, read_line};
use memchr::{memchr, memmem};

use crate::error::Error;
use crate::load::for_each_line;
use crate::source::Transcript;

/// Collects the first text of each wanted result.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    wanted: BTreeSet<String>,
    found: BTreeMap<String, String>,
}

impl Texts {
    /// Looks for the results with these ids.
    #[must_use]
    pub fn wanted(ids: impl IntoIterator<Item = String>) -> Self {
        Self { wanted: ids.into_iter().collect(), found: BTreeMap::new() }
    }

    /// Reads the files of a session, `limit_lines` lines at most; not at all if nothing is wanted.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&mut self, path: &Path, limit_lines: Option<usize>) -> Result<(), Error> {
        if !self.wanted.is_empty() {
            for_each_line(path, limit_lines, |host, _, line| self.take(host, line))?;
        }
        Ok(())
    }

    /// Looks at one line.
    pub fn take(&mut self, host: Host, line: &[u8]) {
        for_each_row(host, line, |row| self.take_row(row));
    }

    fn take_row(&mut self, row: Row<'_>) {
        for item in row.items {
            if let Item::Result(result) = item
                && self.wanted.contains(&*result.id)
            {
                let text = || result.text.into_owned();
                self.found.entry(result.id.into_owned()).or_insert_with(text);
            }
        }
    }

    /// What was found, by id.
    #[must_use]
    pub fn found(self) -> BTreeMap<String, String> {
        self.found
    }
}

fn for_each_row<'a>(host: Host, line: &'a [u8], mut each: impl FnMut(Row<'a>)) {
    match read_line(host, line) {
        Ok(Record::Row(row)) => each(row),
        Ok(Record::Compacted(compacted)) => compacted.rows.into_iter().for_each(each),
        Ok(_) | Err(_) => {}
    }
}

/// The line that starts at `offset`, without its newline. `None` if no line starts there, or it is
/// longer than `max_bytes`; the last line may lack its newline.
///
/// # Errors
/// The file cannot be read.
pub fn line_at(
    file: &mut Transcript,
    offset: u64,
    max_bytes: usize,
) -> Result<Option<Vec<u8>>, Error> {
    const STEP: usize = 16 * 1024;
    if let Some(before) = offset.checked_sub(1) {
        let mut byte = [0];
        if file.read_at(&mut byte, before)? == 0 || byte != *b"\n" {
            return Ok(None);
        }
    }
    let mut line = Vec::new();
    loop {
        let start = line.len();
        line.resize(start + STEP, 0);
        let read = file.read_at(&mut line[start..], offset + start as u64)?;
        line.truncate(start + read);
        if let Some(end) = memchr(b'\n', &line[start..]) {
            line.truncate(start + end);
            return Ok((line.len() <= max_bytes).then_some(line));
        }
        if line.len() > max_bytes {
            return Ok(None);
        }
        if read == 0 {
            return Ok((!line.is_empty()).then_some(line));
        }
    }
}

/// Reads the rows again that a focus text is written from. `files` are those of the session's history,
/// the newest first; the index does not say in which of them a row stands.
#[must_use]
pub fn reread(host: Host, files: &[PathBuf], plan: &Plan) -> Material {
    let mut files: Vec<Transcript> =
        files.iter().filter_map(|path| Transcript::open(path).ok()).collect();
    let mut material = Material::default();
    for wanted in &plan.rows {
        for file in &mut files {
            // A file that is gone or was rewritten since leaves the row out.
            let line = line_at(file, wanted.offset, MAX_LINE_BYTES).ok().flatten();
            if line.is_some_and(|line| material.take(host, wanted, &line)) {
                break;
            }
        }
    }
    material
}

/// The texts of rows that a host keeps beside its messages, by where their lines start. One that cannot
/// be read is left out. Claude Code keeps a session in one file.
#[must_use]
pub fn attached(path: &Path, offsets: &[u64]) -> HashMap<u64, String> {
    let Ok(mut file) = Transcript::open(path) else { return HashMap::new() };
    let mut text = |offset: u64| {
        let line = line_at(&mut file, offset, record::MAX_LINE_BYTES).ok().flatten()?;
        Some((offset, record::attached_text(&line)?))
    };
    offsets.iter().filter_map(|&offset| text(offset)).collect()
}

/// A tool result as its transcript holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// The file, and where its line starts there.
    pub path: PathBuf,
    /// See `path`.
    pub offset: u64,
    /// What the model read. Lone surrogates and bytes that are no UTF-8 are U+FFFD.
    pub text: String,
    /// The JSON value that holds it, as written.
    pub raw: String,
    /// It holds parts that are no text.
    pub is_opaque: bool,
}

impl Original {
    /// It ends in the note that stands for an image or the like: perhaps what a host that can only
    /// build text left of a result, perhaps output that shows such a note. Only an earlier form tells.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        let text = self.text.strip_suffix(note::NON_TEXT);
        !self.is_opaque && text.is_some_and(|text| text.ends_with('\n'))
    }
}

/// What is looked for under one id, found one row after the other.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The first result that is not a note of ours, nor [doubtful](Original::is_doubtful) where another
    /// is found.
    pub original: Option<Original>,
    /// A note of ours was found: there was a result.
    pub has_note: bool,
    /// The input of its first call, and of the first that no pass shortened.
    pub call: Option<String>,
    call_is_whole: bool,
}

impl Search {
    /// Whether nothing more can be found for a result, or for a call.
    #[must_use]
    pub fn is_done(&self, wants_call: bool) -> bool {
        if wants_call {
            self.call_is_whole
        } else {
            self.original.as_ref().is_some_and(|original| !original.is_doubtful())
        }
    }

    /// Whether there is any trace of the id.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.original.is_some() || self.has_note || self.call.is_some()
    }

    /// Looks for an id in all files of a session, the oldest row first.
    ///
    /// # Errors
    /// A file cannot be read, or is no transcript.
    pub fn file(path: &Path, id: &str) -> Result<Self, Error> {
        let mut search = Self::default();
        // The id stands in the line as it is, unless it has a letter that JSON escapes.
        let finder = memmem::Finder::new(id.as_bytes());
        let is_plain = !id.contains(['"', '\\', '/']) && id.is_ascii();
        for_each_line(path, None, |host, offset, line| {
            if !is_plain || finder.find(line).is_some() {
                search.take(host, path, offset, line, id);
            }
        })?;
        Ok(search)
    }

    /// Looks at one line.
    pub fn take(&mut self, host: Host, path: &Path, offset: u64, line: &[u8], id: &str) {
        for_each_row(host, line, |row| {
            for item in row.items {
                match item {
                    Item::Result(result) if result.id == id => {
                        self.take_result(host, path, offset, line, &result);
                    }
                    Item::Call(call) if call.id == id && !self.call_is_whole => {
                        let is_whole = call
                            .leaves
                            .iter()
                            .all(|leaf| !leaf.string || note::leaf_note(&leaf.text).is_none());
                        let lossy = String::from_utf8_lossy(line);
                        if self.call.is_none() || is_whole {
                            let found = record::raw::call(host, &lossy, id);
                            self.call = found.map(str::to_owned).or(self.call.take());
                        }
                        self.call_is_whole = is_whole;
                    }
                    _ => {}
                }
            }
        });
    }

    fn take_result(
        &mut self,
        host: Host,
        path: &Path,
        offset: u64,
        line: &[u8],
        result: &ToolResult<'_>,
    ) {
        if self.is_done(false) {
            return;
        }
        if is_note(&result.text) {
            self.has_note = true;
            return;
        }
        let lossy = String::from_utf8_lossy(line);
        let raw = record::raw::result(host, &lossy, &result.id).unwrap_or_default();
        let found = Original {
            path: path.to_path_buf(),
            offset,
            text: result.text.clone().into_owned(),
            raw: raw.to_owned(),
            is_opaque: result.opaque,
        };
        if self.original.is_none() || !found.is_doubtful() {
            self.original = Some(found);
        }
    }
}

/// Whether a result's text is what a pass of ours left of it. Output that only shows such a note at its
/// end has more or less before it than the note says.
fn is_note(text: &str) -> bool {
    note::is_dropped_note(text)
        || text == note::NON_TEXT
        || note::cut_note(text)
            .is_some_and(|cut| cut.kept.chars().count() as u64 == cut.total - cut.removed)
}

#[cfg(test)]
#[path = "texts_tests.rs"]
mod tests;
