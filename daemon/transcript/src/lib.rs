//! Finds transcripts and reads their complete lines.
//!
//! The daemon and the offline client share this crate: it opens, lists and reads files, and knows
//! where each host keeps them. What a line *means* is the core's matter; watching for changes is
//! the daemon's. Nothing here writes, and nothing here needs a runtime or a thread.

pub mod error;
pub mod identity;
pub mod layout;
pub mod lineage;
pub mod lines;
pub mod load;
pub mod source;
pub mod texts;
pub mod walk;

pub use error::Error;
pub use identity::{Change, FileId, Identity, Stat, compare, compare_path};
pub use layout::{Place, Rollout, Roots};
pub use lines::{Cursor, Line, LineReader, Progress, Slice};
pub use source::Transcript;
pub use walk::{Found, Walk, walk};
