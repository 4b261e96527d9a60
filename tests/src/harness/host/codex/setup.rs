//! Codex in a home: its configuration, and how it is started.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::super::home::Home;
use super::super::terminal::{Terminal, tmux};
use super::api::{Recorder, Responses};
use super::app_server::AppServer;
use super::exec::{Exec, Run};
use super::rollout;

/// No key: nothing but the mock API ever sees it.
const KEY: &str = "sk-mock-key-for-127-0-0-1-only";

/// A model that calls its tools directly.
pub const DIRECT: &str = "gpt-5.5";
/// A model whose only tool is `exec`, which runs JavaScript.
pub const CODE_MODE: &str = "gpt-6.2-sol";

/// What `config.toml` says when a home is set up.
#[derive(Debug, Clone)]
pub struct Config {
    model: String,
    provider: String,
    settings: String,
    tables: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: DIRECT.to_owned(),
            provider: "mock".to_owned(),
            settings: String::new(),
            tables: String::new(),
        }
    }
}

impl Config {
    /// Another model, such as [`CODE_MODE`].
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        model.clone_into(&mut self.model);
        self
    }

    /// Another name of the provider. With `OpenAI` the host lets the API compact, and what is left
    /// is sealed; with any other it asks for a summary itself.
    #[must_use]
    pub fn provider(mut self, name: &str) -> Self {
        name.clone_into(&mut self.provider);
        self
    }

    /// One more line before all tables, such as `key = "value"`.
    #[must_use]
    pub fn set(mut self, line: &str) -> Self {
        writeln!(self.settings, "{line}").unwrap();
        self
    }

    /// More at the end: whole tables.
    #[must_use]
    pub fn tables(mut self, text: &str) -> Self {
        writeln!(self.tables, "{text}").unwrap();
        self
    }

    fn text(&self, url: &str, work: &Path) -> String {
        let Self { model, provider, settings, tables } = self;
        format!(
            r#"model = "{model}"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
{settings}
[model_providers.mock]
name = "{provider}"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false

[analytics]
enabled = false

[projects."{}"]
trust_level = "trusted"

# On a screen the host asks else whether to change to a newer model.
[notice.model_migrations]
"{DIRECT}" = "gpt-6-sol"

{tables}"#,
            work.display()
        )
    }
}

/// A host that can be started in a home, against an API. The `with_…` functions change how.
#[derive(Debug, Clone)]
pub struct Codex {
    pub(super) binary: PathBuf,
    pub(super) api: Recorder,
    home: PathBuf,
    work: PathBuf,
    arguments: Vec<OsString>,
    env: Vec<(String, OsString)>,
}

impl Codex {
    /// Sets a home up for the direct model and a local compaction.
    #[must_use]
    pub fn new(binary: &Path, home: &Home, api: &Responses) -> Self {
        Self::set_up(binary, home, api, &Config::default())
    }

    /// Sets a home up: writes its `config.toml`.
    #[must_use]
    pub fn set_up(binary: &Path, home: &Home, api: &Responses, config: &Config) -> Self {
        let work = home.work();
        let home = work.parent().unwrap().to_path_buf();
        fs::create_dir_all(home.join(".codex")).unwrap();
        fs::create_dir_all(home.join("tmp")).unwrap();
        fs::write(home.join(".codex/config.toml"), config.text(api.url(), &work)).unwrap();
        Self {
            binary: binary.to_path_buf(),
            api: api.recorder(),
            home,
            work,
            arguments: Vec::new(),
            env: Vec::new(),
        }
    }

