//! The hosts by name: what people and commands call them, and where their programs are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::error::InstallError;
use super::run;

/// A host that the plugin can be installed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

impl Which {
    /// As people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
        }
    }

    /// Its program.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// A command as a person would type it.
    #[must_use]
    pub fn typed(self, args: &[String]) -> String {
        format!("{} {}", self.program(), args.join(" "))
    }

    /// The program that a person named, or the first one in `PATH` and the usual places.
    ///
    /// # Errors
    /// What was named is no program.
    pub fn find(
        self,
        named: Option<&Path>,
        path: Option<&OsStr>,
        usual: &[PathBuf],
    ) -> Result<Option<PathBuf>, InstallError> {
        let Some(named) = named else { return Ok(run::find(self.program(), path, usual)) };
        let absolute = std::path::absolute(named).unwrap_or_else(|_| named.to_path_buf());
        if run::is_program(&absolute) {
            return Ok(Some(absolute));
        }
        Err(InstallError::NoHost { host: self, path: absolute })
    }
}
