//! The programs: those beside the one that runs now, to be copied to their stable place.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use super::error::InstallError;
use super::run::is_program;

/// Every program that is installed.
pub const PROGRAMS: [&str; 3] = ["compactd", "compactctl", "compactd-hook"];

/// The programs beside `ours`.
///
/// # Errors
/// One is missing.
pub fn beside(ours: &Path) -> Result<Vec<(&'static str, PathBuf)>, InstallError> {
    PROGRAMS
        .into_iter()
        .map(|name| {
            let path = ours.with_file_name(name);
            if is_program(&path) {
                Ok((name, path))
            } else {
                Err(InstallError::NoProgram { name, ours: ours.to_path_buf() })
            }
        })
        .collect()
}

/// Whether two files hold the same bytes.
///
/// # Errors
/// One of them cannot be read.
pub fn are_equal(one: &Path, other: &Path) -> io::Result<bool> {
    if fs::metadata(one)?.len() != fs::metadata(other)?.len() {
        return Ok(false);
    }
    let (mut one, mut other) =
        (BufReader::new(File::open(one)?), BufReader::new(File::open(other)?));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let both = left.len().min(right.len());
        if both == 0 {
            return Ok(left.len() == right.len());
        }
        if left.get(..both) != right.get(..both) {
            return Ok(false);
        }
        one.consume(both);
        other.consume(both);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn all_programs_must_be_together() {
        let dir = tempfile::tempdir().unwrap();
        let ours = dir.path().join("compactctl");
        for name in ["compactd", "compactctl"] {
            fs::write(dir.path().join(name), name).unwrap();
            fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let error = beside(&ours).unwrap_err();
        assert!(matches!(error, InstallError::NoProgram { name: "compactd-hook", .. }));
        fs::copy(&ours, dir.path().join("compactd-hook")).unwrap();
        assert_eq!(beside(&ours).unwrap().len(), 3);
    }

    #[test]
    fn files_are_compared_by_their_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let long = vec![7; 100_000];
        let mut other = long.clone();
        other[99_999] = 8;
        for (name, bytes) in [("a", &long), ("b", &long), ("c", &other), ("d", &Vec::new())] {
            fs::write(path(name), bytes).unwrap();
        }
        assert!(are_equal(&path("a"), &path("b")).unwrap());
        assert!(!are_equal(&path("a"), &path("c")).unwrap());
        assert!(!are_equal(&path("a"), &path("d")).unwrap());
        assert!(are_equal(&path("d"), &path("d")).unwrap());
        assert!(are_equal(&path("a"), &path("e")).is_err());
    }
}
