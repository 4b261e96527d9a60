//! The real Claude Code against a scripted Messages API.
//!
//! ```text
//! test ── Host ──▶ claude (scratch HOME, clean environment) ──HTTP──▶ MockApi ◀── Script (steps)
//!           │                                                             │
//!           └── Session / Terminal: prompts, events, transcript           └── requests, for `wire`
//! ```
//!
//! The same for the real Codex and a scripted Responses API is in [`mod@codex`].
//!
//! Nothing leaves 127.0.0.1, the key is no key, and every test has a HOME of its own.

mod answer;
mod claude;
pub mod codex;
mod find;
mod gate;
mod mock_api;
mod recorder;
pub mod scenario;
mod serve;
mod setup;
mod step;
mod terminal;
mod watched;
pub mod wire;

pub use claude::{Run, Session};
pub use find::{claude, codex, compiler};
pub use gate::Gate;
pub use mock_api::{Kind, MockApi, Recorder, Request};
pub use recorder::{Asked, Fits, Takes};
pub use setup::Host;
pub use step::{Call, Step};
pub use terminal::{Terminal, tmux};
