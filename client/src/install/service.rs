//! The daemon as a service of the user's systemd, where there is one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::error::InstallError;
use super::run;

const SOCKET: &str = "compactd.socket";
const SERVICE: &str = "compactd.service";

/// The units: name and content. Both start the program at its installed place (`%h/…`).
pub const UNITS: [(&str, &[u8]); 2] = [
    (SOCKET, include_bytes!("../../../systemd/compactd.socket")),
    (SERVICE, include_bytes!("../../../systemd/compactd.service")),
];

/// What asking whether there is a manager may take.
const ASK: Duration = Duration::from_secs(10);

/// The service manager of this user.
#[derive(Debug, Clone)]
pub struct Manager {
    program: PathBuf,
}

impl Manager {
    /// The manager, or why there is none to use.
    ///
    /// # Errors
    /// A reason, for people.
    pub fn find(home: &Path, path: Option<&OsStr>) -> Result<Self, String> {
        let program = run::find("systemctl", path, &[])
            .ok_or_else(|| "there is no systemd on this machine".to_owned())?;
        let found = Self { program };
        let mut ask = found.command(&["show-environment"]);
        let ran = run::run(&mut ask, ASK).map_err(|error| format!("systemctl: {error}"))?;
        if !ran.status.is_some_and(|status| status.success()) {
            return Err("no systemd user manager answers".to_owned());
        }
        // `%h` in the units is the manager's home.
        let theirs = ran.out.lines().find_map(|line| line.strip_prefix("HOME="));
        match theirs {
            Some(theirs) if Path::new(theirs) != home => {
                Err(format!("the systemd user manager runs for another home, {theirs}"))
            }
            _ => Ok(found),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--user").args(args);
        command
    }

    fn must(&self, args: &[&str]) -> Result<(), InstallError> {
        run::must(&mut self.command(args), &shown(args)).map(|_| ())
    }

    /// Makes the units known and starts them, now and at each login.
    ///
    /// # Errors
    /// The manager refuses.
    pub fn enable(&self) -> Result<(), InstallError> {
        ENABLE.iter().try_for_each(|args| self.must(args))
    }

    /// Makes changed units known and starts the new program.
    ///
    /// # Errors
    /// The manager refuses.
    pub fn restart(&self) -> Result<(), InstallError> {
        RESTART.iter().try_for_each(|args| self.must(args))
    }

    /// Stops the units and takes them out of the logins to come.
    ///
    /// # Errors
    /// The manager refuses.
    pub fn disable(&self) -> Result<(), InstallError> {
        self.must(DISABLE)
    }

    /// Makes it known that the units are gone.
    ///
    /// # Errors
    /// The manager refuses.
    pub fn forget(&self) -> Result<(), InstallError> {
        self.must(RELOAD)
    }

    /// Whether the manager starts this unit by itself.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        let ran = run::run(&mut self.command(&["is-enabled", SOCKET]), ASK);
        ran.is_ok_and(|ran| ran.status.is_some_and(|status| status.success()))
    }
}

const RELOAD: &[&str] = &["daemon-reload"];
/// Commands that make the units known and start them.
pub const ENABLE: [&[&str]; 2] = [RELOAD, &["enable", "--now", SOCKET, SERVICE]];
/// Commands that start a new program.
pub const RESTART: [&[&str]; 2] = [RELOAD, &["restart", SERVICE]];
/// The command that stops the units and takes them out of the logins.
pub const DISABLE: &[&str] = &["disable", "--now", SERVICE, SOCKET];

/// A command as a person would type it.
#[must_use]
pub fn shown(args: &[&str]) -> String {
    format!("systemctl --user {}", args.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_start_the_installed_program() {
        let (_, service) = UNITS[1];
        let service = std::str::from_utf8(service).unwrap();
        assert!(service.contains("\nExecStart=%h/.local/share/compactd/bin/compactd\n"));
    }

    #[test]
    fn without_a_program_there_is_no_manager() {
        let error = Manager::find(Path::new("/h"), Some(OsStr::new("/nowhere"))).unwrap_err();
        assert_eq!(error, "there is no systemd on this machine");
    }
}
