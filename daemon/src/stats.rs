//! Counters since the start: kept here, shown as JSON and in the Prometheus text form.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Its value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The newest times of a kind, in microseconds.
#[derive(Debug, Default)]
pub struct Recent {
    times: Mutex<(u64, Vec<u64>)>,
}

/// So many times make a spread.
const RECENT: usize = 512;

impl Recent {
    /// Adds a time.
    pub fn add(&self, micros: u64) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, newest) = &mut *times;
        let place = usize::try_from(*count).unwrap_or(0) % RECENT;
        *count += 1;
        match newest.get_mut(place) {
            Some(slot) => *slot = micros,
            None => newest.push(micros),
        }
    }

    /// How many there were, and of the newest the median, the 99th percentile and the longest.
    #[must_use]
    pub fn spread(&self) -> [u64; 4] {
        let (count, mut newest) = self.times.lock().unwrap_or_else(PoisonError::into_inner).clone();
        newest.sort_unstable();
        let at = |percent: usize| {
            let place = (newest.len() * percent / 100).min(newest.len().saturating_sub(1));
            newest.get(place).copied().unwrap_or_default()
        };
        [count, at(50), at(99), at(100)]
    }
}

macro_rules! stats {
    ($($(#[doc = $doc:literal])+ $name:ident),* $(,)?) => {
        /// All counters.
        #[derive(Debug, Default)]
        pub struct Stats {
            $($(#[doc = $doc])+ pub $name: Counter,)*
            /// Times of compaction requests.
            pub compact_micros: Recent,
        }

        impl Stats {
            /// Name, meaning and value of each counter.
            fn rows(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), concat!($($doc),+), self.$name.get()),)*]
            }
        }
    };
}

stats! {
    /// Requests served, errors included.
    requests,
    /// Requests that ended in an error.
    errors,
    /// Compactions answered with decisions.
    compactions_apply,
    /// Compactions where nothing was worth doing.
    compactions_skip,
    /// Compactions answered with decisions that alone do not free enough.
    compactions_escalate,
    /// Compactions of sessions that were not known well enough.
    compactions_unready,
    /// Results cut.
    results_truncated,
    /// Results dropped.
    results_dropped,
    /// Model tokens freed, estimated.
    tokens_freed,
    /// Hook requests that were answered with text.
    hooks_answered,
    /// Hook requests that were answered with silence.
    hooks_silent,
    /// Bytes of transcripts read.
    bytes_read,
    /// Lines of transcripts read.
    lines_read,
    /// Indexes built again because their file was rewritten.
    rebuilds,
    /// Times that a session could not be read.
    broken,
    /// Indexes loaded from disk.
    snapshots_loaded,
    /// Indexes saved to disk.
    snapshots_saved,
}

impl Stats {
    /// The counters and the given gauges (name, meaning, value) in the Prometheus text form.
    #[must_use]
    pub fn prometheus(&self, gauges: &[(&str, &str, u64)]) -> String {
        let mut text = String::new();
        let mut row = |name: &str, help: &str, kind: &str, value: u64| {
            let _ = writeln!(
                text,
                "# HELP compactd_{name} {}\n# TYPE compactd_{name} {kind}\ncompactd_{name} {value}",
                help.trim()
            );
        };
        for (name, help, value) in self.rows() {
            row(&format!("{name}_total"), help, "counter", value);
        }
        for &(name, help, value) in gauges {
            row(name, help, "gauge", value);
        }
        let [count, p50, p99, _] = self.compact_micros.spread();
        let _ = write!(
            text,
            "# HELP compactd_compact_micros Times of compaction requests.\n\
             # TYPE compactd_compact_micros summary\n\
             compactd_compact_micros{{quantile=\"0.5\"}} {p50}\n\
             compactd_compact_micros{{quantile=\"0.99\"}} {p99}\n\
             compactd_compact_micros_count {count}\n"
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_the_newest() {
        let recent = Recent::default();
        assert_eq!(recent.spread(), [0, 0, 0, 0]);
        (1..=1000).for_each(|time| recent.add(time));
        let [count, p50, p99, max] = recent.spread();
        assert_eq!((count, max), (1000, 1000));
        assert!((740..=760).contains(&p50) && p99 >= 990);
    }

    #[test]
    fn prometheus_lines_are_complete() {
        let stats = Stats::default();
        stats.requests.add(3);
        let text = stats.prometheus(&[("sessions", "Sessions known.", 2)]);
        assert!(
            text.contains("# TYPE compactd_requests_total counter\ncompactd_requests_total 3\n")
        );
        assert!(text.contains("# TYPE compactd_sessions gauge\ncompactd_sessions 2\n"));
        assert!(text.ends_with('\n'));
    }
}
