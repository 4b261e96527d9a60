//! Where everything goes. Pure: only the variables decide.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use compactd_api::dirs::Env;

use super::error::InstallError;
use super::plugin::NAME;

/// The folder of everything that is installed, below `HOME`: the launcher of the plugins and the
/// units look there, so no variable moves it.
const DATA_BELOW_HOME: &str = ".local/share/compactd";

/// All places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// `HOME`.
    pub home: PathBuf,
    /// Programs and plugin.
    pub data: PathBuf,
    /// State, the install record in it.
    pub state: PathBuf,
    /// Snapshots.
    pub cache: PathBuf,
    /// The configuration file.
    pub config: PathBuf,
    /// The units of the user's service manager.
    pub units: PathBuf,
    /// Where Claude Code keeps its things.
    pub claude: ClaudeFolder,
}

/// Claude Code's own folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaudeFolder {
    /// The folder with `settings.json`.
    pub path: PathBuf,
    /// The file beside or in it with the host's own state.
    pub state_file: PathBuf,
    /// It was named by `CLAUDE_CONFIG_DIR`.
    pub is_named: bool,
}

impl ClaudeFolder {
    /// The folder that `CLAUDE_CONFIG_DIR` names, or the usual one.
    #[must_use]
    pub fn new(home: &Path, named: Option<PathBuf>) -> Self {
        match named {
            Some(path) => Self { state_file: path.join(".claude.json"), path, is_named: true },
            None => Self {
                path: home.join(".claude"),
                state_file: home.join(".claude.json"),
                is_named: false,
            },
        }
    }

    /// The settings of the user.
    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.path.join("settings.json")
    }

    /// The marketplaces that the host knows.
    #[must_use]
    pub fn marketplaces(&self) -> PathBuf {
        self.path.join("plugins/known_marketplaces.json")
    }

    /// The plugins that the host has.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.path.join("plugins/installed_plugins.json")
    }

    /// The host's copy of the plugin. It does not run it from there.
    #[must_use]
    pub fn copy(&self) -> PathBuf {
        self.path.join("plugins/cache/compactd")
    }

    /// Folders in which the host makes files of its own while it installs a plugin.
    #[must_use]
    pub fn litter(&self) -> [PathBuf; 2] {
        ["backups", "telemetry"].map(|name| self.path.join(name))
    }

    /// Every file that the host changes when a plugin comes or goes.
    #[must_use]
    pub fn files(&self) -> [PathBuf; 4] {
        [self.settings(), self.marketplaces(), self.plugins(), self.state_file.clone()]
    }

    /// Every folder that the host makes for a plugin, outer before inner.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        let below = ["plugins", "plugins/marketplaces", "plugins/cache", "plugins/data"];
        let below = below.map(|name| self.path.join(name));
        [self.path.clone()].into_iter().chain(below).chain(self.litter()).collect()
    }
}

impl Places {
    /// Takes the variables that matter from `env` and `lookup`.
    ///
    /// # Errors
    /// There is no home.
    pub fn new(env: &Env, lookup: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, InstallError> {
        let home = env.home.clone().ok_or(InstallError::NoHome)?;
        let state = env.state_dir().ok_or(InstallError::NoHome)?;
        let cache = env.cache_dir().ok_or(InstallError::NoHome)?;
        let base = env.config.clone().unwrap_or_else(|| home.join(".config"));
        // The host resolves a relative one against its own working directory: not ours to guess.
        let named =
            lookup("CLAUDE_CONFIG_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        Ok(Self {
            data: home.join(DATA_BELOW_HOME),
            state,
            cache,
            config: env.config_file().ok_or(InstallError::NoHome)?,
            units: base.join("systemd/user"),
            claude: ClaudeFolder::new(&home, named),
            home,
        })
    }

    /// The programs.
    #[must_use]
    pub fn bin(&self) -> PathBuf {
        self.data.join("bin")
    }

    /// The local marketplace of Claude Code.
    #[must_use]
    pub fn marketplace(&self) -> PathBuf {
        self.data.join("plugins/claude")
    }

    /// The plugin in it, as the host reads it.
    #[must_use]
    pub fn plugin(&self) -> PathBuf {
        self.marketplace().join(NAME)
    }

    /// The install record.
    #[must_use]
    pub fn record(&self) -> PathBuf {
        self.state.join("install.json")
    }

    /// The saved bytes of the files that were there before.
    #[must_use]
    pub fn saved(&self) -> PathBuf {
        self.state.join("install")
    }

    /// A path as a person writes it.
    #[must_use]
    pub fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Ok(below) => format!("~/{}", below.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use compactd_api::dirs::Os;

    use super::*;

    fn places(pairs: &[(&str, &str)]) -> Result<Places, InstallError> {
        let lookup = |name: &str| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        Places::new(&Env::from_lookup(Os::Linux, lookup), &lookup)
    }

    #[test]
    fn variables_move_what_they_may() {
        let plain = places(&[("HOME", "/h")]).unwrap();
        assert_eq!(plain.bin(), Path::new("/h/.local/share/compactd/bin"));
        assert_eq!(plain.record(), Path::new("/h/.local/state/compactd/install.json"));
        assert_eq!(plain.units, Path::new("/h/.config/systemd/user"));
        assert_eq!(plain.claude.settings(), Path::new("/h/.claude/settings.json"));
        assert_eq!(plain.claude.state_file, Path::new("/h/.claude.json"));
        assert_eq!(plain.shown(&plain.bin()), "~/.local/share/compactd/bin");
        let moved = places(&[
            ("HOME", "/h"),
            ("XDG_STATE_HOME", "/s"),
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_DATA_HOME", "/d"),
            ("CLAUDE_CONFIG_DIR", "/k"),
        ])
        .unwrap();
        assert_eq!(moved.bin(), plain.bin());
        assert_eq!(moved.record(), Path::new("/s/compactd/install.json"));
        assert_eq!(moved.units, Path::new("/c/systemd/user"));
        assert_eq!(moved.claude.state_file, Path::new("/k/.claude.json"));
        for odd in ["", "relative"] {
            let odd = places(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", odd)]).unwrap();
            assert_eq!(odd, plain);
        }
        assert!(matches!(places(&[("HOME", "h")]), Err(InstallError::NoHome)));
    }
}
