//! Counters in a hash.

mod apply;
mod field;
mod load;

pub use apply::{apply as apply_counters, refund as refund_counters};
pub use load::{ForeignHash, StoredCounters};
