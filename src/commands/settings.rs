//! What an operator may set.

use crate::redis::NumberSetting;

/// `rl.max-log-entries`: entries from which on a log is kept coarser, so that its memory is bounded;
/// 0 for no bound.
pub static MAX_LOG_ENTRIES: NumberSetting =
    NumberSetting::new(c"max-log-entries", 100_000, 0, i64::MAX);
