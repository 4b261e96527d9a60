//! The command line of compactd, as a library: how the socket is found and spoken to, how a session
//! is decided without a daemon, and how both are shown to people.
//!
//! Data goes to stdout, words go to stderr. Nothing here writes a transcript; only `install` writes files.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "async")]
pub mod asynchronous;
pub mod cli;
pub mod commands;
pub mod config;
pub mod daemon;
pub mod doctor;
pub mod error;
pub mod find;
pub mod http;
pub mod install;
pub mod offline;
pub mod recall;
pub mod render;
pub mod sample;
pub mod socket;
pub mod start;
pub mod table;
pub mod terminal;

pub use error::Error;
