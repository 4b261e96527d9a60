//! This process's configuration, resolved as the daemon resolves its own.

use std::ffi::OsString;

use compactd_api::config::Lookups;
pub use compactd_api::config::{Config, ConfigError};
use compactd_api::convert;
use compactd_core::rules::Profile;
use compactd_core::settings::Settings;
use compactd_transcript::Roots;

/// Reads environment and file of this process.
///
/// # Errors
/// The file cannot be read or understood.
pub fn read() -> Result<Config, ConfigError> {
    from_lookup(&|name| std::env::var_os(name))
}

/// Reads what `variable` gives for environment variables, and the file they lead to.
///
/// # Errors
/// The file cannot be read or understood.
pub fn from_lookup(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Config, ConfigError> {
    let file = &|path: &std::path::Path| std::fs::read_to_string(path);
    Config::read(&Lookups { variable, file }, None, &[])
}

/// The folders in which transcripts are looked for.
#[must_use]
pub fn roots(config: &Config) -> Roots {
    Roots::new(config.claude_folders(), config.codex_folders())
}

/// The numbers of the rules.
#[must_use]
pub fn rules(config: &Config) -> Settings {
    convert::settings(&config.settings().rules)
}

/// The configured set of rules.
#[must_use]
pub fn profile(config: &Config) -> Profile {
    convert::profile(config.settings().rules.profile).unwrap_or(Profile::Standard)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn roots_come_from_home_variables_and_file() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(".config/compactd");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), "[roots]\ncodex = [\"~/more\"]\n").unwrap();
        let lookup = |name: &str| match name {
            "HOME" => Some(home.path().into()),
            "CODEX_HOME" => Some("/elsewhere".into()),
            _ => None,
        };
        let config = from_lookup(&lookup).unwrap();
        let trees = roots(&config);
        let has = |path: PathBuf| trees.trees().iter().any(|tree| tree.path == path);
        assert!(has(home.path().join(".claude/projects")));
        assert!(has(home.path().join(".codex/sessions")));
        assert!(has("/elsewhere/archived_sessions".into()));
        assert!(has(home.path().join("more/sessions")));
    }

    #[test]
    fn a_folder_in_the_place_of_the_file_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".config/compactd/config.toml")).unwrap();
        let lookup = |name: &str| (name == "HOME").then(|| home.path().into());
        assert!(matches!(from_lookup(&lookup), Err(ConfigError::Unreadable { .. })));
    }
}
