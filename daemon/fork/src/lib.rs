//! A fork of a Codex thread: a copy of its rollout under a new thread id, whose newest `compacted`
//! record carries the shortened history word for word.
//!
//! Codex has no hook that could replace a compaction. What it does have is `codex resume`: it takes
//! as the history of a thread what the newest sound `compacted` record says, and what follows. Each
//! module here but `write`, `draft`, `lock`, `source`, `own` and `limit` is pure; `fork` puts them together. The source
//! is only ever read.

mod body;
mod check;
mod companions;
mod decide;
mod draft;
mod error;
mod fork;
mod history;
mod intake;
mod limit;
mod lock;
mod own;
mod rewrite;
mod seal;
mod source;
mod splice;
mod write;

pub use draft::{Draft, drafts, remove_draft};
pub use error::Error;
pub use fork::{Options, fork, home_of};
pub use limit::auto_compact_limit;
pub use own::{Own, Stays, own, remove};
