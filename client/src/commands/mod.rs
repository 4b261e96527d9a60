//! The commands, one a file: each asks, decides or resolves, and prints.

mod compact;
mod completions;
mod config;
mod doctor;
mod explain;
mod focus;
mod fork;
mod forks;
mod install;
mod pins;
mod recall;
mod sessions;
mod stats;
mod status;
mod version;
mod watch;

use crate::cli::{Arguments, Command, ConfigCommand, DecideArgs};
use crate::config::Config;
use crate::error::Error;
use crate::offline::Read;
use crate::render::explain::{Detail, view};
use crate::terminal::Ui;
use compactd_api::sessions::Explain;

/// So many of the results that go are shown where not all are wanted.
const SHOWN: usize = 15;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// As it should.
    Well,
    /// No daemon is running, which was the question.
    NotRunning,
    /// A check found something, which was the question.
    Found,
    /// A signal ended it.
    Signal(u8),
}

impl Done {
    /// The exit status that says so.
    #[must_use]
    pub fn status(self) -> u8 {
        match self {
            Self::Well => 0,
            Self::Found => 1,
            Self::NotRunning => 3,
            Self::Signal(number) => number.saturating_add(128),
        }
    }
}

/// Runs one command.
///
/// # Errors
/// It failed; nothing was changed then.
pub fn run(arguments: &Arguments, ui: &Ui) -> Result<Done, Error> {
    match &arguments.command {
        Command::Watch(args) => return watch::run(args, ui),
        Command::Status(args) => return status::run(args, ui),
        Command::Sessions(args) => sessions::run(args, ui)?,
        Command::Stats(args) => stats::run(args, ui)?,
        Command::Explain(args) => explain::run(args, ui)?,
        Command::Recall(args) => recall::run(args, ui)?,
        Command::Focus(args) => focus::run(args, ui)?,
        Command::Fork(args) => fork::run(args, ui)?,
        Command::Forks(args) => forks::run(args, ui)?,
        Command::Compact(args) => compact::run(args, ui)?,
        Command::Pins(args) => pins::list(args, ui)?,
        Command::Pin(args) => pins::change("POST", args, ui)?,
        Command::Unpin(args) => pins::change("DELETE", args, ui)?,
        Command::Config(ConfigCommand::Show { origin, json }) => config::show(*origin, *json, ui)?,
        Command::Install(args) => return install::run(args, ui),
        Command::Uninstall(args) => return install::undo(args, ui),
        Command::Doctor(args) => return doctor::run(args, ui),
        Command::Completions { shell } => completions::run(*shell, ui)?,
        Command::Version(args) => version::run(args, ui)?,
    }
    Ok(Done::Well)
}

/// The configuration, with its warnings said.
fn configuration(ui: &Ui) -> Result<Config, Error> {
    let config = crate::config::read()?;
    for warning in &config.resolved.warnings {
        ui.warn(&warning.to_string());
    }
    Ok(config)
}

/// A JSON answer of the daemon, as it came.
fn print_body(body: &[u8], ui: &Ui) -> Result<(), Error> {
    let text = String::from_utf8_lossy(body);
    ui.print(&format!("{}\n", text.trim_end()))
}

fn detail(decide: &DecideArgs) -> Detail {
    if decide.all { Detail::All } else { Detail::Largest(SHOWN) }
}

fn print_explain(explain: &Explain<'_>, decide: &DecideArgs, ui: &Ui) -> Result<(), Error> {
    if decide.json { ui.print_json(explain) } else { ui.print(&view(explain, detail(decide), ui)) }
}

fn print_read(read: &Read, decide: &DecideArgs, ui: &Ui) -> Result<(), Error> {
    if let Some(gap) = &read.gap {
        ui.warn(&gap.to_string());
        ui.hint(gap.hint());
    }
    print_explain(&read.explain(), decide, ui)
}
