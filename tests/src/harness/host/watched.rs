//! A value that one thread changes and another waits for.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// A value and whoever waits for it.
#[derive(Debug, Default)]
pub(super) struct Watched<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Watched<T> {
    pub(super) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Condvar::new() }
    }

    /// Looks at the value, or changes it.
    pub(super) fn with<V>(&self, act: impl FnOnce(&mut T) -> V) -> V {
        let done = act(&mut self.value.lock().unwrap());
        self.changed.notify_all();
        done
    }

    /// Looks after every change, until there is something or the time is over.
    pub(super) fn wait<V>(
        &self,
        patience: Duration,
        mut look: impl FnMut(&mut T) -> Option<V>,
    ) -> Option<V> {
        let deadline = Instant::now() + patience;
        let mut value = self.value.lock().unwrap();
        loop {
            if let Some(found) = look(&mut value) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            value = self.changed.wait_timeout(value, left).unwrap().0;
        }
    }
}
