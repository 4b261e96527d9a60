//! Installing into the real Claude Code and out again, each time in a home of its own. No key and no
//! network are needed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use compactd_tests::harness::host::claude;
use compactd_tests::harness::{Home, binaries, eventually};
use serde_json::Value;
use tempfile::TempDir;

use super::{assert_tree, tree};

const ID: &str = "compactd@compactd";

/// A home, and a folder of programs outside of it.
struct Machine {
    home: TempDir,
    bin: TempDir,
}

impl Machine {
    fn new(claude: &Path) -> Self {
        let folder = || tempfile::Builder::new().prefix("cd-").tempdir().unwrap();
        let machine = Self { home: folder(), bin: folder() };
        fs::set_permissions(machine.home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        symlink(claude, machine.bin.path().join("claude")).unwrap();
        machine
    }

    fn path(&self, below: &str) -> PathBuf {
        self.home.path().join(below)
    }

    fn put(&self, below: &str, text: &str, mode: u32) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn run(&self, program: &Path, args: &[&str]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.bin.path().display());
        Command::new(program)
            .args(args)
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", path)
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .current_dir(self.bin.path())
            .output()
            .unwrap()
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
}

#[test]
fn an_empty_home_is_empty_again() {
    let Some(claude) = claude() else { return };
    Machine::new(&claude).there_and_back();
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
