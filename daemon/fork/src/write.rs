//! The file of a fork: named as the host names rollouts, seen by the host only when it is whole.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Zoned;
use tempfile::{Builder, NamedTempFile};

use crate::error::Error;
use crate::lock;

/// How the name of a draft begins and ends: no host, and no walk of ours, takes it for a rollout.
pub(crate) const DRAFT: (&str, &str) = (".compactd-fork-", ".partial");

/// When the fork is made.
pub(crate) struct Moment(Zoned);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(Zoned::now())
    }

    /// RFC 3339 in UTC to the millisecond, as the host writes it.
    pub(crate) fn utc(&self) -> String {
        self.0.timestamp().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
    }

    /// The folder below `sessions` and the name there: local time, as the host does it. A name without a
    /// stamp, or with another id than the `session_meta` has, is not found by the host.
    fn place(&self, home: &Path, id: &str) -> (PathBuf, String) {
        let folder = home.join("sessions").join(self.0.strftime("%Y/%m/%d").to_string());
        (folder, format!("rollout-{}-{id}.jsonl", self.0.strftime("%Y-%m-%dT%H-%M-%S")))
    }
}

/// A fork that is being written. Dropped, it leaves nothing behind.
pub(crate) struct Draft {
    file: NamedTempFile,
    path: PathBuf,
}

impl Draft {
    /// Starts a file beside the place where it will stand, under a name that no host reads.
    pub(crate) fn start(home: &Path, id: &str, moment: &Moment) -> Result<Self, Error> {
        let (folder, name) = moment.place(home, id);
        fs::create_dir_all(&folder).map_err(Error::write("make the folder", &folder))?;
        let file = Builder::new()
            .prefix(DRAFT.0)
            .suffix(DRAFT.1)
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(&folder)
            .map_err(Error::write("make a file in", &folder))?;
        lock::hold(file.as_file());
        Ok(Self { file, path: folder.join(name) })
    }

    pub(crate) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Where the file is as long as it is a draft.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Where the file of a fork would stand.
    pub(crate) fn place(home: &Path, id: &str, moment: &Moment) -> PathBuf {
        let (folder, name) = moment.place(home, id);
        folder.join(name)
    }

    /// Makes it last, with the same rights as its source.
    pub(crate) fn settle(&self, source: &Path) -> Result<(), Error> {
        let path = &self.path;
        if let Ok(found) = fs::metadata(source) {
            let mode = found.permissions().mode() & 0o666 | 0o600;
            let set = self.file.as_file().set_permissions(Permissions::from_mode(mode));
            set.map_err(Error::write("set the rights of", path))?;
        }
        self.file.as_file().sync_all().map_err(Error::write("write", path))
    }

    /// Makes it visible, in one step. Never over another file.
    pub(crate) fn publish(self) -> Result<PathBuf, Error> {
        let path = self.path;
        self.file
            .persist_noclobber(&path)
            .map_err(|error| Error::write("name", &path)(error.error))?;
        // It is there now; that a power cut may still take its name away is no reason to say it is not.
        let folder = path.parent().unwrap_or(&path);
        let _best_effort = File::open(folder).and_then(|folder| folder.sync_all());
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_hosts() {
        let moment = Moment("2026-03-04T05:06:07.089+09:00[+09:00]".parse().unwrap());
        assert_eq!(moment.utc(), "2026-03-03T20:06:07.089Z");
        assert_eq!(
            moment.place(Path::new("/h"), "ID"),
            (
                PathBuf::from("/h/sessions/2026/03/04"),
                "rollout-2026-03-04T05-06-07-ID.jsonl".to_owned()
            )
        );
    }

    #[test]
    fn a_draft_leaves_nothing_and_goes_over_nothing() {
        let home = tempfile::tempdir().unwrap();
        let moment = Moment::now();
        let start = || Draft::start(home.path(), "ID", &moment).unwrap();
        let path = Draft::place(home.path(), "ID", &moment);
        drop(start());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
        assert_eq!(start().publish().unwrap(), path);
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(start().publish(), Err(Error::Write { operation: "name", .. })));
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
