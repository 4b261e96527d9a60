//! The real Claude Code against a scripted API: what it sends, and when.
//!
//! Without the host these tests end at once, with a line that says how to run them.

mod auto;
mod failures;
mod kit;
mod manual;
mod native;
mod shapes;
mod types;
