//! An interactive session of the host, in a tmux of its own.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::super::wait::PATIENCE;
use super::find::missing;
use super::setup::{Host, SessionId};

/// Between two looks at the screen.
const LOOK: Duration = Duration::from_millis(40);

/// A session on a screen. Dropping it ends the tmux server that holds it, and so the host.
pub struct Terminal {
    /// The session's id; of a new thread of Codex nothing, for the host chooses it.
    pub id: String,
    clean: Box<Clean>,
    tmux: PathBuf,
    socket: PathBuf,
}

/// Sets a command's environment and folder.
type Clean = dyn Fn(&mut Command) + Send + Sync;

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Where tmux is. Without it a test ends at once, with a line that says so.
#[must_use]
pub fn tmux() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("tmux"));
    let found = found.into_iter().find(|path| path.is_file());
    if found.is_none() {
        missing("tmux", "install it with the system's packages");
    }
    found
}

/// Lines break where the screen ends, so that white space says nothing.
fn squeezed(text: &str) -> String {
    text.chars().filter(|char| !char.is_whitespace() && *char != '\u{a0}').collect()
}

impl Terminal {
    pub(super) fn start(host: &Host, session: &SessionId) -> Option<Self> {
        let tmux = tmux()?;
        host.welcome();
        let (cleaner, id) = (host.clone(), session.text());
        let clean = Box::new(move |command: &mut Command| cleaner.clean(command));
        let arguments = host.arguments(session);
        let terminal = Self::open(tmux, host.home(), id, &host.binary, arguments, clean);
        terminal.wait_until("the prompt", |screen| {
            screen.contains('❯') && !screen.contains("to confirm")
        });
        Some(terminal)
    }

    /// A screen with a program on it. The session's id, as far as it is known, names the socket.
    pub(super) fn open(
        tmux: PathBuf,
        home: &Path,
        id: &str,
        program: &Path,
        program_arguments: Vec<OsString>,
        clean: Box<Clean>,
    ) -> Self {
        let socket = home.join(format!("{}.tmux", id.get(..8).unwrap_or("new")));
        let terminal = Self { id: id.to_owned(), clean, tmux, socket };
        let mut arguments: Vec<OsString> =
            ["new-session", "-d", "-s", "host", "-x", "150", "-y", "50", "--"]
                .map(Into::into)
                .into();
        arguments.push(program.into());
        arguments.extend(program_arguments);
        let started = terminal.tmux(&arguments);
        assert!(started.status.success(), "{started:?}");
        terminal
    }

    /// The server's environment, and so the host's, is the first command's.
    fn tmux<T: AsRef<OsStr>>(&self, arguments: &[T]) -> Output {
        let mut command = Command::new(&self.tmux);
        (self.clean)(&mut command);
        command
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// What is on the screen.
    #[must_use]
    pub fn screen(&self) -> String {
        let shown = self.tmux(&["capture-pane", "-p", "-J", "-t", "host"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    /// Everything that was on the screen.
    #[must_use]
    pub fn scrollback(&self) -> String {
        let shown = self.tmux(&["capture-pane", "-p", "-J", "-S", "-", "-t", "host"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    /// Whether the host still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.tmux(&["has-session", "-t", "host"]).status.success()
    }

    /// Looks at the screen until it is as wanted.
    ///
    /// # Panics
    /// It is not in time; the screen is told.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_it(&screen) {
                return screen;
            }
            let in_time = Instant::now() < deadline && self.is_alive();
            assert!(in_time, "not on the screen: {what}\n{screen}");
            thread::park_timeout(LOOK);
        }
    }

    /// Waits until this is on the screen, wherever its lines break.
    ///
    /// # Panics
    /// See [`Self::wait_until`].
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        let wanted = squeezed(text);
        self.wait_until(text, |screen| squeezed(screen).contains(&wanted))
    }

    /// Presses keys by tmux' names, such as `Escape` or `Up`.
    pub fn press(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys", "-t", "host"];
        arguments.extend(keys);
        assert!(self.tmux(&arguments).status.success(), "{keys:?}");
    }

    /// Types a line into the prompt and sends it off. The key comes when the line is there: what
    /// comes in one piece is a paste to the host.
    ///
    /// # Panics
    /// The line does not appear in time.
    #[track_caller]
    pub fn type_line(&self, line: &str) {
        let wanted = squeezed(line);
        let count = |screen: &str| squeezed(screen).matches(&wanted).count();
        let before = count(&self.screen());
        let typed = self.tmux(&["send-keys", "-t", "host", "-l", "--", line]);
        assert!(typed.status.success(), "{typed:?}");
        self.wait_until(line, |screen| count(screen) > before);
        self.press(&["Enter"]);
    }

    /// Waits for the host's end.
    ///
    /// # Panics
    /// It does not end in time.
    #[track_caller]
    pub fn wait_for_end(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.is_alive() {
            assert!(Instant::now() < deadline, "the host does not end\n{}", self.screen());
            thread::park_timeout(LOOK);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ended = self.tmux(&["kill-server"]);
    }
}
