//! A machine of its own: a home, the programs as they were built, and a host and a service manager
//! that do to their files what the real ones were seen to do.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod codex;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::kit::{Home, Ran, copy_program};

const ID: &str = "compactd@compactd";

/// Another marketplace, in the host's own layout.
pub const OTHER_MARKETPLACE: &str = "{\n  \"other\": {\n    \"source\": {\n      \"source\": \"directory\",\n      \"path\": \"/srv/other\"\n    },\n    \"installLocation\": \"/srv/other\",\n    \"lastUpdated\": \"2026-11-30T08:00:00.000Z\"\n  }\n}";

/// Path, mode, and bytes or target.
pub type Entry = (PathBuf, u32, Vec<u8>);

/// A home with built programs in `build/` and a host in `bin/`.
pub struct Machine {
    home: Home,
}

impl Machine {
    pub fn new() -> Self {
        let home = Home::new();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let machine = Self { home };
        fs::create_dir(machine.path("build")).unwrap();
        copy_program(&machine.path("build/compactctl"));
        for name in ["compactd", "compactd-hook"] {
            let version = env!("CARGO_PKG_VERSION");
            machine.script(&format!("build/{name}"), &format!("echo {name} {version}"));
        }
        machine.host("claude", "2.1.332 (Claude Code)", "FAKE_HOST");
        machine
    }

    /// With Codex alone.
    pub fn with_codex() -> Self {
        let machine = Self::new();
        fs::remove_file(machine.path("bin/claude")).unwrap();
        machine.add_codex();
        machine
    }

    pub fn add_codex(&self) {
        self.host("codex", "codex-cli 0.171.0", "FAKE_CODEX");
    }

    pub fn host(&self, name: &str, version: &str, variable: &str) {
        let test = std::env::current_exe().unwrap();
        let script = format!(
            "[ \"$1\" = --version ] && {{ echo '{version}'; exit 0; }}\n\
             {variable}=\"$*\" exec {} --exact the_fake_host --nocapture --test-threads=1",
            test.display()
        );
        self.script(&format!("bin/{name}"), &script);
    }

