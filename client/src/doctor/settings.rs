//! Settings of Claude Code that keep a compaction from happening, or the plugin from running.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Check, Scene, State};
use crate::install::places::Places;
use crate::install::plugin::ID;
use crate::install::restore;

const NAME: &str = "settings";

/// Variables, in the process or in the `env` of settings: name, whether any value counts, what it
/// does, how bad that is.
const VARIABLES: [(&str, bool, &str, State); 5] = [
    ("DISABLE_COMPACT", false, "switches every compaction off", State::Fail),
    ("DISABLE_AUTO_COMPACT", false, "switches automatic compaction off", State::Warn),
    (
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
        true,
        "moves the start of automatic compaction",
        State::Warn,
    ),
    (
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
        true,
        "moves the start of automatic compaction",
        State::Warn,
    ),
    ("CLAUDE_CODE_SIMPLE", false, "loads no plugin", State::Fail),
];

/// Looks into every file of settings and into the environment.
pub(super) fn settings(scene: &Scene<'_>, places: &Places) -> Vec<Check> {
    let mut checks = Vec::new();
    for (variable, any, effect, state) in VARIABLES {
        let value = (scene.lookup)(variable).unwrap_or_default();
        let value = value.to_string_lossy();
        if is_on(&value, any) {
            let evidence = format!("{variable}={value} in the environment {effect}");
            checks.push(Check::bad(NAME, state, evidence, format!("unset {variable}")));
        }
    }
    let managed = managed(&scene.managed);
    let project = scene.project.join(".claude");
    let own = [
        places.claude.settings(),
        project.join("settings.json"),
        project.join("settings.local.json"),
    ];
    let mut seen: Vec<&PathBuf> = Vec::new();
    for path in own.iter().chain(&managed) {
        // In the home the project's file is the user's.
        if !seen.contains(&path) {
            seen.push(path);
            file(path, managed.contains(path), places, &mut checks);
        }
    }
    if checks.is_empty() {
        checks.push(Check::ok(NAME, "none of Claude Code's settings is in the way"));
    }
    checks
}

fn managed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("managed-settings.d")).into_iter().flatten().flatten();
    let mut parts: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    parts.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    parts.sort();
    parts.insert(0, folder.join("managed-settings.json"));
    parts
}

fn is_on(value: &str, any: bool) -> bool {
    !value.is_empty() && (any || matches!(&*value.to_lowercase(), "1" | "true" | "yes" | "on"))
}

fn file(path: &Path, is_managed: bool, places: &Places, checks: &mut Vec<Check>) {
    let shown = places.shown(path);
    let editor = if is_managed { "sudoedit" } else { "${EDITOR:-vi}" };
    let fix = format!("{editor} {}", places.typed(path));
    let Ok(bytes) = fs::read(path) else { return };
    if let Some(why) = restore::problem(&bytes) {
        let evidence = format!("{shown} is not read by Claude Code: {why}");
        checks.push(Check::bad(NAME, State::Fail, evidence, fix));
        return;
    }
    let Some(settings) = restore::parse(&bytes) else { return };
    let mut found = |state, what: &str| {
        checks.push(Check::bad(NAME, state, format!("{what} in {shown}"), fix.clone()));
    };
    let is = |key: &str, value: bool| settings.get(key).and_then(Value::as_bool) == Some(value);
    if is("disableAllHooks", true) {
        found(State::Fail, "disableAllHooks switches hooks and mods off");
    }
    if is("autoCompactEnabled", false) {
        found(State::Warn, "autoCompactEnabled switches automatic compaction off");
    }
    if is_managed && is("allowManagedHooksOnly", true) {
        found(State::Fail, "allowManagedHooksOnly keeps the plugin's hooks from running");
    }
    if is_managed && allows_managed_mods_only(&settings) {
        found(State::Warn, "allowManagedModsOnly lets only the command hooks work");
    }
    let enabled =
        settings.get("enabledPlugins").and_then(|all| all.get(ID)).and_then(Value::as_bool);
    // In the user's own file the check of the plugin says it.
    if enabled == Some(false) && path != places.claude.settings() {
        found(State::Fail, "enabledPlugins switches the plugin off");
    }
    for (variable, any, effect, state) in VARIABLES {
        let value = match settings.get("env").and_then(|env| env.get(variable)) {
            Some(Value::String(value)) => value.clone(),
            Some(value) => value.to_string(),
            None => continue,
        };
        if is_on(&value, any) {
            found(state, &format!("{variable}={value} {effect}"));
        }
    }
}

