//! The real Claude Code against a scripted Messages API.
//!
//! ```text
//! test ── Host ──▶ claude (scratch HOME, clean environment) ──HTTP──▶ MockApi ◀── Script (steps)
//!           │                                                             │
//!           └── Session / Terminal: prompts, events, transcript           └── requests, for `wire`
//! ```
//!
//! Nothing leaves 127.0.0.1, the key is no key, and every test has a HOME of its own.

mod answer;
mod claude;
mod find;
mod mock_api;
pub mod scenario;
mod setup;
mod step;
mod terminal;
pub mod wire;

pub use claude::{Run, Session};
pub use find::{claude, compiler};
pub use mock_api::{Kind, MockApi, Recorder, Request};
pub use setup::Host;
pub use step::{Call, Gate, Step};
pub use terminal::{Terminal, tmux};