    fn script(&self, path: &str, text: &str) {
        let path = self.put(path, format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A manager that keeps what it was asked, and refuses what the file `refuse` names.
    pub fn with_systemd(&self) {
        self.script(
            "bin/systemctl",
            "PATH=/usr/bin:/bin\nshift\nhome=${0%/bin/systemctl}\n\
             [ \"$1\" = show-environment ] && { echo HOME=$home; exit 0; }\n\
             [ \"$1\" = is-enabled ] && { [ -e $home/bin/enabled ]; exit; }\n\
             [ -e $home/refuse ] && [ $1 = $(cat $home/refuse) ] && { echo the manager says no >&2; exit 1; }\n\
             echo \"$*\" >>$home/bin/asked\n\
             [ $1 = enable ] && >$home/bin/enabled\n\
             [ $1 = disable ] && rm -f $home/bin/enabled\n\
             exit 0",
        );
    }

    /// What the manager was asked to do.
    pub fn systemctl(&self) -> Vec<String> {
        let path = self.path("bin/asked");
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(path).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Runs the host's commands that a hint names, as a person does.
    #[track_caller]
    pub fn type_hinted(&self, ran: &Ran, at: &str, named: Option<&str>) {
        let hint = ran.err.lines().find(|line| line.contains(at)).unwrap();
        let parts = hint.split('`').filter(|part| part.starts_with("codex "));
        let commands: Vec<&str> = parts.collect();
        assert!(!commands.is_empty(), "{hint}");
        for command in commands {
            self.type_in(command, named);
        }
    }

    /// Has a shell run this, with `CODEX_HOME` where it is named; what it says.
    #[track_caller]
    pub fn type_in(&self, command: &str, named: Option<&str>) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env_clear().env("HOME", self.home.path());
        let folders = [self.path("bin"), self.path("build")].map(|path| path.display().to_string());
        shell.env("PATH", format!("{}:/usr/bin:/bin", folders.join(":")));
        shell.envs(named.map(|name| ("CODEX_HOME", self.path(name))));
        Ran::of(shell.output().unwrap()).good().to_owned()
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.home.path().join(below)
    }

    pub fn put(&self, below: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.home.put(below, bytes)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command_of(&self.path("build/compactctl"), args);
        command.env("PATH", self.path("bin"));
        // Where this machine has a manager of its own, it is not asked.
        if !self.path("bin/systemctl").exists() {
            self.script("bin/systemctl", "exit 1");
        }
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Whether the host would load the plugin.
    pub fn enabled(&self) -> bool {
        let text = fs::read_to_string(self.path(".claude/settings.json")).unwrap();
        let settings: Value = serde_json::from_str(&text.replace("\\ud800", "")).unwrap();
        settings["enabledPlugins"][ID] == true
    }

    /// That everything is as it was; tells what is not.
    #[track_caller]
    pub fn assert_tree(&self, before: &[Entry]) {
        let now = self.tree();
        let shown = |(path, mode, bytes): &Entry| {
            let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(400)).unwrap());
            format!("{} {mode:o} {text:?}", path.display())
        };
        let lines = |these: &[Entry], those: &[Entry]| {
            these.iter().filter(|entry| !those.contains(entry)).map(shown).collect::<Vec<_>>()
        };
        let (gone, new) = (lines(before, &now), lines(&now, before));
        assert!(gone.is_empty() && new.is_empty(), "before: {gone:#?}\nnow: {new:#?}");
    }

    /// Everything below the home but the test's own programs: path, mode, bytes or target.
    pub fn tree(&self) -> Vec<Entry> {
        let mut found = Vec::new();
        let mut waiting = vec![self.path("")];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path == self.path("bin") {
                    continue;
                }
                let about = path.symlink_metadata().unwrap();
                let bytes = if about.is_symlink() {
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                } else if about.is_dir() {
                    waiting.push(path.clone());
                    Vec::new()
                } else {
                    fs::read(&path).unwrap()
                };
                let bytes = if bytes.len() > 100_000 { bytes[..100].to_vec() } else { bytes };
                found.push((
                    path.strip_prefix(self.home.path()).unwrap().into(),
                    about.mode(),
                    bytes,
                ));
            }
        }
        found.sort();
        found
    }
}

/// Is the host, if a script asks for it: returns its exit status.
pub fn act() -> Option<i32> {
    let asked = std::env::var("FAKE_HOST").ok()?;
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let named = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let state = named.clone().unwrap_or_else(|| home.clone()).join(".claude.json");
    let host = Host { folder: named.unwrap_or_else(|| home.join(".claude")), state };
    let asked = asked.strip_prefix("plugin ").unwrap();
    let fails = fs::read_to_string(home.join("fail")).is_ok_and(|step| asked.starts_with(&step));
    // The real one makes its own state before it looks at the command.
    host.start();
    if fails {
        let _gone = writeln!(std::io::stderr(), "✘ the host says no");
        return Some(1);
    }
    let words: Vec<&str> = asked.split(' ').collect();
    match *words {
        ["marketplace", "add", path] => host.add(path),
        ["marketplace", "remove", "compactd"] => host.remove(),
        ["install", ID] | ["update", ID] => host.install(),
        ["uninstall", ID] => host.uninstall(),
        _ => panic!("the host does not know {asked}"),
    }
    Some(0)
}

struct Host {
    folder: PathBuf,
    state: PathBuf,
}

impl Host {
    fn start(&self) {
        fs::create_dir_all(self.folder.join("plugins")).unwrap();
        if !self.state.exists() {
            let text = "{\n  \"userID\": \"x\"\n}";
            fs::write(&self.state, text).unwrap();
            fs::create_dir_all(self.folder.join("backups")).unwrap();
            fs::write(self.folder.join("backups/.claude.json.backup.1796056304869"), text).unwrap();
        }
    }

