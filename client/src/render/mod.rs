//! Answers for people.

pub mod explain;
pub mod figures;
pub mod passes;
pub mod sessions;
