//! `pins`, `pin` and `unpin`, through the daemon.

use compactd_api::sessions::{Pin, Pins};

use super::explain::resolve;
use super::{configuration, print_body};
use crate::cli::{PinArgs, PinsArgs};
use crate::daemon::{Answer, Daemon};
use crate::error::Error;
use crate::table::clean;
use crate::terminal::Ui;

pub(super) fn list(args: &PinsArgs, ui: &Ui) -> Result<(), Error> {
    let daemon = Daemon::find(&configuration(ui)?.env)?;
    let id = resolve(&daemon, &args.session)?;
    show(&daemon.pins("GET", &id, None)?, args.json, ui)
}

/// Sets (`POST`) or takes back (`DELETE`) a pin, and shows what is pinned then.
pub(super) fn change(method: &str, args: &PinArgs, ui: &Ui) -> Result<(), Error> {
    let daemon = Daemon::find(&configuration(ui)?.env)?;
    let id = resolve(&daemon, &args.session)?;
    let pin = args.what.pin();
    show(&daemon.pins(method, &id, Some(&pin))?, args.json, ui)
}

fn show(answer: &Answer<Pins>, json: bool, ui: &Ui) -> Result<(), Error> {
    if json {
        return print_body(&answer.body, ui);
    }
    if answer.value.pins.is_empty() {
        ui.note("nothing is pinned in this session");
    }
    let lines: Vec<String> = answer
        .value
        .pins
        .iter()
        .map(|pin| match pin {
            Pin::Id(id) => format!("result  {}\n", clean(id)),
            Pin::File(file) => format!("file    {}\n", clean(file)),
        })
        .collect();
    ui.print(&lines.concat())
}
