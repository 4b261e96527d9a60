//! The files of the source, as they were when they were begun with: a fork is of one state of them.

use std::path::{Path, PathBuf};

use compactd_transcript::Transcript;
use compactd_transcript::identity::{Change, Identity, compare_path};
use compactd_transcript::lineage::Segment;

use crate::error::Error;

/// What the files of a history were when the reading began.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    files: Vec<(PathBuf, Identity)>,
}

impl Watched {
    /// Remembers an open file.
    pub(crate) fn add(&mut self, path: &Path, file: &Transcript) -> Result<(), Error> {
        let whole = file.stat()?.size;
        self.files.push((path.to_path_buf(), Identity::take(file, whole)?));
        Ok(())
    }

    /// Whether what was read is what the files hold still: appending is all that may have happened.
    pub(crate) fn check(&self, read: &[Segment]) -> Result<(), Error> {
        for (path, before) in &self.files {
            let change = match compare_path(before, path)? {
                Change::Same | Change::Grown => continue,
                Change::Truncated => "it was cut",
                Change::Replaced => "another content is there",
                Change::Gone => "it is gone",
            };
            return Err(Error::Changed { path: path.clone(), change });
        }
        match read.iter().find(|read| self.files.iter().all(|(path, _)| *path != read.path)) {
            Some(other) => {
                let change = "its history is in other files now";
                Err(Error::Changed { path: other.path.clone(), change })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn after(change: impl FnOnce(&Path)) -> Result<(), Error> {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.jsonl");
        fs::write(&path, "{\"a\":1}\n{\"b\":2}\n").unwrap();
        let mut watched = Watched::default();
        watched.add(&path, &Transcript::open(&path).unwrap()).unwrap();
        change(&path);
        watched.check(&[Segment { path, end_ordinal: None, end_offset: None }])
    }

    #[test]
    fn a_fork_is_of_one_state() {
        assert!(after(|_| {}).is_ok());
        assert!(
            after(|path| fs::write(path, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n").unwrap()).is_ok()
        );
        let said = |change: fn(&Path)| after(change).unwrap_err().to_string();
        assert!(said(|path| fs::write(path, "{\"a\":1}\n").unwrap()).ends_with(": it was cut"));
        let other = said(|path| fs::write(path, "{\"c\":1}\n{\"d\":2}\n{\"e\":3}\n").unwrap());
        assert!(other.ends_with("another content is there"), "{other}");
        assert!(said(|path| fs::remove_file(path).unwrap()).ends_with(": it is gone"));
        let watched = Watched::default();
        let segment = Segment { path: "/x".into(), end_ordinal: None, end_offset: None };
        assert!(watched.check(&[segment]).is_err());
    }
}
