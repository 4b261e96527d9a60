//! What environment, configuration file and command line tell a program of ours, put together the
//! same way for daemon and client. Reading the file is the caller's part: it is passed in.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::dirs::{Env, Os};
use crate::settings::{Resolved, Settings, SettingsError, Sources, resolve};

/// Everything that a program is told before it starts.
#[derive(Debug)]
pub struct Config {
    /// Folders and the socket's place.
    pub env: Env,
    /// The settings and where each came from.
    pub resolved: Resolved,
    claude_config_dir: Option<PathBuf>,
    installed: Installed,
    codex_home: Option<PathBuf>,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there and cannot be read, or was named and is not there.
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

/// Where the parts of a configuration come from.
pub struct Lookups<'a> {
    /// Gives an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Reads a file.
    pub file: &'a dyn Fn(&Path) -> io::Result<String>,
}

impl Config {
    /// Puts everything together. `named` replaces the usual file and must exist; `cli` holds
    /// settings by name.
    ///
    /// # Errors
    /// The file cannot be read, is no TOML, or has keys that no setting has.
    pub fn read(
        lookups: &Lookups<'_>,
        named: Option<&Path>,
        cli: &[(String, String)],
    ) -> Result<Self, ConfigError> {
        let env = Env::from_lookup(Os::current(), lookups.variable);
        let path = named.map(Path::to_path_buf).or_else(|| env.config_file());
        let text = match path.as_deref().map(lookups.file) {
            None => None,
            Some(Ok(text)) => Some(text),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound && named.is_none() => None,
            Some(Err(source)) => {
                return Err(ConfigError::Unreadable { path: path.unwrap_or_default(), source });
            }
        };
        let file = path.as_deref().zip(text.as_deref());
        let resolved = resolve(Sources { cli, env: lookups.variable, file })?;
        // A service and a host do not share their variables: the installation says where it went.
        let record = env.install_record().map(|path| (lookups.file)(&path));
        let installed = record.and_then(Result::ok).map(|text| installed(&text));
        let installed = installed.unwrap_or_default();
        let folder =
            |name| (lookups.variable)(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Ok(Self {
            env,
            resolved,
            claude_config_dir: folder("CLAUDE_CONFIG_DIR"),
            installed,
            codex_home: folder("CODEX_HOME"),
        })
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.resolved.settings
    }

    /// Claude Code's configuration folders: its own, `CLAUDE_CONFIG_DIR`, those that the plugin was
    /// installed into, the configured ones.
    #[must_use]
    pub fn claude_folders(&self) -> Vec<PathBuf> {
        let own = self.claude_config_dir.iter().chain(&self.installed.claude);
        self.folders(".claude", own, &self.settings().roots.claude)
    }

    /// Codex homes: its own, `CODEX_HOME`, those that the plugin was installed into, the configured
    /// ones.
    #[must_use]
    pub fn codex_folders(&self) -> Vec<PathBuf> {
        let own = self.codex_home.iter().chain(&self.installed.codex);
        self.folders(".codex", own, &self.settings().roots.codex)
    }

    /// The home that Codex uses when it is started from here: `CODEX_HOME`, else `~/.codex`.
    #[must_use]
    pub fn codex_home(&self) -> Option<PathBuf> {
        let usual = || self.env.home.as_ref().map(|home| home.join(".codex"));
        self.codex_home.clone().or_else(usual)
    }

    fn folders<'a>(
        &self,
        name: &str,
        own: impl Iterator<Item = &'a PathBuf>,
        more: &[String],
    ) -> Vec<PathBuf> {
        let usual = self.env.home.as_ref().map(|home| home.join(name));
        let more = more.iter().filter_map(|folder| self.env.expand(folder));
        usual.into_iter().chain(own.cloned()).chain(more).collect()
    }
}

/// The folders named by `CLAUDE_CONFIG_DIR` and `CODEX_HOME` that an install record tells of.
#[derive(Debug, Clone, Default)]
struct Installed {
    claude: Vec<PathBuf>,
    codex: Vec<PathBuf>,
}

/// Reads an install record; one that makes no sense tells of nothing.
fn installed(record: &str) -> Installed {
    #[derive(Default, serde::Deserialize)]
    struct Record {
        hosts: Vec<Host>,
        #[serde(default)]
        codex: Vec<Host>,
    }
    #[derive(serde::Deserialize)]
    struct Host {
        folder: PathBuf,
        is_named: bool,
    }
    let Record { hosts, codex } = serde_json::from_str(record).unwrap_or_default();
    let named = |hosts: Vec<Host>| {
        let named = hosts.into_iter().filter(|host| host.is_named && host.folder.is_absolute());
        named.map(|host| host.folder).collect()
    };
    Installed { claude: named(hosts), codex: named(codex) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_an_installation_is_followed() {
        let record = r#"{"format":1,"hosts":[{"folder":"/h/.claude","is_named":false},
            {"folder":"/k","is_named":true},{"folder":"k","is_named":true}],
            "codex":[{"folder":"/h/.codex","is_named":false},{"folder":"/x","is_named":true}]}"#;
        let read = |text: &str| {
            let file = |path: &Path| match path.to_str() {
                Some("/h/.local/state/compactd/install.json") => Ok(text.to_owned()),
                _ => Err(io::ErrorKind::NotFound.into()),
            };
            let variable = |name: &str| (name == "HOME").then(|| "/h".into());
            let lookups = Lookups { variable: &variable, file: &file };
            Config::read(&lookups, None, &[]).unwrap()
        };
        let folders = |text: &str| read(text).claude_folders();
        assert_eq!(read(record).codex_folders(), [PathBuf::from("/h/.codex"), "/x".into()]);
        assert_eq!(folders(record), [PathBuf::from("/h/.claude"), "/k".into()]);
        for odd in ["", "{", "[]", r#"{"hosts":[{"folder":7}]}"#] {
            assert_eq!(folders(odd), [PathBuf::from("/h/.claude")], "{odd}");
        }
    }
}
