//! The plugin in Codex: installed, byte for byte ours, and its hooks approved, without which the host
//! skips them and does not say so.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{Check, Scene, State};
use crate::install::codex::config::{Known, switch_on};
use crate::install::codex::hooks::{self, Hook};
use crate::install::codex::{self, Codex, Copy};
use crate::install::hosts::quoted;
use crate::install::places::Places;
use crate::install::plugin::{CODEX, ID, events};
use crate::install::record::Record;
use crate::install::run;

/// The version of the host that this plugin was tried with, and the first one it knows.
const TESTED: [u64; 3] = [0, 171, 0];
/// What `--version` may take.
const ASK: Duration = Duration::from_secs(20);
const INSTALL: &str = "compactctl install --host codex";
/// What our own installation needs first, which refuses to take the place of another marketplace.
const FORGET: &str = "codex plugin marketplace remove compactd && ";
const TRUST: &str = "compactctl install --host codex --trust-hooks";

/// The host's program, if it is there.
pub(super) fn find(scene: &Scene<'_>, places: &Places) -> Option<Codex> {
    let path = (scene.lookup)("PATH");
    Codex::find(places, None, path.as_deref()).ok().flatten()
}

/// Whether the host's files name the plugin.
pub(super) fn has_plugin(places: &Places) -> bool {
    codex::known(&places.codex).enabled.is_some() || codex::copy(&places.codex) != Copy::Missing
}

