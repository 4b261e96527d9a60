//! The pure part of compactd: what a transcript line means, what the live index remembers of it,
//! and what the rules decide. No files, no sockets, no clock, no threads: bytes in, decisions out.

pub mod record;
