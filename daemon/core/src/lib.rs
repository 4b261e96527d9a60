//! The pure part of compactd: what a transcript line means, what the live index remembers of it,
//! and what the rules decide. No files, no sockets, no clock, no threads: bytes in, decisions out.

pub mod escalate;
pub mod focus;
pub mod hash;
pub mod index;
pub mod lines;
pub mod note;
pub mod recall;
pub mod record;
pub mod rules;
pub mod settings;
pub mod terms;
pub mod tokens;
pub mod tools;
