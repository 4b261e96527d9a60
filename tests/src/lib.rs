//! What the tests over the whole project share.

pub mod core_tools;
pub mod rescan;
