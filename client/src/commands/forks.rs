//! `forks`: the forks that were made here, and the removal of old ones.

use std::time::{Duration, SystemTime};

use compactd_fork::{Draft, Own, Stays, drafts, own, remove, remove_draft};
use jiff::Timestamp;
use serde::Serialize;

use super::configuration;
use crate::cli::ForksArgs;
use crate::error::Error;
use crate::render::figures::{ago, bytes};
use crate::table::{Align, Table};
use crate::terminal::{Paint, Ui};

const SHORT_CHARS: usize = "01a22bab-3f13".len();
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
    #[serde(flatten)]
    fate: Shown,
}

/// A fork that was never finished, for programs.
#[derive(Serialize)]
struct DraftRow {
    path: String,
    written_at: String,
    size_bytes: u64,
    #[serde(flatten)]
    fate: Shown,
}

/// What `--prune` did.
#[derive(Serialize)]
struct Shown {
    /// Whether it went (with `--dry-run`: would go).
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<bool>,
    /// Why it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    stays: Option<&'static str>,
}

/// What became of one.
enum Fate {
    /// It was only to be listed.
    Listed,
    /// It went, or would go.
    Gone,
    Stays(Stays),
    /// The system refused.
    Failed,
}

impl Fate {
    fn of(stays: Option<Stays>) -> Self {
        stays.map_or(Self::Gone, Self::Stays)
    }

    fn shown(&self) -> Shown {
        match self {
            Self::Listed => Shown { removed: None, stays: None },
            Self::Gone => Shown { removed: Some(true), stays: None },
            Self::Stays(stays) => Shown { removed: Some(false), stays: Some(stays.text()) },
            Self::Failed => Shown { removed: Some(false), stays: Some("cannot be removed") },
        }
    }

    /// The word for it in a table; `listed` where there is nothing to say.
    fn text(&self, dry_run: bool, listed: &str) -> (String, Paint) {
        match self {
            Self::Listed => (listed.to_owned(), Paint::Plain),
            Self::Gone if dry_run => ("would be removed".to_owned(), Paint::Bold),
            Self::Gone => ("removed".to_owned(), Paint::Bold),
            Self::Stays(stays) => (format!("stays: {}", stays.word()), Paint::Dim),
            Self::Failed => ("cannot be removed".to_owned(), Paint::Plain),
        }
    }
}

pub(super) fn run(args: &ForksArgs, ui: &Ui) -> Result<(), Error> {
    let config = configuration(ui)?;
    let roots = crate::config::roots(&config);
    let (forks, drafts) = (own(&roots), drafts(&roots));
    let age = DAY.saturating_mul(u32::try_from(args.older_than).unwrap_or(u32::MAX));
    // One that cannot be removed hides no other, and nothing of what was done.
    let mut failed = None;
    let mut fate = |look: Option<Stays>, act: &dyn Fn() -> Result<_, compactd_fork::Error>| match (
        args.prune,
        args.dry_run,
    ) {
        (false, _) => Fate::Listed,
        (true, true) => Fate::of(look),
        (true, false) => act().map_or_else(
            |error| {
                failed.get_or_insert(error);
                Fate::Failed
            },
            Fate::of,
        ),
    };
    let forks: Vec<(Own, Fate)> = forks
        .into_iter()
        .map(|fork| {
            let fate = fate(fork.stays(age), &|| remove(&fork, age));
            (fork, fate)
        })
        .collect();
    let drafts: Vec<(Draft, Fate)> = drafts
        .into_iter()
        .map(|draft| {
            let fate = fate(draft.stays(age), &|| remove_draft(&draft, age));
            (draft, fate)
        })
        .collect();
    if args.json {
        let rows: Vec<Row<'_>> = forks.iter().map(row).collect();
        let unfinished: Vec<DraftRow> = drafts.iter().map(draft_row).collect();
        ui.print_json(&serde_json::json!({ "forks": rows, "unfinished": unfinished }))?;
    } else if forks.is_empty() && drafts.is_empty() {
        ui.note("no forks were made here yet: `compactctl fork SESSION` makes one");
    } else {
        ui.print(&table(&forks, &drafts, args.dry_run).draw(ui))?;
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
}

fn row((fork, fate): &(Own, Fate)) -> Row<'_> {
    Row {
        thread_id: &fork.thread,
        path: fork.path.display().to_string(),
        source: fork.source.as_deref(),
        made_at: &fork.made,
        size_bytes: fork.bytes,
        used: !fork.is_unused,
        parent: fork.is_parent,
        fate: fate.shown(),
    }
}

fn draft_row((draft, fate): &(Draft, Fate)) -> DraftRow {
    DraftRow {
        path: draft.path.display().to_string(),
        written_at: at(draft.written),
        size_bytes: draft.bytes,
        fate: fate.shown(),
    }
}

/// RFC 3339 in UTC to the second.
fn at(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).and_then(|time| time.round(jiff::Unit::Second));
    time.map(|time| time.to_string()).unwrap_or_default()
}

fn table(forks: &[(Own, Fate)], drafts: &[(Draft, Fate)], dry_run: bool) -> Table {
    let columns = [
        ("fork", Align::Left),
        ("made from", Align::Left),
        ("made", Align::Left),
        ("size", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&columns, 1);
    let now = Timestamp::now();
    for (fork, fate) in forks {
        let listed = match fork {
            Own { is_parent: true, .. } => "has a fork of its own",
            Own { is_unused: true, .. } => "not gone on with",
            Own { .. } => "in use",
        };
        let (text, paint) = fate.text(dry_run, listed);
        let source = fork.source.as_deref().map(short).unwrap_or_default();
        let made = ago(&fork.made, now);
        table.row(vec![fork.thread.clone(), source, made, bytes(fork.bytes), text], paint);
    }
    for (draft, fate) in drafts {
        let (text, paint) = fate.text(dry_run, "not finished");
        let name = draft.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let made = ago(&at(draft.written), now);
        table.row(vec![name, String::new(), made, bytes(draft.bytes), text], paint);
    }
    table
}

/// The beginning of an id, by which it is known too.
fn short(id: &str) -> String {
    id.get(..SHORT_CHARS).unwrap_or(id).to_owned()
}
