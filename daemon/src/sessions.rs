//! All sessions that the daemon knows, and the state of each.
//!
//! A session is cold (known, not read), ready (an index that catches up in place) or broken. Who
//! reads a ready session holds its lock for the bytes that are new; a cold one is read without any
//! lock and put in place when done, so that a request never waits for a background thread.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use compactd_core::record::Host;
use compactd_core::settings::Settings;
use compactd_transcript::lineage::ThreadFiles;
use compactd_transcript::walk::Found;
use compactd_transcript::{Error, LineReader, Roots};
use dashmap::DashMap;

pub use crate::session::{FileFacts, Held, Session, SessionKey, State, key_of};
use crate::stats::Stats;
use crate::store::Store;
use crate::tail::{Progress, Tail};

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    map: DashMap<SessionKey, Arc<Session>>,
    threads: RwLock<Arc<ThreadFiles>>,
    /// Some Codex history could not be followed to its beginning: a new file may mend it.
    gaps: AtomicBool,
    roots: Roots,
    settings: Settings,
    store: Store,
    stats: Arc<Stats>,
    clock: AtomicU64,
}

/// What a step of following a session came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// All that is there was taken in.
    Current,
    /// There is more.
    More,
    /// It has no index, or cannot be read now.
    Not,
}

/// How much a request or the live thread reads at a time while it holds a session's lock.
const LOCKED_STEP_BYTES: u64 = 256 * 1024;

impl Sessions {
    /// No sessions yet.
    #[must_use]
    pub fn new(roots: Roots, settings: Settings, store: Store, stats: Arc<Stats>) -> Self {
        Self {
            map: DashMap::new(),
            threads: RwLock::default(),
            gaps: AtomicBool::new(false),
            roots,
            settings,
            store,
            stats,
            clock: AtomicU64::new(1),
        }
    }

    /// The roots under which transcripts are looked for.
    #[must_use]
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    /// The settings of index and rules.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Where snapshots and pins are kept.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The session with this key.
    #[must_use]
    pub fn get(&self, key: &SessionKey) -> Option<Arc<Session>> {
        self.map.get(key).map(|session| Arc::clone(&session))
    }

