//! `sessions`: what the daemon knows, or what lies on disk when there is none.

use compactd_api::Host;
use compactd_api::sessions::{SessionItem, SessionList, SessionState};
use jiff::Timestamp;

use super::{configuration, print_body};
use crate::cli::SessionsArgs;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::error::Error;
use crate::find::{OnDisk, on_disk};
use crate::render::sessions::list;
use crate::terminal::Ui;

pub(super) fn run(args: &SessionsArgs, ui: &Ui) -> Result<(), Error> {
    let config = configuration(ui)?;
    let host = args.host.map(Host::from);
    let items = match Daemon::find(&config.env) {
        Ok(daemon) => {
            let answer = daemon.sessions(host, args.limit)?;
            if args.json {
                return print_body(&answer.body, ui);
            }
            answer.value.sessions
        }
        Err(error) if error.is_not_running() => {
            ui.note("no daemon is running: these are the files, unread");
            let items = from_disk(&config, host, args.limit);
            if args.json {
                return ui.print_json(&SessionList { sessions: items });
            }
            items
        }
        Err(error) => return Err(error),
    };
    if items.is_empty() {
        ui.note("no session of Claude Code or Codex on this machine yet");
        return Ok(());
    }
    ui.print(&list(&items, config.env.home.as_deref(), Timestamp::now(), ui))?;
    if u64::try_from(items.len()).is_ok_and(|shown| shown == args.limit) {
        ui.note("there may be more: `--limit 0` lists all");
    }
    Ok(())
}

fn from_disk(config: &Config, host: Option<Host>, limit: u64) -> Vec<SessionItem> {
    let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let items = on_disk(&crate::config::roots(config)).into_iter().map(item);
    items.filter(|item| host.is_none_or(|host| item.host == host)).take(limit).collect()
}

fn item(session: OnDisk) -> SessionItem {
    let modified = Timestamp::try_from(session.modified)
        .and_then(|time| time.round(jiff::Unit::Second))
        .unwrap_or(Timestamp::UNIX_EPOCH);
    SessionItem {
        agent: session.parent.is_some().then(|| session.id.clone()),
        id: session.id,
        host: session.host.into(),
        path: session.path.display().to_string(),
        cwd: None,
        size_bytes: session.size,
        indexed_bytes: 0,
        lines: 0,
        messages: 0,
        results: 0,
        updated_at: modified.to_string(),
        state: SessionState::Cold,
    }
}
