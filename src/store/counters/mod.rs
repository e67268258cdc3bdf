//! Counters in a hash.

mod apply;
mod field;
mod load;

pub use apply::{apply as apply_counters, refund as apply_counter_refunds};
pub use load::{ForeignHash, StoredCounters};
