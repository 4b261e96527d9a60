//! One session: who it is, what is known of its file, and how far it is read.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::SystemTime;

use compactd_core::record::Host;
use compactd_transcript::walk::Found;

use crate::tail::Tail;

/// Who a session is: the host and the id that its file's name gives.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// The host that writes it.
    pub host: Host,
    /// Session, thread, or sub-agent id.
    pub id: String,
}

/// What is known of a session's file without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// Its newest file.
    pub path: PathBuf,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// Last change.
    pub modified: SystemTime,
    /// The session that a sub-agent belongs to.
    pub parent: Option<String>,
}

/// How far a session is read.
#[derive(Debug)]
pub enum State {
    /// Known, not read (or put back to disk).
    Cold,
    /// Up to date as of the last look.
    Ready(Box<Tail>),
    /// Cannot be read; looked at again when the file changes.
    Broken(String),
}

/// One session.
#[derive(Debug)]
pub struct Session {
    /// Who it is.
    pub key: SessionKey,
    facts: RwLock<FileFacts>,
    state: Mutex<State>,
    /// When it was last asked for or changed: the order of eviction.
    pub(crate) touched: AtomicU64,
    /// Bytes its index takes, for the budget.
    pub(crate) index_bytes: AtomicU64,
    /// Bytes indexed since its last snapshot.
    pub(crate) unsaved_bytes: AtomicU64,
    /// Requests that are being answered from it: it stays in memory for them.
    pub(crate) holders: AtomicU64,
    /// Held by the one request that reads a cold session whole; the others wait for it.
    pub(crate) building: Mutex<()>,
}

/// Keeps a session in memory while a request is answered from it.
#[derive(Debug)]
pub struct Held(Arc<Session>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    pub(crate) fn new(key: SessionKey, facts: FileFacts) -> Self {
        Self {
            key,
            facts: RwLock::new(facts),
            state: Mutex::new(State::Cold),
            touched: AtomicU64::new(0),
            index_bytes: AtomicU64::new(0),
            unsaved_bytes: AtomicU64::new(0),
            holders: AtomicU64::new(0),
            building: Mutex::new(()),
        }
    }

    /// Keeps it from being put back to disk until the guard is dropped.
    #[must_use]
    pub fn hold(self: &Arc<Self>) -> Held {
        self.holders.fetch_add(1, Ordering::Relaxed);
        Held(Arc::clone(self))
    }

    /// What is known of its file.
    #[must_use]
    pub fn file(&self) -> FileFacts {
        self.facts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its state. A panic while it was held leaves it [`State::Cold`]: nothing half done is used.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            self.state.clear_poison();
            let mut state = poisoned.into_inner();
            *state = State::Cold;
            self.index_bytes.store(0, Ordering::Relaxed);
            state
        })
    }

    /// Bytes its index takes.
    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        self.index_bytes.load(Ordering::Relaxed)
    }

    /// Bytes indexed since its last snapshot.
    #[must_use]
    pub fn unsaved_bytes(&self) -> u64 {
        self.unsaved_bytes.load(Ordering::Relaxed)
    }

    /// Marks it as saved.
    pub fn saved(&self) {
        self.unsaved_bytes.store(0, Ordering::Relaxed);
    }

    pub(crate) fn learn(&self, facts: FileFacts) {
        *self.facts.write().unwrap_or_else(PoisonError::into_inner) = facts;
    }
}

/// The key of a file that was found: a sub-agent has its own.
#[must_use]
pub fn key_of(found: &Found) -> SessionKey {
    let id = found.agent.clone().unwrap_or_else(|| found.key.clone());
    SessionKey { host: found.host, id }
}
