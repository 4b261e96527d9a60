//! The real Codex against a scripted API: what it sends and writes, and when.
//!
//! Without the host these tests end at once, with a line that says how to run them.

mod daemon;
mod delivery;
mod fork;
mod harness;
mod hooks;
mod install;
mod read;
mod rig;
mod shapes;
mod terminal;
