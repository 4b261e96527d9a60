//! Settings of Codex that keep hooks from running or change what a compaction is, hooks that would run
//! twice, and the folders that have to be read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use toml::{Table, Value};

use super::{Check, Scene, State};
use crate::install::codex::config;
use crate::install::places::Places;

const NAME: &str = "codex-config";
/// The program that our hooks run, in whatever file they stand.
const SHIM: &str = "compactd-hook";
/// After a compaction the host keeps up to 20,000 tokens of messages, and needs 12,000 for itself: with
/// a smaller limit it may compact again at once.
const LIMIT_LEAST: i64 = 32_000;

/// Looks into every file of settings that the host reads here.
pub(super) fn settings(scene: &Scene<'_>, places: &Places) -> Vec<Check> {
    let mut checks = Vec::new();
    let project = scene.project.join(".codex");
    let mut folders = vec![places.codex.path.clone()];
    if project != places.codex.path {
        folders.push(project);
    }
    for folder in &folders {
        let path = folder.join("config.toml");
        let editor = format!("${{EDITOR:-vi}} {}", places.typed(&path));
        match read(&path) {
            Ok(config) => file(&config, &path, &editor, places, &mut checks),
            Err(why) => {
                let evidence = format!("{} is not TOML: {why}", places.shown(&path));
                checks.push(Check::bad(NAME, State::Fail, evidence, editor));
            }
        }
    }
    let managed = scene.codex_managed.join("requirements.toml");
    let config = read(&managed).unwrap_or_default();
    if config.get("allow_managed_hooks_only") == Some(&Value::Boolean(true)) {
        let shown = places.shown(&managed);
        let evidence =
            format!("allow_managed_hooks_only keeps the plugin's hooks from running in {shown}");
        let fix = format!("sudoedit {}", places.typed(&managed));
        checks.push(Check::bad(NAME, State::Fail, evidence, fix));
    }
    checks.extend(folders.iter().flat_map(|folder| doubles(folder, places)));
    if checks.is_empty() {
        checks.push(Check::ok(NAME, "none of Codex's settings is in the way"));
    }
    checks
}

fn read(path: &Path) -> Result<Table, String> {
    match fs::read(path) {
        Ok(bytes) => config::parse(&bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Table::new()),
        Err(error) => Err(error.to_string()),
    }
}

fn file(config: &Table, path: &Path, editor: &str, places: &Places, checks: &mut Vec<Check>) {
    let shown = places.shown(path);
    let mut found = |state, what: &str, fix: String| {
        checks.push(Check::bad(NAME, state, format!("{what} ({shown})"), fix));
    };
    let is_own = path == places.codex.config();
    for feature in config::switched_off(config) {
        let fix = if is_own { config::switch_on(feature) } else { editor.to_owned() };
        let what = format!("features.{feature} = false keeps the plugin's hooks from running");
        found(State::Fail, &what, fix);
    }
    let limit = config.get("model_auto_compact_token_limit").and_then(Value::as_integer);
    if let Some(limit) = limit.filter(|limit| *limit < LIMIT_LEAST) {
        let what = format!(
            "model_auto_compact_token_limit = {limit} leaves no room: what Codex keeps in a \
             compaction may reach it again at once"
        );
        found(State::Warn, &what, editor.to_owned());
    }
    for key in ["compact_prompt", "experimental_compact_prompt_file"] {
        if config.contains_key(key) {
            let what = format!(
                "{key} replaces the prompt of Codex's own compactions: what they keep is up to it"
            );
            found(State::Warn, &what, editor.to_owned());
        }
    }
}

/// Hooks of a person's own that run our shim beside those of the plugin.
fn doubles(folder: &Path, places: &Places) -> Vec<Check> {
    let hooks = folder.join("hooks.json");
    let config = folder.join("config.toml");
    let in_json = fs::read(&hooks)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Json>(&bytes).ok())
        .is_some_and(|hooks| has_shim(&hooks));
    // What was approved is not what runs.
    let mut tables = read(&config).unwrap_or_default();
    let own = tables.get_mut("hooks").and_then(Value::as_table_mut).map(|hooks| {
        hooks.remove("state");
        serde_json::to_value(&*hooks).is_ok_and(|hooks| has_shim(&hooks))
    });
    let found = [(hooks, in_json), (config, own == Some(true))];
    let double = |path: PathBuf| {
        let shown = places.shown(&path);
        let evidence = format!("{shown} runs {SHIM} too: every hook reaches the daemon twice");
        let fix = format!("${{EDITOR:-vi}} {}", places.typed(&path));
        Check::bad("codex-twice", State::Warn, evidence, fix)
    };
    found.into_iter().filter(|(_, is_found)| *is_found).map(|(path, _)| double(path)).collect()
}

