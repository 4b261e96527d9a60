//! What the ledger's thread holds: the passes of the sessions that were asked for, and their files.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use compactd_api::passes::{self, KeptPass, Pass, PassResult};
use dashmap::DashMap;

use super::{Changed, Job, Track};
use crate::sessions::SessionKey;
use crate::store::Store;

/// So many sessions have their passes in memory.
pub(super) const TRACKS: usize = if cfg!(test) { 8 } else { 512 };
/// Of so many passes the results wait in memory where they cannot be written.
const WAITING: usize = 16;

/// What a session's next compaction wants to know at once ([`Track::applied`]); of sessions in memory.
pub(super) type Applied = Arc<DashMap<SessionKey, Vec<(u64, u64)>>>;

/// Results that are not on disk.
struct Waiting {
    key: SessionKey,
    number: u64,
    at: String,
    results: Vec<PassResult>,
}

/// What the thread holds.
pub(super) struct Books {
    store: Store,
    /// Without results; only sessions that have passes.
    tracks: HashMap<SessionKey, Track>,
    /// The oldest first.
    waiting: VecDeque<Waiting>,
    applied: Applied,
}

impl Books {
    /// Nothing was asked for yet.
    pub(super) fn new(store: Store, applied: Applied) -> Self {
        Self { store, tracks: HashMap::new(), waiting: VecDeque::new(), applied }
    }

    /// The thread's loop.
    pub(super) fn run(&mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Do(work) => {
                    if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
                        tracing::error!("a step of the ledger panicked");
                        // What is on disk is whole; what was in memory may not be.
                        self.forget();
                    }
                }
                Job::Stop => return,
            }
        }
    }

    fn forget(&mut self) {
        self.tracks.clear();
        self.waiting.clear();
        self.applied.clear();
    }

    /// A compaction was answered. Its results go to disk at once, before what refers to them.
    pub(super) fn answered(&mut self, key: &SessionKey, mut kept: KeptPass) {
        let (number, at) = (kept.pass.item.number, kept.pass.item.at.clone());
        let results = std::mem::take(&mut kept.pass.results);
        self.drop_waiting(key, number);
        if self.waiting.len() >= WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting { key: key.clone(), number, at, results });
        self.change(key, |track| ((), track.answered(kept)));
    }

    fn drop_waiting(&mut self, key: &SessionKey, number: u64) {
        self.waiting.retain(|waiting| waiting.number != number || waiting.key != *key);
    }

    /// Changes the passes of a session, and writes what changed.
    pub(super) fn change<T>(
        &mut self,
        key: &SessionKey,
        work: impl FnOnce(&mut Track) -> (T, Changed),
    ) -> T {
        let mut track = match self.tracks.remove(key) {
            Some(track) => track,
            None => {
                if self.tracks.len() >= TRACKS {
                    self.tracks.clear();
                    self.applied.clear();
                }
                self.load(key)
            }
        };
        let (answer, changed) = work(&mut track);
        // Before the files: the next compaction does not wait for a disk.
        match track.newest() {
            Some(_) => drop(self.applied.insert(key.clone(), track.applied())),
            None => drop(self.applied.remove(key)),
        }
        for number in &changed.removed {
            self.drop_waiting(key, *number);
            if let Err(error) = self.store.remove_pass(key, *number) {
                tracing::warn!(session = key.id, number, %error, "an old pass stays");
            }
        }
        for number in &changed.written {
            if let Some(kept) = track.get(*number) {
                self.write(key, *number, kept);
            }
        }
        // Of ids that nobody knows nothing is kept.
        if track.newest().is_some() {
            self.tracks.insert(key.clone(), track);
        }
        answer
    }

    /// What is on disk, without the results. Files of other versions are left as they are.
    fn load(&self, key: &SessionKey) -> Track {
        let numbers = self.store.pass_numbers(key).unwrap_or_else(|error| {
            tracing::warn!(session = key.id, %error, "passes cannot be read");
            Vec::new()
        });
        Track::of(numbers.into_iter().filter_map(|number| self.read(key, number)))
    }

    fn read(&self, key: &SessionKey, number: u64) -> Option<KeptPass> {
        let bytes = match self.store.pass(key, number) {
            Ok(bytes) => bytes?,
            Err(error) => {
                tracing::warn!(session = key.id, number, %error, "a pass cannot be read");
                return None;
            }
        };
        match passes::parse(&bytes) {
            // A file that was put there under another number is none of ours.
            Ok(kept) => Some(kept).filter(|kept| kept.pass.item.number == number),
            Err(error) => {
                tracing::warn!(session = key.id, number, %error, "a pass is left as it is");
                None
            }
        }
    }

    /// A pass with its results; without them where they are lost.
    pub(super) fn pass(&self, key: &SessionKey, number: u64) -> Option<Pass> {
        let known = &self.tracks.get(key)?.get(number)?.pass;
        let waiting =
            self.waiting.iter().find(|waiting| waiting.number == number && waiting.key == *key);
        let results = match waiting {
            Some(waiting) => waiting.results.clone(),
            None => self.results(key, number, &known.item.at).unwrap_or_default(),
        };
        Some(Pass { results, ..known.clone() })
    }

    fn results(&self, key: &SessionKey, number: u64, at: &str) -> Option<Vec<PassResult>> {
        let found = self.store.results(key, number).map_err(|error| error.to_string());
        let parsed = found.and_then(|bytes| {
            let parsed = bytes.map(|bytes| passes::parse_results(&bytes)).transpose();
            parsed.map_err(|error| error.to_string())
        });
        match parsed {
            Ok(found) => found.filter(|(of, _)| of == at).map(|(_, results)| results),
            Err(error) => {
                tracing::warn!(session = key.id, number, error, "results cannot be read");
                None
            }
        }
    }

    /// Writes a pass, its results first where they are not on disk yet.
    fn write(&mut self, key: &SessionKey, number: u64, kept: &KeptPass) {
        let is_it = |waiting: &Waiting| waiting.number == number && waiting.key == *key;
        if let Some(at) = self.waiting.iter().position(is_it) {
            let written = self.waiting.get(at).map(|waiting| {
                let bytes = || passes::print_results(&waiting.at, &waiting.results);
                self.store.save_results(key, number, bytes)
            });
            match written {
                Some(Ok(true)) => drop(self.waiting.remove(at)),
                Some(Err(error)) => {
                    tracing::warn!(session = key.id, number, %error, "results are not on disk");
                }
                Some(Ok(false)) | None => {}
            }
        }
        if let Err(error) = self.store.save_pass(key, number, || passes::print(kept)) {
            tracing::warn!(session = key.id, number, %error, "a pass is not on disk");
        }
    }
}
