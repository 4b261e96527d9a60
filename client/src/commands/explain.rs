//! `explain`: the pass that ran last and what one would do now; from the daemon, or in this process
//! when there is none.

use compactd_api::ErrorCode;
use compactd_api::passes::{LAST, Pass, really_ran};
use jiff::Timestamp;

use super::{compact, configuration, detail, print_body, print_explain, print_read};
use crate::cli::ExplainArgs;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::error::Error;
use crate::offline::{self, Extent};
use crate::render::passes::view;
use crate::terminal::Ui;

pub(super) fn run(args: &ExplainArgs, ui: &Ui) -> Result<(), Error> {
    let config = configuration(ui)?;
    match Daemon::find(&config.env) {
        Ok(daemon) => with_daemon(&daemon, args, ui),
        Err(error) if error.is_not_running() => without(&config, args, ui),
        Err(error) => Err(error),
    }
}

fn with_daemon(daemon: &Daemon, args: &ExplainArgs, ui: &Ui) -> Result<(), Error> {
    let id = resolve(daemon, &args.session)?;
    if let Some(number) = &args.pass {
        let pass = daemon.pass(&id, number)?.ok_or_else(|| no_pass(&id, number))?;
        return if args.decide.json {
            print_body(&pass.body, ui)
        } else {
            print_pass(&pass.value, args, ui)
        };
    }
    let pass = if args.now { None } else { last(daemon, &id)? };
    let profile = args.decide.profile.map(Into::into);
    let body = daemon.explain(&id, profile, args.decide.history.into())?;
    if args.decide.json {
        return if args.now { print_body(&body, ui) } else { print_both(&body, pass.as_ref(), ui) };
    }
    if let Some(pass) = &pass {
        print_pass(pass, args, ui)?;
        ui.print("\nnow: ")?;
    }
    print_explain(&daemon.parse_explain(&body)?, &args.decide, ui)
}

/// The newest pass that changed the context.
fn last(daemon: &Daemon, id: &str) -> Result<Option<Pass>, Error> {
    let list = daemon.passes(id)?;
    let ran = list.and_then(|list| list.passes.into_iter().find(really_ran));
    let Some(ran) = ran else { return Ok(None) };
    Ok(daemon.pass(id, &ran.number.to_string())?.map(|answer| answer.value))
}

fn without(config: &Config, args: &ExplainArgs, ui: &Ui) -> Result<(), Error> {
    let roots = crate::config::roots(config);
    let read = compact::session(config, &roots, &args.session, Extent::Whole, &args.decide, None)?;
    ui.note("no daemon is running: decided in this process");
    if args.now {
        return print_read(&read, &args.decide, ui);
    }
    let passes = offline::passes(&config.env, read.host(), &read.session, read.compactions());
    if let Some(number) = &args.pass {
        let wanted = |pass: &&Pass| number == LAST || pass.item.number.to_string() == *number;
        let pass = passes.iter().find(wanted).ok_or_else(|| no_pass(&read.session, number))?;
        return if args.decide.json { ui.print_json(pass) } else { print_pass(pass, args, ui) };
    }
    let pass = passes.iter().find(|pass| really_ran(&pass.item));
    if args.decide.json {
        let body = serde_json::to_vec(&read.explain()).map_err(std::io::Error::from)?;
        return print_both(&body, pass, ui);
    }
    if let Some(pass) = pass {
        print_pass(pass, args, ui)?;
        ui.print("\nnow: ")?;
    }
    print_read(&read, &args.decide, ui)
}

fn no_pass(session: &str, number: &str) -> Error {
    Error::NoPass { session: session.to_owned(), number: number.to_owned() }
}

fn print_pass(pass: &Pass, args: &ExplainArgs, ui: &Ui) -> Result<(), Error> {
    ui.print(&view(pass, detail(&args.decide), Timestamp::now(), ui))
}

/// The JSON of the present, with the pass behind it.
fn print_both(explain: &[u8], pass: Option<&Pass>, ui: &Ui) -> Result<(), Error> {
    let pass = serde_json::to_string(&pass).map_err(std::io::Error::from)?;
    let text = String::from_utf8_lossy(explain);
    let present = text.trim_end();
    let present = present.strip_suffix('}').unwrap_or(present);
    ui.print(&format!("{present},\"pass\":{pass}}}\n"))
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
