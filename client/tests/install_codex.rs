//! `install` and `uninstall` for Codex as a person runs them, with a host that edits its files as the
//! real one does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod host;
mod kit;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use host::Machine;

const CONFIG: &str = ".codex/config.toml";
const ADD: &str = "codex plugin add compactd@compactd --json";

/// Configurations as people have them.
const CONFIGS: [&str; 14] = [
    "",
    "\n",
    "model = \"x\"",
    "# top\nmodel = \"x\" # why\n\n[features] # f\nhooks = true\n\n# tail\n",
    "model=\"x\"\nplugins = { \"a@b\" = { enabled = true } }\n\n\n[ features ]\n  hooks   =   true\n",
    "# top\r\nmodel = \"x\"\r\n\r\n[features]\r\nhooks = true\r\n",
    "\u{feff}model = \"x\"\n",
    "[marketplaces]\n[marketplaces.other]\nsource_type=\"local\"\nsource=\"/nowhere\"\n[plugins]\n# mine\n",
    "plugins.\"a@b\".enabled = true\nmarketplaces.other.source=\"/x\"\n",
    "[plugins.\"compactd@compactd\"]\nenabled = false # not now\n",
    "whatever = 3\n[nobody.knows]\na = [ 1,\n  2, # two\n]\n[[hooks.Stop]]\n",
    "[hooks.state.\"a@b:hooks/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\n",
    "hooks = { state = {} }\n",
    "text = \"\"\"\nhalf \\\n  é # no comment\n\"\"\"\n",
];

#[test]
#[expect(clippy::exit, reason = "this test is the fake host's program when a script runs it")]
fn the_fake_host() {
    if let Some(status) = host::codex::act().or_else(host::act) {
        std::process::exit(status);
    }
}

#[test]
fn what_was_there_before_is_there_after() {
    for (number, config) in CONFIGS.map(Some).into_iter().chain([None]).enumerate() {
        let machine = Machine::with_codex();
        if let Some(config) = config {
            let path = machine.put(CONFIG, config);
            fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
        }
        let before = machine.tree();
        let trust: &[&str] = if number % 2 == 0 { &["--trust-hooks"] } else { &[] };
        let install: Vec<&str> = [&["install"][..], trust].concat();
        machine.run(&install).good();
        let text = fs::read_to_string(machine.path(CONFIG)).unwrap();
        assert!(text.contains("compactd@compactd"), "{config:?}: {text}");
        assert_eq!(text.contains("trusted_content_hash"), !trust.is_empty(), "{text}");
        if config.is_some() {
            let mode = fs::metadata(machine.path(CONFIG)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o640, "{config:?}");
        }
        let launcher = format!(
            ".codex/plugins/cache/compactd/compactd/{}/bin/compactd-hook",
            env!("CARGO_PKG_VERSION")
        );
        let mode = fs::metadata(machine.path(&launcher)).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111);
        let installed = machine.tree();
        let again = machine.run(&install);
        assert!(again.good().starts_with("already installed"), "{again:?}");
        machine.assert_tree(&installed);
        machine.run(&["uninstall"]).good();
        machine.assert_tree(&before);
        assert_eq!(machine.run(&["uninstall"]).good(), "nothing is installed\n");
    }
}

