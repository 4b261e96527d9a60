//! `doctor`.

use compactd_api::dirs::{Env, Os};

use super::Done;
use crate::cli::JsonArgs;
use crate::doctor::{Check, Report, Scene, State, codex_managed_folder, examine, managed_folder};
use crate::error::Error;
use crate::table::clean;
use crate::terminal::{Paint, Ui};

pub(super) fn run(args: &JsonArgs, ui: &Ui) -> Result<Done, Error> {
    let lookup = |name: &str| std::env::var_os(name);
    let env = Env::from_lookup(Os::current(), lookup);
    let scene = Scene {
        env: &env,
        lookup: &lookup,
        project: std::env::current_dir().unwrap_or_default(),
        managed: managed_folder(),
        codex_managed: codex_managed_folder(),
        inotify: "/proc/sys/fs/inotify".into(),
        me: rustix::process::geteuid().as_raw(),
    };
    let report = examine(&scene)?;
    if args.json {
        ui.print_json(&report)?;
    } else {
        ui.print(&view(&report, ui))?;
    }
    Ok(if report.healthy { Done::Well } else { Done::Found })
}

fn view(report: &Report, ui: &Ui) -> String {
    // As wide as always, where no name is longer.
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0).max(8);
    let line = |Check { name, state, evidence, fix }: &Check| {
        let word = match state {
            State::Ok => ui.paint(Paint::Green, "ok  "),
            State::Warn => ui.paint(Paint::Yellow, "warn"),
            State::Fail => ui.paint(Paint::Red, "fail"),
        };
        let mut line = format!("{word}  {name:<width$}  {}\n", clean(evidence));
        if let Some(fix) = fix {
            line.extend([&*" ".repeat(width + 8), &ui.paint(Paint::Bold, &clean(fix)), "\n"]);
        }
        line
    };
    report.checks.iter().map(line).collect()
}
