//! The limiters compared. Those of the module are its own; two that it does not have are here.

use crate::counter_memory::CounterMemory;
use crate::memory::Memory;
use crate::model::Call;

/// At most so many units in any window.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub units: u64,
    pub window_ms: u64,
}

/// Decides on one request after the other, each of one unit.
pub trait Limiter {
    /// Whether the request may pass. Times never fall.
    fn admits(&mut self, now_ms: u64) -> bool;
}

/// A name, and how to make one that is fresh.
pub type Named = (&'static str, fn(Limit) -> Box<dyn Limiter>);

/// Those compared, the coarsest first.
pub const LIMITERS: [Named; 7] = [
    ("fixed window", |limit| Box::new(FixedWindow::new(limit))),
    ("GCRA", |limit| Box::new(Gcra::new(limit))),
    ("RL.SWC", |limit| Box::new(Swc { limit, counters: CounterMemory::default() })),
    ("RL.SLIDE PRECISION 10s", |limit| Box::new(Slide::new(limit, Some(10_000)))),
    ("RL.SLIDE PRECISION 1s", |limit| Box::new(Slide::new(limit, Some(1_000)))),
    ("RL.SLIDE PRECISION 100ms", |limit| Box::new(Slide::new(limit, Some(100)))),
    (EXACT, |limit| Box::new(Slide::new(limit, None))),
];

/// The name of the exact log.
pub const EXACT: &str = "RL.SLIDE";

/// `RL.SLIDE`, over a log in memory.
struct Slide {
    limit: Limit,
    precision_ms: Option<u64>,
    log: Memory,
}

impl Slide {
    fn new(limit: Limit, precision_ms: Option<u64>) -> Self {
        Self { limit, precision_ms, log: Memory::default() }
    }
}

impl Limiter for Slide {
    fn admits(&mut self, now_ms: u64) -> bool {
        let call = Call { precision_ms: self.precision_ms, ..call(self.limit, now_ms) };
        self.log.slide(&call)[0] == 1
    }
}

/// `RL.SWC`, over counters in memory.
struct Swc {
    limit: Limit,
    counters: CounterMemory,
}

impl Limiter for Swc {
    fn admits(&mut self, now_ms: u64) -> bool {
        self.counters.swc(&call(self.limit, now_ms))[0] == 1
    }
}

fn call(limit: Limit, now_ms: u64) -> Call {
    Call::new(&[(limit.window_ms, limit.units)], now_ms)
}

/// One counter, which starts at 0 in each window of the clock: `INCR` and `EXPIRE`.
pub struct FixedWindow {
    limit: Limit,
    window: u64,
    admitted: u64,
}

impl FixedWindow {
    pub fn new(limit: Limit) -> Self {
        Self { limit, window: 0, admitted: 0 }
    }
}

impl Limiter for FixedWindow {
    fn admits(&mut self, now_ms: u64) -> bool {
        let window = now_ms / self.limit.window_ms;
        if window != self.window {
            (self.window, self.admitted) = (window, 0);
        }
        let allowed = self.admitted < self.limit.units;
        self.admitted += u64::from(allowed);
        allowed
    }
}

/// The leaky bucket of redis-cell: each request fills it by `window / limit`, time empties it, and it
/// holds a window, so that as many as the limit may come at once.
pub struct Gcra {
    limit: Limit,
    empty_at_ms: u64,
}

impl Gcra {
    /// # Panics
    /// If the limit does not divide the window into whole milliseconds.
    pub fn new(limit: Limit) -> Self {
        assert_eq!(limit.window_ms % limit.units, 0, "{limit:?}");
        Self { limit, empty_at_ms: 0 }
    }
}

impl Limiter for Gcra {
    fn admits(&mut self, now_ms: u64) -> bool {
        let interval_ms = self.limit.window_ms / self.limit.units;
        let filled_ms = self.empty_at_ms.max(now_ms) + interval_ms;
        let allowed = filled_ms <= now_ms + self.limit.window_ms;
        if allowed {
            self.empty_at_ms = filled_ms;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit { units: 2, window_ms: 100 };

    /// Which of the requests at these times are admitted.
    fn admitted(limiter: &mut dyn Limiter, times_ms: &[u64]) -> Vec<u64> {
        times_ms.iter().copied().filter(|at_ms| limiter.admits(*at_ms)).collect()
    }

    #[test]
    fn a_fixed_window_starts_afresh_at_each_boundary() {
        let times_ms = [90, 99, 99, 100, 199, 199, 200];
        assert_eq!(admitted(&mut FixedWindow::new(LIMIT), &times_ms), [90, 99, 100, 199, 200]);
    }

    #[test]
    fn gcra_admits_the_limit_at_once_and_then_one_an_interval() {
        let times_ms =
            [1_000, 1_000, 1_000, 1_049, 1_050, 1_050, 1_099, 1_100, 1_200, 1_200, 1_200];
        let expected = [1_000, 1_000, 1_050, 1_100, 1_200, 1_200];
        assert_eq!(admitted(&mut Gcra::new(LIMIT), &times_ms), expected);
    }
}
