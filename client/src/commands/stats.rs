//! `stats`.

use compactd_api::sessions::Stats;

use super::{configuration, print_body};
use crate::cli::JsonArgs;
use crate::daemon::Daemon;
use crate::error::Error;
use crate::render::figures::{bytes, number, rough, span};
use crate::terminal::Ui;

pub(super) fn run(args: &JsonArgs, ui: &Ui) -> Result<(), Error> {
    let daemon = Daemon::find(&configuration(ui)?.env)?;
    let answer = daemon.stats()?;
    if args.json { print_body(&answer.body, ui) } else { ui.print(&view(&answer.value)) }
}

fn view(stats: &Stats) -> String {
    let Stats { compactions: by, compact_micros: times, hooks, skipped, .. } = stats;
    let lines = [
        ("running", span(stats.uptime_s)),
        ("requests", format!("{}, {} failed", number(stats.requests), number(stats.errors))),
        (
            "compactions",
            format!(
                "{} applied, {} skipped, {} escalated, {} too early",
                by.apply, by.skip, by.escalate, by.unready
            ),
        ),
        (
            "freed",
            format!(
                "about {} tokens: {} results dropped, {} cut",
                rough(stats.tokens_freed),
                number(stats.results_dropped),
                number(stats.results_truncated)
            ),
        ),
        (
            "time each",
            format!(
                "median {} µs, 99% within {} µs, longest {} µs",
                times.p50, times.p99, times.max
            ),
        ),
        ("hooks", format!("{} with text, {} silent", hooks.text, hooks.silent)),
        ("read", format!("{} in {} lines", bytes(stats.bytes_read), number(stats.lines_read))),
        (
            "skipped lines",
            format!(
                "{} bookkeeping, {} blank, {} malformed, {} too long, {} unknown, {} odd",
                number(skipped.bookkeeping),
                number(skipped.blank),
                number(skipped.malformed),
                number(skipped.too_long),
                number(skipped.unknown),
                number(skipped.odd)
            ),
        ),
        (
            "indexes",
            format!(
                "{} built again, {} sessions unreadable, {} snapshots loaded, {} saved",
                number(stats.rebuilds),
                number(stats.broken),
                number(stats.snapshots_loaded),
                number(stats.snapshots_saved)
            ),
        ),
    ];
    lines.iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect()
}