    fn add(&self, path: &str) {
        let source = json!({"source": "directory", "path": path});
        self.edit("settings.json", "\n", |all| {
            entry(all, "extraKnownMarketplaces")
                .insert("compactd".into(), json!({"source": source}));
        });
        self.edit("plugins/known_marketplaces.json", "", |all| {
            let known = json!({"source": source, "installLocation": path, "lastUpdated": "now"});
            all.insert("compactd".into(), known);
        });
        fs::create_dir_all(self.folder.join("plugins/marketplaces")).unwrap();
    }

    fn install(&self) {
        let version = env!("CARGO_PKG_VERSION");
        let copy = self.folder.join("plugins/cache/compactd/compactd").join(version);
        fs::create_dir_all(&copy).unwrap();
        fs::write(copy.join("README.md"), "copy").unwrap();
        self.edit("plugins/installed_plugins.json", "", |all| {
            all.insert("version".into(), 2.into());
            let one = json!([{"scope": "user", "installPath": copy, "version": version}]);
            entry(all, "plugins").insert(ID.into(), one);
        });
        self.edit("settings.json", "\n", |all| {
            entry(all, "enabledPlugins").insert(ID.into(), true.into());
        });
        let gone = self.state.parent().unwrap().join("declined");
        let _none = fs::remove_file(gone);
    }

    fn uninstall(&self) {
        self.edit("plugins/installed_plugins.json", "", |all| {
            entry(all, "plugins").remove(ID);
        });
        self.edit("settings.json", "\n", |all| {
            entry(all, "enabledPlugins").remove(ID);
        });
        let copy = self.folder.join("plugins/cache/compactd/compactd");
        let copies = fs::read_dir(copy).into_iter().flatten().flatten();
        for copy in copies {
            fs::write(copy.path().join(".orphaned_at"), "now").unwrap();
        }
    }

    fn remove(&self) {
        self.uninstall();
        self.edit("settings.json", "\n", |all| {
            entry(all, "extraKnownMarketplaces").remove("compactd");
        });
        self.edit("plugins/known_marketplaces.json", "", |all| {
            all.remove("compactd");
        });
    }

    /// Reads a file, changes it, prints it anew and moves it into place, through a link.
    fn edit(&self, below: &str, end: &str, change: impl FnOnce(&mut Map<String, Value>)) {
        let path = self.folder.join(below);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        // What JavaScript keeps and Rust cannot: half a surrogate pair.
        let text = text.replace("\\ud800", "HALF");
        let mut all = match text.trim() {
            "" => Map::new(),
            text => match serde_json::from_str(text).unwrap() {
                Value::Object(all) => all,
                _ => panic!("not an object"),
            },
        };
        change(&mut all);
        let mut all = Value::Object(all);
        as_javascript(&mut all);
        let text = serde_json::to_string_pretty(&all).unwrap().replace("HALF", "\\ud800");
        write(&path, &format!("{text}{end}"));
    }
}

fn write(path: &Path, text: &str) {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mode = fs::metadata(&target).map_or(0o644, |found| found.mode() & 0o7777);
    let new = target.with_extension("tmp");
    fs::write(&new, text).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
    fs::rename(new, target).unwrap();
}

fn entry<'a>(all: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    all.entry(key).or_insert_with(|| json!({})).as_object_mut().unwrap()
}

/// Numbers as a JavaScript program prints them.
fn as_javascript(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let double = number.as_f64().unwrap();
            *value = if double.fract() == 0.0 && double.abs() < 1e21 {
                serde_json::from_str(&format!("{double}")).unwrap()
            } else {
                json!(double)
            };
        }
        Value::Array(all) => all.iter_mut().for_each(as_javascript),
        Value::Object(all) => all.values_mut().for_each(as_javascript),
        _ => {}
    }
}