/// An option of the host's own policy plugin; older hosts knew it as a setting.
fn allows_managed_mods_only(settings: &Value) -> bool {
    let on = |value: &Value| value.get("allowManagedModsOnly") == Some(&Value::Bool(true));
    let plugins = settings.get("pluginConfigs").and_then(Value::as_object);
    on(settings)
        || plugins
            .into_iter()
            .flat_map(|plugins| plugins.values())
            .any(|plugin| plugin.get("options").is_some_and(on))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use compactd_api::dirs::{Env, Os};

    use super::*;

    fn checks(variables: &[(&str, &str)], files: &[(&str, &str)]) -> Vec<Check> {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let lookup = |name: &str| match name {
            "HOME" => Some(home.clone().into_os_string()),
            _ => variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value)),
        };
        let env = Env::from_lookup(Os::Linux, lookup);
        let scene = Scene {
            env: &env,
            lookup: &lookup,
            project: dir.path().join("project"),
            managed: dir.path().join("managed"),
            codex_managed: dir.path().join("etc"),
            inotify: dir.path().join("inotify"),
            me: 0,
        };
        settings(&scene, &Places::new(&env, &lookup).unwrap())
    }

    #[test]
    fn nothing_in_the_way_is_one_good_check() {
        let harmless = r#"{"disableAllHooks":false,"allowManagedHooksOnly":true,"env":{"DISABLE_COMPACT":"0"}}"#;
        let checks =
            checks(&[("DISABLE_COMPACT", "false")], &[("home/.claude/settings.json", harmless)]);
        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].state, State::Ok);
    }

    #[test]
    fn each_setting_in_the_way_is_named_with_its_file() {
        for (file, text, state, words) in [
            (
                "home/.claude/settings.json",
                r#"{"disableAllHooks":true}"#,
                State::Fail,
                "disableAllHooks",
            ),
            (
                "project/.claude/settings.json",
                r#"{"disableAllHooks":true}"#,
                State::Fail,
                "project",
            ),
            (
                "project/.claude/settings.local.json",
                r#"{"enabledPlugins":{"compactd@compactd":false}}"#,
                State::Fail,
                "enabledPlugins",
            ),
            (
                "managed/managed-settings.json",
                r#"{"allowManagedHooksOnly":true}"#,
                State::Fail,
                "allowManagedHooksOnly",
            ),
            (
                "managed/managed-settings.d/a.json",
                r#"{"disableAllHooks":true}"#,
                State::Fail,
                "managed-settings.d",
            ),
            (
                "managed/managed-settings.json",
                r#"{"pluginConfigs":{"cc-plugin-sec-default@builtin":{"options":{"allowManagedModsOnly":true}}}}"#,
                State::Warn,
                "allowManagedModsOnly",
            ),
            (
                "home/.claude/settings.json",
                r#"{"env":{"DISABLE_COMPACT":1}}"#,
                State::Fail,
                "DISABLE_COMPACT=1",
            ),
            (
                "home/.claude/settings.json",
                r#"{"env":{"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE":"5"}}"#,
                State::Warn,
                "OVERRIDE=5",
            ),
            (
                "home/.claude/settings.json",
                r#"{"autoCompactEnabled":false}"#,
                State::Warn,
                "autoCompactEnabled",
            ),
            ("home/.claude/settings.json", "{\n// x\n}", State::Fail, "is not read by Claude Code"),
        ] {
            let checks = checks(&[], &[(file, text)]);
            assert_eq!(checks.len(), 1, "{text}: {checks:?}");
            assert_eq!(checks[0].state, state, "{text}");
            assert!(checks[0].evidence.contains(words), "{text}: {checks:?}");
            assert!(checks[0].fix.is_some());
        }
        let variables =
            [("DISABLE_AUTO_COMPACT", "TRUE"), ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "0")];
        let checks = checks(&variables, &[]);
        let fixes: Vec<&str> = checks.iter().filter_map(|check| check.fix.as_deref()).collect();
        assert_eq!(fixes, ["unset DISABLE_AUTO_COMPACT", "unset CLAUDE_CODE_AUTO_COMPACT_WINDOW"]);
    }
}
