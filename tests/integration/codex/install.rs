//! Installing into the real Codex and out again, each time in a home of its own. No key and no network
//! are needed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use compactd_tests::harness::host::codex;
use compactd_tests::harness::host::codex::{Codex, Config, Responses, Step};
use compactd_tests::harness::{Home, binaries, eventually};
use serde_json::Value;
use tempfile::TempDir;

use crate::claude::{assert_tree, tree};

const CONFIG: &str = ".codex/config.toml";

/// A home, and a folder of programs outside of it.
struct Machine {
    home: Home,
    bin: TempDir,
}

impl Drop for Machine {
    /// A daemon that the hooks started does not outlive a test that failed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _gone = self.run(&["uninstall"]);
        }
    }
}

impl Machine {
    fn new(codex: &Path) -> Self {
        let bin = tempfile::Builder::new().prefix("cd-").tempdir().unwrap();
        let machine = Self { home: Home::new(), bin };
        fs::set_permissions(machine.home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        symlink(codex, machine.bin.path().join("codex")).unwrap();
        machine
    }

    fn path(&self, below: &str) -> PathBuf {
        self.home.join(below)
    }

    fn command(&self, program: &Path, args: &[&str]) -> Command {
        let path = format!("{}:/usr/bin:/bin", self.bin.path().display());
        let mut command = Command::new(program);
        command.args(args).env_clear().env("HOME", self.home.path()).env("PATH", path);
        command.current_dir(self.bin.path());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(&binaries().compactctl, args).output().unwrap()
    }

    /// What `compactctl` prints, which must go well.
    #[track_caller]
    fn compactctl(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// How the host itself lists our plugin.
    #[track_caller]
    fn listed(&self) -> Option<Value> {
        let codex = self.bin.path().join("codex");
        let output = self.command(&codex, &["plugin", "list", "--json"]).output().unwrap();
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut plugins = list["installed"].as_array().unwrap().iter();
        plugins.find(|plugin| plugin["pluginId"] == "compactd@compactd").cloned()
    }

    /// A check of `doctor`, which changes nothing.
    #[track_caller]
    fn check(&self, name: &str) -> Value {
        let before = self.tree();
        let report: Value =
            serde_json::from_slice(&self.run(&["doctor", "--json"]).stdout).unwrap();
        self.assert_tree(&before);
        let checks = report["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == name).cloned();
        found.unwrap_or_else(|| panic!("{report}"))
    }

    fn tree(&self) -> BTreeMap<PathBuf, (u32, String)> {
        tree(self.home.path())
    }

    #[track_caller]
    fn assert_tree(&self, before: &BTreeMap<PathBuf, (u32, String)>) {
        assert_tree(before, self.home.path());
    }

    /// In, approved, again, and out.
    fn there_and_back(&self) {
        let before = self.tree();
        let plan = self.compactctl(&["install", "--no-service", "--dry-run"]);
        assert!(plan.contains("would run `codex plugin add compactd@compactd --json`"), "{plan}");
        self.assert_tree(&before);
        self.compactctl(&["install", "--no-service"]);
        let plugin = self.listed().unwrap();
        assert_eq!(plugin["enabled"], true, "{plugin}");
        assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"), "{plugin}");
        let check = self.check("codex-hooks");
        assert_eq!(check["state"], "fail", "{check}");
        assert!(check["evidence"].as_str().unwrap().contains("not trusted: "), "{check}");
        // The command that it names mends it.
        let fix = check["fix"].as_str().unwrap();
        let words: Vec<&str> = fix.split(' ').skip(1).collect();
        self.compactctl(&words);
        for name in
            ["codex", "codex-plugin", "codex-hooks", "codex-shim", "codex-config", "versions"]
        {
            let check = self.check(name);
            assert_eq!(check["state"], "ok", "{check}");
        }
        let installed = self.tree();
        for args in [&["install", "--no-service"][..], &words] {
            let again = self.compactctl(args);
            assert!(again.starts_with("already installed"), "{again}");
        }
        self.assert_tree(&installed);
        // Somebody changes the copy.
        let version = env!("CARGO_PKG_VERSION");
        let readme = format!(".codex/plugins/cache/compactd/compactd/{version}/README.md");
        fs::write(self.path(&readme), "changed").unwrap();
        for (name, words) in
            [("codex-plugin", "README.md"), ("codex-hooks", "since they were trusted")]
        {
            let check = self.check(name);
            assert_eq!(check["state"], "fail", "{check}");
            assert!(check["evidence"].as_str().unwrap().contains(words), "{check}");
            assert_eq!(check["fix"], "compactctl install --host codex", "{check}");
        }
        self.compactctl(&["install", "--host", "codex", "--no-service"]);
        self.assert_tree(&installed);
        self.compactctl(&["uninstall"]);
        self.assert_tree(&before);
        assert_eq!(self.listed(), None);
    }
}

#[test]
fn an_empty_home_is_empty_again() {
    let Some(codex) = codex() else { return };
    let machine = Machine::new(&codex);
    machine.there_and_back();
    fs::create_dir(machine.path(".codex")).unwrap();
    machine.there_and_back();
}

#[test]
fn a_configuration_in_use_is_as_it_was() {
    let Some(codex) = codex() else { return };
    let machine = Machine::new(&codex);
    fs::create_dir_all(machine.path("dot")).unwrap();
    fs::create_dir(machine.path(".codex")).unwrap();
    symlink("../dot/codex.toml", machine.path(CONFIG)).unwrap();
    for text in [
        "# top\nmodel = \"gpt-5.5\" # why\n\n[features] # f\nhooks = true\n\n# tail\n",
        "\u{feff}# é\r\nmodel=\"gpt-5.5\"\r\nplugins = { \"a@b\" = { enabled = true } }\r\n",
        "whatever = 3\n[nobody.knows]\na = [ 1,\n  2, # two\n]",
        "[marketplaces]\n[plugins]\n# mine\n[hooks.state]\n",
    ] {
        fs::write(machine.path("dot/codex.toml"), text).unwrap();
        let mode = fs::Permissions::from_mode(0o640);
        fs::set_permissions(machine.path("dot/codex.toml"), mode).unwrap();
        machine.there_and_back();
        assert_eq!(fs::read_to_string(machine.path(CONFIG)).unwrap(), text);
    }
}

#[test]
fn hooks_reach_the_daemon_once_they_are_trusted() {
    let Some(codex) = codex() else { return };
    let machine = Machine::new(&codex);
    let api = Responses::start([]);
    let host = Codex::set_up(&codex, &machine.home, &api, &Config::default());
    let before = fs::read(machine.path(CONFIG)).unwrap();
    let answers = || machine.run(&["status"]).status.success();
    let turn = |thread: Option<&str>| {
        api.script([Step::text("Yes.")]);
        let run = match thread {
            Some(thread) => host.resume(thread, "And now?"),
            None => host.exec("Are you there?"),
        };
        run.good().thread
    };
    machine.compactctl(&["install", "--no-service"]);
    let thread = turn(None);
    assert!(!answers(), "hooks that nobody trusts are skipped");
    machine.compactctl(&["install", "--host", "codex", "--no-service", "--trust-hooks"]);
    // In its own folder the host says the same as in the one it was asked in.
    let hooks = host.hooks();
    assert!(hooks.iter().all(|hook| hook["trustStatus"] == "trusted"), "{hooks:#?}");
    turn(Some(&thread));
    eventually("the hooks' daemon knows the thread", || {
        let output = machine.run(&["sessions", "--json"]);
        String::from_utf8_lossy(&output.stdout).contains(&thread).then_some(())
    });
    for name in ["daemon", "codex-roots", "codex-hooks", "codex-files"] {
        let output = machine.run(&["doctor", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == name).unwrap();
        assert_eq!(check["state"], "ok", "{check}");
    }
    machine.compactctl(&["uninstall"]);
    assert!(!answers(), "the daemon ends with its program");
    let now = fs::read(machine.path(CONFIG)).unwrap();
    assert_eq!(String::from_utf8_lossy(&now), String::from_utf8_lossy(&before));
    let named = |path: &PathBuf| path.to_string_lossy().contains("compactd");
    let left: Vec<PathBuf> = machine.tree().into_keys().filter(named).collect();
    let passes = Path::new(".local/state/compactd/passes");
    let is_kept = |path: &PathBuf| path.starts_with(passes) || passes.starts_with(path);
    assert!(left.iter().all(is_kept), "{left:?}");
    let trust = machine.path(".codex/.hook-trust");
    assert!(!trust.exists(), "what was approved is forgotten");
    turn(Some(&thread));
    assert!(!answers());
}
