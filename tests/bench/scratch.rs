//! Files of a run, and the corpora if there are any.

use std::path::{Path, PathBuf};

/// A folder that goes with its value.
#[derive(Debug)]
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("compactd-bench-").tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// A real session.
#[derive(Debug)]
pub(crate) struct Real {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

/// The unpacked sessions of the folder that `COMPACTD_CORPORA` names, copied into the scratch
/// folder; nothing without it.
pub(crate) fn corpora(scratch: &Scratch) -> Vec<Real> {
    let Some(folder) = std::env::var_os("COMPACTD_CORPORA") else {
        eprintln!("  (COMPACTD_CORPORA is not set: no real sessions)");
        return Vec::new();
    };
    let mut found = Vec::new();
    for host in ["claude", "codex"] {
        let Ok(entries) = std::fs::read_dir(Path::new(&folder).join(host)) else { continue };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let packed = std::fs::read(&path).unwrap();
            let is_packed = path.extension().is_some_and(|extension| extension == "zst");
            let bytes =
                if is_packed { zstd::decode_all(packed.as_slice()).unwrap() } else { packed };
            let name = path.file_stem().unwrap().to_string_lossy();
            let path = scratch.file(&format!("corpora/{host}-{name}"), &bytes);
            found.push(Real { path, bytes });
        }
    }
    found
}

/// The lines of a file, without their newlines.
pub(crate) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}
