//! Waiting for what must happen.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

/// What nothing may take longer than, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(4);

/// Looks again and again until there is a value.
///
/// # Panics
/// There was none in time.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::park_timeout(LOOK);
    }
}

/// Looks again and again until the value is the expected one.
///
/// # Panics
/// It was not in time; the last value is told.
#[track_caller]
pub fn eventually_is<T: PartialEq + Debug>(what: &str, expected: &T, mut look: impl FnMut() -> T) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let value = look();
        if value == *expected {
            return;
        }
        assert!(Instant::now() < deadline, "not in time: {what}: {value:?}, expected {expected:?}");
        thread::park_timeout(LOOK);
    }
}
