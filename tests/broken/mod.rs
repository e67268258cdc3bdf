//! A second build of the crate, broken on purpose.

pub mod bugs;
pub mod build;
