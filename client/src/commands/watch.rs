//! `watch`: follows this machine's sessions and shows what a compaction would keep.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{Done, configuration};
use crate::cli::WatchArgs;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::error::Error;
use crate::find;
use crate::render::explain::{Detail, view};
use crate::sample;
use crate::start::OwnDaemon;
use crate::terminal::{Paint, Ui};

mod picture;

use picture::Picture;

/// How often the daemon is asked for what is new.
const POLL: Duration = Duration::from_secs(1);
/// How often it is asked whether it has read the recent sessions.
const READY_POLL: Duration = Duration::from_millis(50);
/// Then what is there is shown.
const READY: Duration = Duration::from_secs(10);
/// Results that go, shown of the newest session.
const SHOWN: usize = 15;

pub(super) fn run(args: &WatchArgs, ui: &Ui) -> Result<Done, Error> {
    let config = configuration(ui)?;
    let is_live = ui.is_live && !args.once;
    let known = find::on_disk(&crate::config::roots(&config)).len();
    let stop = signals()?;
    let (own, daemon) = match Daemon::find(&config.env) {
        Ok(daemon) => (None, daemon),
        Err(error) if error.is_not_running() => {
            if known == 0 && !is_live && args.session.is_none() {
                ui.print(&sample_view(&config, ui))?;
                return Ok(Done::Well);
            }
            let (own, daemon) = OwnDaemon::start(&config.env)?;
            (Some(own), daemon)
        }
        Err(error) => return Err(error),
    };
    let mut picture = Picture::new(daemon, config.env.home.clone(), own.is_some());
    let expected = if own.is_some() { known } else { 0 };
    if let Some(signal) = wait_until_read(picture.daemon(), expected, &stop)? {
        return Ok(Done::Signal(signal));
    }
    let wanted = match &args.session {
        Some(wanted) => Some(super::explain::resolve(picture.daemon(), wanted)?),
        None => None,
    };
    let mut shown = String::new();
    loop {
        let text = picture.draw(wanted.as_deref(), ui, if is_live { fit(ui) } else { SHOWN })?;
        let text = text.unwrap_or_else(|| sample_view(&config, ui));
        if !is_live {
            ui.print(&text)?;
            return Ok(Done::Well);
        }
        if text != shown {
            ui.print(&screen(&text, ui.height))?;
            shown = text;
        }
        if let Some(signal) = wait(&stop, POLL) {
            return Ok(Done::Signal(signal));
        }
    }
}

/// Hears of the signals that would end us, so that a daemon of our own is ended first.
fn signals() -> Result<Receiver<u8>, Error> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Error::Signals)?;
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if send.send(u8::try_from(signal).unwrap_or_default()).is_err() {
                return;
            }
        }
    });
    Ok(receive)
}

/// Waits; gives the signal that came meanwhile.
fn wait(stop: &Receiver<u8>, time: Duration) -> Option<u8> {
    stop.recv_timeout(time).ok()
}

/// Waits until the daemon has found what is on disk and read what is recent.
fn wait_until_read(
    daemon: &Daemon,
    expected: usize,
    stop: &Receiver<u8>,
) -> Result<Option<u8>, Error> {
    let deadline = Instant::now() + READY;
    while Instant::now() < deadline {
        let sessions = daemon.status()?.value.sessions;
        if sessions.bulk_queue == 0 && sessions.known >= expected as u64 {
            return Ok(None);
        }
        if let Some(signal) = wait(stop, READY_POLL) {
            return Ok(Some(signal));
        }
    }
    Ok(None)
}

fn sample_view(config: &Config, ui: &Ui) -> String {
    let read = sample::read(crate::config::rules(config), crate::config::profile(config));
    let head = "no session of Claude Code or Codex on this machine yet: this is a sample";
    let head = ui.paint(Paint::Yellow, head);
    format!("{head}\n\n{}", view(&read.explain(), Detail::Largest(SHOWN), ui))
}

/// Rows of a group that fit beside the rest of the view.
fn fit(ui: &Ui) -> usize {
    (ui.height.saturating_sub(picture::SESSIONS + 20) / 2).clamp(3, SHOWN)
}

/// Draws over what was drawn before.
fn screen(text: &str, height: usize) -> String {
    let mut drawn = String::from("\u{1b}[H");
    for line in text.lines().take(height.saturating_sub(1)) {
        drawn.extend([line, "\u{1b}[K\n"]);
    }
    drawn.push_str("\u{1b}[J");
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_is_not_higher_than_the_terminal() {
        let drawn = screen("a\nb\nc\nd\n", 3);
        assert_eq!(drawn, "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J");
    }
}
