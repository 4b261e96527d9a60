//! `fork`: a Codex thread under a new id, with the shortened history, made in this process.

use std::path::{Path, PathBuf};

use compactd_api::fork::ForkAnswer;
use compactd_api::{Profile, convert};
use compactd_core::record::Host;
use compactd_fork::{Options, auto_compact_limit, home_of};

use super::compact::{is_file, pins_of};
use super::configuration;
use crate::cli::ForkArgs;
use crate::error::Error;
use crate::find;
use crate::render::figures::number;
use crate::terminal::{Paint, Ui};

pub(super) fn run(args: &ForkArgs, ui: &Ui) -> Result<(), Error> {
    let config = configuration(ui)?;
    let roots = crate::config::roots(&config);
    let source = if is_file(&args.session) {
        args.session.clone()
    } else {
        let wanted = args.session.to_string_lossy();
        let known = find::on_disk(&roots);
        let codex = known.iter().filter(|session| session.host == Host::Codex);
        let ids: Vec<&str> = codex.map(|session| session.id.as_str()).collect();
        let id = find::resolve(&wanted, &ids)?;
        let path = known.iter().find(|session| session.id == id).map(|found| found.path.clone());
        path.unwrap_or_default()
    };
    let home = home_of(&source).or_else(|| config.codex_home()).ok_or(Error::NoCodexHome)?;
    let profile = args.profile.map(Profile::from).and_then(convert::profile);
    let options = Options {
        threshold: auto_compact_limit(&home),
        home,
        profile: profile.unwrap_or_else(|| crate::config::profile(&config)),
        settings: crate::config::rules(&config),
        pins: pins_of(&config, &roots, &source)?,
        budget: args.budget,
        dry_run: args.dry_run,
        in_place: None,
    };
    let answer = compactd_fork::fork(&absolute(&source), &options)?;
    if args.json {
        return ui.print_json(&answer);
    }
    ui.print(&view(&answer, ui))?;
    if let Some(home) =
        home_of(&absolute(&source)).filter(|home| config.codex_home().as_ref() != Some(home))
    {
        let home = home.display();
        ui.note(&format!("that is another Codex home: set CODEX_HOME to {home} for this line"));
    }
    for note in &answer.notes {
        ui.note(note);
    }
    if answer.source.live {
        ui.note("the thread is in use: what Codex writes to it from now on is not in the fork");
    }
    if answer.over_target {
        let target = number(answer.target.unwrap_or_default());
        ui.warn(&format!(
            "more than the {target} tokens that were to be left: Codex may compact it soon by itself"
        ));
    }
    Ok(())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

fn view(answer: &ForkAnswer, ui: &Ui) -> String {
    let counters = answer.counters;
    let mut went = Vec::new();
    for (count, what) in [
        (counters.dropped, "dropped"),
        (counters.truncated, "cut"),
        (counters.inputs, "inputs shortened"),
        (counters.texts, "texts of the assistant shortened"),
    ] {
        if count > 0 {
            went.push(format!("{} {what}", number(count)));
        }
    }
    let went = if went.is_empty() {
        "nothing: every tool result was used later, is new, or is protected".to_owned()
    } else {
        format!("{} of {} tool results kept", number(counters.kept), number(counters.results))
            + &format!(" ({})", went.join(", "))
    };
    let line = |name: &str, text: &str| {
        format!("{} {text}\n", ui.paint(Paint::Dim, &format!("{name:<9}")))
    };
    let mut text = String::new();
    let fork = if answer.dry_run { "would be" } else { "fork" };
    text += &line("thread", &answer.source.thread_id);
    text += &line("history", &went);
    text += &line(
        "tokens",
        &format!(
            "about {} → {} (history and base instructions)",
            number(answer.tokens_before),
            number(answer.tokens_after)
        ),
    );
    text += &line(fork, &answer.path);
    if !answer.dry_run {
        text += &line("go on", &ui.paint(Paint::Bold, &answer.resume_command));
    }
    text
}
