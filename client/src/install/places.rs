//! Where everything goes. Pure: only the variables decide.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use compactd_api::dirs::Env;

use super::error::InstallError;
use super::hosts::quoted;
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
    /// Where Codex keeps its things.
    pub codex: CodexFolder,
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

/// Codex's own folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodexFolder {
    /// The folder with `config.toml`.
    pub path: PathBuf,
    /// It was named by `CODEX_HOME`.
    pub is_named: bool,
}

impl CodexFolder {
    /// The folder that `CODEX_HOME` names, or the usual one.
    #[must_use]
    pub fn new(home: &Path, named: Option<PathBuf>) -> Self {
        let is_named = named.is_some();
        Self { path: named.unwrap_or_else(|| home.join(".codex")), is_named }
    }

    /// The configuration of the user.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// The host's copy of the plugin, in a folder named after its version. It is run from there.
    #[must_use]
    pub fn copy(&self) -> PathBuf {
        self.path.join("plugins/cache").join(NAME).join(NAME)
    }

    /// What the plugin may keep for itself.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.path.join("plugins/data").join(format!("{NAME}-{NAME}"))
    }

    /// Where the host keeps which bytes of plugins were approved.
    #[must_use]
    pub fn baselines(&self) -> PathBuf {
        self.path.join(".hook-trust")
    }

    /// Rollouts of the sessions.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.path.join("sessions")
    }

    /// Files that the host has locked for each thread it writes.
    #[must_use]
    pub fn locks(&self) -> PathBuf {
        self.path.join("thread-writer-locks")
    }

    /// Every folder that the host makes for a plugin, outer before inner.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        let marketplace = format!("plugins/cache/{NAME}");
        let below = [
            ".hook-trust",
            ".tmp",
            ".tmp/marketplaces",
            "plugins",
            "plugins/data",
            "plugins/cache",
            &marketplace,
            "tmp",
            "tmp/arg0-linux",
            "tmp/arg0-macos",
        ];
        let below = below.map(|name| self.path.join(name));
        [self.path.clone()].into_iter().chain(below).collect()
    }
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
        let named = |name| lookup(name).map(PathBuf::from).filter(|path| path.is_absolute());
        Ok(Self {
            data: home.join(DATA_BELOW_HOME),
            state,
            cache,
            config: env.config_file().ok_or(InstallError::NoHome)?,
            units: base.join("systemd/user"),
            claude: ClaudeFolder::new(&home, named("CLAUDE_CONFIG_DIR")),
            codex: CodexFolder::new(&home, named("CODEX_HOME")),
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

    /// The local marketplace of Codex.
    #[must_use]
    pub fn codex_marketplace(&self) -> PathBuf {
        self.data.join("plugins/codex")
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

    /// A path as a person types it to a shell, which knows a `~` only outside quotes.
    #[must_use]
    pub fn typed(&self, path: &Path) -> String {
        let shown = self.shown(path);
        match shown.strip_prefix("~/") {
            Some(below) => format!("~/{}", quoted(below)),
            None if shown == "~" => shown,
            None => quoted(&shown),
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
        for (path, typed) in [
            ("/h", "~"),
            ("/h/a b", "~/'a b'"),
            ("/x y", "'/x y'"),
            ("/h/c", "~/c"),
            ("/~", "'/~'"),
        ] {
            assert_eq!(plain.typed(Path::new(path)), typed);
        }
        let moved = places(&[
            ("HOME", "/h"),
            ("XDG_STATE_HOME", "/s"),
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_DATA_HOME", "/d"),
            ("CLAUDE_CONFIG_DIR", "/k"),
            ("CODEX_HOME", "/x"),
        ])
        .unwrap();
        assert_eq!(moved.bin(), plain.bin());
        assert_eq!(moved.record(), Path::new("/s/compactd/install.json"));
        assert_eq!(moved.units, Path::new("/c/systemd/user"));
        assert_eq!(moved.claude.state_file, Path::new("/k/.claude.json"));
        assert_eq!(plain.codex.config(), Path::new("/h/.codex/config.toml"));
        assert_eq!(moved.codex.config(), Path::new("/x/config.toml"));
        for odd in ["", "relative"] {
            let odd = [("HOME", "/h"), ("CLAUDE_CONFIG_DIR", odd), ("CODEX_HOME", odd)];
            let odd = places(&odd).unwrap();
            assert_eq!(odd, plain);
        }
        assert!(matches!(places(&[("HOME", "h")]), Err(InstallError::NoHome)));
    }
}
