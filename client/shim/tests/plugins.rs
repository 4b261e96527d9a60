//! The two plugins around the shim: their launcher, their hooks and their version.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may panic, also in its helpers"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn plugin(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin").join(path)
}

fn launch(launcher: &Path, home: &Path) -> Output {
    let mut command = Command::new(launcher);
    command.arg("--version").env("HOME", home).stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn the_launcher_runs_the_installed_shim_or_nothing() {
    let launcher = plugin("claude/bin/compactd-hook");
    let home = std::env::temp_dir().join(format!("cdl-{}", std::process::id()));
    let bin = home.join(".local/share/compactd/bin");
    fs::create_dir_all(&bin).unwrap();
    let missing = launch(&launcher, &home);
    symlink(env!("CARGO_BIN_EXE_compactd-hook"), bin.join("compactd-hook")).unwrap();
    let installed = launch(&launcher, &home);
    fs::remove_dir_all(&home).unwrap();
    assert_eq!((missing.status.code(), missing.stdout, missing.stderr), (Some(0), vec![], vec![]));
    let version = format!("compactd-hook {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(installed.stdout).unwrap(), version);
    assert_eq!((installed.status.code(), installed.stderr), (Some(0), vec![]));
}

#[test]
fn both_hosts_have_the_same_launcher() {
    let [claude, codex] = ["claude/bin/compactd-hook", "codex/bin/compactd-hook"].map(plugin);
    assert_eq!(fs::read(&claude).unwrap(), fs::read(&codex).unwrap());
    for launcher in [claude, codex] {
        assert_eq!(fs::metadata(launcher).unwrap().permissions().mode() & 0o111, 0o111);
    }
}

#[test]
fn the_manifests_have_the_package_version() {
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    for path in [
        "claude/.claude-plugin/plugin.json",
        "codex/.codex-plugin/plugin.json",
        ".claude-plugin/marketplace.json",
    ] {
        let text = fs::read_to_string(plugin(path)).unwrap();
        assert!(text.contains(&version), "{path}");
    }
}

#[test]
fn each_hook_names_its_own_event() {
    let claude = ["PreCompact", "PostCompact", "SessionStart", "UserPromptSubmit", "SessionEnd"];
    let text = fs::read_to_string(plugin("claude/hooks/hooks.json")).unwrap();
    let text: String = text.split_whitespace().collect();
    for event in claude.iter().chain(&["SubagentStop"]) {
        assert!(text.contains(&format!("\"{event}\":[{{")), "{event}");
        assert!(text.contains(&format!("\"args\":[\"claude\",\"{event}\"]")), "{event}");
    }
    let text = fs::read_to_string(plugin("codex/hooks/hooks.json")).unwrap();
    let codex = ["PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop"];
    for event in claude.iter().chain(&codex) {
        assert!(text.contains(&format!("\"{event}\": [\n")), "{event}");
        let command = format!("\"\\\"${{PLUGIN_ROOT}}/bin/compactd-hook\\\" codex {event}\"");
        assert!(text.contains(&command), "{event}");
    }
}
