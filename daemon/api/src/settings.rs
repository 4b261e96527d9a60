//! The settings: what there is, with which defaults, and where values come from.
//!
//! Command line > environment > `config.toml` > default. An empty variable is unset. A bad value gives
//! one warning and the next source below counts; an unknown key in the file is an error.

mod resolve;
mod suggest;
mod table;

pub use resolve::{Origin, Resolved, SettingsError, Shown, Sources, UnknownKey, Warning, resolve};
pub use table::{Setting, markdown_table, table};

use serde::{Deserialize, Serialize};

use crate::words::{Profile, words};

/// All settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// `[roots]`
    pub roots: Roots,
    /// `[index]`
    pub index: Index,
    /// `[rules]`
    pub rules: Rules,
    /// `[focus]`
    pub focus: Focus,
    /// `[codex]`
    pub codex: Codex,
    /// `[watch]`
    pub watch: Watch,
    /// `[log]`
    pub log: Log,
}

/// More folders with transcripts, besides the hosts' own. `~/` is not resolved yet
/// ([`crate::dirs::Env::expand`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roots {
    /// Of Claude Code.
    pub claude: Vec<String>,
    /// Of Codex.
    pub codex: Vec<String>,
}

/// The live index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Bound of all indexes together.
    pub memory_mb: u64,
    /// Sessions that changed within so many days are indexed at the start.
    pub recent_days: u64,
    /// Whether indexes are kept on disk over a restart.
    pub snapshot: bool,
}

impl Default for Index {
    fn default() -> Self {
        Self { memory_mb: 256, recent_days: 7, snapshot: true }
    }
}

/// The rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Which set of rules decides.
    pub profile: Profile,
    /// So many results at the end are too recent to judge.
    pub recent_results: u64,
    /// So many messages at the end are untouched.
    pub pin_last: u64,
    /// A term that more results hold tells nothing.
    pub generic_above: u64,
    /// What is left of the result of a command that can be run again.
    pub rerunnable_chars: u64,
    /// A manual compaction that would remove less of the tokens is skipped.
    pub min_removal_fraction: f64,
    /// This fraction of an old assistant text stays when even that has to be shortened.
    pub text_fraction: f64,
    /// Commands, besides the built-in ones, that can be run again at no cost: their first words.
    pub rerunnable: Vec<String>,
    /// The same, as long as they passed.
    pub rerunnable_tests: Vec<String>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            profile: Profile::Standard,
            recent_results: 10,
            pin_last: 6,
            generic_above: 10,
            rerunnable_chars: 200,
            min_removal_fraction: 0.0,
            text_fraction: 0.5,
            rerunnable: Vec::new(),
            rerunnable_tests: Vec::new(),
        }
    }
}

/// The focus text for a host's own summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    /// Its length at most, in characters.
    pub max_chars: u64,
}

impl Default for Focus {
    fn default() -> Self {
        Self { max_chars: 2_000 }
    }
}

/// What is particular to Codex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Codex {
    /// What is done when a person compacts.
    pub on_manual_compact: OnManualCompact,
}

impl Default for Codex {
    fn default() -> Self {
        Self { on_manual_compact: OnManualCompact::Native }
    }
}

words! {
    /// What is done when a person compacts a thread of Codex.
    OnManualCompact {
        /// The host compacts.
        Native = "native",
        /// A fork is prepared, and the person is told how to resume it.
        Fork = "fork",
    }
}

/// Watching the hosts' folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// How often files are looked at where the system gives no notice.
    pub poll_ms: u64,
    /// How often everything is looked at, in case a notice was lost.
    pub sweep_s: u64,
}

impl Default for Watch {
    fn default() -> Self {
        Self { poll_ms: 1_000, sweep_s: 30 }
    }
}

/// The log. It never holds content of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Level or filter.
    pub level: String,
    /// Form of its lines.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Auto }
    }
}

words! {
    /// Form of the log's lines.
    LogFormat {
        /// `journal` under systemd, else `human`.
        Auto = "auto",
        /// With time and level, for people.
        Human = "human",
        /// With a `<3>`-like prefix and no time, for the journal.
        Journal = "journal",
        /// One JSON object a line.
        Json = "json",
    }
}
