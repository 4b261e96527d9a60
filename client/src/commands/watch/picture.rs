//! What `watch` shows at one moment, asking the daemon only for what changed.

use std::collections::HashMap;
use std::path::PathBuf;

use compactd_api::History;
use compactd_api::sessions::{SessionItem, SessionState};
use jiff::Timestamp;

use crate::daemon::Daemon;
use crate::error::Error;
use crate::render::explain::{Detail, view};
use crate::render::figures::number;
use crate::render::sessions::{Watched, watched};
use crate::terminal::{Paint, Ui};

/// So many sessions are shown.
pub(super) const SESSIONS: usize = 10;

/// The state of a session's file; another one makes a fresh look necessary.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    updated_at: String,
    size_bytes: u64,
    indexed_bytes: u64,
    is_broken: bool,
    pins: Vec<u8>,
}

/// Everything that is shown, kept between two looks.
#[derive(Debug)]
pub(super) struct Picture {
    daemon: Daemon,
    home: Option<PathBuf>,
    is_own: bool,
    known: HashMap<String, (Stamp, Result<Vec<u8>, String>)>,
}

impl Picture {
    pub(super) fn new(daemon: Daemon, home: Option<PathBuf>, is_own: bool) -> Self {
        Self { daemon, home, is_own, known: HashMap::new() }
    }

    pub(super) fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// The view with one session in detail; `None` if there is no session.
    pub(super) fn draw(
        &mut self,
        wanted: Option<&str>,
        ui: &Ui,
        most: usize,
    ) -> Result<Option<String>, Error> {
        let all = self.daemon.sessions(None, 0)?.value.sessions;
        let is_shown = |item: &SessionItem| item.agent.is_none() || Some(&*item.id) == wanted;
        let (shown, agents): (Vec<SessionItem>, Vec<SessionItem>) =
            all.into_iter().partition(is_shown);
        let sessions = shown.len();
        let chosen = wanted.map(str::to_owned).or_else(|| Some(shown.first()?.id.clone()));
        let Some(chosen) = chosen else { return Ok(None) };
        let items = shown
            .into_iter()
            .enumerate()
            .filter(|(at, item)| *at < SESSIONS || item.id == chosen)
            .map(|(_, item)| item);
        let mut rows = Vec::new();
        for item in items {
            rows.push(self.look(item, &chosen)?);
        }
        self.known.retain(|id, _| rows.iter().any(|row| row.item.id == *id));
        let mut text = self.head(sessions, agents.len(), ui);
        text.push_str(&watched(&rows, self.home.as_deref(), Timestamp::now(), ui));
        text.push('\n');
        match self.known.get(&chosen) {
            Some((_, Ok(body))) => {
                text.push_str(&view(&self.daemon.parse_explain(body)?, Detail::Largest(most), ui));
            }
            Some((_, Err(why))) => text.extend([&*chosen, ": ", why, "\n"]),
            None => {}
        }
        Ok(Some(text))
    }

    fn look(&mut self, item: SessionItem, chosen: &str) -> Result<Watched, Error> {
        let is_chosen = item.id == chosen;
        let pins =
            if is_chosen { self.daemon.pins("GET", &item.id, None)?.body } else { Vec::new() };
        let stamp = Stamp {
            updated_at: item.updated_at.clone(),
            size_bytes: item.size_bytes,
            indexed_bytes: item.indexed_bytes,
            is_broken: item.state == SessionState::Broken,
            pins,
        };
        let fresh = self.known.get(&item.id).is_some_and(|(known, _)| *known == stamp);
        if !fresh {
            let body = match self.daemon.explain(&item.id, None, History::Context) {
                Ok(body) => Ok(body),
                // One session that cannot be read hides no other.
                Err(Error::Refused { message, .. }) => Err(message),
                Err(error) => return Err(error),
            };
            self.known.insert(item.id.clone(), (stamp, body));
        }
        let outcome = match self.known.get(&item.id) {
            Some((_, Ok(body))) => {
                let explain = self.daemon.parse_explain(body)?;
                Ok((explain.messages, explain.totals))
            }
            Some((_, Err(_))) | None => Err("unreadable".to_owned()),
        };
        Ok(Watched { item, outcome, is_chosen })
    }

    fn head(&self, sessions: usize, agents: usize, ui: &Ui) -> String {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let mut text = format!("{} session{}", number(sessions as u64), plural(sessions));
        if agents > 0 {
            text.push_str(&format_agents(agents, plural(agents)));
        }
        text.push_str(" on this machine");
        if self.is_own {
            text.push_str(", followed by a daemon that runs as long as this view");
        }
        if sessions > SESSIONS {
            text.push_str("; the newest are shown");
        }
        ui.paint(Paint::Bold, &text) + "\n\n"
    }
}

fn format_agents(agents: usize, plural: &str) -> String {
    format!(" and {} sub-agent{plural}", number(agents as u64))
}
