//! What the module counts since it was loaded, as `INFO` shows it.

use crate::redis::{Context, Info};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static CLOCKS_AHEAD: AtomicU64 = AtomicU64::new(0);
static PANICS: AtomicU64 = AtomicU64::new(0);

/// When a clock that ran ahead was last logged, in Unix milliseconds.
static CLOCK_AHEAD_LOGGED_MS: AtomicU64 = AtomicU64::new(0);

/// The least time between two lines of the server's log about clocks.
const LOG_INTERVAL_MS: u64 = 1_000;

/// The section `rl` of `INFO`.
pub struct Stats;

impl Info for Stats {
    fn fields() -> impl IntoIterator<Item = (&'static CStr, u64)> {
        [(c"clocks_ahead", CLOCKS_AHEAD.load(Relaxed)), (c"panics", PANICS.load(Relaxed))]
    }
}

/// Counts a log that a clock far ahead had stamped, and says so in the server's log, at most once a
/// second for the whole server: whoever can write such a log could fill the disk.
pub fn count_clock_ahead(context: &Context, clock_ms: u64) {
    CLOCKS_AHEAD.fetch_add(1, Relaxed);
    let logged_ms = CLOCK_AHEAD_LOGGED_MS.load(Relaxed);
    if clock_ms.abs_diff(logged_ms) >= LOG_INTERVAL_MS {
        CLOCK_AHEAD_LOGGED_MS.store(clock_ms, Relaxed);
        context.log_warning(
            "a log was stamped by a clock far ahead of the server's and counts as empty; \
             if this goes on, compare the clocks of the servers and of those who send AT",
        );
    }
}

/// Counts a panic that was caught at a command's edge.
pub fn count_panic() {
    PANICS.fetch_add(1, Relaxed);
}
