//! A session of our own making, for a machine that has none yet.

use compactd_core::index::History;
use compactd_core::record::Host;
use compactd_core::rules::{Pins, Profile};
use compactd_core::settings::Settings;

use crate::offline::{Options, Read};

/// Its id.
pub const ID: &str = "sample";

static TRANSCRIPT: &[u8] = include_bytes!("../sample/session.jsonl");

/// Reads the sample.
#[must_use]
pub fn read(settings: Settings, profile: Profile) -> Read {
    let pins = Pins::default();
    let options = Options { history: History::Context, profile, settings, pins, budget: None };
    Read::bytes(Host::Claude, ID, TRANSCRIPT, options)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_shows() {
        let read = read(Settings::default(), Profile::Standard);
        let explain = read.explain();
        let rules: BTreeSet<&str> =
            explain.results.iter().map(|result| result.rule.as_str()).collect();
        for rule in [
            "pinned",
            "never_drop",
            "superseded_read",
            "superseder",
            "latest_read",
            "referenced",
            "unreferenced",
            "rerunnable",
            "too_recent",
        ] {
            assert!(rules.contains(rule), "{rule} does not show in {rules:?}");
        }
        assert!(explain.totals.chars_after < explain.totals.chars_before);
        assert_eq!(explain.totals.results, explain.results.len() as u64);
    }
}
