//! Settings from the command line, the environment and the configuration file.

use std::path::{Path, PathBuf};

use compactd_api::dirs::{Env, Os};
use compactd_api::settings::{Resolved, Settings, Sources, resolve};

/// Everything that the daemon is told before it starts.
#[derive(Debug)]
pub struct Config {
    /// Folders and the socket's place.
    pub env: Env,
    /// The settings and where each came from.
    pub resolved: Resolved,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex_home: Option<PathBuf>,
}

/// A configuration that the daemon does not start with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file named on the command line, or the usual one, is there but cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its content is wrong.
    #[error(transparent)]
    Wrong(#[from] compactd_api::settings::SettingsError),
}

impl Config {
    /// Reads the configuration. `file` replaces the usual file; `cli` holds settings by name.
    ///
    /// # Errors
    /// The file cannot be read, is no TOML, or has keys that no setting has.
    pub fn read(file: Option<&Path>, cli: &[(String, String)]) -> Result<Self, ConfigError> {
        let lookup = |name: &str| std::env::var_os(name);
        let env = Env::from_lookup(Os::current(), lookup);
        let path = file.map(Path::to_path_buf).or_else(|| env.config_file());
        let text = match &path {
            None => None,
            Some(path) => match std::fs::read_to_string(path) {
                Ok(text) => Some(text),
                Err(error)
                    if error.kind() == std::io::ErrorKind::NotFound && file.is_none() =>
                {
                    None
                }
                Err(source) => {
                    return Err(ConfigError::Unreadable { path: path.clone(), source });
                }
            },
        };
        let file = path.as_deref().zip(text.as_deref());
        let resolved = resolve(Sources { cli, env: &lookup, file })?;
        let folder = |name| {
            lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        Ok(Self {
            env,
            resolved,
            claude_config_dir: folder("CLAUDE_CONFIG_DIR"),
            codex_home: folder("CODEX_HOME"),
        })
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.resolved.settings
    }

    /// The folders in which transcripts are looked for: the hosts' own and the configured ones.
    #[must_use]
    pub fn roots(&self) -> compactd_transcript::Roots {
        let below_home = |name: &str| self.env.home.as_ref().map(|home| home.join(name));
        let more = |folders: &[String]| -> Vec<PathBuf> {
            folders.iter().filter_map(|folder| self.env.expand(folder)).collect()
        };
        let roots = &self.settings().roots;
        let claude = [below_home(".claude"), self.claude_config_dir.clone()].into_iter().flatten();
        let codex = [below_home(".codex"), self.codex_home.clone()].into_iter().flatten();
        compactd_transcript::Roots::new(
            claude.chain(more(&roots.claude)),
            codex.chain(more(&roots.codex)),
        )
    }
}
