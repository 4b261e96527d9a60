//! Runs compactd for tests: homes of their own, sessions to put there, the daemon in this process or
//! as the real binary, and a client for both.
//!
//! Nothing here waits for a time: what must happen is waited for with a deadline ([`eventually`]).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, also in its helpers"
)]

mod binaries;
mod client;
mod home;
pub mod host;
mod inside;
mod process;
mod wait;
mod writer;

pub use binaries::{Binaries, binaries};
pub use client::{Answer, Client};
pub use home::{Home, files, fixtures};
pub use inside::Daemon;
pub use process::{Process, Ran};
pub use wait::{PATIENCE, eventually, eventually_is};
pub use writer::{Claude, Codex};
