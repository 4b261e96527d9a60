//! The hosts by name: what people and commands call them, and where their programs are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::error::InstallError;
use super::run;

/// A word as a shell takes it: in quotes where it needs them.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./@:=+,%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

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
        let args: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_what_was_quoted() {
        for word in ["/a/b-c_d.e", "a b", "it's", "$HOME `x` \"y\"", "~", "", "é;&|*?[]\\!#"] {
            let script = format!("printf %s {}", quoted(word));
            let said = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), word, "{script}");
        }
        assert_eq!(quoted("/a/b@c"), "/a/b@c");
    }
}
