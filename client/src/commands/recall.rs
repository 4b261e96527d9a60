//! `recall`: a result that a compaction took away, byte for byte.

use compactd_api::ids::is_id;

use super::configuration;
use super::explain::resolve;
use crate::cli::RecallArgs;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::error::Error;
use crate::find;
use crate::recall::{self, Hit, Unrecalled};
use crate::terminal::Ui;

pub(super) fn run(args: &RecallArgs, ui: &Ui) -> Result<(), Error> {
    let config = configuration(ui)?;
    let hits = match Daemon::find(&config.env) {
        Ok(daemon) => {
            let hits = ask(&daemon, args)?;
            // What it has not in memory it cannot know; nor does it know every row.
            let is_enough = hits.iter().any(|hit| hit.search.is_done(args.call));
            if is_enough { hits } else { scan(&config, args, ui)? }
        }
        Err(error) if error.is_not_running() => scan(&config, args, ui)?,
        Err(error) => return Err(error),
    };
    let only = recall::one(&args.id, &hits, args.call)?;
    if args.call {
        return ui.print(&recall::input(only.call.as_deref().unwrap_or_default()));
    }
    let Some(original) = &only.original else {
        return Err(Unrecalled::OnlyNotes { id: args.id.clone() }.into());
    };
    if args.json {
        return ui.print(&original.raw);
    }
    if original.is_opaque && original.text.is_empty() {
        return Err(Unrecalled::NoText { id: args.id.clone() }.into());
    }
    if original.is_opaque {
        ui.note("it also holds parts that are no text: --json shows them");
    }
    if let Some(file) = recall::persisted(&original.text) {
        ui.hint(&format!("the model read a preview; the host kept the whole output in {file}"));
    }
    ui.print(&original.text)
}

/// Asks the daemon for the places, and reads them.
fn ask(daemon: &Daemon, args: &RecallArgs) -> Result<Vec<Hit>, Error> {
    if !is_id(&args.id) {
        return Ok(Vec::new());
    }
    let session = args.session.as_ref().map(|wanted| resolve(daemon, wanted)).transpose()?;
    match daemon.recall(&args.id, session.as_deref()) {
        Ok(places) => Ok(recall::read(&places)),
        // A daemon that does not have the route: the files are searched.
        Err(Error::Refused { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Searches the files of this machine, the newest first.
fn scan(config: &Config, args: &RecallArgs, ui: &Ui) -> Result<Vec<Hit>, Error> {
    let mut sessions = find::on_disk(&crate::config::roots(config));
    if let Some(wanted) = &args.session {
        let ids: Vec<&str> = sessions.iter().map(|session| session.id.as_str()).collect();
        let id = find::resolve(wanted, &ids)?.to_owned();
        sessions.retain(|session| session.id == id || session.parent.as_ref() == Some(&id));
    }
    let mut hits = Vec::new();
    for session in sessions {
        match recall::search(&session, &args.id) {
            Ok(hit) => hits.extend(hit),
            Err(compactd_transcript::Error::NotATranscript { .. }) => {}
            Err(error) => ui.warn(&error.to_string()),
        }
    }
    Ok(hits)
}
