//! The forks that are ours: found by the mark in their first record, and removed only if nobody ever
//! went on with them and nothing else rests on them.

use std::collections::HashSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use compactd_core::record::Host;
use compactd_core::record::json::Raw;
use compactd_transcript::lineage::first_line;
use compactd_transcript::lines::{Cursor, LineReader, Slice};
use compactd_transcript::walk::{Found, walk};
use compactd_transcript::{Roots, Transcript};

use crate::body::MARK;
use crate::error::Error;
use crate::intake::record;
use crate::lock;
use crate::seal;

/// A fork of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Its thread id.
    pub thread: String,
    /// Its rollout.
    pub path: PathBuf,
    /// The thread that it was made from.
    pub source: Option<String>,
    /// When it was made: RFC 3339 in UTC.
    pub made: String,
    /// When its file was last written to.
    pub written: SystemTime,
    /// Size of the file.
    pub bytes: u64,
    /// Nobody went on with it: the file is as we wrote it.
    pub is_unused: bool,
    /// Another thread was made from it, and may need it.
    pub is_parent: bool,
    /// The person put it aside (`codex archive`).
    pub is_archived: bool,
    /// Other files have its id, or it lies under another name: somebody copied or moved it.
    pub is_moved: bool,
    /// There is a rollout that cannot be read: it may be of a thread that was made from it.
    pub may_be_parent: bool,
    /// What its first record says that the rest was.
    seal: String,
}

/// All forks of ours, the newest first. A file that cannot be read is passed over: whatever it is, it
/// is not one to remove.
#[must_use]
pub fn own(roots: &Roots) -> Vec<Own> {
    let mut forks = Vec::new();
    let (mut parents, mut files) = (HashSet::new(), Vec::new());
    let walked = walk(roots);
    let mut is_unclear = !walked.problems.is_empty();
    for found in walked.found.iter().filter(|found| found.host == Host::Codex) {
        let line = match Transcript::open(&found.path).and_then(|mut file| first_line(&mut file)) {
            Ok(Some(line)) => line,
            Ok(None) | Err(compactd_transcript::Error::NotFound { .. }) => continue,
            Err(_) => {
                is_unclear = true;
                continue;
            }
        };
        let Some((_, whole)) = record(&line) else { continue };
        let Some(payload) = whole.member("payload") else { continue };
        parents.extend(named(payload));
        forks.extend(fork(found, payload));
        files.push(found.key.clone());
    }
    for fork in &mut forks {
        fork.is_parent = parents.contains(&fork.thread);
        fork.may_be_parent = is_unclear;
        fork.is_moved |= files.iter().filter(|thread| **thread == fork.thread).count() != 1;
    }
    forks.sort_by(|a: &Own, b| b.made.cmp(&a.made).then_with(|| b.thread.cmp(&a.thread)));
    forks
}

/// Threads that a rollout says it comes from.
fn named(payload: Raw<'_>) -> Vec<String> {
    let inside = |key, name| payload.member(key).and_then(|it: Raw<'_>| it.member(name));
    let inner = [inside("history_base", "thread_id"), inside(MARK, "forked_from")];
    let names = ["forked_from_id", "parent_thread_id"].map(|key| payload.member(key));
    names
        .into_iter()
        .chain(inner)
        .flatten()
        .filter_map(Raw::text)
        .map(|id| id.into_owned())
        .collect()
}

fn fork(found: &Found, payload: Raw<'_>) -> Option<Own> {
    let path = &found.path;
    let rollout = found.rollout.as_ref();
    let mark = payload.member(MARK).filter(|mark| mark.is_object())?;
    let text = |key| payload.member(key).and_then(Raw::text).map(|text| text.into_owned());
    let made = text("timestamp")?;
    let thread = text("id")?;
    Some(Own {
        is_archived: rollout.is_some_and(|rollout| rollout.is_archived),
        is_moved: thread != found.key
            || rollout.is_none_or(|rollout| rollout.segment.is_some() || rollout.is_packed),
        seal: mark.member("seal").and_then(Raw::text).unwrap_or_default().into_owned(),
        thread,
        path: path.clone(),
        source: mark.member("forked_from").and_then(Raw::text).map(|text| text.into_owned()),
        written: found.mtime,
        bytes: found.size,
        is_unused: is_unused(path, &made),
        is_parent: false,
        may_be_parent: false,
        made,
    })
}

/// Whether the last record is the one that a fork is written with: it has the time of the fork itself.
fn is_unused(path: &Path, made: &str) -> bool {
    let (mut is_ours, mut is_torn) = (false, false);
    let Ok(mut file) = Transcript::open(path) else { return false };
    let Ok(size) = file.stat().map(|stat| stat.size) else { return false };
    // The last record is short; of what stands before it only the end is looked at.
    let from = if file.is_packed() { 0 } else { size.saturating_sub(TAIL_BYTES) };
    let read =
        LineReader::new().read(&mut file, Cursor::at(from), Slice::whole().with_torn(), |line| {
            is_torn = !line.is_complete;
            is_ours = record(line.bytes).is_some_and(|(_, whole)| {
                let kind = whole.member("payload").and_then(Raw::kind);
                let at = whole.member("timestamp").and_then(Raw::text);
                kind.as_deref() == Some("token_count") && at.as_deref() == Some(made)
            });
            ControlFlow::Continue(())
        });
    read.is_ok() && is_ours && !is_torn
}

/// The record that a fork ends with is shorter by far.
const TAIL_BYTES: u64 = 64 * 1024;

/// Why a fork stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// Somebody went on with it: it is a session like any other now.
    Used,
    /// Another thread was made from it.
    Parent,
    /// The person put it aside, copied it, moved it, or changed it.
    Theirs,
    /// It is younger than was asked for.
    Young,
    /// A host holds it just now.
    Held,
    /// A draft that is being written, or has just become a fork.
    Written,
    /// A rollout could not be read, and may rest on it.
    Unclear,
}

