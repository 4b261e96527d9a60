//! The daemon as a library, so that tests can run it in their own process.
//!
//! Edges only: files, sockets, threads. What a transcript means and what a compaction does is
//! decided in `compactd-core`.

pub mod compaction;
pub mod config;
pub mod focus;
pub mod follow;
pub mod fork;
pub mod ledger;
pub mod recovery;
pub mod routes;
pub mod run;
pub mod serve;
pub mod session;
pub mod sessions;
pub mod stats;
pub mod store;
pub mod tail;
pub mod telemetry;
pub mod time;
pub mod workers;
