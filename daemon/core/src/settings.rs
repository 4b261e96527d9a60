//! What the index and the rules can be told. The defaults are the reference's.

/// Numbers of the rules (`docs/rules.md`), each with the reference's default.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// A result with fewer results behind it is too recent to judge.
    pub recent_results: u32,
    /// So many newest messages are pinned.
    pub pin_last: u32,
    /// A term that more results hold is generic.
    pub generic_above: u32,
    /// So many characters of a cheaply re-runnable result stay.
    pub rerunnable_chars: u32,
    /// A pass that would remove a smaller fraction of the characters is not worth it.
    pub min_removal_fraction: f64,
    /// This fraction of an old assistant text stays when even that has to be shortened.
    pub text_fraction: f64,
    /// Commands whose output is cheap to have again, as word prefixes.
    pub rerunnable: Vec<String>,
    /// Test commands: cheap to run again while they pass.
    pub rerunnable_tests: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
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

/// String leaves of a call's input over this many characters are long.
pub const LONG_LEAF_CHARS: usize = 400;

/// So many characters of a shortened leaf stay.
pub const LEAF_KEEP_CHARS: usize = 200;
