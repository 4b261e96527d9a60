//! `focus`: what the host's own summary is asked to keep.

use compactd_api::sessions::Focus;

use super::compact;
use super::configuration;
use super::explain::resolve;
use crate::cli::{DecideArgs, FocusArgs, HistoryName};
use crate::daemon::Daemon;
use crate::error::Error;
use crate::offline::Extent;
use crate::terminal::Ui;

pub(super) fn run(args: &FocusArgs, ui: &Ui) -> Result<(), Error> {
    let config = configuration(ui)?;
    let focus = match Daemon::find(&config.env) {
        Ok(daemon) => daemon.focus(&resolve(&daemon, &args.session)?)?.value,
        Err(error) if error.is_not_running() => {
            let roots = crate::config::roots(&config);
            let decide = DecideArgs {
                profile: None,
                history: HistoryName::Context,
                json: args.json,
                all: false,
            };
            let read =
                compact::session(&config, &roots, &args.session, Extent::Whole, &decide, None)?;
            let max_chars = config.settings().focus.max_chars;
            Focus { focus: read.focus(usize::try_from(max_chars).unwrap_or(usize::MAX)) }
        }
        Err(error) => return Err(error),
    };
    if args.json {
        return ui.print_json(&focus);
    }
    match focus.focus {
        Some(text) => ui.print(&format!("{text}\n")),
        None => {
            ui.note("there is nothing to keep in this session yet");
            Ok(())
        }
    }
}