    /// The session with this id, of either host; of several the one that changed last.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Arc<Session>> {
        [Host::Claude, Host::Codex]
            .into_iter()
            .filter_map(|host| self.get(&SessionKey { host, id: id.to_owned() }))
            .max_by_key(|session| session.file().modified)
    }

    /// Every session.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.map.iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The files of all Codex threads, as they are known now; no lock is held while they are used.
    fn threads(&self) -> Arc<ThreadFiles> {
        Arc::clone(&self.threads.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A new Codex file may hold what the history of another session lacks: those are read again.
    fn mend_gaps(&self) {
        if !self.gaps.swap(false, Ordering::Relaxed) {
            return;
        }
        for session in self.all() {
            let mut state = session.lock();
            if matches!(&*state, State::Ready(tail) if tail.has_gap()) {
                *state = State::Cold;
                session.index_bytes.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Takes in a file that was found. Returns its session, which is new or may have changed.
    pub fn found(&self, found: &Found) -> Arc<Session> {
        if found.host == Host::Codex {
            let mut threads = self.threads.write().unwrap_or_else(PoisonError::into_inner);
            Arc::make_mut(&mut threads).insert(found);
        }
        let key = key_of(found);
        if found.host == Host::Codex && !self.map.contains_key(&key) {
            self.mend_gaps();
        }
        let facts = FileFacts {
            path: found.path.clone(),
            size_bytes: found.size,
            modified: found.mtime,
            parent: found.agent.is_some().then(|| found.key.clone()),
        };
        let session = Arc::clone(
            self.map
                .entry(key.clone())
                .or_insert_with(|| Arc::new(Session::new(key, facts.clone())))
                .value(),
        );
        let known = session.file();
        if known.path == facts.path {
            session.learn(facts);
        } else if self.is_newer(found, &known) {
            self.switch(&session, facts);
        }
        session
    }

    /// Of several files of one session (segments, an archived copy) one is its present.
    fn is_newer(&self, found: &Found, known: &FileFacts) -> bool {
        if !known.path.exists() {
            return true;
        }
        match found.host {
            Host::Codex => self.threads().current(&found.key) == Some(&found.path),
            Host::Claude => found.mtime > known.modified,
        }
    }

    fn switch(&self, session: &Session, facts: FileFacts) {
        let mut state = session.lock();
        let same_file = match &mut *state {
            // A renamed file keeps its index; another file of the session has another history.
            State::Ready(tail) => tail.moved(&facts.path),
            State::Cold | State::Broken(_) => false,
        };
        if !same_file {
            *state = State::Cold;
            session.index_bytes.store(0, Ordering::Relaxed);
        }
        session.learn(facts);
    }

    /// A path inside the roots that may have changed: the session to look at.
    #[must_use]
    pub fn at_path(&self, path: &Path) -> Option<Arc<Session>> {
        let place = self.roots.admit(path)?;
        let metadata = std::fs::metadata(path).ok()?;
        if !metadata.is_file() {
            return None;
        }
        let stat = compactd_transcript::Stat::of(&metadata);
        Some(self.found(&Found::new(path.to_path_buf(), place, &stat)))
    }

    /// A path is gone. A session whose only file it was is forgotten; its snapshot goes with it
    /// when the store is next cleaned.
    pub fn gone(&self, path: &Path) {
        // Made anew since: its being found may have been told already, on another thread.
        if self.at_path(path).is_some() {
            return;
        }
        {
            let mut threads = self.threads.write().unwrap_or_else(PoisonError::into_inner);
            Arc::make_mut(&mut threads).remove(path);
        }
        let Some(place) = self.roots.place(path) else { return };
        let id = place.agent.clone().unwrap_or_else(|| place.key.clone());
        let key = SessionKey { host: place.host, id };
        let other = self.threads().current(&place.key).map(Path::to_path_buf);
        let Some(session) = self.get(&key).filter(|session| session.file().path == path) else {
            return;
        };
        match other.filter(|_| key.host == Host::Codex) {
            Some(other) => {
                *session.lock() = State::Cold;
                session.index_bytes.store(0, Ordering::Relaxed);
                let _found_again = self.at_path(&other);
            }
            None => {
                self.map.remove(&key);
            }
        }
    }

    /// Brings a ready session up to date in small steps, releasing its lock between them; leaves a
    /// cold one alone. True if it is ready now.
    pub fn follow(&self, session: &Session, reader: &mut LineReader) -> bool {
        loop {
            match self.follow_step(session, reader) {
                Followed::Current => return true,
                Followed::Not => return false,
                Followed::More => {}
            }
        }
    }

    /// One step of [`Sessions::follow`].
    pub fn follow_step(&self, session: &Session, reader: &mut LineReader) -> Followed {
        let mut state = session.lock();
        let State::Ready(tail) = &mut *state else { return Followed::Not };
        match self.step(session, tail, reader) {
            Ok(progress) => {
                self.took(session, tail, progress);
                if progress.has_more { Followed::More } else { Followed::Current }
            }
            // No descriptor left, or a disk that stumbles: what is known stays true, and the next
            // look may succeed.
            Err(error @ Error::Io { .. }) => {
                tracing::debug!(session = session.key.id, %error, "session cannot be read now");
                Followed::Not
            }
            Err(error) => {
                self.fail(session, &mut state, &error);
                Followed::Not
            }
        }
    }

    /// Reads a session from its snapshot and its files, without any lock. `go_on` is asked between
    /// steps; when it says no, nothing is put in place.
    ///
    /// # Errors
    /// A file cannot be read; the session is then broken until it changes.
    pub fn build(
        &self,
        session: &Session,
        reader: &mut LineReader,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<bool, Error> {
        let file = session.file();
        let built = self.read_all(session, &file, reader, &mut go_on);
        let mut state = session.lock();
        match built {
            Ok(Some(tail)) => {
                // Somebody else may have been faster, or the session may have another file by now.
                if !matches!(*state, State::Ready(_)) && session.file().path == file.path {
                    if tail.has_gap() {
                        self.gaps.store(true, Ordering::Relaxed);
                    }
                    self.account(session, &tail);
                    *state = State::Ready(Box::new(tail));
                }
                Ok(true)
            }
            Ok(None) => Ok(matches!(*state, State::Ready(_))),
            Err(error) => {
                if matches!(*state, State::Cold) {
                    self.fail(session, &mut state, &error);
                }
                Err(error)
            }
        }
    }

    fn read_all(
        &self,
        session: &Session,
        file: &FileFacts,
        reader: &mut LineReader,
        go_on: &mut impl FnMut() -> bool,
    ) -> Result<Option<Tail>, Error> {
        let mut tail = match self.store.load(&session.key, &file.path, &self.settings) {
            Some(tail) => {
                self.stats.snapshots_loaded.add(1);
                tail
            }
            None => Tail::new(session.key.host, &file.path, &self.threads(), &self.settings)?,
        };
        loop {
            if !go_on() {
                return Ok(None);
            }
            let progress = self.step(session, &mut tail, reader)?;
            self.count(session, progress);
            if !progress.has_more {
                return Ok(Some(tail));
            }
        }
    }

    fn step(
        &self,
        session: &Session,
        tail: &mut Tail,
        reader: &mut LineReader,
    ) -> Result<Progress, Error> {
        let progress = tail.step(reader, LOCKED_STEP_BYTES)?;
        if !progress.restarted || session.key.host != Host::Codex {
            return Ok(progress);
        }
        // Another file may name another history.
        let path = tail.path().to_path_buf();
        *tail = Tail::new(session.key.host, &path, &self.threads(), &self.settings)?;
        Ok(Progress { has_more: true, restarted: true, ..Progress::default() })
    }

    /// Whether a session has an index in memory.
    #[must_use]
    pub fn is_ready(session: &Session) -> bool {
        matches!(*session.lock(), State::Ready(_))
    }

    /// Marks a session as wanted now.
    pub fn touch(&self, session: &Session) {
        session.touched.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    fn took(&self, session: &Session, tail: &Tail, progress: Progress) {
        self.count(session, progress);
        if progress.lines > 0 || progress.restarted {
            self.account(session, tail);
        }
    }

    fn count(&self, session: &Session, progress: Progress) {
        self.stats.bytes_read.add(progress.bytes);
        self.stats.lines_read.add(progress.lines);
        self.stats.rebuilds.add(u64::from(progress.restarted));
        session.unsaved_bytes.fetch_add(progress.bytes, Ordering::Relaxed);
    }

    fn account(&self, session: &Session, tail: &Tail) {
        self.touch(session);
        let bytes = tail.index().heap_bytes() as u64;
        session.index_bytes.store(bytes, Ordering::Relaxed);
    }

    fn fail(&self, session: &Session, state: &mut State, error: &Error) {
        self.stats.broken.add(1);
        tracing::warn!(session = session.key.id, %error, "session cannot be read");
        session.index_bytes.store(0, Ordering::Relaxed);
        *state = State::Broken(error.to_string());
    }

    /// Marks a session as one that cannot be read until it changes.
    pub fn mark_broken(&self, session: &Session, reason: &str) {
        self.stats.broken.add(1);
        *session.lock() = State::Broken(reason.to_owned());
        session.index_bytes.store(0, Ordering::Relaxed);
    }

    /// Bytes that all indexes take.
    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        self.map.iter().map(|session| session.index_bytes()).sum()
    }

    /// Puts the indexes that were not wanted for longest back to disk until `budget_bytes` holds.
    pub fn evict(&self, budget_bytes: u64) {
        let mut total = self.index_bytes();
        if total <= budget_bytes {
            return;
        }
        let mut sessions = self.all();
        sessions.sort_by_key(|session| session.touched.load(Ordering::Relaxed));
        for session in sessions {
            let bytes = session.index_bytes();
            if bytes == 0 {
                continue;
            }
            self.save(&session);
            {
                // Who asks takes hold before it looks, so that it is seen here or finds it cold.
                let mut state = session.lock();
                if session.holders.load(Ordering::Relaxed) > 0 {
                    continue;
                }
                let index = std::mem::replace(&mut *state, State::Cold);
                session.index_bytes.store(0, Ordering::Relaxed);
                // Its memory is given back without the lock.
                drop(state);
                drop(index);
            }
            total -= bytes.min(total);
            if total <= budget_bytes {
                return;
            }
        }
    }

    /// Writes a ready session's snapshot if anything is new in it.
    pub fn save(&self, session: &Session) {
        if session.unsaved_bytes() == 0 {
            return;
        }
        // Encoded under the lock, written without it.
        let encoded = match &*session.lock() {
            State::Ready(tail) => self.store.encode(tail),
            State::Cold | State::Broken(_) => None,
        };
        let Some(encoded) = encoded else { return };
        session.saved();
        match self.store.save(&session.key, &encoded) {
            Ok(()) => self.stats.snapshots_saved.add(1),
            Err(error) => {
                tracing::warn!(session = session.key.id, %error, "snapshot could not be written");
            }
        }
    }

    /// Writes the snapshots of all sessions with something new.
    pub fn save_all(&self) {
        for session in self.all() {
            self.save(&session);
        }
    }
}
