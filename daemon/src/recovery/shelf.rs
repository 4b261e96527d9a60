//! What the thread of recovery holds: how far the texts of the threads in memory are, and their files.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime};

use super::{Moment, Open, Stage, Track, files};
use crate::sessions::SessionKey;
use crate::store::{Store, StoreError};

/// So many threads are in memory.
const TRACKS: usize = if cfg!(test) { 8 } else { 4_096 };
/// Old texts are looked for at most this often.
const CLEANS: Duration = Duration::from_secs(3_600);

pub(super) type Work = Box<dyn FnOnce(&mut Shelf) + Send>;

pub(super) enum Job {
    Do(Work),
    Stop,
}

/// What the thread holds.
pub(super) struct Shelf {
    store: Store,
    tracks: HashMap<SessionKey, Track>,
    open: Open,
    cleaned: Option<Instant>,
}

impl Shelf {
    pub(super) fn new(store: Store, open: Open) -> Self {
        Self { store, tracks: HashMap::new(), open, cleaned: None }
    }

    /// The thread's loop.
    pub(super) fn run(&mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Do(work) => {
                    if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
                        tracing::error!("a step of recovery panicked");
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
        self.open.clear();
    }

    /// How far a thread is; `None` where its file cannot be read: then nothing is done about it.
    fn track(&mut self, key: &SessionKey) -> Option<Track> {
        if let Some(track) = self.tracks.get(key) {
            return Some(track.clone());
        }
        if self.open.len() >= TRACKS {
            self.forget();
        }
        let read = self.store.recovery(key).map_err(|error| error.to_string()).and_then(|bytes| {
            let parsed = bytes.map(|bytes| files::parse(&bytes)).transpose();
            parsed.map_err(|error| error.to_string())
        });
        match read {
            Ok(track) => {
                let track = track.unwrap_or_default();
                self.remember(key, &track);
                Some(track)
            }
            Err(error) => {
                tracing::warn!(session = key.id, error, "kept texts are left as they are");
                self.open.insert(key.clone(), false);
                None
            }
        }
    }

    fn remember(&mut self, key: &SessionKey, track: &Track) {
        self.open.insert(key.clone(), track.is_open());
        // Of threads of which nothing is kept it is enough that they are known.
        if *track == Track::default() {
            self.tracks.remove(key);
        } else {
            self.tracks.insert(key.clone(), track.clone());
        }
    }

    /// Writes what changed. Where the disk refuses, all stays as it was, here too.
    fn change(&mut self, key: &SessionKey, from: &Track, to: &Track) -> bool {
        if from == to {
            return true;
        }
        let written = files::print(to).map_err(|error| error.to_string()).and_then(|bytes| {
            self.store.save_recovery(key, &bytes).map_err(|error| error.to_string())
        });
        if let Err(error) = written {
            tracing::warn!(session = key.id, error, "what is kept of a thread is not on disk");
            return false;
        }
        let stays = |number: u64| to.texts().any(|(kept, _)| kept == number);
        for (number, _) in from.texts().filter(|(number, _)| !stays(*number)) {
            if let Err(error) = self.store.remove_recovery_text(key, number) {
                tracing::warn!(session = key.id, number, %error, "an old text stays");
            }
        }
        self.remember(key, to);
        true
    }

    pub(super) fn is_open(&mut self, key: &SessionKey) -> bool {
        self.track(key).is_some_and(|track| track.is_open())
    }

    /// Keeps a text, before what refers to it. `None`: it is not on disk.
    pub(super) fn before(
        &mut self,
        key: &SessionKey,
        seen: u64,
        text: Option<(String, String)>,
    ) -> Option<u64> {
        let from = self.track(key)?;
        let mut to = from.clone();
        let (at, text) = text.unzip();
        let number = to.before(seen, at);
        if let Some(text) = text
            && let Err(error) = self.store.save_recovery_text(key, number, &text)
        {
            tracing::warn!(session = key.id, number, %error, "a text is not on disk");
            // An earlier one may stand in its place: it is no longer meant.
            to = from.clone();
            to.before(seen, None);
            self.change(key, &from, &to);
            return None;
        }
        self.change(key, &from, &to).then_some(number)
    }

    /// Hands out what is due. `give` says whether it was taken.
    pub(super) fn due(
        &mut self,
        key: &SessionKey,
        seen: u64,
        moment: Moment,
        give: impl FnOnce(Option<String>) -> bool,
    ) {
        let Some((text, due)) = self.take(key, seen, moment) else {
            give(None);
            return;
        };
        if give(Some(text)) {
            return;
        }
        // It did not go out: the next hook may take it.
        if let Some(from) = self.track(key) {
            let mut to = from.clone();
            to.take_back(&due);
            self.change(key, &from, &to);
        }
    }

    fn take(&mut self, key: &SessionKey, seen: u64, moment: Moment) -> Option<(String, Vec<u64>)> {
        let from = self.track(key)?;
        let mut to = from.clone();
        let due = to.due(seen, moment);
        let texts = match self.texts(key, &due) {
            Ok(texts) => texts,
            Err(error) => {
                tracing::warn!(session = key.id, %error, "a text cannot be read");
                return None;
            }
        };
        let is_on_disk = self.change(key, &from, &to);
        (is_on_disk && !texts.is_empty()).then(|| (texts.join("\n\n"), due))
    }

    fn texts(&self, key: &SessionKey, due: &[u64]) -> Result<Vec<String>, StoreError> {
        let read = due.iter().map(|number| self.store.recovery_text(key, *number));
        Ok(read.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    pub(super) fn stage(&mut self, key: &SessionKey, seen: Option<u64>) -> Option<(u64, Stage)> {
        self.track(key)?.stage(seen)
    }

    /// Removes what is old, if that was not done lately.
    pub(super) fn clean(&mut self) {
        if self.cleaned.is_some_and(|cleaned| cleaned.elapsed() < CLEANS) {
            return;
        }
        self.cleaned = Some(Instant::now());
        let is_open = |bytes: &[u8]| files::parse(bytes).map_or(true, |track| track.is_open());
        if self.store.clean_recovery(is_open, SystemTime::now()) {
            self.forget();
        }
    }
}
