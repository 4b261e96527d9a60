//! `install` and `uninstall`.

use std::path::Path;

use super::Done;
use crate::cli::{InstallArgs, UninstallArgs};
use crate::daemon::Daemon;
use crate::error::Error;
use crate::install::record::Record;
use crate::install::{
    self, Host, InstallError, Plan, Prepared, Process, Service, Wishes, apply, look, look_back,
    stop,
};
use crate::terminal::Ui;
use compactd_api::dirs::{Env, Os};

fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

fn env() -> Env {
    Env::from_lookup(Os::current(), variable)
}

fn process(env: &Env) -> Process<'_> {
    Process {
        env,
        lookup: &variable,
        ours: std::env::current_exe().unwrap_or_default(),
        me: rustix::process::geteuid().as_raw(),
    }
}

pub(super) fn run(args: &InstallArgs, ui: &Ui) -> Result<Done, Error> {
    let env = env();
    let wishes = Wishes { claude: args.claude.as_deref(), service: !args.no_service };
    let prepared = look(&process(&env), wishes)?;
    if args.dry_run {
        for line in prepared.plan.lines(&prepared.places) {
            ui.print(&format!("would {line}\n"))?;
        }
    }
    if prepared.plan.is_done() {
        ui.print(&format!("already installed: compactd {}\n", env!("CARGO_PKG_VERSION")))?;
    } else if !args.dry_run {
        apply(&prepared)?;
        let program = prepared.places.bin().join("compactd");
        if prepared.plan.renews(&program) && matches!(prepared.plan.service, Service::OnDemand(_)) {
            // The next hook starts the new one.
            if let Some(problem) = stop(&env, &program) {
                ui.warn(&problem);
            }
        }
        ui.print(&summary(&prepared))?;
    }
    if !args.dry_run
        && let Some(problem) = follow(&env, &prepared)
    {
        ui.warn(&problem);
    }
    notes(&prepared, args.dry_run, ui);
    Ok(Done::Well)
}

/// Starts a daemon anew that runs since before the host's folder was known: it reads the record at its
/// start. Tells what went wrong.
fn follow(env: &Env, prepared: &Prepared) -> Option<String> {
    let Prepared { places, manager, .. } = prepared;
    let record = Record::load(&places.record()).ok()??;
    if !places.claude.is_named || record.host(&places.claude).is_none() {
        return None;
    }
    let roots = Daemon::find(env).ok()?.status().ok()?.value.roots;
    let projects = places.claude.path.join("projects");
    if roots.is_empty() || roots.iter().any(|root| Path::new(root) == projects) {
        return None;
    }
    match manager {
        Some(manager) => manager.restart().err().map(|error| error.to_string()),
        // The next hook starts another.
        None => stop(env, &places.bin().join("compactd")),
    }
}

fn summary(prepared: &Prepared) -> String {
    let Prepared { places, plan, .. } = prepared;
    let Plan { service, host, .. } = plan;
    let daemon = match service {
        Service::OnDemand(reason) => format!("started by the hooks when needed ({reason})"),
        _ => "a service of your systemd user manager".to_owned(),
    };
    let plugin = match host {
        Host::Later(_) => "not yet in Claude Code",
        _ => "in Claude Code, from its next session on",
    };
    format!(
        "installed compactd {}\nprograms  {}\ndaemon    {daemon}\nplugin    {plugin}\n",
        env!("CARGO_PKG_VERSION"),
        places.shown(&places.bin()),
    )
}

fn notes(prepared: &Prepared, is_dry: bool, ui: &Ui) {
    for note in &prepared.notes {
        ui.note(note);
    }
    if let Host::Later(commands) = &prepared.plan.host {
        ui.note("claude was not found: the plugin is not in Claude Code yet");
        let commands: Vec<String> =
            commands.iter().map(|args| format!("`{}`", install::typed(args))).collect();
        ui.hint(&format!(
            "once it is there, run `compactctl install` again, or {}",
            commands.join(" and ")
        ));
    } else if !is_dry && !prepared.plan.is_done() {
        ui.hint("`compactctl doctor` checks it, `compactctl uninstall` undoes it");
    }
}

pub(super) fn undo(args: &UninstallArgs, ui: &Ui) -> Result<Done, Error> {
    let env = env();
    let removal = look_back(&process(&env), args.claude.as_deref(), args.purge)?;
    if removal.is_done() {
        ui.print("nothing is installed\n")?;
        return Ok(Done::Well);
    }
    if args.dry_run {
        for line in removal.lines() {
            ui.print(&format!("would {line}\n"))?;
        }
        return Ok(Done::Well);
    }
    let outcome = removal.apply(&|program: &Path| stop(&env, program));
    for note in &outcome.notes {
        ui.note(note);
    }
    if !outcome.left.is_empty() {
        return Err(InstallError::Remains { left: outcome.left }.into());
    }
    ui.print("removed compactd\n")?;
    let kept = removal.kept();
    if !kept.is_empty() {
        ui.note(&format!("kept: {}", kept.join(", ")));
        if removal.places.state.exists() {
            ui.hint("`compactctl uninstall --purge` removes pins and passes too");
        }
    }
    Ok(Done::Well)
}
