//! The part of the environment that says where files are, and our folders in it.

use std::ffi::OsString;
use std::path::PathBuf;

/// Our folder's name in each of the base folders.
const NAME: &str = "compactd";

/// What differs between systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Os {
    /// Linux, and everything like it.
    #[default]
    Linux,
    /// macOS: `~/Library`, and shorter socket paths.
    MacOs,
}

impl Os {
    /// The system that this was built for.
    #[must_use]
    pub const fn current() -> Self {
        if cfg!(target_os = "macos") { Self::MacOs } else { Self::Linux }
    }
}

/// The variables that decide where things are. Empty ones are unset; relative `HOME` and `XDG_*` are
/// ignored, as the XDG specification wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    /// The system.
    pub os: Os,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub config: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub state: Option<PathBuf>,
    /// `XDG_CACHE_HOME`.
    pub cache: Option<PathBuf>,
    /// `COMPACTD_SOCKET`, relative or not.
    pub socket: Option<PathBuf>,
}

impl Env {
    /// Takes the variables from `lookup`, in the programs `std::env::var_os`.
    pub fn from_lookup(os: Os, lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let absolute = |name| set(name).filter(|path| path.is_absolute());
        Self {
            os,
            home: absolute("HOME"),
            runtime: absolute("XDG_RUNTIME_DIR"),
            config: absolute("XDG_CONFIG_HOME"),
            state: absolute("XDG_STATE_HOME"),
            cache: absolute("XDG_CACHE_HOME"),
            socket: set("COMPACTD_SOCKET"),
        }
    }

    fn base(&self, xdg: Option<&PathBuf>, linux: &str, macos: &str) -> Option<PathBuf> {
        let below = match self.os {
            Os::Linux => linux,
            Os::MacOs => macos,
        };
        let base = xdg.cloned().or_else(|| Some(self.home.as_ref()?.join(below)))?;
        Some(base.join(NAME))
    }

    /// Where `config.toml` is.
    #[must_use]
    pub fn config_dir(&self) -> Option<PathBuf> {
        self.base(self.config.as_ref(), ".config", "Library/Application Support")
    }

    /// Ledger, pins, install record: what must not be lost.
    #[must_use]
    pub fn state_dir(&self) -> Option<PathBuf> {
        self.base(self.state.as_ref(), ".local/state", "Library/Application Support")
    }

    /// Index snapshots: what can be made again.
    #[must_use]
    pub fn cache_dir(&self) -> Option<PathBuf> {
        self.base(self.cache.as_ref(), ".cache", "Library/Caches")
    }

    /// The configuration file.
    #[must_use]
    pub fn config_file(&self) -> Option<PathBuf> {
        Some(self.config_dir()?.join("config.toml"))
    }

    /// What `compactctl install` did.
    #[must_use]
    pub fn install_record(&self) -> Option<PathBuf> {
        Some(self.state_dir()?.join("install.json"))
    }

    /// Resolves a leading `~`; `None` if that needs a home that is not set, or the path is relative.
    #[must_use]
    pub fn expand(&self, path: &str) -> Option<PathBuf> {
        let path = match path.strip_prefix('~') {
            Some("") => self.home.clone()?,
            Some(rest) => self.home.as_ref()?.join(rest.strip_prefix('/')?.trim_start_matches('/')),
            None => PathBuf::from(path),
        };
        path.is_absolute().then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(os: Os, pairs: &[(&str, &str)]) -> Env {
        Env::from_lookup(os, |name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    fn path(text: &str) -> Option<PathBuf> {
        Some(PathBuf::from(text))
    }

    #[test]
    fn empty_and_relative_are_unset() {
        let env = env(
            Os::Linux,
            &[
                ("HOME", "home"),
                ("XDG_RUNTIME_DIR", ""),
                ("XDG_CONFIG_HOME", "x/y"),
                ("XDG_STATE_HOME", "./s"),
            ],
        );
        assert_eq!(env, Env::default());
        assert_eq!((env.config_dir(), env.state_dir(), env.cache_dir()), (None, None, None));
    }

    #[test]
    fn folders() {
        let home = env(Os::Linux, &[("HOME", "/h")]);
        assert_eq!(home.config_file(), path("/h/.config/compactd/config.toml"));
        assert_eq!(home.state_dir(), path("/h/.local/state/compactd"));
        assert_eq!(home.cache_dir(), path("/h/.cache/compactd"));
        let xdg = [
            ("HOME", "/h"),
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_STATE_HOME", "/s"),
            ("XDG_CACHE_HOME", "/k"),
        ];
        for os in [Os::Linux, Os::MacOs] {
            let xdg = env(os, &xdg);
            assert_eq!(xdg.config_dir(), path("/c/compactd"));
            assert_eq!(xdg.state_dir(), path("/s/compactd"));
            assert_eq!(xdg.cache_dir(), path("/k/compactd"));
        }
        let mac = env(Os::MacOs, &[("HOME", "/h")]);
        assert_eq!(mac.config_dir(), path("/h/Library/Application Support/compactd"));
        assert_eq!(mac.state_dir(), path("/h/Library/Application Support/compactd"));
        assert_eq!(mac.cache_dir(), path("/h/Library/Caches/compactd"));
    }

    #[test]
    fn tilde() {
        let home = env(Os::Linux, &[("HOME", "/h")]);
        assert_eq!(home.expand("~"), path("/h"));
        assert_eq!(home.expand("~/a"), path("/h/a"));
        assert_eq!(home.expand("~//etc"), path("/h/etc"));
        assert_eq!(home.expand("/a"), path("/a"));
        assert_eq!(home.expand("~other/a"), None);
        assert_eq!(home.expand("a/b"), None);
        assert_eq!(Env::default().expand("~/a"), None);
    }
}
