//! Leads from what a person typed to a session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use compactd_core::record::Host;
use compactd_transcript::lineage::ThreadFiles;
use compactd_transcript::{Roots, walk};

/// So many ids are named in a message.
const SHOWN: usize = 5;

/// Why an id leads to no single session.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    /// No session has such an id.
    #[error("no session {wanted} is known")]
    Unknown {
        /// What was asked for.
        wanted: String,
        /// Ids that may have been meant.
        near: Vec<String>,
    },
    /// More than one session has an id that begins so.
    #[error("{} sessions have an id that begins with {wanted}", ids.len())]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// Their ids.
        ids: Vec<String>,
    },
}

impl Unresolved {
    /// A next step.
    #[must_use]
    pub fn hint(&self) -> std::borrow::Cow<'static, str> {
        match self {
            Self::Unknown { near, .. } if near.is_empty() => {
                "`compactctl sessions` lists the known ones".into()
            }
            Self::Unknown { near, .. } => format!("did you mean {}?", near.join(" or ")).into(),
            Self::Ambiguous { ids, .. } => {
                let shown: Vec<&str> = ids.iter().take(SHOWN).map(String::as_str).collect();
                let more = if ids.len() > SHOWN { ", ..." } else { "" };
                format!("type more of it: {}{more}", shown.join(", ")).into()
            }
        }
    }
}

/// The one id that is `wanted` or begins with it.
///
/// # Errors
/// There is none, or more than one.
pub fn resolve<'a>(wanted: &str, ids: &[&'a str]) -> Result<&'a str, Unresolved> {
    if let Some(id) = ids.iter().find(|id| **id == wanted) {
        return Ok(id);
    }
    let mut begins: Vec<&str> =
        ids.iter().copied().filter(|id| !wanted.is_empty() && id.starts_with(wanted)).collect();
    begins.sort_unstable();
    begins.dedup();
    match *begins {
        [id] => Ok(id),
        [] => Err(Unresolved::Unknown { wanted: wanted.to_owned(), near: near(wanted, ids) }),
        _ => Err(Unresolved::Ambiguous {
            wanted: wanted.to_owned(),
            ids: begins.into_iter().map(str::to_owned).collect(),
        }),
    }
}

/// Ids, or beginnings of ids, that differ from what was typed in a few letters.
fn near(wanted: &str, ids: &[&str]) -> Vec<String> {
    let bound = (wanted.len() / 4).clamp(1, 4);
    let mut close: Vec<(usize, &str)> = ids
        .iter()
        .filter(|id| id.is_ascii() && wanted.is_ascii())
        .map(|id| {
            let beginning = id.get(..wanted.len()).unwrap_or(id);
            (distance(wanted.as_bytes(), beginning.as_bytes()), *id)
        })
        .filter(|(far, _)| *far <= bound && *far < wanted.len())
        .collect();
    close.sort_unstable();
    close.dedup();
    close.into_iter().take(3).map(|(_, id)| id.to_owned()).collect()
}

/// Letters to insert, delete or replace to come from one to the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(above.len());
        row.push(i + 1);
        for ((y, step), left) in b.iter().zip(above.windows(2)).zip(0..) {
            let replaced = step[0] + usize::from(x != y);
            let best: usize = replaced.min(step[1] + 1).min(row[left] + 1);
            row.push(best);
        }
        above = row;
    }
    above.last().copied().unwrap_or_default()
}

/// A session on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDisk {
    /// Whose it is.
    pub host: Host,
    /// Its id; a sub-agent's own.
    pub id: String,
    /// The file that it continues in.
    pub path: PathBuf,
    /// The session that a sub-agent belongs to.
    pub parent: Option<String>,
    /// Size of that file.
    pub size: u64,
    /// Its last change.
    pub modified: SystemTime,
}

/// Every session inside the roots, the newest first.
#[must_use]
pub fn on_disk(roots: &Roots) -> Vec<OnDisk> {
    let found = walk(roots).found;
    let mut threads = ThreadFiles::default();
    for file in &found {
        threads.insert(file);
    }
    let mut sessions = BTreeMap::new();
    for file in found {
        let id = file.agent.clone().unwrap_or_else(|| file.key.clone());
        let current = threads.current(&file.key);
        if file.host == Host::Codex && current.is_some_and(|current| current != file.path) {
            continue;
        }
        let parent = file.agent.as_ref().map(|_| file.key.clone());
        let session = OnDisk {
            host: file.host,
            id,
            path: file.path,
            parent,
            size: file.size,
            modified: file.mtime,
        };
        let known = sessions.entry((session.host.name(), session.id.clone()));
        // Two projects may hold a copy: the one that changed last counts.
        let kept = known.or_insert_with(|| session.clone());
        if kept.modified < session.modified {
            *kept = session;
        }
    }
    let mut sessions: Vec<OnDisk> = sessions.into_values().collect();
    sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
    sessions
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: &[&str] = &["3f2a91c0-1111", "3f2a0000-2222", "agent-7"];

    #[test]
    fn exact_and_unique_beginnings_resolve() {
        assert_eq!(resolve("agent-7", IDS).unwrap(), "agent-7");
        assert_eq!(resolve("3f2a9", IDS).unwrap(), "3f2a91c0-1111");
        assert_eq!(resolve("a", &["a", "ab"]).unwrap(), "a");
    }

    #[test]
    fn ambiguous_ids_are_listed() {
        let error = resolve("3f2a", IDS).unwrap_err();
        assert_eq!(error.to_string(), "2 sessions have an id that begins with 3f2a");
        assert_eq!(error.hint(), "type more of it: 3f2a0000-2222, 3f2a91c0-1111");
    }

    #[test]
    fn near_ids_are_suggested() {
        let near = |wanted| match resolve(wanted, IDS).unwrap_err() {
            Unresolved::Unknown { near, .. } => near,
            Unresolved::Ambiguous { .. } => panic!("{wanted}"),
        };
        assert_eq!(near("3f2b91c0"), ["3f2a91c0-1111"]);
        assert_eq!(near("agent-8"), ["agent-7"]);
        assert!(near("zzzz").is_empty() && near("z").is_empty() && near("").is_empty());
        assert!(near("é").is_empty());
    }

    #[test]
    fn distances() {
        for (a, b, far) in [("", "", 0), ("ab", "", 2), ("abc", "abd", 1), ("abc", "bc", 1)] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), far, "{a} {b}");
        }
    }

    #[test]
    fn a_thread_of_several_files_is_one_session() {
        let home = tempfile::tempdir().unwrap();
        let thread = "01a22bab-7fc4-7621-9bf6-c6757fc8279e";
        let put = |path: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "{}\n").unwrap();
        };
        put(&format!("x/sessions/rollout-2026-11-30T08-56-12-{thread}.jsonl"));
        put(&format!("x/sessions/rollout-2026-12-01T08-56-12-{thread}_{thread}.jsonl"));
        put("c/projects/-w/s.jsonl");
        put("c/projects/-w/s/subagents/agent-a1.jsonl");
        let roots = Roots::new([home.path().join("c")], [home.path().join("x")]);
        let sessions = on_disk(&roots);
        let mut ids: Vec<&str> = sessions.iter().map(|session| session.id.as_str()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [thread, "a1", "s"]);
        let codex = sessions.iter().find(|session| session.host == Host::Codex).unwrap();
        assert!(codex.path.to_string_lossy().contains("2026-12-01"));
    }
}
