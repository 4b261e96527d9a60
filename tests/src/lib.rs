//! What the tests over the whole project share.

pub mod apply;
pub mod compare;
pub mod core_tools;
pub mod harness;
pub mod rescan;
pub mod session;