impl Stays {
    /// For people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Used => "was gone on with: it is a session of yours",
            Self::Parent => "another thread was made from it",
            Self::Theirs => "was archived, copied, moved or changed by somebody",
            Self::Young => "is not old enough",
            Self::Held => "is held by a running Codex",
            Self::Written => "is being written",
            Self::Unclear => "may be needed by a rollout that cannot be read",
        }
    }
}

impl Stays {
    /// For a table.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Used => "in use",
            Self::Parent => "has a fork",
            Self::Theirs => "yours",
            Self::Young => "too new",
            Self::Held => "Codex holds it",
            Self::Written => "being written",
            Self::Unclear => "a rollout is unreadable",
        }
    }
}

impl Own {
    /// Why it is not one to remove, as far as can be said without touching it.
    #[must_use]
    pub fn stays(&self, older_than: Duration) -> Option<Stays> {
        match self {
            Self { is_parent: true, .. } => Some(Stays::Parent),
            Self { is_unused: false, .. } => Some(Stays::Used),
            Self { is_archived: true, .. } | Self { is_moved: true, .. } => Some(Stays::Theirs),
            _ if is_young(self.written, older_than) => Some(Stays::Young),
            Self { may_be_parent, .. } => may_be_parent.then_some(Stays::Unclear),
        }
    }
}

pub(crate) fn is_young(written: SystemTime, older_than: Duration) -> bool {
    SystemTime::now().duration_since(written).unwrap_or_default() < older_than
}

