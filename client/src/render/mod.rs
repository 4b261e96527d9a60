//! Answers for people.

pub mod explain;
pub mod figures;
pub mod sessions;