/// The version of the host's copy.
pub(super) fn version(places: &Places) -> Option<String> {
    let (_, newest) = codex::newest(&places.codex)?;
    let manifest = fs::read(newest.join(".codex-plugin/plugin.json")).ok()?;
    let manifest: Value = serde_json::from_slice(&manifest).ok()?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

/// Looks at the folder that the plugin was installed into, where `CODEX_HOME` named it then and names
/// nothing now.
pub(super) fn elsewhere(places: &mut Places) -> Option<Check> {
    if places.codex.is_named || has_plugin(places) {
        return None;
    }
    let record = Record::load(&places.record()).ok()??;
    let folder = record.codex.iter().find(|host| host.is_named)?.folder(&places.home);
    let usual = places.shown(&places.codex.path);
    places.codex = folder;
    let there = places.shown(&places.codex.path);
    let evidence =
        format!("CODEX_HOME is not set: Codex has the plugin in {there} only, not in {usual}");
    let fix = format!("export CODEX_HOME={}", quoted(&places.codex.path.display().to_string()));
    Some(Check::bad("codex-folder", State::Warn, evidence, fix))
}

/// Looks at the host, at the plugin, and at what was approved of it.
pub(super) fn codex(host: Option<&Codex>, is_wanted: bool, places: &Places) -> Vec<Check> {
    let known = codex::known(&places.codex);
    let mut checks = look(host, &known, is_wanted, places);
    if !elsewhere_said(&known, places).is_empty() {
        let fixes = checks.iter_mut().filter_map(|check| check.fix.as_mut());
        for fix in fixes.filter(|fix| fix.starts_with(INSTALL)) {
            fix.insert_str(0, FORGET);
        }
    }
    checks
}

fn look(host: Option<&Codex>, known: &Known, is_wanted: bool, places: &Places) -> Vec<Check> {
    let copy = codex::copy(&places.codex);
    let mut checks = vec![program(host)];
    if let Err(check) = presence(known, &copy, is_wanted, places) {
        checks.push(check);
        return checks;
    }
    checks.push(bundle(known, &copy, places));
    checks.push(shim(places));
    checks.push(match host.map(hooks::ask) {
        Some(Ok(hooks)) => trust(&hooks, &events(CODEX), &copy, places),
        Some(Err(error)) => Check::bad("codex-hooks", State::Warn, error.told(), "codex --version"),
        None => recorded(known, places),
    });
    checks
}

fn program(host: Option<&Codex>) -> Check {
    let Some(host) = host else {
        let fix = "npm install -g @openai/codex";
        return Check::bad("codex", State::Warn, "codex is not in PATH", fix);
    };
    let ran = run::run(Command::new(&host.program).arg("--version"), ASK).ok();
    judge(&ran.map(|ran| ran.out).unwrap_or_default())
}

fn judge(said: &str) -> Check {
    let text = said.split_whitespace().nth(1).unwrap_or_default();
    let number = |part: &str| {
        let digits = part.split(|letter: char| !letter.is_ascii_digit()).next()?;
        digits.parse::<u64>().ok()
    };
    let mut parts = text.splitn(3, '.').map(number);
    let mut next = || parts.next().flatten();
    let (Some(major), Some(minor), Some(patch)) = (next(), next(), next()) else {
        let evidence = "codex does not tell its version";
        return Check::bad("codex", State::Warn, evidence, "codex --version");
    };
    let version = [major, minor, patch];
    let tested = TESTED.map(|part| part.to_string()).join(".");
    if version < TESTED {
        let evidence = format!("Codex {text} is older than {tested}, the first one that was tried");
        return Check::bad("codex", State::Warn, evidence, "codex update");
    }
    if version == TESTED {
        return Check::ok("codex", format!("Codex {text}"));
    }
    Check::ok("codex", format!("Codex {text}; tried with {tested}"))
}

/// Whether the host has the plugin at all.
fn presence(known: &Known, copy: &Copy, is_wanted: bool, places: &Places) -> Result<(), Check> {
    let config = places.shown(&places.codex.config());
    let state = if is_wanted { State::Fail } else { State::Warn };
    let evidence = match (known.enabled, copy) {
        (None, _) => format!("Codex has no plugin {ID} ({config})"),
        (Some(false), _) => format!("{ID} is installed and not enabled ({config})"),
        (Some(true), Copy::Missing) => format!("{config} names {ID}, and Codex has no copy of it"),
        (Some(true), _) => return Ok(()),
    };
    let elsewhere = elsewhere_said(known, places);
    Err(Check::bad("codex-plugin", state, format!("{evidence}{elsewhere}"), INSTALL))
}

/// Says where the marketplace comes from, if not from us.
fn elsewhere_said(known: &Known, places: &Places) -> String {
    match &known.marketplace {
        Some(from) if !codex::is_ours(known, &places.codex_marketplace()) => {
            // What is no folder is shown as the file has it.
            let from = places.shown(Path::new(from)).trim().replace('\n', ", ");
            format!("; a marketplace named compactd comes from elsewhere: {from}")
        }
        _ => String::new(),
    }
}

/// Whether the copy that runs is ours.
fn bundle(known: &Known, copy: &Copy, places: &Places) -> Check {
    const NAME: &str = "codex-plugin";
    let ours = env!("CARGO_PKG_VERSION");
    let shown = places.shown(&places.codex.copy());
    let elsewhere = elsewhere_said(known, places);
    match copy {
        Copy::Other { version, .. } if version != ours => {
            let evidence = format!("{shown} holds version {version}, not {ours}{elsewhere}");
            Check::bad(NAME, State::Warn, evidence, INSTALL)
        }
        Copy::Other { version, file } => {
            let evidence = format!(
                "{shown}/{version} is not as it was installed: {file} differs, which takes its \
                 hooks' approval away{elsewhere}"
            );
            Check::bad(NAME, State::Fail, evidence, INSTALL)
        }
        _ => match &known.marketplace {
            // The next `plugin add` may bring something else.
            Some(_) if !elsewhere.is_empty() => {
                Check::bad(NAME, State::Warn, format!("{ID} is enabled{elsewhere}"), INSTALL)
            }
            Some(from) => {
                let from = places.shown(Path::new(from));
                Check::ok(NAME, format!("{ID} is enabled, from {from}"))
            }
            // The copy runs all the same.
            None => {
                let evidence = format!("{ID} is enabled, and its marketplace is gone");
                Check::bad(NAME, State::Warn, evidence, INSTALL)
            }
        },
    }
}

fn shim(places: &Places) -> Check {
    let shim = places.bin().join("compactd-hook");
    let shown = places.shown(&shim);
    if run::is_program(&shim) {
        return Check::ok("codex-shim", format!("the hooks lead to {shown}"));
    }
    let evidence = format!("the hooks lead to {shown}, no program");
    Check::bad("codex-shim", State::Fail, evidence, INSTALL)
}

/// Whether the host runs every hook of ours.
fn trust(hooks: &[Hook], events: &[String], copy: &Copy, places: &Places) -> Check {
    const NAME: &str = "codex-hooks";
    if hooks.is_empty() {
        let why = "Codex lists none of the plugin's hooks";
        let (evidence, fix) = match codex::switched_off(&places.codex).first() {
            Some(off) => (format!("{why}: features.{off} = false"), switch_on(off)),
            None if *copy == Copy::Ours => {
                (format!("{why}: something switches hooks off"), "codex features list".to_owned())
            }
            None => (why.to_owned(), INSTALL.to_owned()),
        };
        return Check::bad(NAME, State::Fail, evidence, fix);
    }
    let named = |wanted: &dyn Fn(&&Hook) -> bool| -> Vec<&str> {
        let names = hooks.iter().filter(wanted).map(|hook| &*hook.event_name);
        names.collect::<BTreeSet<_>>().into_iter().collect()
    };
    let is_status = |status: &'static str| move |hook: &&Hook| hook.trust_status == status;
    let modified = named(&is_status("modified"));
    let untrusted = named(&|hook| !hook.is_trusted() && hook.trust_status != "modified");
    let off = named(&|hook| !hook.enabled);
    let lower = |event: &String| event.to_lowercase();
    let listed: BTreeSet<String> = hooks.iter().map(|hook| lower(&hook.event_name)).collect();
    let missing: Vec<&str> =
        events.iter().filter(|event| !listed.contains(&lower(event))).map(String::as_str).collect();
    let mut wrong = Vec::new();
    for (names, what) in [
        (&untrusted, "not trusted"),
        (&modified, "changed since they were trusted"),
        (&off, "switched off"),
        (&missing, "not listed"),
    ] {
        if !names.is_empty() {
            wrong.push(format!("{what}: {}", names.join(", ")));
        }
    }
    if wrong.is_empty() {
        return Check::ok(NAME, format!("{} hooks are trusted", hooks.len()));
    }
    let evidence = format!("Codex skips hooks without saying so; {}", wrong.join("; "));
    let fix = if *copy != Copy::Ours || !missing.is_empty() {
        INSTALL.to_owned()
    } else if untrusted.is_empty() && modified.is_empty() {
        format!("${{EDITOR:-vi}} {}", places.typed(&places.codex.config()))
    } else {
        TRUST.to_owned()
    };
    Check::bad(NAME, State::Fail, evidence, fix)
}

/// What can be said of the approval without the host.
fn recorded(known: &Known, places: &Places) -> Check {
    let config = places.shown(&places.codex.config());
    if known.trusted.is_empty() {
        let evidence = format!("{config} names none of the plugin's hooks as trusted");
        return Check::bad("codex-hooks", State::Warn, evidence, TRUST);
    }
    let count = known.trusted.len();
    let evidence =
        format!("{config} names {count} hooks as trusted; without codex no one can tell");
    Check::ok("codex-hooks", evidence)
}

#[cfg(test)]
mod tests {
    use compactd_api::dirs::{Env, Os};

    use super::*;
    use crate::install::places::CodexFolder;

    fn places() -> Places {
        let lookup = |name: &str| (name == "HOME").then(|| "/h".into());
        Places::new(&Env::from_lookup(Os::Linux, lookup), &lookup).unwrap()
    }

    #[test]
    fn the_version_is_that_of_the_newest_copy() {
        let home = tempfile::tempdir().unwrap();
        let places = Places { codex: CodexFolder::new(home.path(), None), ..places() };
        for said in ["0.9.0", "0.10.0"] {
            let folder = places.codex.copy().join(said).join(".codex-plugin");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("plugin.json"), format!("{{\"version\": \"{said}\"}}")).unwrap();
        }
        assert_eq!(version(&places).as_deref(), Some("0.10.0"));
    }

    #[test]
    fn the_host_is_judged_by_its_version() {
        for (said, state, words) in [
            ("codex-cli 0.171.0\n", State::Ok, "Codex 0.171.0"),
            ("codex-cli 0.172.0-alpha.1", State::Ok, "tried with 0.171.0"),
            ("codex-cli 1.0.0", State::Ok, "tried with 0.171.0"),
            ("codex-cli 0.170.9", State::Warn, "older than 0.171.0"),
            ("codex-cli", State::Warn, "does not tell"),
            ("", State::Warn, "does not tell"),
            ("codex-cli x.y.z", State::Warn, "does not tell"),
        ] {
            let check = judge(said);
            assert_eq!(check.state, state, "{said}");
            assert!(check.evidence.contains(words), "{said}: {check:?}");
            assert_eq!(check.fix.is_some(), state != State::Ok, "{said}");
        }
    }

    #[test]
    fn each_hook_that_does_not_run_is_named_with_what_mends_it() {
        let hook = |event: &str, status: &str, enabled: bool| -> Hook {
            serde_json::from_value(serde_json::json!({
                "key": event, "eventName": event, "enabled": enabled,
                "currentHash": "a/b", "trustStatus": status,
            }))
            .unwrap()
        };
        let events = ["PreCompact".to_owned(), "Stop".to_owned()];
        let check = |status: &str, enabled, copy: &Copy| {
            let hooks = [hook("preCompact", "trusted", true), hook("stop", status, enabled)];
            trust(&hooks, &events, copy, &places())
        };
        let good = check("trusted", true, &Copy::Ours);
        assert_eq!((good.state, &*good.evidence), (State::Ok, "2 hooks are trusted"));
        assert_eq!(check("managed", true, &Copy::Ours).state, State::Ok);
        let changed = Copy::Other { version: "1".to_owned(), file: "x".to_owned() };
        for (status, enabled, copy, words, fix) in [
            ("untrusted", true, &Copy::Ours, "not trusted: stop", TRUST),
            ("modified", true, &Copy::Ours, "changed since they were trusted: stop", TRUST),
            ("modified", true, &changed, "changed since", INSTALL),
            (
                "trusted",
                false,
                &Copy::Ours,
                "switched off: stop",
                "${EDITOR:-vi} ~/.codex/config.toml",
            ),
        ] {
            let check = check(status, enabled, copy);
            assert_eq!(check.state, State::Fail);
            assert!(check.evidence.contains(words), "{check:?}");
            assert_eq!(check.fix.as_deref(), Some(fix));
        }
        let all = [hook("stop", "trusted", true)];
        let check = trust(&all, &events, &Copy::Ours, &places());
        assert!(check.evidence.contains("not listed: PreCompact"), "{check:?}");
        assert!(trust(&[], &events, &Copy::Ours, &places()).evidence.contains("none"));
    }
}
