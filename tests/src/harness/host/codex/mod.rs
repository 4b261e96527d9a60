//! The real Codex against a scripted Responses API.
//!
//! ```text
//! test ── Codex ──▶ codex exec / app-server (scratch HOME) ──HTTP──▶ Responses ◀── Script (steps)
//!           │                                                            │
//!           └── Run / AppServer: events, rollouts                        └── requests, for `wire`
//! ```

mod answer;
mod api;
mod app_server;
mod exec;
pub mod hooks;
mod plugin;
pub mod rollout;
pub mod scenario;
mod setup;
mod step;
pub mod wire;

pub use api::{Kind, Recorder, Request, Responses};
pub use app_server::AppServer;
pub use exec::{Exec, Run};
pub use setup::{CODE_MODE, Codex, Config, DIRECT};
pub use step::{Call, Step};
