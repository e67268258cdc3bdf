//! A log in a sorted set.

mod apply;
mod load;
mod member;

pub use load::StoredLog;
