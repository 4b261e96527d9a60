//! Installing and removing: programs, plugin, service, and the host's own plugin commands.
//!
//! `look` sees what is there and makes a plan (pure data), `apply` carries it out and takes it back on
//! a failure, `remove` undoes it later by the record that `apply` left. Claude Code's files are changed
//! by the host alone; only their saved bytes are ever put back, and only where nothing else changed.
//! Codex's configuration is put back in the same way, and edited where something else did change.

pub mod apply;
pub mod binaries;
pub mod codex;
pub mod error;
pub mod files;
pub mod host_claude;
pub mod hosts;
pub mod look;
pub mod places;
pub mod plan;
pub mod plugin;
pub mod record;
pub mod remove;
pub mod restore;
pub mod run;
pub mod service;
pub mod stop;

pub use apply::apply;
pub use error::InstallError;
pub use hosts::Which;
pub use look::{Prepared, Process, Wishes, look};
pub use plan::{Host, Plan, Service};
pub use remove::{Outcome, Removal, look as look_back};
pub use stop::stop;