#[test]
fn hooks_are_approved_only_when_it_is_said() {
    let machine = Machine::with_codex();
    let ran = machine.run(&["install"]);
    assert!(ran.good().contains("in Codex, from its next session on"), "{ran:?}");
    assert!(!ran.out.contains("Claude Code"), "{ran:?}");
    assert!(ran.err.contains("skips the plugin's hooks"), "{ran:?}");
    assert!(ran.err.contains("install --host codex --trust-hooks"), "{ran:?}");
    let config = || fs::read_to_string(machine.path(CONFIG)).unwrap();
    let untrusted = config();
    assert!(!untrusted.contains("hooks.state"), "{untrusted}");
    let before = machine.tree();
    let ran = machine.run(&["install", "--host", "codex", "--trust-hooks", "--dry-run"]);
    assert!(ran.good().contains("would approve the plugin's hooks in ~/.codex/config.toml"));
    machine.assert_tree(&before);
    let ran = machine.run(&["install", "--host", "codex", "--trust-hooks"]);
    assert!(ran.good().starts_with("installed") && !ran.err.contains("skips"), "{ran:?}");
    let rest = config().strip_prefix(&untrusted).unwrap().to_owned();
    let key = "[hooks.state.\"compactd@compactd:hooks/hooks.json:pre_compact:0:0\"]\ntrusted_hash = \"sha256:";
    assert!(rest.starts_with("\n[hooks.state]\n\n[hooks.state.\"compactd@compactd:"), "{rest}");
    assert!(rest.contains(key), "{rest}");
    let ran = machine.run(&["install"]);
    assert!(ran.good().starts_with("already installed") && ran.err.is_empty(), "{ran:?}");
    // Whoever takes the plugin away by hand and installs again is asked again.
    fs::write(machine.path(CONFIG), "").unwrap();
    assert!(machine.run(&["install"]).err.contains("skips the plugin's hooks"));
}

