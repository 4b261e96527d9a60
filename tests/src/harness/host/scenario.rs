//! Work that a scripted model does, for scenarios: files, and the steps that look at them.
