//! A host in a home: how it is started, whatever talks to it then.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::super::home::Home;
use super::claude::{Run, Session};
use super::mock_api::{MockApi, Recorder};
use super::terminal::Terminal;

/// No key: nothing but the mock API ever sees it.
const KEY: &str = "sk-ant-api03-mock-key-for-127-0-0-1-only";

/// A host that can be started in a home, against an API. The `with_…` functions change how.
#[derive(Debug, Clone)]
pub struct Host {
    pub(super) binary: PathBuf,
    pub(super) api: Recorder,
    home: PathBuf,
    work: PathBuf,
    plugins: Vec<PathBuf>,
    flags: Vec<OsString>,
    env: Vec<(String, OsString)>,
}

impl Home {
    /// The folder in which a host works here.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        // Hosts write paths without links, and so must those that compare them.
        let work = self.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(&work).unwrap();
        work
    }
}

impl Host {
    #[must_use]
    pub fn new(binary: &Path, home: &Home, api: &MockApi) -> Self {
        let work = home.work();
        Self {
            binary: binary.to_path_buf(),
            api: api.recorder(),
            home: work.parent().unwrap().to_path_buf(),
            work,
            plugins: Vec::new(),
            flags: Vec::new(),
            env: Vec::new(),
        }
    }

    /// With a plugin that is loaded from its folder.
    #[must_use]
    pub fn with_plugin(mut self, folder: &Path) -> Self {
        self.plugins.push(folder.canonicalize().unwrap());
        self
    }

    /// With none of the plugins that it had so far.
    #[must_use]
    pub fn without_plugins(mut self) -> Self {
        self.plugins.clear();
        self
    }

    /// With one more variable, or another value of one.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// With more flags.
    #[must_use]
    pub fn with_flags<T: AsRef<OsStr>>(mut self, flags: impl IntoIterator<Item = T>) -> Self {
        self.flags.extend(flags.into_iter().map(|flag| flag.as_ref().to_owned()));
        self
    }

    /// With a log of the host's own: the first place to look at when a hook seems to do nothing.
    #[must_use]
    pub fn with_debug_file(self, path: &Path) -> Self {
        self.with_flags([OsStr::new("--debug-file"), path.as_os_str()])
    }

    /// Against another API, in the same home.
    #[must_use]
    pub fn with_api(mut self, api: &MockApi) -> Self {
        self.api = api.recorder();
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

    /// Puts a file into the working folder and gives its whole path.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Clears a command's environment but for what the host needs, and its working folder is set.
    pub(super) fn clean(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.home)
            .envs([("USER", "dev"), ("SHELL", "/bin/bash"), ("LANG", "C.UTF-8")])
            .env("TERM", "xterm-256color")
            .env("ANTHROPIC_BASE_URL", self.api.url())
            .env("ANTHROPIC_API_KEY", KEY)
            .envs(["DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING"].map(on))
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("NO_PROXY", "127.0.0.1,localhost")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.work);
    }

    /// The host with arguments of the test's own, such as `plugin install`.
    #[must_use]
    pub fn command<T: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = T>) -> Command {
        let mut command = Command::new(&self.binary);
        self.clean(&mut command);
        command.args(arguments);
        command
    }

    /// Installs a plugin, such as `compactd@compactd`, from a folder that is a marketplace, by the
    /// host's own commands. It is loaded in every session of this home then.
    ///
    /// # Panics
    /// The host refuses; what it said is told.
    #[track_caller]
    pub fn install_plugin(&self, marketplace: &Path, plugin: &str) {
        let folder = marketplace.canonicalize().unwrap();
        let add = ["marketplace".as_ref(), "add".as_ref(), folder.as_os_str()];
        for arguments in [&add[..], &["install".as_ref(), plugin.as_ref()]] {
            let output = self.command(["plugin"]).args(arguments).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }

    /// Flags that printing and interactive sessions share.
    pub(super) fn arguments(&self, session: &SessionId) -> Vec<OsString> {
        let mut flags: Vec<OsString> = ["--permission-mode", "acceptEdits"].map(Into::into).into();
        flags.extend(["--allowedTools", "Bash Read Edit Write"].map(Into::into));
        match session {
            SessionId::New(id) => flags.extend(["--session-id", id].map(Into::into)),
            SessionId::Resume(id) => flags.extend(["--resume", id].map(Into::into)),
        }
        for plugin in &self.plugins {
            flags.push("--plugin-dir".into());
            flags.push(plugin.into());
        }
        flags.extend(self.flags.iter().cloned());
        flags
    }

    /// Starts a new session that prints its events.
    #[must_use]
    pub fn start(&self) -> Session {
        Session::start(self, &SessionId::next())
    }

    /// Goes on with a session.
    #[must_use]
    pub fn resume(&self, id: &str) -> Session {
        Session::start(self, &SessionId::Resume(id.to_owned()))
    }

    /// A whole new session: the prompts one after the other, then its end, which must be good.
    #[track_caller]
    pub fn run(&self, prompts: &[&str]) -> Run {
        self.start().through(prompts)
    }

    /// Goes on with a session, as [`Self::run`] does.
    #[track_caller]
    pub fn run_resumed(&self, id: &str, prompts: &[&str]) -> Run {
        self.resume(id).through(prompts)
    }

    /// Starts a new session in a terminal; nothing without tmux.
    #[must_use]
    pub fn terminal(&self) -> Option<Terminal> {
        Terminal::start(self, &SessionId::next())
    }

    /// Goes on with a session in a terminal; nothing without tmux.
    #[must_use]
    pub fn terminal_resumed(&self, id: &str) -> Option<Terminal> {
        Terminal::start(self, &SessionId::Resume(id.to_owned()))
    }

    /// Answers what an interactive session would ask a new person first.
    pub(super) fn welcome(&self) {
        let path = self.home.join(".claude.json");
        let text = fs::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
        let mut settings: Value = serde_json::from_str(&text).unwrap();
        settings["hasCompletedOnboarding"] = json!(true);
        settings["customApiKeyResponses"]["approved"] = json!([KEY[KEY.len() - 20..]]);
        settings["projects"][self.work.to_str().unwrap()]["hasTrustDialogAccepted"] = json!(true);
        fs::write(path, settings.to_string()).unwrap();
    }

    /// Puts a transcript where the host looks for it, so that it can go on with a session that it
    /// did not have: for long ones.
    pub fn put_transcript(&self, id: &str, text: &str) -> PathBuf {
        let path = self.transcript(id);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Where the transcript of a session is; it need not exist yet.
    #[must_use]
    pub fn transcript(&self, id: &str) -> PathBuf {
        let projects = self.home.join(".claude/projects");
        let name = format!("{id}.jsonl");
        let folders = fs::read_dir(&projects).into_iter().flatten().filter_map(Result::ok);
        let mut paths = folders.map(|folder| folder.path().join(&name));
        paths.find(|path| path.exists()).unwrap_or_else(|| {
            let folder: String = self.work.to_str().unwrap().replace(['/', '.', '_'], "-");
            projects.join(folder).join(&name)
        })
    }
}

fn on(name: &str) -> (&str, &str) {
    (name, "1")
}

/// Which session.
#[derive(Debug, Clone)]
pub(super) enum SessionId {
    New(String),
    Resume(String),
}

impl SessionId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::New(format!(
            "{number:08x}-{:04x}-4000-8000-{number:012x}",
            std::process::id() & 0xffff
        ))
    }

    pub(super) fn text(&self) -> &str {
        let (Self::New(id) | Self::Resume(id)) = self;
        id
    }
}
