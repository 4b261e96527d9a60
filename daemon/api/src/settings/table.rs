//! The table of settings as data; code, docs and `config show` come from it.

use std::fmt::Write as _;

use super::{LogFormat, OnManualCompact, Settings};
use crate::words::Profile;

/// One setting, for docs and listings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Section and key, joined by a dot.
    pub name: &'static str,
    /// Its environment variable.
    pub env: &'static str,
    /// Which values it takes, in words.
    pub kind: String,
    /// Its default as TOML.
    pub default: String,
    /// What it does.
    pub doc: &'static str,
}

/// The place of one setting in [`Settings`], with what it takes.
pub(super) enum Slot<'a> {
    Integer(&'a mut u64, u64, u64),
    Fraction(&'a mut f64),
    Boolean(&'a mut bool),
    Word(&'a mut String),
    Paths(&'a mut Vec<String>),
    List(&'a mut Vec<String>),
    Profile(&'a mut Profile),
    LogFormat(&'a mut LogFormat),
    OnManualCompact(&'a mut OnManualCompact),
}

/// One row of the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) env: &'static str,
    pub(super) doc: &'static str,
    pub(super) slot: for<'a> fn(&'a mut Settings) -> Slot<'a>,
}

#[rustfmt::skip]
pub(super) static ROWS: &[Row] = &[
    Row { name: "roots.claude", env: "COMPACTD_ROOTS_CLAUDE", doc: "More folders with transcripts of Claude Code, besides its own",
        slot: |s| Slot::Paths(&mut s.roots.claude) },
    Row { name: "roots.codex", env: "COMPACTD_ROOTS_CODEX", doc: "More folders with rollouts of Codex, besides its own",
        slot: |s| Slot::Paths(&mut s.roots.codex) },
    Row { name: "index.memory_mb", env: "COMPACTD_INDEX_MEMORY_MB", doc: "Bound of all indexes together, in MiB; the least used go first",
        slot: |s| Slot::Integer(&mut s.index.memory_mb, 16, 1_048_576) },
    Row { name: "index.recent_days", env: "COMPACTD_INDEX_RECENT_DAYS", doc: "Sessions that changed within so many days are indexed at the start",
        slot: |s| Slot::Integer(&mut s.index.recent_days, 0, 3_650) },
    Row { name: "index.snapshot", env: "COMPACTD_INDEX_SNAPSHOT", doc: "Keep indexes on disk over a restart",
        slot: |s| Slot::Boolean(&mut s.index.snapshot) },
    Row { name: "rules.profile", env: "COMPACTD_RULES_PROFILE", doc: "Which set of rules decides",
        slot: |s| Slot::Profile(&mut s.rules.profile) },
    Row { name: "rules.recent_results", env: "COMPACTD_RULES_RECENT_RESULTS", doc: "So many results at the end are too recent to judge",
        slot: |s| Slot::Integer(&mut s.rules.recent_results, 0, 10_000) },
    Row { name: "rules.pin_last", env: "COMPACTD_RULES_PIN_LAST", doc: "So many messages at the end are untouched",
        slot: |s| Slot::Integer(&mut s.rules.pin_last, 0, 10_000) },
    Row { name: "rules.generic_above", env: "COMPACTD_RULES_GENERIC_ABOVE", doc: "A term that more results hold tells nothing",
        slot: |s| Slot::Integer(&mut s.rules.generic_above, 1, 1_000) },
    Row { name: "rules.rerunnable_chars", env: "COMPACTD_RULES_RERUNNABLE_CHARS", doc: "What is left of the result of a command that can be run again",
        slot: |s| Slot::Integer(&mut s.rules.rerunnable_chars, 0, 100_000) },
    Row { name: "rules.min_removal_fraction", env: "COMPACTD_RULES_MIN_REMOVAL_FRACTION", doc: "A manual compaction that would remove less of the tokens is skipped",
        slot: |s| Slot::Fraction(&mut s.rules.min_removal_fraction) },
    Row { name: "rules.text_fraction", env: "COMPACTD_RULES_TEXT_FRACTION", doc: "What is left of an old assistant text when even that has to be shortened",
        slot: |s| Slot::Fraction(&mut s.rules.text_fraction) },
    Row { name: "rules.rerunnable", env: "COMPACTD_RULES_RERUNNABLE", doc: "First words of commands, besides the built-in ones, that can be run again at no cost",
        slot: |s| Slot::List(&mut s.rules.rerunnable) },
    Row { name: "rules.rerunnable_tests", env: "COMPACTD_RULES_RERUNNABLE_TESTS", doc: "First words of test commands, besides the built-in ones, that can be run again as long as they passed",
        slot: |s| Slot::List(&mut s.rules.rerunnable_tests) },
    Row { name: "focus.max_chars", env: "COMPACTD_FOCUS_MAX_CHARS", doc: "Length of the focus text for a host's own summary, in characters",
        slot: |s| Slot::Integer(&mut s.focus.max_chars, 200, 20_000) },
    Row { name: "codex.on_manual_compact", env: "COMPACTD_CODEX_ON_MANUAL_COMPACT", doc: "What a person's `/compact` in Codex leads to: the host's own compaction, or a fork that is resumed instead",
        slot: |s| Slot::OnManualCompact(&mut s.codex.on_manual_compact) },
    Row { name: "watch.poll_ms", env: "COMPACTD_WATCH_POLL_MS", doc: "How often files are looked at where the system gives no notice",
        slot: |s| Slot::Integer(&mut s.watch.poll_ms, 50, 60_000) },
    Row { name: "watch.sweep_s", env: "COMPACTD_WATCH_SWEEP_S", doc: "How often everything is looked at, in case a notice was lost",
        slot: |s| Slot::Integer(&mut s.watch.sweep_s, 1, 86_400) },
    Row { name: "log.level", env: "COMPACTD_LOG", doc: "`error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,compactd::tail=debug`",
        slot: |s| Slot::Word(&mut s.log.level) },
    Row { name: "log.format", env: "COMPACTD_LOG_FORMAT", doc: "Form of the log's lines; `auto` is `journal` under systemd, else `human`",
        slot: |s| Slot::LogFormat(&mut s.log.format) },
];

impl Slot<'_> {
    /// Which values it takes, in words that fit behind "is no".
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Integer(_, min, max) => format!("whole number from {min} to {max}"),
            Self::Fraction(_) => "number from 0 to 1".to_owned(),
            Self::Boolean(_) => "true or false".to_owned(),
            Self::Word(_) => "text".to_owned(),
            Self::Paths(_) => "list of absolute or ~/ paths".to_owned(),
            Self::List(_) => "list of texts".to_owned(),
            Self::Profile(_) => choices(Profile::ALL.iter().map(|word| word.name())),
            Self::LogFormat(_) => choices(LogFormat::ALL.iter().map(|word| word.name())),
            Self::OnManualCompact(_) => {
                choices(OnManualCompact::ALL.iter().map(|word| word.name()))
            }
        }
    }

    /// The value as TOML.
    pub(super) fn show(&self) -> String {
        let value = match self {
            Self::Integer(value, ..) => return value.to_string(),
            Self::Fraction(value) => toml::Value::Float(**value),
            Self::Boolean(value) => toml::Value::Boolean(**value),
            Self::Word(value) => toml::Value::String((*value).clone()),
            Self::Paths(value) | Self::List(value) => {
                toml::Value::Array(value.iter().cloned().map(toml::Value::String).collect())
            }
            Self::Profile(value) => toml::Value::String(value.name().to_owned()),
            Self::LogFormat(value) => toml::Value::String(value.name().to_owned()),
            Self::OnManualCompact(value) => toml::Value::String(value.name().to_owned()),
        };
        value.to_string()
    }

    /// Takes a value from a variable or the command line. `false`: no such value, nothing changed.
    /// Lists are split at `,`, paths at `:`.
    pub(super) fn set_text(self, text: &str) -> bool {
        let text = text.trim();
        match self {
            Self::Integer(..) => {
                text.parse().is_ok_and(|value| self.set_toml(&toml::Value::Integer(value)))
            }
            Self::Fraction(_) => {
                text.parse().is_ok_and(|value| self.set_toml(&toml::Value::Float(value)))
            }
            Self::Boolean(_) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => self.set_toml(&toml::Value::Boolean(true)),
                "false" | "0" | "no" | "off" => self.set_toml(&toml::Value::Boolean(false)),
                _ => false,
            },
            Self::Paths(_) => self.set_toml(&split(text, ':')),
            Self::List(_) => self.set_toml(&split(text, ',')),
            Self::Word(_) | Self::Profile(_) | Self::LogFormat(_) | Self::OnManualCompact(_) => {
                self.set_toml(&toml::Value::String(text.to_owned()))
            }
        }
    }

    /// Takes a value from the file. `false`: no such value, nothing changed.
    pub(super) fn set_toml(self, value: &toml::Value) -> bool {
        match self {
            Self::Integer(slot, min, max) => put(
                slot,
                value
                    .as_integer()
                    .and_then(|value| u64::try_from(value).ok())
                    .filter(|value| (min..=max).contains(value)),
            ),
            Self::Fraction(slot) => put(
                slot,
                match value {
                    toml::Value::Integer(0) => Some(0.0),
                    toml::Value::Integer(1) => Some(1.0),
                    other => other.as_float().filter(|value| (0.0..=1.0).contains(value)),
                },
            ),
            Self::Boolean(slot) => put(slot, value.as_bool()),
            Self::Word(slot) => {
                let word = value.as_str().map(str::trim).filter(|word| !word.is_empty());
                put(slot, word.map(str::to_owned))
            }
            Self::Paths(slot) => {
                let absolute =
                    |path: &String| path.starts_with('/') || path == "~" || path.starts_with("~/");
                put(slot, strings(value).filter(|paths| paths.iter().all(absolute)))
            }
            Self::List(slot) => put(slot, strings(value)),
            Self::Profile(slot) => put(slot, value.as_str().and_then(Profile::from_name)),
            Self::LogFormat(slot) => put(slot, value.as_str().and_then(LogFormat::from_name)),
            Self::OnManualCompact(slot) => {
                put(slot, value.as_str().and_then(OnManualCompact::from_name))
            }
        }
    }
}

fn put<T>(slot: &mut T, value: Option<T>) -> bool {
    match value {
        Some(value) => {
            *slot = value;
            true
        }
        None => false,
    }
}

fn choices<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(" or ")
}

fn split(text: &str, at: char) -> toml::Value {
    let parts = text.split(at).map(str::trim).filter(|part| !part.is_empty());
    toml::Value::Array(parts.map(|part| toml::Value::String(part.to_owned())).collect())
}

/// A list of texts that are not blank, trimmed.
fn strings(value: &toml::Value) -> Option<Vec<String>> {
    let items = value.as_array()?.iter();
    items
        .map(|item| Some(item.as_str()?.trim()).filter(|text| !text.is_empty()).map(str::to_owned))
        .collect()
}

/// All settings with their defaults, in the order of the docs.
#[must_use]
pub fn table() -> Vec<Setting> {
    let mut settings = Settings::default();
    let describe = |row: &Row| {
        let slot = (row.slot)(&mut settings);
        Setting {
            name: row.name,
            env: row.env,
            kind: slot.kind(),
            default: slot.show(),
            doc: row.doc,
        }
    };
    ROWS.iter().map(describe).collect()
}

/// The table as it stands in the docs.
#[must_use]
pub fn markdown_table() -> String {
    let mut out = String::from("| setting | variable | takes | default | what it does |\n");
    out.push_str("| --- | --- | --- | --- | --- |\n");
    for Setting { name, env, kind, default, doc } in table() {
        // Writing to a string cannot fail.
        let _: std::fmt::Result =
            writeln!(out, "| `{name}` | `{env}` | {kind} | `{default}` | {doc} |");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_regular() {
        for row in ROWS {
            let derived = format!("COMPACTD_{}", row.name.replace('.', "_").to_ascii_uppercase());
            assert!(row.env == derived || row.env == "COMPACTD_LOG", "{}", row.name);
            assert!(!row.doc.ends_with('.') && !row.doc.contains('|'), "{}", row.name);
            assert_eq!(ROWS.iter().filter(|other| other.name == row.name).count(), 1);
        }
    }

    #[test]
    fn defaults_are_values_that_the_slot_takes() {
        for row in ROWS {
            let shown = (row.slot)(&mut Settings::default()).show();
            let parsed: toml::Table = format!("x = {shown}").parse().unwrap();
            let mut settings = Settings::default();
            assert!((row.slot)(&mut settings).set_toml(&parsed["x"]), "{} {shown}", row.name);
            assert_eq!(settings, Settings::default());
        }
    }

    #[test]
    fn markdown() {
        let table = markdown_table();
        assert_eq!(table.lines().count(), ROWS.len() + 2);
        assert!(table.contains(
            "| `rules.recent_results` | `COMPACTD_RULES_RECENT_RESULTS` | whole number from 0 to 10000 | `10` | "
        ));
        assert!(table.lines().all(|line| line.matches('|').count() == 6), "{table}");
    }
}
