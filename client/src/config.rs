//! The settings and folders, resolved as the daemon resolves them.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use compactd_api::convert;
use compactd_api::dirs::{Env, Os};
use compactd_api::settings::{Resolved, SettingsError, Sources, resolve};
use compactd_core::rules::Profile;
use compactd_core::settings::Settings;
use compactd_transcript::Roots;

/// What this process is told by environment and configuration file.
#[derive(Debug)]
pub struct Config {
    /// Folders and the socket's place.
    pub env: Env,
    /// The settings and where each came from.
    pub resolved: Resolved,
    claude_config_dir: Option<PathBuf>,
    codex_home: Option<PathBuf>,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there and cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What it says makes no sense.
    #[error(transparent)]
    Wrong(#[from] SettingsError),
}

impl ConfigError {
    /// A next step.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => {
                "make the file readable, or move it away to use the defaults"
            }
            Self::Wrong(SettingsError::UnknownKeys { .. }) => {
                "correct the file; without it `compactctl config show` lists all settings"
            }
            Self::Wrong(_) => "correct the file, or move it away to use the defaults",
        }
    }
}

impl Config {
    /// Reads environment and file of this process.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn read() -> Result<Self, ConfigError> {
        Self::from_lookup(&|name| std::env::var_os(name))
    }

    /// Reads what `lookup` gives for variables, and the file they lead to.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn from_lookup(lookup: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let env = Env::from_lookup(Os::current(), lookup);
        let path = env.config_file();
        let text = match path.as_ref().map(std::fs::read_to_string) {
            None => None,
            Some(Ok(text)) => Some(text),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => None,
            Some(Err(source)) => {
                return Err(ConfigError::Unreadable { path: path.unwrap_or_default(), source });
            }
        };
        let file = path.as_deref().zip(text.as_deref());
        let resolved = resolve(Sources { cli: &[], env: lookup, file })?;
        let folder = |name| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Ok(Self {
            env,
            resolved,
            claude_config_dir: folder("CLAUDE_CONFIG_DIR"),
            codex_home: folder("CODEX_HOME"),
        })
    }

    /// The folders in which transcripts are looked for: the hosts' own and the configured ones.
    #[must_use]
    pub fn roots(&self) -> Roots {
        let below_home = |name: &str| self.env.home.as_ref().map(|home| home.join(name));
        let more = |folders: &[String]| -> Vec<PathBuf> {
            folders.iter().filter_map(|folder| self.env.expand(folder)).collect()
        };
        let roots = &self.resolved.settings.roots;
        let claude = [below_home(".claude"), self.claude_config_dir.clone()].into_iter().flatten();
        let codex = [below_home(".codex"), self.codex_home.clone()].into_iter().flatten();
        Roots::new(claude.chain(more(&roots.claude)), codex.chain(more(&roots.codex)))
    }

    /// The numbers of the rules.
    #[must_use]
    pub fn rules(&self) -> Settings {
        convert::settings(&self.resolved.settings.rules)
    }

    /// The configured set of rules.
    #[must_use]
    pub fn profile(&self) -> Profile {
        convert::profile(self.resolved.settings.rules.profile).unwrap_or(Profile::Standard)
    }
}

#[cfg(test)]
mod tests {
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
        let config = Config::from_lookup(&lookup).unwrap();
        let trees = config.roots();
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
        assert!(matches!(Config::from_lookup(&lookup), Err(ConfigError::Unreadable { .. })));
    }
}
