//! All tests over the whole project, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]

mod claude;
mod corpora;
mod daemon;
mod escalation;
mod fixtures;
mod focus;
mod kit;
mod passes;
mod prefixes;
mod scripts;
mod tidy;
