//! The focus text of a session: the rows that the index names, read again, and made into words by the
//! core. No lock is held while a file is read.

use std::path::PathBuf;

use compactd_core::focus::Plan;
use compactd_core::record::Host;
use compactd_transcript::texts::reread;

use crate::routes::App;
use crate::sessions::{Session, State};

/// What the focus text of a session is made from: everything that needs its lock.
#[derive(Debug)]
pub struct Sketch {
    host: Host,
    files: Vec<PathBuf>,
    plan: Plan,
}

impl Sketch {
    /// Looks at a session; `None` if it has no index. Its cost is bounded.
    #[must_use]
    pub fn of(state: &State, host: Host) -> Option<Self> {
        let State::Ready(tail) = state else { return None };
        let files = tail.segments().iter().rev().map(|segment| segment.path.clone()).collect();
        Some(Self { host, files, plan: tail.index().focus_plan() })
    }

    /// Reads the rows and makes the text of at most so many characters; `None` where there is nothing
    /// to keep.
    #[must_use]
    pub fn write(&self, max_chars: usize) -> Option<String> {
        reread(self.host, &self.files, &self.plan).write(&self.plan, max_chars)
    }
}

/// The focus text of a session that is ready.
#[must_use]
pub fn focus(app: &App, session: &Session) -> Option<String> {
    let sketch = Sketch::of(&session.lock(), session.key.host)?;
    sketch.write(app.focus_chars)
}
