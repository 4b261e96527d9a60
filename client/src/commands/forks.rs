//! `forks`: the forks that were made here, and the removal of old ones.

use std::time::Duration;

use compactd_fork::{Own, Stays, own, remove};
use jiff::Timestamp;
use serde::Serialize;

use super::configuration;
use crate::cli::ForksArgs;
use crate::error::Error;
use crate::render::figures::{ago, bytes};
use crate::table::{Align, Table};
use crate::terminal::{Paint, Ui};

const DAY: Duration = Duration::from_secs(86_400);

/// One fork, for programs.
#[derive(Serialize)]
struct Row<'a> {
    thread_id: &'a str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    made_at: &'a str,
    size_bytes: u64,
    /// Somebody went on with it: it is a session like any other.
    used: bool,
    /// Another thread was made from it.
    parent: bool,
    /// With `--prune`: whether it went (with `--dry-run`: would go).
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<bool>,
    /// With `--prune`: why it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    stays: Option<&'static str>,
}

pub(super) fn run(args: &ForksArgs, ui: &Ui) -> Result<(), Error> {
    let config = configuration(ui)?;
    let forks = own(&crate::config::roots(&config));
    let age = DAY.saturating_mul(u32::try_from(args.older_than).unwrap_or(u32::MAX));
    let mut fates = Vec::with_capacity(forks.len());
    for fork in &forks {
        let fate = match (args.prune, args.dry_run) {
            (false, _) => None,
            (true, true) => Some(fork.stays(age)),
            (true, false) => Some(remove(fork, age)?),
        };
        fates.push(fate);
    }
    if args.json {
        let rows: Vec<Row<'_>> =
            forks.iter().zip(&fates).map(|(fork, fate)| row(fork, *fate)).collect();
        return ui.print_json(&serde_json::json!({ "forks": rows }));
    }
    if forks.is_empty() {
        ui.note("no forks were made here yet: `compactctl fork SESSION` makes one");
        return Ok(());
    }
    ui.print(&table(&forks, &fates, args.dry_run).draw(ui))
}

fn row(fork: &Own, fate: Option<Option<Stays>>) -> Row<'_> {
    Row {
        thread_id: &fork.thread,
        path: fork.path.display().to_string(),
        source: fork.source.as_deref(),
        made_at: &fork.made,
        size_bytes: fork.bytes,
        used: !fork.is_unused,
        parent: fork.is_parent,
        removed: fate.map(|stays| stays.is_none()),
        stays: fate.flatten().map(Stays::text),
    }
}

fn table(forks: &[Own], fates: &[Option<Option<Stays>>], dry_run: bool) -> Table {
    let columns = [
        ("fork", Align::Left),
        ("made from", Align::Left),
        ("made", Align::Left),
        ("size", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&columns, 4);
    for (fork, fate) in forks.iter().zip(fates) {
        let (text, paint) = match fate {
            Some(None) if dry_run => ("would be removed".to_owned(), Paint::Bold),
            Some(None) => ("removed".to_owned(), Paint::Bold),
            Some(Some(stays)) => (format!("stays: {}", stays.text()), Paint::Dim),
            None if fork.is_parent => ("another thread was made from it".to_owned(), Paint::Plain),
            None if fork.is_unused => ("not gone on with".to_owned(), Paint::Plain),
            None => ("in use".to_owned(), Paint::Plain),
        };
        let source = fork.source.clone().unwrap_or_default();
        let made = ago(&fork.made, Timestamp::now());
        table.row(vec![fork.thread.clone(), source, made, bytes(fork.bytes), text], paint);
    }
    table
}
