//! `install`, `uninstall` and `doctor` as a person runs them, with a host that edits its files as the
//! real one does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod host;
mod kit;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use host::{Machine, OTHER_MARKETPLACE};

/// Settings as people have them: empty, odd, generated, with everything that the host prints anew.
const SETTINGS: [&str; 12] = [
    "",
    "\n",
    "{}",
    "{ }\n\n",
    "{\"model\":\"opus\"}",
    "{\n\t\"model\" : \"opus\",   \n\t\"env\":{\"A\":\"1\"  , \"B\":\"\\u00e9é\"},\n \"f\": 1.0, \"e\":1e5 }",
    "{\r\n  \"permissions\": {\"allow\": [\"Bash(ls:*)\"]}\r\n}\r\n",
    "\u{feff}{\"model\":\"opus\"}",
    "{\"enabledPlugins\":{\"x@other\":true},\"extraKnownMarketplaces\":{}}",
    "{\"enabledPlugins\":{\"compactd@compactd\":false}}",
    "{\"big\":12345678901234567890,\"a\":1,\"a\":2}",
    "{\"half\":\"\\ud800\",\"pair\":\"\\ud83d\\ude00\",\"slash\":\"\\/\"}",
];

#[test]
#[expect(clippy::exit, reason = "this test is the fake host's program when a script runs it")]
fn the_fake_host() {
    if let Some(status) = host::act() {
        std::process::exit(status);
    }
}

#[test]
fn what_was_there_before_is_there_after() {
    for settings in SETTINGS.map(Some).into_iter().chain([None]) {
        let machine = Machine::new();
        if let Some(settings) = settings {
            machine.put(".claude/settings.json", settings);
            machine.put(".claude/plugins/known_marketplaces.json", OTHER_MARKETPLACE);
            machine.put(".claude.json", "{\"numStartups\":  7}");
            let path = machine.path(".claude/settings.json");
            fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
        }
        let before = machine.tree();
        machine.run(&["install"]).good();
        assert!(machine.enabled(), "{settings:?}");
        let installed = machine.tree();
        let again = machine.run(&["install"]);
        assert!(again.good().starts_with("already installed"), "{again:?}");
        machine.assert_tree(&installed);
        machine.run(&["uninstall"]).good();
        machine.assert_tree(&before);
        assert_eq!(machine.run(&["uninstall"]).good(), "nothing is installed\n");
    }
}

#[test]
fn a_dry_run_says_all_and_changes_nothing() {
    let machine = Machine::new();
    let before = machine.tree();
    let ran = machine.run(&["install", "--dry-run"]);
    for words in
        ["bin/compactd (mode 755)", "claude plugin install compactd@compactd", "install.json"]
    {
        assert!(ran.good().contains(words), "{ran:?}");
    }
    machine.assert_tree(&before);
    machine.run(&["install"]).good();
    let installed = machine.tree();
    assert!(machine.run(&["install", "--dry-run"]).good().starts_with("already installed"));
    let ran = machine.run(&["uninstall", "--dry-run", "--purge"]);
    for words in [
        "claude plugin marketplace remove",
        "would remove ~/.local/share",
        "all of ~/.local/state/compactd",
    ] {
        assert!(ran.good().contains(words), "{ran:?}");
    }
    machine.assert_tree(&installed);
}