fn has_shim(value: &Json) -> bool {
    match value {
        Json::String(text) => text.contains(SHIM),
        Json::Array(all) => all.iter().any(has_shim),
        Json::Object(all) => all.values().any(has_shim),
        _ => false,
    }
}

/// Whether rollouts and the locks of live threads can be read.
pub(super) fn folders(places: &Places) -> Check {
    const NAME: &str = "codex-files";
    let mut seen = Vec::new();
    for folder in [places.codex.sessions(), places.codex.locks()] {
        let shown = places.shown(&folder);
        match fs::read_dir(&folder) {
            Ok(_) => seen.push(format!("{shown} can be read")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                seen.push(format!("{shown} is not there yet"));
            }
            Err(error) => {
                let evidence = format!("{shown} cannot be read: {error}");
                let fix = format!("ls -ld {}", places.typed(&folder));
                return Check::bad(NAME, State::Fail, evidence, fix);
            }
        }
    }
    Check::ok(NAME, seen.join(", "))
}

#[cfg(test)]
mod tests {
    use compactd_api::dirs::{Env, Os};

    use super::*;

    fn look(files: &[(&str, &str)]) -> (Vec<Check>, Check) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let lookup = |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
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
        let places = Places::new(&env, &lookup).unwrap();
        (settings(&scene, &places), folders(&places))
    }

    #[test]
    fn nothing_in_the_way_is_one_good_check() {
        let harmless = "model_auto_compact_token_limit = 32000\n[features]\nhooks = true\n\
                        [hooks.state.\"compactd-hook\"]\ntrusted_hash = \"compactd-hook\"\n";
        for files in [&[][..], &[("home/.codex/config.toml", harmless)]] {
            let (checks, folders) = look(files);
            assert_eq!(checks.len(), 1, "{checks:?}");
            assert_eq!((checks[0].state, folders.state), (State::Ok, State::Ok));
        }
    }

    #[test]
    fn each_setting_in_the_way_is_named_with_its_file() {
        let own = "home/.codex/config.toml";
        for (file, text, state, words, fix) in [
            (
                own,
                "[features]\nhooks = false",
                State::Fail,
                "features.hooks",
                "codex features enable hooks",
            ),
            (
                own,
                "features.plugins = false",
                State::Fail,
                "features.plugins",
                "codex features enable plugins",
            ),
            (
                own,
                "features = { codex_hooks = false }",
                State::Fail,
                "codex_hooks",
                "codex features enable codex_hooks",
            ),
            (
                "project/.codex/config.toml",
                "[features]\nhooks = false",
                State::Fail,
                "project",
                "project",
            ),
            (own, "model_auto_compact_token_limit = 31_999", State::Warn, "no room", "config.toml"),
            (own, "compact_prompt = \"x\"", State::Warn, "up to it", "config.toml"),
            (
                own,
                "experimental_compact_prompt_file = \"x\"",
                State::Warn,
                "up to it",
                "config.toml",
            ),
            (own, "a = \n", State::Fail, "is not TOML", "config.toml"),
            (
                "etc/requirements.toml",
                "allow_managed_hooks_only = true",
                State::Fail,
                "allow_managed",
                "sudoedit",
            ),
            (
                "home/.codex/hooks.json",
                r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/x/compactd-hook codex Stop"}]}]}}"#,
                State::Warn,
                "hooks.json runs compactd-hook too",
                "hooks.json",
            ),
            (
                own,
                "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = \"compactd-hook codex Stop\"\n",
                State::Warn,
                "config.toml runs compactd-hook too",
                "config.toml",
            ),
        ] {
            let (checks, _) = look(&[(file, text)]);
            assert_eq!(checks.len(), 1, "{text}: {checks:?}");
            assert_eq!(checks[0].state, state, "{text}");
            assert!(checks[0].evidence.contains(words), "{text}: {checks:?}");
            assert!(checks[0].fix.as_ref().unwrap().contains(fix), "{text}: {checks:?}");
        }
    }

    #[test]
    fn folders_that_cannot_be_read_are_told() {
        let (_, folders) = look(&[("home/.codex/thread-writer-locks", "a file")]);
        assert_eq!(folders.state, State::Fail);
        assert!(folders.evidence.contains("thread-writer-locks cannot be read"), "{folders:?}");
    }
}