    /// With more arguments for the host, before those of its command: `["-c", "key=value"]`.
    #[must_use]
    pub fn with<T: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|text| text.as_ref().to_owned()));
        self
    }

    /// With one more line of configuration for its processes alone.
    #[must_use]
    pub fn with_setting(self, line: &str) -> Self {
        self.with(["-c", line])
    }

    /// Compacts by itself from this many tokens on.
    #[must_use]
    pub fn compacting_at(self, tokens: u64) -> Self {
        self.with_setting(&format!("model_auto_compact_token_limit={tokens}"))
    }

    /// With one more variable, or another value of one.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// The folder in which it works.
    #[must_use]
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// The home, as the host sees it.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Its own folder in the home.
    #[must_use]
    pub fn codex_home(&self) -> PathBuf {
        self.home.join(".codex")
    }

    /// The API that it talks to.
    #[must_use]
    pub fn api(&self) -> &Recorder {
        &self.api
    }

    /// Puts a file into the working folder and gives its whole path.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Clears a command's environment but for `PATH` and what the host needs, and its working
    /// folder is set.
    fn clean(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("TMPDIR", self.home.join("tmp"))
            .env("MOCK_KEY", KEY)
            .env("NO_PROXY", "127.0.0.1,localhost")
            .envs([("USER", "dev"), ("SHELL", "/bin/bash"), ("LANG", "C.UTF-8")])
            .env("TERM", "xterm-256color")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.work);
    }

    /// The host with arguments of the test's own, such as `plugin list`, in an environment that has
    /// nothing of ours but `PATH`, and in a process group of its own.
    #[must_use]
    pub fn command<T: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = T>) -> Command {
        let mut command = Command::new(&self.binary);
        self.clean(&mut command);
        command.process_group(0).args(arguments);
        command
    }

    /// `codex exec` with these arguments and the host's own.
    fn exec_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(["exec", "--json", "--skip-git-repo-check"]);
        command.args(&self.arguments).args(arguments);
        command
    }

    /// `codex app-server`.
    pub(super) fn server_command(&self) -> Command {
        let mut command = self.command(["app-server"]);
        command.args(&self.arguments);
        command
    }

    /// Starts a new thread with a prompt.
    #[must_use]
    pub fn start(&self, prompt: &str) -> Exec {
        Exec::start(self, self.exec_command(&[prompt]))
    }

    /// A new thread with one turn, to its end, which may be bad.
    #[track_caller]
    pub fn exec(&self, prompt: &str) -> Run {
        self.start(prompt).finish()
    }

    /// Goes on with a thread for one turn.
    #[track_caller]
    pub fn resume(&self, thread: &str, prompt: &str) -> Run {
        Exec::start(self, self.exec_command(&["resume", thread, prompt])).finish()
    }

    /// A native fork of a thread, with one turn.
    #[track_caller]
    pub fn fork(&self, thread: &str, prompt: &str) -> Run {
        Exec::start(self, self.exec_command(&["fork", thread, prompt])).finish()
    }

    /// Starts a new thread in a terminal; nothing without tmux.
    #[must_use]
    pub fn terminal(&self) -> Option<Terminal> {
        self.open("", &[])
    }

    /// Goes on with a thread in a terminal; nothing without tmux.
    #[must_use]
    pub fn terminal_resumed(&self, thread: &str) -> Option<Terminal> {
        self.open(thread, &["resume", thread])
    }

    fn open(&self, thread: &str, command: &[&str]) -> Option<Terminal> {
        let tmux = tmux()?;
        let cleaner = self.clone();
        let clean = Box::new(move |command: &mut Command| cleaner.clean(command));
        // Inline, all that was said is in the scrollback. Else the host puts a copy of itself into
        // its home and starts a server from it, which stays when the terminal has ended.
        let own = ["--no-alt-screen", "--disable", "daemon_auto_start"];
        let mut arguments: Vec<OsString> = own.map(Into::into).into();
        arguments.extend(self.arguments.iter().cloned());
        arguments.extend(command.iter().map(Into::into));
        let terminal = Terminal::open(tmux, &self.home, thread, &self.binary, arguments, clean);
        terminal.wait_until("the prompt", |screen| screen.contains('›'));
        Some(terminal)
    }

    /// The server that other front ends talk to: threads stay loaded in it.
    #[track_caller]
    #[must_use]
    pub fn app_server(&self) -> AppServer {
        AppServer::start(self)
    }

    /// Compacts a stored thread, as a person does with `/compact`.
    #[track_caller]
    pub fn compact(&self, thread: &str) {
        let mut server = self.app_server();
        server.resume(thread);
        server.compact(thread);
    }

    /// The rollouts of a thread, see [`rollout::find`].
    #[must_use]
    pub fn rollouts(&self, thread: &str) -> Vec<PathBuf> {
        rollout::find(&self.codex_home(), thread)
    }

    /// The only rollout of a thread.
    ///
    /// # Panics
    /// There is none, or there are several.
    #[track_caller]
    #[must_use]
    pub fn rollout(&self, thread: &str) -> PathBuf {
        let mut found = self.rollouts(thread);
        assert_eq!(found.len(), 1, "{thread}: {found:?}");
        found.remove(0)
    }
}
