//! Which rows count, and in which order (§1).

use std::collections::{HashMap, HashSet};

use super::reader::{Item, Record, Role, Row};

/// Claude Code, everything: no sidechains, no repeated rows.
pub(super) fn claude_whole(records: &[Record]) -> Vec<&Row> {
    let mut seen = HashSet::new();
    let sidechain = is_sidechain_file(records);
    records
        .iter()
        .filter_map(|record| match record {
            Record::Row(row) if row.sidechain == sidechain => Some(row),
            _ => None,
        })
        .filter(|row| row.uuid.as_ref().is_none_or(|uuid| seen.insert(uuid.clone())))
        .collect()
}

/// Codex, everything: compactions and rollbacks are ignored.
pub(super) fn codex_whole(records: &[Record]) -> Vec<&Row> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Row(row) => Some(row),
            _ => None,
        })
        .collect()
}

/// Codex, what the model has before it.
pub(super) fn codex(records: &[Record]) -> Vec<&Row> {
    let mut context: Vec<&Row> = Vec::new();
    for record in records {
        match record {
            Record::Row(row) => context.push(row),
            Record::Compacted(rows) => context = rows.iter().collect(),
            Record::RolledBack(0) | Record::Boundary { .. } => {}
            Record::RolledBack(turns) => {
                let prompts = context
                    .iter()
                    .enumerate()
                    .filter(|(_, row)| is_prompt(row))
                    .map(|(at, _)| at)
                    .collect::<Vec<_>>();
                let keep = prompts.len().checked_sub(*turns).map_or(0, |nth| prompts[nth]);
                context.truncate(keep);
            }
        }
    }
    context
}

/// Words of the person, not of the host on the person's behalf.
pub(super) fn is_prompt(row: &Row) -> bool {
    let first_text = row.items.iter().find_map(|item| match item {
        Item::Text(text) => Some(text),
        _ => None,
    });
    row.role == Role::User && !row.meta && first_text.is_some_and(|text| !text.starts_with('<'))
}

fn sidechain(record: &Record) -> Option<bool> {
    match record {
        Record::Row(row) | Record::Boundary { row, .. } => Some(row.sidechain),
        _ => None,
    }
}

/// A sub-agent's own file: its sidechain rows are the conversation.
fn is_sidechain_file(records: &[Record]) -> bool {
    records.iter().find_map(sidechain).unwrap_or(false)
}

/// Claude Code, what the model has before it: the active path since the last boundary, with what
/// that boundary preserved.
pub(super) fn claude(records: &[Record]) -> Vec<&Row> {
    let subagent = is_sidechain_file(records);
    let records =
        records.iter().filter(|record| sidechain(record) == Some(subagent)).collect::<Vec<_>>();
    let last = records.iter().rposition(|record| matches!(record, Record::Boundary { .. }));
    let before = last.map_or(&records[..0], |at| &records[..at]);
    let epoch = &records[last.unwrap_or(0)..];

    let mut context = active_rows(epoch);
    let Some(Record::Boundary { preserved, .. }) = last.map(|at| records[at]) else {
        return context;
    };
    let mut by_uuid = HashMap::new();
    for record in before {
        if let Record::Row(row) | Record::Boundary { row, .. } = record
            && let Some(uuid) = &row.uuid
        {
            by_uuid.insert(uuid.as_str(), row);
        }
    }
    let kept = preserved.iter().filter_map(|uuid| by_uuid.get(uuid.as_str()).copied());
    let lead = context.iter().position(|row| !row.items.is_empty());
    let at = lead.map_or(context.len(), |lead| lead + usize::from(context[lead].summary));
    context.splice(at..at, kept);
    context
}

/// The rows of one epoch that are in.
fn active_rows<'a>(epoch: &[&'a Record]) -> Vec<&'a Row> {
    // The rows once each; rows with a uuid have a place in the tree.
    let mut rows: Vec<&Row> = Vec::new();
    let mut parents: Vec<Option<usize>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut newest = None;
    for record in epoch {
        let (Record::Row(row) | Record::Boundary { row, .. }) = record else {
            continue;
        };
        let mut parent = None;
        if let Some(uuid) = &row.uuid {
            if places.contains_key(uuid.as_str()) {
                continue;
            }
            // A row without a parent that hangs on the boundary is the same as a root.
            if let (Some(named), Record::Row(_)) = (&row.parent, record) {
                parent = places.get(named.as_str()).copied().or(newest);
            }
            places.insert(uuid, rows.len());
            newest = Some(rows.len());
        }
        rows.push(row);
        parents.push(parent);
    }

    let mut path = HashSet::new();
    let mut at = newest;
    while let Some(place) = at {
        path.insert(place);
        at = parents[place];
    }
    let path_messages = path
        .iter()
        .filter(|place| rows[**place].role == Role::Assistant)
        .filter_map(|place| rows[*place].message_id.as_deref())
        .collect::<HashSet<_>>();
    let is_in = |place: usize| {
        let row = rows[place];
        let same_message = row.role == Role::Assistant
            && row.message_id.as_deref().is_some_and(|id| path_messages.contains(id));
        path.contains(&place) || row.uuid.is_none() || same_message
    };
    // A row of results is in with the calls that stand before it.
    let mut calls = HashSet::new();
    let mut within = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let answers = !row.items.is_empty()
            && row.items.iter().all(|item| match item {
                Item::Result(result) => calls.contains(result.id.as_str()),
                _ => false,
            });
        if !is_in(place) && !answers {
            continue;
        }
        within.push(place);
        calls.extend(row.items.iter().filter_map(|item| match item {
            Item::Call { id, .. } => Some(id.as_str()),
            _ => None,
        }));
    }
    let first = usize::from(matches!(epoch.first(), Some(Record::Boundary { .. })));
    within.into_iter().filter(|place| *place >= first).map(|place| rows[place]).collect()
}
