//! One line per run in the file that `COMPACTD_HOOK_DEBUG` names: outcome, sizes and time, never
//! content. Without the variable this does nothing.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Shared with the watchdog; empty unless a file was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Report(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    started: Instant,
    file: PathBuf,
    input_bytes: AtomicUsize,
    output_bytes: AtomicUsize,
    finished: AtomicBool,
}

impl Report {
    pub(crate) fn new(started: Instant, file: Option<PathBuf>) -> Self {
        Self(file.map(|file| {
            Arc::new(Inner {
                started,
                file,
                input_bytes: AtomicUsize::new(0),
                output_bytes: AtomicUsize::new(0),
                finished: AtomicBool::new(false),
            })
        }))
    }

    pub(crate) fn input_bytes(&self, bytes: usize) {
        if let Some(inner) = &self.0 {
            inner.input_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    pub(crate) fn output_bytes(&self, bytes: usize) {
        if let Some(inner) = &self.0 {
            inner.output_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Writes the line; the first caller wins.
    pub(crate) fn finish(&self, outcome: &str) {
        let Some(inner) = &self.0 else { return };
        if inner.finished.swap(true, Ordering::Relaxed) {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let line = format!(
            "{now} pid={} in_bytes={} out_bytes={} us={} outcome={outcome}\n",
            std::process::id(),
            inner.input_bytes.load(Ordering::Relaxed),
            inner.output_bytes.load(Ordering::Relaxed),
            inner.started.elapsed().as_micros(),
        );
        if let Ok(mut file) =
            OpenOptions::new().append(true).create(true).mode(0o600).open(&inner.file)
        {
            file.write_all(line.as_bytes()).ok();
        }
    }
}
