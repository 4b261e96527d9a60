//! Settings from the command line, the environment and the configuration file.

use std::path::Path;

use compactd_api::config::{Config, ConfigError, Lookups};
use compactd_transcript::Roots;

/// Reads this process's configuration. `file` replaces the usual file; `cli` holds settings by name.
///
/// # Errors
/// The file cannot be read, is no TOML, or has keys that no setting has.
pub fn read(file: Option<&Path>, cli: &[(String, String)]) -> Result<Config, ConfigError> {
    let lookups = Lookups {
        variable: &|name| std::env::var_os(name),
        file: &|path| std::fs::read_to_string(path),
    };
    Config::read(&lookups, file, cli)
}

/// The folders in which transcripts are looked for.
#[must_use]
pub fn roots(config: &Config) -> Roots {
    Roots::new(config.claude_folders(), config.codex_folders())
}
