//! `install` and `doctor` for Codex where paths are unusual: with spaces, and links that lead nowhere.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod host;
mod kit;

use std::fs;
use std::os::unix::fs::symlink;

use host::Machine;

#[test]
#[expect(clippy::exit, reason = "this test is the fake host's program when a script runs it")]
fn the_fake_host() {
    if let Some(status) = host::codex::act().or_else(host::act) {
        std::process::exit(status);
    }
}

#[test]
fn commands_with_spaces_in_them_can_be_copied() {
    const NAMED: &str = "it's a folder";
    let machine = Machine::with_codex();
    let named = |args: &[&str]| {
        let mut command = machine.command(args);
        kit::Ran::of(command.env("CODEX_HOME", machine.path(NAMED)).output().unwrap())
    };
    let ran = named(&["install"]);
    ran.fails(1, "which is not there", "mkdir -p '");
    let hint = ran.err.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    machine.type_in(hint, None);
    assert!(machine.path(NAMED).is_dir());
    named(&["install", "--trust-hooks"]).good();
    // What doctor says to do where the variable is not set.
    let out = machine.run(&["doctor"]).out;
    let fix = out.lines().find(|line| line.contains("export CODEX_HOME=")).unwrap();
    let said = machine.type_in(&format!("{fix}; printf %s \"$CODEX_HOME\""), None);
    assert_eq!(said, machine.path(NAMED).display().to_string());
    let config = machine.path(NAMED).join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("compact_prompt = \"x\"\n{text}")).unwrap();
    let out = named(&["doctor"]).out;
    let fix = out.lines().find(|line| line.contains("EDITOR:-vi")).unwrap();
    let said = machine.type_in(&format!("EDITOR=cat; {fix}"), None);
    assert!(said.starts_with("compact_prompt"), "{said}");
}

#[test]
fn a_link_that_led_nowhere_does_so_again() {
    for change in [false, true] {
        let machine = Machine::with_codex();
        fs::create_dir(machine.path("dotfiles")).unwrap();
        fs::create_dir(machine.path(".codex")).unwrap();
        let config = machine.path(".codex/config.toml");
        symlink("../dotfiles/codex.toml", &config).unwrap();
        let before = machine.tree();
        machine.run(&["install", "--trust-hooks"]).good();
        let text = fs::read_to_string(machine.path("dotfiles/codex.toml")).unwrap();
        assert!(config.is_symlink() && text.contains("compactd@compactd"), "{text}");
        if change {
            fs::write(&config, format!("model = \"x\"\n{text}")).unwrap();
        }
        let ran = machine.run(&["uninstall"]);
        assert_eq!(ran.good(), "removed compactd\n");
        assert_eq!(ran.err.contains("was changed since"), change, "{ran:?}");
        if change {
            assert_eq!(fs::read_to_string(&config).unwrap(), "model = \"x\"\n");
            fs::remove_file(machine.path("dotfiles/codex.toml")).unwrap();
        }
        machine.assert_tree(&before);
    }
    // Nor does a failure leave what it led to.
    let machine = Machine::with_codex();
    fs::create_dir(machine.path(".codex")).unwrap();
    symlink("codex.toml", machine.path(".codex/config.toml")).unwrap();
    let before = machine.tree();
    machine.put("fail", "plugin add");
    machine.run(&["install"]).fails(1, "the host says no", "`");
    fs::remove_file(machine.path("fail")).unwrap();
    machine.assert_tree(&before);
}
