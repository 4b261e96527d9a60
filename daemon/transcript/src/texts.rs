//! The texts of some results, read again from the transcript: the index holds none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use compactd_core::record::{Host, Item, Record, Row, read_line};

use crate::error::Error;
use crate::load::for_each_line;

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
        match read_line(host, line) {
            Ok(Record::Row(row)) => self.take_row(row),
            Ok(Record::Compacted(compacted)) => {
                for row in compacted.rows {
                    self.take_row(row);
                }
            }
            Ok(_) | Err(_) => {}
        }
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