#[test]
fn what_others_change_meanwhile_stays() {
    let machine = Machine::with_codex();
    let before = "# mine\nmodel = \"x\"\n\n[features] # f\nhooks = true\n";
    machine.put(CONFIG, format!("\u{feff}{}", before.replace('\n', "\r\n")));
    machine.run(&["install", "--trust-hooks"]).good();
    let path = machine.path(CONFIG);
    let text = fs::read_to_string(&path).unwrap().replace("\"x\"", "\"y\" # better");
    fs::write(&path, format!("{text}\n# more\n[tui]\nseen = true\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
    let ran = machine.run(&["uninstall"]);
    assert!(ran.good().starts_with("removed"), "{ran:?}");
    assert!(ran.err.contains("config.toml was changed since"), "{ran:?}");
    let expected = before.replace("\"x\"", "\"y\" # better") + "\n# more\n[tui]\nseen = true\n";
    // Of lines that end with a return the host makes others.
    let expected = format!("\u{feff}{}", expected.replace('\n', "\r\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o604);
    assert!(!machine.path(".codex/plugins").exists());
    assert!(!machine.path(".local/share/compactd").exists());
}

/// The host's own question writes the same as --trust-hooks: nothing else has changed then.
#[test]
fn trust_given_in_the_host_goes_with_the_plugin() {
    let machine = Machine::with_codex();
    machine.put(CONFIG, "model = \"x\"\r\n# é\r\n");
    let before = machine.tree();
    machine.run(&["install"]).good();
    let path = machine.path(CONFIG);
    let text = fs::read_to_string(&path).unwrap();
    let entry = "\n[hooks.state]\n\n[hooks.state.\"compactd@compactd:hooks/hooks.json:stop:0:0\"]\n\
                 trusted_hash = \"sha256:1\"\ntrusted_content_hash = \"sha256:2\"\n";
    fs::write(&path, format!("{text}{entry}")).unwrap();
    // And keeps what was approved in a file of its own, beside that of another plugin.
    machine.put(".codex/.hook-trust/0a", "sha256:2");
    machine.put(".codex/.hook-trust/0b", "sha256:3");
    machine.put(".codex/plugins/data/compactd-compactd/x", "x");
    let ran = machine.run(&["uninstall"]);
    assert_eq!((ran.good(), ran.err.as_str()), ("removed compactd\n", ""));
    assert!(!machine.path(".codex/.hook-trust/0a").exists());
    fs::remove_file(machine.path(".codex/.hook-trust/0b")).unwrap();
    fs::remove_dir(machine.path(".codex/.hook-trust")).unwrap();
    machine.assert_tree(&before);
}

#[test]
fn a_host_that_has_gone_is_not_needed() {
    let machine = Machine::with_codex();
    machine.put(CONFIG, "model = \"x\" # é\r\n");
    machine.put(".codex/plugins/cache/other/x/1/README.md", "other");
    let before = machine.tree();
    machine.run(&["install", "--trust-hooks"]).good();
    fs::remove_file(machine.path("bin/codex")).unwrap();
    let ran = machine.run(&["uninstall"]);
    assert_eq!((ran.good(), ran.err.as_str()), ("removed compactd\n", ""));
    machine.assert_tree(&before);
}

#[test]
fn every_host_that_is_found_gets_the_plugin() {
    let machine = Machine::new();
    machine.add_codex();
    machine.put(CONFIG, "model = \"x\"\n");
    machine.put(".claude/settings.json", "{ }");
    let before = machine.tree();
    let plan = machine.run(&["install", "--dry-run"]);
    assert!(plan.good().contains("claude plugin install") && plan.out.contains(ADD), "{plan:?}");
    machine.run(&["install"]).good();
    assert!(machine.enabled());
    assert!(machine.path(".codex/plugins/cache/compactd").exists());
    machine.run(&["uninstall"]).good();
    machine.assert_tree(&before);
    // One alone, then the other.
    let ran = machine.run(&["install", "--host", "claude", "--trust-hooks"]);
    assert!(ran.err.contains("--trust-hooks did nothing"), "{ran:?}");
    assert_eq!(fs::read_to_string(machine.path(CONFIG)).unwrap(), "model = \"x\"\n");
    assert!(!machine.path(".local/share/compactd/plugins/codex").exists());
    machine.run(&["install", "--host", "codex"]).good();
    machine.run(&["uninstall"]).good();
    machine.assert_tree(&before);
}

#[test]
fn without_a_host_the_rest_is_installed() {
    let machine = Machine::with_codex();
    fs::remove_file(machine.path("bin/codex")).unwrap();
    let before = machine.tree();
    let ran = machine.run(&["install", "--host", "codex"]);
    assert!(ran.good().contains("not yet in Codex"), "{ran:?}");
    assert!(ran.err.contains(ADD) && !ran.err.contains("claude"), "{ran:?}");
    assert!(!machine.path(".codex").exists());
    machine.run(&["uninstall"]).good();
    machine.assert_tree(&before);
    machine.run(&["install", "--codex", "nowhere/codex"]).fails(1, "is not a program", "--codex");
    machine.assert_tree(&before);
}

#[test]
fn what_is_switched_off_is_named_before_anything_is_done() {
    for (feature, trust, words) in [
        ("hooks", true, "features.hooks = false: Codex runs no hook, trusted or not"),
        ("plugins", true, "features.plugins = false: Codex installs no plugin"),
        ("plugins", false, "features.plugins = false: Codex installs no plugin"),
    ] {
        let machine = Machine::with_codex();
        machine.put(CONFIG, format!("[features]\n{feature} = false\n"));
        let before = machine.tree();
        let args: &[&str] = if trust { &["install", "--trust-hooks"] } else { &["install"] };
        let ran = machine.run(args);
        ran.fails(1, words, &format!("`codex features enable {feature}`, then install again"));
        machine.assert_tree(&before);
        // What it says to do is enough.
        machine.type_hinted(&ran, "hint: ", None);
        machine.run(args).good();
    }
    let machine = Machine::with_codex();
    machine.put(CONFIG, "features.hooks = false\n");
    let ran = machine.run(&["install"]);
    assert!(ran.good().starts_with("installed"), "{ran:?}");
    assert!(ran.err.contains("features.hooks = false in ~/.codex/config.toml keeps"), "{ran:?}");
    // Nor is it said that all is well.
    machine.run(&["install", "--trust-hooks"]).fails(1, "runs no hook", "features enable hooks");
}

#[test]
fn doctor_mends_what_came_from_another_marketplace() {
    let elsewhere = "codex-plugin  compactd@compactd is enabled; a marketplace named compactd comes \
                     from elsewhere: ~/checkout";
    for (is_added, words) in
        [(false, "Codex has no plugin"), (true, "0.0.1, not"), (true, elsewhere)]
    {
        let machine = Machine::with_codex();
        machine.run(&["install"]).good();
        let copies = machine.path(".codex/plugins/cache/compactd/compactd");
        if words != elsewhere {
            fs::rename(copies.join(env!("CARGO_PKG_VERSION")), copies.join("0.0.1")).unwrap();
        }
        let ours = machine.path(".local/share/compactd/plugins/codex").display().to_string();
        let checkout = machine.path("checkout").display().to_string();
        let mut text = fs::read_to_string(machine.path(CONFIG)).unwrap().replace(&ours, &checkout);
        if !is_added {
            fs::remove_dir_all(&copies).unwrap();
            text.truncate(text.find("[plugins").unwrap());
        }
        fs::write(machine.path(CONFIG), text).unwrap();
        let out = machine.run(&["doctor"]).out;
        assert!(out.contains(words) && out.contains("from elsewhere: ~/checkout\n"), "{out}");
        let fix = out.lines().skip_while(|line| !line.contains(words)).nth(1).unwrap().trim();
        // As for every other check.
        let is_blunt = |line: &str| line.trim().starts_with("compactctl install --host codex");
        assert!(!out.lines().any(is_blunt), "{out}");
        machine.type_in(fix, None);
        let out = machine.run(&["doctor"]).out;
        assert!(out.contains("is enabled, from ~/.local/share/compactd/plugins/codex"), "{out}");
    }
}

#[test]
fn what_was_typed_by_hand_is_undone_too() {
    for (config, named) in
        [("model = \"x\" # é\n", None), ("# a\n[features]\nhooks = true\n", Some("cfg"))]
    {
        let machine = Machine::with_codex();
        fs::remove_file(machine.path("bin/codex")).unwrap();
        let path = machine.put(&format!("{}/config.toml", named.unwrap_or(".codex")), config);
        let run = |args: &[&str]| {
            let mut command = machine.command(args);
            command.envs(named.map(|name| ("CODEX_HOME", machine.path(name))));
            kit::Ran::of(command.output().unwrap())
        };
        let ran = run(&["install", "--host", "codex"]);
        machine.add_codex();
        machine.type_hinted(&ran, "once it is there", named);
        let copy = path.with_file_name("plugins/cache/compactd");
        assert!(copy.exists() && fs::read_to_string(&path).unwrap().contains("compactd@compactd"));
        let installed = machine.tree();
        let ran = run(&["uninstall", "--dry-run"]);
        assert!(
            ran.good().contains("would take the plugin, which came by hand, out of"),
            "{ran:?}"
        );
        machine.assert_tree(&installed);
        let ran = run(&["uninstall"]);
        assert_eq!(ran.good(), "removed compactd\n");
        assert!(ran.err.contains("config.toml got the plugin by hand"), "{ran:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), config);
        assert!(!copy.exists() && !machine.path(".local/share/compactd").exists());
        assert_eq!(run(&["uninstall"]).good(), "nothing is installed\n");
    }
}

#[test]
fn a_host_that_fails_leaves_nothing_behind() {
    for step in ["marketplace add", "plugin add", "app-server"] {
        let machine = Machine::new();
        machine.add_codex();
        machine.put(CONFIG, "model = \"x\"\r\n# é");
        let before = machine.tree();
        machine.put("fail", step);
        let words = if step == "app-server" { "does not tell" } else { "the host says no" };
        machine.run(&["install", "--trust-hooks"]).fails(1, words, "`");
        fs::remove_file(machine.path("fail")).unwrap();
        machine.assert_tree(&before);
    }
}

#[test]
fn a_new_version_or_a_changed_copy_is_installed_anew() {
    let machine = Machine::with_codex();
    machine.put(CONFIG, "model = \"x\"\r\n");
    let before = machine.tree();
    machine.run(&["install"]).good();
    let copies = machine.path(".codex/plugins/cache/compactd/compactd");
    let ours = copies.join(env!("CARGO_PKG_VERSION"));
    fs::write(ours.join("README.md"), "changed").unwrap();
    machine.run(&["install"]).good();
    assert_ne!(fs::read_to_string(ours.join("README.md")).unwrap(), "changed");
    fs::rename(&ours, copies.join("0.0.1")).unwrap();
    machine.put(".local/share/compactd/plugins/codex/compactd/old", "old");
    machine.run(&["install"]).good();
    assert!(ours.exists() && !copies.join("0.0.1").exists());
    assert!(!machine.path(".local/share/compactd/plugins/codex/compactd/old").exists());
    assert!(machine.run(&["install"]).good().starts_with("already installed"));
    machine.run(&["uninstall"]).good();
    machine.assert_tree(&before);
}

#[test]
fn a_linked_configuration_and_a_named_folder_are_followed() {
    let machine = Machine::with_codex();
    machine.put("dotfiles/codex.toml", "model = \"x\"\n# é\n");
    let named = |args: &[&str]| {
        let mut command = machine.command(args);
        kit::Ran::of(command.env("CODEX_HOME", machine.path("cfg")).output().unwrap())
    };
    let before = machine.tree();
    named(&["install"]).fails(1, "which is not there", "mkdir -p");
    machine.assert_tree(&before);
    fs::create_dir(machine.path("cfg")).unwrap();
    symlink("../dotfiles/codex.toml", machine.path("cfg/config.toml")).unwrap();
    let before = machine.tree();
    let ran = named(&["install", "--trust-hooks"]);
    ran.good();
    assert!(ran.err.contains("is a link: Codex writes ~/dotfiles/codex.toml"), "{ran:?}");
    let text = fs::read_to_string(machine.path("dotfiles/codex.toml")).unwrap();
    assert!(text.contains("trusted_content_hash"), "{text}");
    assert!(machine.path("cfg/config.toml").is_symlink() && !machine.path(".codex").exists());
    // The record knows the folder, whatever the variable says now.
    machine.run(&["uninstall"]).good();
    machine.assert_tree(&before);
}

#[test]
fn a_marketplace_that_was_pointed_elsewhere_stays() {
    let machine = Machine::with_codex();
    machine.run(&["install"]).good();
    let path = machine.path(CONFIG);
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("/.local/share/compactd/plugins/codex", "/checkout");
    fs::write(&path, &text).unwrap();
    let ran = machine.run(&["uninstall"]);
    assert!(ran.err.contains("comes from elsewhere by now"), "{ran:?}");
    ran.good();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert!(machine.path(".codex/plugins/cache/compactd").exists());
}

#[test]
fn what_forbids_it_is_told_and_nothing_changes() {
    for (config, mode, message, hint) in [
        ("a = \n", 0o644, "is not TOML", "codex does not start"),
        ("a = 1\na = 2\n", 0o644, "is not TOML", "codex does not start"),
        ("a = 1\n", 0o444, "is read-only (mode 444)", "Codex would replace it"),
        (
            "[marketplaces.compactd]\nsource_type = \"local\"\nsource = \"/else\"\n",
            0o644,
            "another marketplace named compactd is known to Codex, from /else",
            "codex plugin marketplace remove compactd",
        ),
    ] {
        let machine = Machine::with_codex();
        let path = machine.put(CONFIG, config);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let before = machine.tree();
        machine.run(&["install"]).fails(1, message, hint);
        machine.assert_tree(&before);
    }
    // What cannot be read any more cannot be undone, and everything that is needed later stays.
    let machine = Machine::with_codex();
    machine.run(&["install"]).good();
    let text = fs::read_to_string(machine.path(CONFIG)).unwrap();
    machine.put(CONFIG, format!("{text}a = \n"));
    let broken = machine.tree();
    machine.run(&["uninstall"]).fails(1, "config.toml cannot be read", "doctor");
    machine.assert_tree(&broken);
    machine.put(CONFIG, text);
    machine.run(&["uninstall"]).good();
    assert!(!machine.path(".codex").exists());
}

#[test]
fn doctor_finds_hooks_that_are_not_trusted() {
    let machine = Machine::with_codex();
    machine.put(CONFIG, "model = \"x\"\n");
    let check = |name: &str| {
        let before = machine.tree();
        let ran = machine.run(&["doctor", "--json"]);
        machine.assert_tree(&before);
        let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(ran.status == 0, report["healthy"] == true, "{ran:?}");
        let found = report["checks"].as_array().unwrap();
        let found = found.iter().find(|check| check["name"] == name).cloned();
        found.unwrap_or_else(|| panic!("no {name}: {}", ran.out))
    };
    let is = |name: &str, state: &str, words: &str, fix: &str| {
        let check = check(name);
        assert_eq!(check["state"], state, "{check}");
        assert!(check["evidence"].as_str().unwrap().contains(words), "{check}");
        assert!(check["fix"].as_str().unwrap_or_default().contains(fix), "{check}");
    };
    let install = "compactctl install --host codex";
    is("codex-plugin", "fail", "Codex has no plugin", install);
    assert!(!machine.run(&["doctor"]).out.contains("Claude Code"));
    machine.run(&["install"]).good();
    is("codex", "ok", "Codex 0.171.0", "");
    is("codex-plugin", "ok", "is enabled, from ~/.local/share/compactd/plugins/codex", "");
    is("codex-hooks", "fail", "not trusted: ", &format!("{install} --trust-hooks"));
    // What it says to do mends it.
    machine.run(&["install", "--host", "codex", "--trust-hooks"]).good();
    is("codex-hooks", "ok", "hooks are trusted", "");
    for name in ["codex-config", "codex-files", "codex-shim", "versions"] {
        is(name, "ok", "", "");
    }
    assert!(machine.run(&["doctor"]).good().contains("\nok    codex-hooks   "));
    let readme =
        format!(".codex/plugins/cache/compactd/compactd/{}/README.md", env!("CARGO_PKG_VERSION"));
    fs::write(machine.path(&readme), "changed").unwrap();
    is("codex-plugin", "fail", "README.md differs", install);
    is("codex-hooks", "fail", "changed since they were trusted: ", install);
    machine.run(&["install", "--host", "codex"]).good();
    is("codex-hooks", "ok", "hooks are trusted", "");
    let text = fs::read_to_string(machine.path(CONFIG)).unwrap();
    machine.put(CONFIG, format!("features.hooks = false\n{text}"));
    is("codex-hooks", "fail", "lists none", "codex features enable hooks");
    is("codex-config", "fail", "features.hooks = false", "codex features enable hooks");
    machine.put(CONFIG, text);
    fs::remove_file(machine.path("bin/codex")).unwrap();
    is("codex", "warn", "not in PATH", "npm install");
    is("codex-hooks", "ok", "names", "");
    machine.run(&["uninstall"]).good();
    assert_eq!(fs::read_to_string(machine.path(CONFIG)).unwrap(), "model = \"x\"\n");
}

#[test]
fn doctor_knows_which_host_is_meant() {
    let machine = Machine::new();
    machine.add_codex();
    machine.run(&["install", "--host", "claude"]).good();
    let report = machine.run(&["doctor", "--json"]).json();
    let state = |report: &serde_json::Value, name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap()["state"].clone()
    };
    assert_eq!(
        (state(&report, "plugin"), state(&report, "codex-plugin")),
        ("ok".into(), "warn".into())
    );
    machine.run(&["uninstall"]).good();
    fs::create_dir(machine.path("cfg")).unwrap();
    let mut command = machine.command(&["install", "--host", "codex", "--trust-hooks"]);
    kit::Ran::of(command.env("CODEX_HOME", machine.path("cfg")).output().unwrap()).good();
    let ran = machine.run(&["doctor"]);
    assert!(ran.good().contains("has the plugin in ~/cfg only, not in ~/.codex"), "{ran:?}");
    assert!(ran.out.contains(&format!("export CODEX_HOME={}", machine.path("cfg").display())));
    let report = machine.run(&["doctor", "--json"]).json();
    assert_eq!(
        (state(&report, "plugin"), state(&report, "codex-hooks")),
        ("warn".into(), "ok".into())
    );
}
