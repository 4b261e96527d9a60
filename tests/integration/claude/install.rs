//! Installing into the real Claude Code and out again, each time in a home of its own. No key and no
//! network are needed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use compactd_tests::harness::host::scenario::long_work;
use compactd_tests::harness::host::{Host, MockApi, Step, claude};
use compactd_tests::harness::{Home, binaries, eventually};
use serde_json::Value;
use tempfile::TempDir;

use super::kit::{assert_no_summary, notes};
use super::{assert_tree, tree};

const ID: &str = "compactd@compactd";

/// A home, and a folder of programs outside of it.
struct Machine {
    home: Home,
    bin: TempDir,
}

impl Drop for Machine {
    /// A daemon that the hooks started does not outlive a test that failed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _gone = self.run(&binaries().compactctl, &["uninstall"]);
        }
    }
}

impl Machine {
    fn new(claude: &Path) -> Self {
        let bin = tempfile::Builder::new().prefix("cd-").tempdir().unwrap();
        let machine = Self { home: Home::new(), bin };
        fs::set_permissions(machine.home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        symlink(claude, machine.bin.path().join("claude")).unwrap();
        machine
    }

    fn path(&self, below: &str) -> PathBuf {
        self.home.join(below)
    }

    fn put(&self, below: &str, text: &str, mode: u32) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn run(&self, program: &Path, args: &[&str]) -> Output {
        self.command(program, args).output().unwrap()
    }

    fn command(&self, program: &Path, args: &[&str]) -> Command {
        let path = format!("{}:/usr/bin:/bin", self.bin.path().display());
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", path)
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .current_dir(self.bin.path());
        command
    }

    /// What `compactctl` prints, which must go well.
    #[track_caller]
    fn compactctl(&self, args: &[&str]) -> String {
        let output = self.run(&binaries().compactctl, args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// How the host itself lists our plugin.
    fn listed(&self) -> Option<Value> {
        let output = self.run(&self.bin.path().join("claude"), &["plugin", "list", "--json"]);
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        list.as_array().unwrap().iter().find(|plugin| plugin["id"] == ID).cloned()
    }

    fn tree(&self) -> BTreeMap<PathBuf, (u32, String)> {
        tree(self.home.path())
    }

    #[track_caller]
    fn assert_tree(&self, before: &BTreeMap<PathBuf, (u32, String)>) {
        assert_tree(before, self.home.path());
    }

    /// In, again, and out.
    fn there_and_back(&self) {
        let before = self.tree();
        let plan = self.compactctl(&["install", "--no-service", "--dry-run"]);
        assert!(plan.contains("would run `claude plugin install compactd@compactd`"), "{plan}");
        self.assert_tree(&before);
        self.compactctl(&["install", "--no-service"]);
        let plugin = self.listed().unwrap();
        assert_eq!(plugin["enabled"], true, "{plugin}");
        assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"), "{plugin}");
        let folder = self.path(".local/share/compactd/plugins/claude/compactd");
        assert_eq!(plugin["readFromFolder"].as_str(), folder.to_str(), "{plugin}");
        let installed = self.tree();
        let again = self.compactctl(&["install", "--no-service"]);
        assert!(again.starts_with("already installed"), "{again}");
        self.assert_tree(&installed);
        let report: Value = serde_json::from_str(&self.compactctl(&["doctor", "--json"])).unwrap();
        assert_eq!(report["healthy"], true, "{report}");
        self.assert_tree(&installed);
        self.compactctl(&["uninstall"]);
        self.assert_tree(&before);
        assert_eq!(self.listed(), None);
    }

    /// In, a session with a compaction that the installed plugin answers, and out.
    fn there_used_and_back(&self, claude: &Path) {
        let settings = self.path(".claude/settings.json");
        let before = fs::read(&settings).ok();
        self.compactctl(&["install", "--no-service"]);
        let api = MockApi::start([]);
        let host = Host::new(claude, &self.home, &api);
        let work = long_work(&host, "a", 6);
        api.script(work.steps);
        let mut session = host.start();
        session.prompt("Mend all of it.");
        // The hooks have started it.
        let report = eventually("the daemon answers", || {
            let output = self.run(&binaries().compactctl, &["doctor", "--json"]);
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            let checks = report["checks"].as_array().unwrap().clone();
            checks.iter().any(|check| check["name"] == "roots").then_some(checks)
        });
        for name in ["daemon", "link", "roots", "plugin", "hooks"] {
            let check = report.iter().find(|check| check["name"] == name).unwrap();
            assert_eq!(check["state"], "ok", "{check}");
        }
        session.prompt("/compact");
        session.prompt("What now?");
        let run = session.finish();
        assert_eq!(run.compactions(), ["success"]);
        assert_no_summary(&run);
        let notes = notes(run.last());
        for id in &work.removed {
            assert!(notes.contains_key(id), "{id} has no note");
        }
        // On a screen the host writes more beside the plugin.
        if let Some(terminal) = host.terminal_resumed(&run.id) {
            api.script([Step::text("Back again.")]);
            terminal.type_line("And on it goes.");
            terminal.wait_for("Back again.");
            terminal.type_line("/exit");
            terminal.wait_for_end();
        }
        self.compactctl(&["uninstall"]);
        let after = fs::read(&settings).ok();
        let text = |bytes: &Option<Vec<u8>>| {
            bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        assert_eq!(text(&before), text(&after));
        assert_eq!(self.listed(), None);
        let left: Vec<PathBuf> = self
            .tree()
            .into_keys()
            .filter(|path| path.to_string_lossy().contains("compactd"))
            .collect();
        let passes = Path::new(".local/state/compactd/passes");
        let is_kept = |path: &PathBuf| path.starts_with(passes) || passes.starts_with(path);
        assert!(left.iter().all(is_kept), "{left:?}");
    }
}

#[test]
fn an_empty_home_is_empty_again() {
    let Some(claude) = claude() else { return };
    let machine = Machine::new(&claude);
    machine.there_and_back();
    machine.there_used_and_back(&claude);
}

#[test]
fn a_home_in_use_is_as_it_was() {
    let Some(claude) = claude() else { return };
    let machine = Machine::new(&claude);
    let other = machine.path("src/other");
    machine.put(
        "src/other/.claude-plugin/marketplace.json",
        r#"{"name":"other","owner":{"name":"x"},"plugins":[{"name":"x","source":"./x"}]}"#,
        0o644,
    );
    machine.put(
        "src/other/x/.claude-plugin/plugin.json",
        r#"{"name":"x","version":"1.0.0"}"#,
        0o644,
    );
    // The host has been here before, and its files are as it wrote them.
    for args in [
        &["plugin", "marketplace", "add", other.to_str().unwrap()][..],
        &["plugin", "install", "x@other"],
    ] {
        let output = machine.run(&machine.bin.path().join("claude"), args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // Then a person, or a program of theirs, wrote the settings.
    let settings = format!(
        "{{\n\t\"model\" : \"opus\",   \n\t\"env\":{{\"A\":\"1\"  , \"B\":\"\\u00e9\\ud83d\\ude00\\/\"}},\n\n \
         \"f\": 1.0, \"e\":1e5, \"big\":12345678901234567890, \"half\":\"\\ud800\",\n\
         \"enabledPlugins\":{{\"x@other\":true}},\"extraKnownMarketplaces\":{{\"other\":\
         {{\"source\":{{\"source\":\"directory\",\"path\":\"{}\"}}}}}}}}",
        other.display()
    );
    machine.put(".claude/settings.json", &settings, 0o600);
    machine.there_and_back();
    assert_eq!(fs::read_to_string(machine.path(".claude/settings.json")).unwrap(), settings);
    machine.there_used_and_back(&claude);
    assert_eq!(fs::read_to_string(machine.path(".claude/settings.json")).unwrap(), settings);
}

/// The host works in a folder that a variable names, which the daemon was started without.
#[test]
fn a_named_folder_is_followed_after_an_installation() {
    let Some(claude) = claude() else { return };
    let machine = Machine::new(&claude);
    machine.compactctl(&["install", "--no-service"]);
    let start = || {
        let hook = machine.path(".local/share/compactd/bin/compactd-hook");
        let lock = machine.path(".local/state/compactd/start.lock");
        let _none = fs::remove_file(lock);
        assert!(machine.run(&hook, &["claude", "SessionEnd"]).status.success());
        eventually("the hook's daemon answers", || {
            let output = machine.run(&binaries().compactctl, &["status"]);
            output.status.success().then_some(())
        });
    };
    start();
    let folder = machine.path("cfg");
    let named = |args: &[&str]| {
        let mut command = machine.command(&binaries().compactctl, args);
        command.env("CLAUDE_CONFIG_DIR", &folder).output().unwrap()
    };
    let roots = || {
        let report: Value = serde_json::from_slice(&named(&["doctor", "--json"]).stdout).unwrap();
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == "roots").unwrap().clone()
    };
    let found = roots();
    assert_eq!(found["state"], "fail", "{found}");
    assert!(found["evidence"].as_str().unwrap().contains("does not follow ~/cfg/projects"));
    let installed = named(&["install", "--no-service"]);
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    // The old one has ended; the next knows the folder, whatever its own variables say.
    start();
    let found = roots();
    assert_eq!(found["state"], "ok", "{found}");
    machine.compactctl(&["uninstall"]);
}

#[test]
fn a_daemon_that_runs_from_the_installed_place_ends_with_it() {
    let home = Home::new();
    // Without a host and a service manager: PATH is empty.
    let ran = home.compactctl(&["install"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let bin = home.join(".local/share/compactd/bin");
    let version = home.command(&bin.join("compactctl")).arg("--version").output().unwrap();
    assert_eq!(version.stdout, format!("compactctl {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
    let mut hook = home.command(&bin.join("compactd-hook"));
    hook.args(["claude", "SessionEnd"]).stdin(std::process::Stdio::null());
    assert!(hook.status().unwrap().success());
    let daemon = eventually("the hook's daemon answers", || {
        let ran = home.compactctl(&["status", "--json"]);
        (ran.code == Some(0)).then(|| ran.json())
    });
    let exe = format!("/proc/{}/exe", daemon["pid"]);
    assert_eq!(fs::read_link(&exe).unwrap(), bin.join("compactd"));
    let ran = home.compactctl(&["uninstall", "--purge"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // A number may be left of one that nobody waits for; its program is not.
    assert!(fs::read_link(&exe).is_err(), "{daemon}");
    assert_eq!(home.compactctl(&["status"]).code, Some(3));
    assert!(!bin.exists() && !home.join(".local/state/compactd").exists());
}
