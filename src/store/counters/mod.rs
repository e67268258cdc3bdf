//! Counters in a hash.

mod apply;
mod field;
mod load;

pub use load::{ForeignHash, StoredCounters};
