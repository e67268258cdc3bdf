//! A log in a sorted set.

mod apply;
mod load;
mod member;

pub use apply::{apply as apply_log, refund as refund_log};
pub use load::StoredLog;
