//! All tests over the whole project, in one binary.

mod prefixes;
