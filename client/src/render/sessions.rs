//! Lists of sessions.

use std::path::Path;

use compactd_api::sessions::{SessionItem, SessionState, Totals};
use jiff::Timestamp;

use super::figures::{ago, bytes, freed_percent, number, rough};
use crate::table::{Align, Table, shorten};
use crate::terminal::{Paint, Ui};

/// So much of an id is shown where space matters; it may be typed in its place.
pub const PREFIX: usize = 13;
/// So much of a project's path.
const PROJECT: usize = 28;

/// The list that `sessions` prints.
#[must_use]
pub fn list(items: &[SessionItem], home: Option<&Path>, now: Timestamp, ui: &Ui) -> String {
    let mut table = Table::new(
        &[
            ("host", Align::Left),
            ("session", Align::Left),
            ("project", Align::Left),
            ("messages", Align::Right),
            ("results", Align::Right),
            ("size", Align::Right),
            ("changed", Align::Left),
            ("state", Align::Left),
        ],
        2,
    );
    for item in items {
        let is_read = item.state == SessionState::Indexed;
        let count = |value| if is_read { number(value) } else { "-".to_owned() };
        let session = match item.agent {
            Some(_) => format!("{} (sub-agent)", item.id),
            None => item.id.clone(),
        };
        let cells = vec![
            item.host.to_string(),
            session,
            project(item, home),
            count(item.messages),
            count(item.results),
            bytes(item.size_bytes),
            ago(&item.updated_at, now),
            item.state.to_string(),
        ];
        let paint = if is_read { Paint::Plain } else { Paint::Dim };
        table.row(cells, paint);
    }
    table.draw(ui)
}

/// A session as `watch` shows it.
#[derive(Debug, Clone)]
pub struct Watched {
    /// The session.
    pub item: SessionItem,
    /// What a compaction would do, or why that is not known.
    pub outcome: Result<(u64, Totals), String>,
    /// It is the one shown in detail.
    pub is_chosen: bool,
}

/// The table that `watch` shows.
#[must_use]
pub fn watched(sessions: &[Watched], home: Option<&Path>, now: Timestamp, ui: &Ui) -> String {
    let mut table = Table::new(
        &[
            ("host", Align::Left),
            ("session", Align::Left),
            ("project", Align::Left),
            ("messages", Align::Right),
            ("results", Align::Right),
            ("tokens", Align::Right),
            ("would free", Align::Right),
            ("changed", Align::Left),
        ],
        2,
    );
    for Watched { item, outcome, is_chosen } in sessions {
        let counts = match outcome {
            Ok((messages, totals)) => [
                number(*messages),
                number(totals.results),
                rough(totals.tokens_before),
                format!("{}%", freed_percent(totals.chars_before, totals.chars_after)),
            ],
            Err(why) => ["-".into(), "-".into(), "-".into(), why.clone()],
        };
        let [messages, results, tokens, freed] = counts;
        let cells = vec![
            item.host.to_string(),
            shorten(&item.id, PREFIX + 1).trim_end_matches('…').to_owned(),
            project(item, home),
            messages,
            results,
            tokens,
            freed,
            ago(&item.updated_at, now),
        ];
        table.row(cells, if *is_chosen { Paint::Bold } else { Paint::Plain });
    }
    table.draw(ui)
}

/// Where a session runs, or else the folder of its file.
fn project(item: &SessionItem, home: Option<&Path>) -> String {
    let file = Path::new(&item.path);
    let path = match &item.cwd {
        Some(cwd) => Path::new(cwd),
        None => file.parent().unwrap_or(file),
    };
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    let text = match below {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    };
    // The end tells more than the beginning.
    let length = text.chars().count();
    if length <= PROJECT {
        return text;
    }
    format!("…{}", text.chars().skip(length + 1 - PROJECT).collect::<String>())
}

#[cfg(test)]
mod tests {
    use compactd_api::Host;

    use super::*;

    fn item(id: &str, cwd: Option<&str>) -> SessionItem {
        SessionItem {
            id: id.to_owned(),
            host: Host::Codex,
            path: "/h/.codex/sessions/r.jsonl".to_owned(),
            cwd: cwd.map(str::to_owned),
            size_bytes: 2_048,
            indexed_bytes: 2_048,
            lines: 9,
            messages: 7,
            results: 3,
            updated_at: "2026-11-30T12:00:00Z".to_owned(),
            state: SessionState::Indexed,
            agent: None,
        }
    }

    #[test]
    fn rows() {
        let now = "2026-11-30T12:00:30Z".parse().unwrap();
        let home = Some(Path::new("/h"));
        let mut items = vec![item("0198c7a2-1111-7000", Some("/h/code/api")), item("s", None)];
        items[1].state = SessionState::Cold;
        let text = list(&items, home, now, &Ui::plain(120));
        assert!(text.contains("~/code/api"), "{text}");
        assert!(text.contains("30 s ago  indexed") && text.contains("~/.codex/sessions"), "{text}");
        let sessions: Vec<Watched> = items
            .into_iter()
            .map(|item| Watched {
                is_chosen: item.id == "s",
                outcome: if item.id == "s" {
                    Err("unreadable".to_owned())
                } else {
                    let totals = Totals {
                        results: 3,
                        chars_before: 100,
                        chars_after: 66,
                        ..Totals::default()
                    };
                    Ok((7, totals))
                },
                item,
            })
            .collect();
        let text = watched(&sessions, home, now, &Ui::plain(120));
        assert!(text.contains("0198c7a2-1111 ") && text.contains("34%"), "{text}");
        assert!(text.contains("unreadable"), "{text}");
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        let deep = format!("/{}/end", "x".repeat(60));
        let text = project(&item("s", Some(&deep)), None);
        assert!(text.starts_with('…') && text.ends_with("/end") && text.chars().count() == PROJECT);
        assert_eq!(project(&item("s", Some("/h")), Some(Path::new("/h"))), "~");
    }
}
