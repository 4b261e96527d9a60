//! `install` and `uninstall`.

use std::path::{Path, PathBuf};

use super::Done;
use crate::cli::{InstallArgs, UninstallArgs};
use crate::daemon::Daemon;
use crate::error::Error;
use crate::install::codex::{hooks, known};
use crate::install::record::Record;
use crate::install::{
    Host, InstallError, Plan, Prepared, Process, Service, Which, Wishes, apply, look, look_back,
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
    let wishes = Wishes {
        host: args.host.map(Which::from),
        claude: args.claude.as_deref(),
        codex: args.codex.as_deref(),
        trust: args.trust_hooks,
        service: !args.no_service,
    };
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
    notes(&prepared, args, ui);
    Ok(Done::Well)
}

/// Starts a daemon anew that runs since before a host's folder was known: it reads the record at its
/// start. Tells what went wrong.
fn follow(env: &Env, prepared: &Prepared) -> Option<String> {
    let Prepared { places, manager, .. } = prepared;
    let record = Record::load(&places.record()).ok()??;
    let mut wanted = Vec::new();
    if places.claude.is_named && record.host(&places.claude).is_some() {
        wanted.push(places.claude.path.join("projects"));
    }
    if places.codex.is_named && record.codex(&places.codex).is_some() {
        wanted.push(places.codex.sessions());
    }
    if wanted.is_empty() {
        return None;
    }
    let roots = Daemon::find(env).ok()?.status().ok()?.value.roots;
    let is_followed = |wanted: &PathBuf| roots.iter().any(|root| Path::new(root) == wanted);
    if roots.is_empty() || wanted.iter().all(is_followed) {
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
    let Plan { service, claude, codex, .. } = plan;
    let daemon = match service {
        Service::OnDemand(reason) => format!("started by the hooks when needed ({reason})"),
        _ => "a service of your systemd user manager".to_owned(),
    };
    let both = [(Which::Claude, claude), (Which::Codex, codex)];
    let plugin: Vec<String> = both
        .into_iter()
        .filter_map(|(which, host)| match host {
            Host::Out => None,
            Host::Later(_) => Some(format!("not yet in {}", which.name())),
            Host::Run(_) | Host::Keep => {
                Some(format!("in {}, from its next session on", which.name()))
            }
        })
        .collect();
    let plugin = plugin.join("\n          ");
    format!(
        "installed compactd {}\nprograms  {}\ndaemon    {daemon}\nplugin    {plugin}\n",
        env!("CARGO_PKG_VERSION"),
        places.shown(&places.bin()),
    )
}

fn notes(prepared: &Prepared, args: &InstallArgs, ui: &Ui) {
    let Plan { claude, codex, .. } = &prepared.plan;
    for note in &prepared.notes {
        ui.note(note);
    }
    let mut is_late = false;
    for (which, host) in [(Which::Claude, claude), (Which::Codex, codex)] {
        let Host::Later(commands) = host else { continue };
        is_late = true;
        let (program, name) = (which.program(), which.name());
        ui.note(&format!("{program} was not found: the plugin is not in {name} yet"));
        let commands: Vec<String> =
            commands.iter().map(|args| format!("`{}`", which.typed(args))).collect();
        ui.hint(&format!(
            "once it is there, run `compactctl install` again, or {}",
            commands.join(" and ")
        ));
    }
    if args.trust_hooks && matches!(codex, Host::Later(_) | Host::Out) {
        ui.note("there is no Codex to trust the hooks in: --trust-hooks did nothing");
    }
    if !args.dry_run && !args.trust_hooks && matches!(codex, Host::Run(_) | Host::Keep) {
        untrusted(prepared, ui);
    }
    if !is_late && !args.dry_run && !prepared.plan.is_done() {
        ui.hint("`compactctl doctor` checks it, `compactctl uninstall` undoes it");
    }
}

/// Says in plain words that Codex runs no hook that nobody approved.
fn untrusted(prepared: &Prepared, ui: &Ui) {
    let codex = prepared.codex.as_ref();
    let skipped = match codex.map(hooks::ask) {
        Some(Ok(hooks)) => hooks.iter().filter(|hook| !hook.is_trusted()).count(),
        // What cannot be asked is looked up: nothing approved is certain to be skipped.
        _ => usize::from(known(&prepared.places.codex).trusted.is_empty()),
    };
    if skipped == 0 {
        return;
    }
    let config = prepared.places.shown(&prepared.places.codex.config());
    ui.note(&format!(
        "Codex skips the plugin's hooks, and does not say so, until you trust them: {} of them are \
         not trusted in {config}",
        skipped.max(1)
    ));
    ui.hint(
        "start `codex` once and choose to trust them, or run \
         `compactctl install --host codex --trust-hooks`",
    );
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
            ui.hint("`compactctl uninstall --purge` removes pins, passes and recovery texts too");
        }
    }
    Ok(Done::Well)
}
