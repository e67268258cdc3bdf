//! What the module counts since it was loaded, as `INFO rl` shows it.

use crate::redis::{Context, Info};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A count that only rises. Only the server's thread counts, so it needs no atomic addition.
pub struct Count(AtomicU64);

impl Count {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds to it.
    pub fn add(&self, count: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The calls of one command.
pub struct Calls {
    /// Answered with allowed 1.
    pub admitted: Count,
    /// Answered with allowed 0.
    pub denied: Count,
    /// With `FORCE`, and so charged whatever the answer; they are among the admitted and the denied.
    pub forced: Count,
    /// Answered with an error.
    pub errors: Count,
}

impl Calls {
    const fn new() -> Self {
        let (admitted, denied) = (Count::new(), Count::new());
        Self { admitted, denied, forced: Count::new(), errors: Count::new() }
    }

    /// Counts a call that was answered.
    pub fn count(&self, admitted: bool, forced: bool) {
        let verdict = if admitted { &self.admitted } else { &self.denied };
        verdict.add(1);
        if forced {
            self.forced.add(1);
        }
    }
}

/// Calls of `RL.SLIDE`.
pub static SLIDE: Calls = Calls::new();
/// Calls of `RL.SWC`.
pub static SWC: Calls = Calls::new();
/// Calls of `RL.PEEK`.
pub static PEEK: Calls = Calls::new();
/// Calls of `RL.REFUND`: admitted are those that took something back, denied those that found nothing.
pub static REFUND: Calls = Calls::new();
/// Units taken back by `RL.REFUND`.
pub static UNITS_REFUNDED: Count = Count::new();
/// Entries removed from logs because they had left.
pub static ENTRIES_TRIMMED: Count = Count::new();
/// Logs dropped whole, stale or from a clock far ahead.
pub static LOGS_DROPPED: Count = Count::new();
/// Charges to logs that had as many entries as they may have.
pub static LOGS_CAPPED: Count = Count::new();
/// Panics caught at a command's edge.
pub static PANICS: Count = Count::new();
/// Calls that met a log or a counter from a clock far ahead.
static CLOCKS_AHEAD: Count = Count::new();

/// When a clock that ran ahead was last logged, in Unix milliseconds.
static CLOCK_AHEAD_LOGGED_MS: AtomicU64 = AtomicU64::new(0);

/// The least time between two lines of the server's log about clocks.
const LOG_INTERVAL_MS: u64 = 1_000;

/// The section `rl` of `INFO`.
pub struct Stats;

impl Info for Stats {
    fn fields() -> impl IntoIterator<Item = (&'static CStr, u64)> {
        let fields: [(&CStr, &Count); 20] = [
            (c"slide_admitted", &SLIDE.admitted),
            (c"slide_denied", &SLIDE.denied),
            (c"slide_forced", &SLIDE.forced),
            (c"slide_errors", &SLIDE.errors),
            (c"swc_admitted", &SWC.admitted),
            (c"swc_denied", &SWC.denied),
            (c"swc_forced", &SWC.forced),
            (c"swc_errors", &SWC.errors),
            (c"peek_admitted", &PEEK.admitted),
            (c"peek_denied", &PEEK.denied),
            (c"peek_errors", &PEEK.errors),
            (c"refund_done", &REFUND.admitted),
            (c"refund_empty", &REFUND.denied),
            (c"refund_errors", &REFUND.errors),
            (c"units_refunded", &UNITS_REFUNDED),
            (c"entries_trimmed", &ENTRIES_TRIMMED),
            (c"logs_dropped", &LOGS_DROPPED),
            (c"logs_capped", &LOGS_CAPPED),
            (c"clocks_ahead", &CLOCKS_AHEAD),
            (c"panics", &PANICS),
        ];
        fields.map(|(name, count)| (name, count.get()))
    }
}

/// Counts a call that met a clock far ahead, and says so in the server's log, at most once a second
/// for the whole server: whoever can write such a log could fill the disk.
pub fn count_clock_ahead(context: &Context, clock_ms: u64) {
    CLOCKS_AHEAD.add(1);
    let logged_ms = CLOCK_AHEAD_LOGGED_MS.load(Relaxed);
    if clock_ms.abs_diff(logged_ms) >= LOG_INTERVAL_MS {
        CLOCK_AHEAD_LOGGED_MS.store(clock_ms, Relaxed);
        context.log_warning(
            "a limiter was stamped by a clock far ahead of the server's and counts as empty; \
             if this goes on, compare the clocks of the servers and of those who send AT",
        );
    }
}
