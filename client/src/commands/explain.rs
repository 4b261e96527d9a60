//! `explain`: asks the daemon, or decides in this process when there is none.

use compactd_api::ErrorCode;

use super::{compact, configuration, print_body, print_explain, print_read};
use crate::cli::ExplainArgs;
use crate::daemon::Daemon;
use crate::error::Error;
use crate::offline::Extent;
use crate::terminal::Ui;

pub(super) fn run(args: &ExplainArgs, ui: &Ui) -> Result<(), Error> {
    let config = configuration(ui)?;
    let daemon = match Daemon::find(&config.env) {
        Ok(daemon) => daemon,
        Err(error) if error.is_not_running() => {
            let roots = crate::config::roots(&config);
            let read = compact::session(
                &config,
                &roots,
                &args.session,
                Extent::Whole,
                &args.decide,
                None,
            )?;
            ui.note("no daemon is running: decided in this process");
            return print_read(&read, &args.decide, ui);
        }
        Err(error) => return Err(error),
    };
    let body = ask(&daemon, args)?;
    if args.decide.json {
        return print_body(&body, ui);
    }
    print_explain(&daemon.parse_explain(&body)?, &args.decide, ui)
}

/// Asks for the session as it was named, and if that is no whole id, for the one that it leads to.
fn ask(daemon: &Daemon, args: &ExplainArgs) -> Result<Vec<u8>, Error> {
    let profile = args.decide.profile.map(Into::into);
    let id = resolve(daemon, &args.session)?;
    daemon.explain(&id, profile, args.decide.history.into())
}

/// The whole id of a session that the daemon knows.
pub(super) fn resolve(daemon: &Daemon, wanted: &str) -> Result<String, Error> {
    match daemon.knows(wanted) {
        Ok(()) => Ok(wanted.to_owned()),
        Err(Error::Refused { code: ErrorCode::SessionUnknown | ErrorCode::InvalidId, .. }) => {
            daemon.resolve(wanted)
        }
        Err(error) => Err(error),
    }
}
