//! `status`: whether a daemon runs and is well.

use compactd_api::PROTOCOL;
use compactd_api::sessions::Status;
use jiff::Timestamp;

use super::{Done, configuration, print_body};
use crate::cli::JsonArgs;
use crate::daemon::Daemon;
use crate::error::Error;
use crate::render::figures::{ago, bytes, number};
use crate::table::clean;
use crate::terminal::{Paint, Ui};

pub(super) fn run(args: &JsonArgs, ui: &Ui) -> Result<Done, Error> {
    let daemon = match Daemon::find(&configuration(ui)?.env) {
        Ok(daemon) => daemon,
        Err(error) if error.is_not_running() => {
            ui.complain(&error);
            return Ok(Done::NotRunning);
        }
        Err(error) => return Err(error),
    };
    let answer = daemon.status()?;
    if args.json {
        print_body(&answer.body, ui)?;
    } else {
        ui.print(&view(&answer.value, Timestamp::now(), ui))?;
    }
    let theirs = answer.value.protocol;
    if theirs > PROTOCOL {
        ui.warn(&format!("the daemon speaks protocol {theirs}, this compactctl speaks {PROTOCOL}"));
        ui.hint("update compactctl, or use the one that came with the daemon");
    }
    Ok(Done::Well)
}

fn view(status: &Status, now: Timestamp, ui: &Ui) -> String {
    let Status { version, protocol, pid, sessions, memory, watching, .. } = status;
    let health = if status.healthy {
        ui.paint(Paint::Green, "running")
    } else {
        ui.paint(Paint::Red, "running, not well")
    };
    let lines = [
        ("compactd", format!("{health}, version {}, protocol {protocol}", clean(version))),
        ("process", format!("{pid}, started {}", ago(&status.started_at, now))),
        ("socket", clean(&status.socket).into_owned()),
        (
            "sessions",
            format!(
                "{} known, {} indexed, {} waiting",
                number(sessions.known),
                number(sessions.indexed),
                number(sessions.bulk_queue)
            ),
        ),
        ("memory", format!("{} of {}", bytes(memory.index_bytes), bytes(memory.budget_bytes))),
        ("watching", format!("{} folders by {}", number(watching.dirs), watching.mode)),
    ];
    let mut text: String =
        lines.iter().map(|(name, value)| format!("{name:<9} {value}\n")).collect();
    for problem in &status.problems {
        text.push_str(&ui.paint(Paint::Yellow, "problem"));
        text.extend(["   ", &*clean(problem), "\n"]);
    }
    text
}
