//! A log in a sorted set.

mod apply;
mod load;
mod member;

pub use apply::{apply as apply_log, refund as apply_log_refund};
pub use load::StoredLog;