/// Removes a fork if nothing speaks against it: only a file of ours that is as we wrote it.
///
/// # Errors
/// The file cannot be removed.
pub fn remove(fork: &Own, older_than: Duration) -> Result<Option<Stays>, Error> {
    if let Some(stays) = fork.stays(older_than) {
        return Ok(Some(stays));
    }
    let home = crate::fork::home_of(&fork.path);
    let Some(_lock) = home.map_or(Some(None), |home| lock::take(&home, &fork.thread)) else {
        return Ok(Some(Stays::Held));
    };
    // Once more, now that no host can begin with it.
    if !is_unused(&fork.path, &fork.made) {
        return Ok(Some(Stays::Used));
    }
    match seal::of(&fork.path) {
        Ok(seal) if seal == fork.seal => {}
        _ => return Ok(Some(Stays::Theirs)),
    }
    fs::remove_file(&fork.path).map_err(Error::write("remove", &fork.path))?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: &str = "01a22bab-3f13-7243-b3b3-97275892478f";

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            fs::create_dir_all(home.path().join("sessions")).unwrap();
            Self(home)
        }

        fn write(&self, thread: &str, meta: &str, rest: &str) -> PathBuf {
            let path =
                self.0.path().join(format!("sessions/rollout-2026-11-30T08-56-12-{thread}.jsonl"));
            let mut sealing = seal::Sealing::default();
            sealing.add(rest.as_bytes());
            let meta = &meta.replace("SEAL", &sealing.text());
            let meta = format!(
                r#"{{"timestamp":"T","type":"session_meta","payload":{{"id":"{thread}","timestamp":"T"{meta}}}}}"#
            );
            fs::write(&path, format!("{meta}\n{rest}")).unwrap();
            path
        }

        fn own(&self) -> Vec<Own> {
            own(&Roots::new([], [self.0.path().to_path_buf()]))
        }
    }

    const OURS: &str = r#","compactd":{"version":"0","forked_from":"p","seal":"SEAL"}"#;
    const END: &str =
        "{\"timestamp\":\"T\",\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\"}}\n";

    #[test]
    fn only_an_unused_fork_of_ours_is_removed() {
        let home = Home::new();
        let path = home.write(THREAD, OURS, END);
        let [fork] = home.own().try_into().unwrap();
        assert!(fork.is_unused && !fork.is_parent && fork.source.as_deref() == Some("p"));
        assert_eq!(remove(&fork, Duration::from_secs(60)).unwrap(), Some(Stays::Young));
        assert!(path.exists());
        assert_eq!(remove(&fork, Duration::ZERO).unwrap(), None);
        assert!(!path.exists());
    }

    #[test]
    fn what_was_gone_on_with_stays() {
        let home = Home::new();
        let more = END.replace("\"T\"", "\"U\"");
        for rest in [format!("{END}{more}"), format!("{END}{{\"half"), String::new()] {
            let path = home.write(THREAD, OURS, &rest);
            let [fork] = home.own().try_into().unwrap();
            assert_eq!(remove(&fork, Duration::ZERO).unwrap(), Some(Stays::Used), "{rest}");
            assert!(path.exists());
        }
        // It is gone on with between the look and the removal.
        home.write(THREAD, OURS, END);
        let [fork] = home.own().try_into().unwrap();
        home.write(THREAD, OURS, &format!("{END}{more}"));
        assert_eq!(remove(&fork, Duration::ZERO).unwrap(), Some(Stays::Used));
    }

    #[test]
    fn what_somebody_changed_copied_or_put_aside_stays() {
        let home = Home::new();
        let path = home.write(THREAD, OURS, &format!("{{\"timestamp\":\"x\"}}\n{END}"));
        let stays = |home: &Home| {
            let fates: Vec<_> =
                home.own().iter().map(|fork| remove(fork, Duration::ZERO).unwrap()).collect();
            fates
        };
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("\"x\"", "\"y\"")).unwrap();
        assert_eq!(stays(&home), [Some(Stays::Theirs)], "changed");
        fs::write(&path, &text).unwrap();
        let copy = home.0.path().join("sessions/2026/copies");
        fs::create_dir_all(&copy).unwrap();
        let copy = copy.join(path.file_name().unwrap());
        fs::copy(&path, &copy).unwrap();
        assert_eq!(stays(&home), [Some(Stays::Theirs), Some(Stays::Theirs)], "copied");
        fs::remove_file(&copy).unwrap();
        let archive = home.0.path().join("archived_sessions");
        fs::create_dir(&archive).unwrap();
        fs::rename(&path, archive.join(path.file_name().unwrap())).unwrap();
        assert_eq!(stays(&home), [Some(Stays::Theirs)], "put aside");
        fs::rename(archive.join(path.file_name().unwrap()), &path).unwrap();
        assert_eq!(stays(&home), [None]);
    }

    #[test]
    fn parents_and_others_stay() {
        let home = Home::new();
        home.write(THREAD, OURS, END);
        let child = THREAD.replace("01a2", "02a2");
        for meta in [
            format!(r#","history_base":{{"thread_id":"{THREAD}"}}"#),
            format!(r#","forked_from_id":"{THREAD}""#),
            format!(r#","parent_thread_id":"{THREAD}""#),
            format!(r#","compactd":{{"forked_from":"{THREAD}"}}"#),
        ] {
            home.write(&child, &meta, END);
            let all = home.own();
            let fork = all.iter().find(|fork| fork.thread == THREAD).unwrap();
            assert_eq!(remove(fork, Duration::ZERO).unwrap(), Some(Stays::Parent));
        }
    }

    #[test]
    fn what_cannot_be_read_may_rest_on_it() {
        let home = Home::new();
        let path = home.write(THREAD, OURS, END);
        let child = home.write(&THREAD.replace("01a2", "02a2"), "", END);
        // Packed, by its first bytes, and nothing behind them.
        fs::write(&child, b"\x28\xb5\x2f\xfdbroken").unwrap();
        let [fork] = home.own().try_into().unwrap();
        assert_eq!(remove(&fork, Duration::ZERO).unwrap(), Some(Stays::Unclear));
        fs::remove_file(child).unwrap();
        let [fork] = home.own().try_into().unwrap();
        assert_eq!(remove(&fork, Duration::ZERO).unwrap(), None);
        assert!(!path.exists());
    }

    #[test]
    fn a_fork_that_a_host_holds_stays() {
        let home = Home::new();
        home.write(THREAD, OURS, END);
        let locks = home.0.path().join("thread-writer-locks");
        fs::create_dir(&locks).unwrap();
        fs::write(locks.join(format!("{THREAD}.lock")), "").unwrap();
        let held = lock::take(home.0.path(), THREAD).unwrap();
        let [fork] = home.own().try_into().unwrap();
        assert_eq!(remove(&fork, Duration::ZERO).unwrap(), Some(Stays::Held));
        drop(held);
        assert_eq!(remove(&fork, Duration::ZERO).unwrap(), None);
    }
}