#[test]
fn what_a_person_changes_meanwhile_stays() {
    let machine = Machine::new();
    machine.put(".claude/settings.json", "{ \"model\":\"opus\" }");
    machine.run(&["install"]).good();
    let path = machine.path(".claude/settings.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("opus", "haiku")).unwrap();
    let ran = machine.run(&["uninstall"]);
    assert!(ran.good().starts_with("removed"), "{ran:?}");
    assert!(ran.err.contains("settings.json was changed since"), "{ran:?}");
    let empty = "the host leaves enabledPlugins and extraKnownMarketplaces in it, empty";
    assert!(ran.err.contains(empty), "{ran:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("haiku") && !text.contains("compactd"), "{text}");
    assert!(!machine.path(".local/share/compactd").exists());
}

#[test]
fn a_run_that_was_cut_short_can_be_undone() {
    let machine = Machine::new();
    machine.put(".claude/settings.json", "{ \"model\":\"opus\" }");
    let before = machine.tree();
    machine.run(&["install"]).good();
    // As the record is before the last step: the host's part is begun, and nothing is known of its end.
    let path = machine.path(".local/state/compactd/install.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["complete"] = false.into();
    record["hosts"][0]["litter"] = serde_json::json!({});
    for file in record["hosts"][0]["files"].as_array_mut().unwrap() {
        file["after"] = serde_json::Value::Null;
    }
    fs::write(&path, record.to_string()).unwrap();
    machine.put(".local/share/compactd/bin/.compactd.compactd-old-4242", "old");
    machine.put(".local/share/compactd/bin/.compactd.compactd-new-4242", "half");
    machine.run(&["uninstall"]).good();
    // What the host made for itself is not known to be ours then.
    let host = [".claude.json", ".claude/backups/.claude.json.backup.1796056304869"];
    for own in host {
        fs::remove_file(machine.path(own)).unwrap();
    }
    let _gone = fs::remove_dir(machine.path(".claude/backups"));
    machine.assert_tree(&before);
}

#[test]
fn a_marketplace_that_was_pointed_elsewhere_stays() {
    let machine = Machine::new();
    machine.run(&["install"]).good();
    for file in ["settings.json", "plugins/known_marketplaces.json"] {
        let path = machine.path(".claude").join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("/.local/share/compactd/plugins/claude", "/checkout"))
            .unwrap();
    }
    let ran = machine.run(&["uninstall"]);
    assert!(ran.err.contains("comes from elsewhere by now"), "{ran:?}");
    ran.good();
    assert!(machine.enabled() && !machine.path(".local/share").exists());
}

#[test]
fn a_new_version_takes_the_place_of_the_old() {
    let machine = Machine::new();
    machine.put(".claude/settings.json", "{ \"model\":\"opus\" }");
    let before = machine.tree();
    machine.run(&["install"]).good();
    // As an older version left it: another program, another file in the plugin, told to the host.
    let old = machine.path(".local/share/compactd/plugins/claude/compactd/hooks/old.ts");
    fs::write(&old, "old").unwrap();
    fs::write(machine.path(".local/share/compactd/bin/compactd"), "old").unwrap();
    let plugins = machine.path(".claude/plugins/installed_plugins.json");
    let text = fs::read_to_string(&plugins).unwrap().replace(env!("CARGO_PKG_VERSION"), "0.0.1");
    fs::write(&plugins, text).unwrap();
    let ran = machine.run(&["doctor"]);
    assert!(ran.out.contains("plugin as the host knows it 0.0.1"), "{ran:?}");
    machine.run(&["install"]).good();
    assert!(!old.exists());
    assert!(!fs::read_to_string(&plugins).unwrap().contains("0.0.1"));
    assert!(machine.run(&["install"]).good().starts_with("already installed"));
    machine.run(&["uninstall"]).good();
    machine.assert_tree(&before);
}

#[test]
fn without_a_host_the_rest_is_installed() {
    let machine = Machine::new();
    fs::remove_file(machine.path("bin/claude")).unwrap();
    let before = machine.tree();
    let ran = machine.run(&["install"]);
    assert!(ran.good().contains("not yet in Claude Code"), "{ran:?}");
    assert!(ran.err.contains("claude plugin install compactd@compactd"), "{ran:?}");
    assert!(machine.path(".local/share/compactd/bin/compactd-hook").exists());
    assert!(!machine.path(".claude").exists());
    machine.run(&["uninstall"]).good();
    machine.assert_tree(&before);
    machine.run(&["install", "--claude", "nowhere/claude"]).fails(
        1,
        "is not a program",
        "--claude",
    );
    machine.assert_tree(&before);
}

#[test]
fn a_host_that_has_gone_leaves_its_files_as_they_were() {
    let machine = Machine::new();
    machine.put(".claude/settings.json", "{ \"model\":\"opus\" }");
    machine.run(&["install"]).good();
    fs::remove_file(machine.path("bin/claude")).unwrap();
    let ran = machine.run(&["uninstall"]);
    assert!(ran.err.contains("was not found"), "{ran:?}");
    ran.good();
    let text = fs::read_to_string(machine.path(".claude/settings.json")).unwrap();
    assert_eq!(text, "{ \"model\":\"opus\" }");
    assert!(!machine.path(".claude/plugins").exists());
}

#[test]
fn a_host_that_fails_leaves_nothing_behind() {
    for step in ["marketplace add", "install"] {
        let machine = Machine::new();
        machine.put(".claude/settings.json", "{ \"model\":\"opus\" }");
        let before = machine.tree();
        machine.put("fail", step);
        machine.run(&["install"]).fails(1, "the host says no", "by itself");
        fs::remove_file(machine.path("fail")).unwrap();
        machine.assert_tree(&before);
    }
    // A failure while undoing: where nobody has written since, the saved bytes are enough.
    let machine = Machine::new();
    machine.put(".claude/settings.json", "{ \"model\":\"opus\" }");
    let before = machine.tree();
    machine.run(&["install"]).good();
    machine.put("fail", "marketplace remove");
    let ran = machine.run(&["uninstall"]);
    assert!(ran.err.contains("its files were put back without it"), "{ran:?}");
    ran.good();
    fs::remove_file(machine.path("fail")).unwrap();
    machine.assert_tree(&before);
    // Else everything that is needed for a second time stays.
    machine.run(&["install"]).good();
    let path = machine.path(".claude/settings.json");
    let text = fs::read_to_string(&path).unwrap().replace("opus", "haiku");
    fs::write(&path, text).unwrap();
    machine.put("fail", "marketplace remove");
    let installed = machine.tree();
    machine.run(&["uninstall"]).fails(1, "the host says no", "doctor");
    machine.assert_tree(&installed);
    fs::remove_file(machine.path("fail")).unwrap();
    machine.run(&["uninstall"]).good();
    assert!(!machine.path(".local/share").exists());
}

#[test]
fn what_forbids_it_is_told_and_nothing_changes() {
    let refused = |set_up: &dyn Fn(&Machine), message: &str, hint: &str| {
        let machine = Machine::new();
        set_up(&machine);
        let before = machine.tree();
        machine.run(&["install"]).fails(1, message, hint);
        machine.assert_tree(&before);
    };
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for text in ["{ // x\n}", "{\"a\":1,}", "[]", "null"] {
        let put = |machine: &Machine| drop(machine.put(".claude/settings.json", text));
        refused(&put, "is not a JSON object", "neither comments");
    }
    refused(
        &|machine| mode(&machine.put(".claude/settings.json", "{}"), 0o444),
        "is read-only (mode 444)",
        "chmod u+w",
    );
    refused(
        &|machine| {
            machine.put(".local/share/compactd/x", "");
            mode(&machine.path(".local/share/compactd"), 0o777);
        },
        "can be written by other users (mode 777)",
        "chmod go-w",
    );
    refused(
        &|machine| {
            machine.put(".local/share/x", "");
            symlink(machine.path("bin"), machine.path(".local/share/compactd")).unwrap();
        },
        "is a link, not a folder",
        "away",
    );
    refused(
        &|machine| drop(machine.put(".local/share/compactd/bin/compactd/x", "")),
        "is a folder, not a file",
        "away",
    );
    refused(
        &|machine| {
            let text = OTHER_MARKETPLACE.replace("other", "compactd");
            machine.put(".claude/plugins/known_marketplaces.json", text);
        },
        "another marketplace named compactd",
        "marketplace remove compactd",
    );
    refused(
        &|machine| fs::remove_file(machine.path("build/compactd-hook")).unwrap(),
        "there is no compactd-hook beside",
        "cargo build",
    );
    refused(
        &|machine| drop(machine.put(".local/state/compactd/install.json", "{\"format\":99}")),
        "cannot use the install record",
        "wrote",
    );
    let machine = Machine::new();
    let mut command = machine.command(&["install"]);
    let ran = kit::Ran::of(command.env("HOME", "relative").output().unwrap());
    ran.fails(1, "HOME is not an absolute path", "set HOME");
}

#[test]
fn a_linked_settings_file_and_a_named_folder_are_followed() {
    let machine = Machine::new();
    machine.put("dotfiles/claude.json", "{ \"model\":\"opus\" }");
    fs::create_dir(machine.path("cfg")).unwrap();
    symlink("../dotfiles/claude.json", machine.path("cfg/settings.json")).unwrap();
    let before = machine.tree();
    let named = |args: &[&str]| {
        let mut command = machine.command(args);
        kit::Ran::of(command.env("CLAUDE_CONFIG_DIR", machine.path("cfg")).output().unwrap())
    };
    let ran = named(&["install"]);
    ran.good();
    assert!(ran.err.contains("is a link: Claude Code writes ~/dotfiles/claude.json"), "{ran:?}");
    assert!(fs::read_to_string(machine.path("dotfiles/claude.json")).unwrap().contains("compactd"));
    assert!(!machine.path(".claude").exists());
    // The record knows the folder, whatever the variable says now.
    machine.run(&["uninstall"]).good();
    machine.assert_tree(&before);
}

#[test]
fn a_user_manager_gets_the_units_and_loses_them() {
    let machine = Machine::new();
    machine.with_systemd();
    let before = machine.tree();
    let ran = machine.run(&["install"]);
    assert!(ran.good().contains("a service of your systemd user manager"), "{ran:?}");
    let service = machine.path(".config/systemd/user/compactd.service");
    assert!(
        fs::read_to_string(&service).unwrap().contains("%h/.local/share/compactd/bin/compactd")
    );
    assert!(machine.run(&["install"]).good().starts_with("already installed"));
    // A new program: the service runs it.
    fs::write(machine.path(".local/share/compactd/bin/compactd"), "old").unwrap();
    machine.run(&["install"]).good();
    machine.run(&["uninstall"]).good();
    let asked = machine.systemctl();
    assert_eq!(
        asked,
        [
            "daemon-reload",
            "enable --now compactd.socket compactd.service",
            "daemon-reload",
            "restart compactd.service",
            "disable --now compactd.service compactd.socket",
            "daemon-reload",
        ]
    );
    machine.assert_tree(&before);
    // Somebody's own unit is not touched.
    machine.put(".config/systemd/user/compactd.service", "[Service]\nExecStart=/bin/true\n");
    let before = machine.tree();
    machine.run(&["install"]).fails(1, "was not written by compactctl", "--no-service");
    machine.assert_tree(&before);
    machine.run(&["install", "--no-service"]).good();
    machine.run(&["uninstall"]).good();
    machine.assert_tree(&before);
    // A manager that refuses takes everything back.
    fs::remove_file(&service).unwrap();
    let before = machine.tree();
    machine.put("refuse", "enable");
    machine.run(&["install"]).fails(1, "the manager says no", "--no-service");
    fs::remove_file(machine.path("refuse")).unwrap();
    machine.assert_tree(&before);
}

#[test]
fn purge_takes_state_and_snapshots_too() {
    let machine = Machine::new();
    let before = machine.tree();
    machine.run(&["install"]).good();
    machine.put(".local/state/compactd/pins/x.json", "{}");
    machine.put(".local/state/compactd/recovery/x/0", "what was said");
    machine.put(".cache/compactd/index/x", "x");
    let ran = machine.run(&["uninstall"]);
    ran.good();
    assert!(ran.err.contains("~/.local/state/compactd/recovery (words of"), "{ran:?}");
    assert!(ran.err.contains("removes pins, passes and recovery texts too"), "{ran:?}");
    assert!(machine.run(&["uninstall", "--help"]).good().contains("passes and recovery texts"));
    assert!(ran.err.contains("kept: ~/.local/state/compactd/pins (what was pinned)"), "{ran:?}");
    assert!(!machine.path(".cache/compactd").exists(), "snapshots can be made again");
    machine.put(".cache/compactd/index/x", "x");
    assert!(machine.path(".local/state/compactd/pins/x.json").exists());
    machine.run(&["uninstall", "--purge"]).good();
    assert!(!machine.path(".local/state/compactd").exists());
    assert!(!machine.path(".cache/compactd").exists());
    for made in [".local/state", ".local/share", ".local", ".cache"] {
        let _gone = fs::remove_dir(machine.path(made));
    }
    machine.assert_tree(&before);
}

#[test]
fn what_a_daemon_and_the_host_left_goes_too() {
    let machine = Machine::new();
    machine.put(".claude/settings.json", "{}");
    let before = machine.tree();
    machine.run(&["install"]).good();
    for name in [
        "compactd.lock",
        "start.lock",
        "start.old-7",
        "run/compactd.lock",
        "run/api.sock",
        "api.sock",
    ] {
        machine.put(&format!(".local/state/compactd/{name}"), "");
    }
    fs::create_dir(machine.path(".local/state/compactd/passes")).unwrap();
    machine.put(".cache/compactd/index/x.idx", "x");
    // The host writes its declarations beside the plugin.
    let types = ".local/share/compactd/plugins/claude/compactd/.claude-plugin/types";
    machine.put(&format!("{types}/claude-code/index.d.ts"), "export {}");
    let ran = machine.run(&["install"]);
    assert!(ran.good().starts_with("already installed"), "{ran:?}");
    let ran = machine.run(&["uninstall"]);
    assert_eq!((ran.good(), ran.err.as_str()), ("removed compactd\n", ""));
    let _gone = fs::remove_dir(machine.path(".cache"));
    machine.assert_tree(&before);
}

#[test]
fn doctor_looks_where_the_plugin_is() {
    let machine = Machine::new();
    fs::create_dir(machine.path("cfg")).unwrap();
    let mut command = machine.command(&["install"]);
    let named = command.env("CLAUDE_CONFIG_DIR", machine.path("cfg"));
    kit::Ran::of(named.output().unwrap()).good();
    let ran = machine.run(&["doctor"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.out.contains("has the plugin in ~/cfg only, not in ~/.claude"), "{ran:?}");
    assert!(
        ran.out.contains(&format!("export CLAUDE_CONFIG_DIR={}", machine.path("cfg").display()))
    );
    let mut command = machine.command(&["doctor"]);
    let named = command.env("CLAUDE_CONFIG_DIR", machine.path("cfg"));
    let ran = kit::Ran::of(named.output().unwrap());
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(!ran.out.contains("is not set"), "{ran:?}");
}

#[test]
fn doctor_names_what_is_wrong_and_what_mends_it() {
    let machine = Machine::new();
    let before = machine.tree();
    let ran = machine.run(&["doctor", "--json"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    machine.assert_tree(&before);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let check = |report: &serde_json::Value, name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap().clone()
    };
    assert_eq!(report["healthy"], false);
    for name in ["daemon", "plugin"] {
        let check = check(&report, name);
        assert_eq!(
            (&check["state"], &check["fix"]),
            (&"fail".into(), &"compactctl install".into())
        );
    }
    machine.run(&["install"]).good();
    let before = machine.tree();
    let report = machine.run(&["doctor", "--json"]).json();
    machine.assert_tree(&before);
    assert_eq!(report["healthy"], true, "{report}");
    for name in ["daemon", "versions", "plugin", "hooks", "host", "settings", "state"] {
        assert_eq!(check(&report, name)["state"], "ok", "{name}: {report}");
    }
    let shim = machine.path(".local/share/compactd/bin/compactd-hook");
    fs::set_permissions(shim, fs::Permissions::from_mode(0o644)).unwrap();
    machine.put(".claude/settings.local.json", "{\"disableAllHooks\":true}");
    let ran = machine.run(&["doctor"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(
        ran.out.contains("the hooks lead to ~/.local/share/compactd/bin/compactd-hook"),
        "{ran:?}"
    );
    assert!(ran.out.contains("disableAllHooks"), "{ran:?}");
}
