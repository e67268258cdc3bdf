//! The sliding window counter: approximate, and as small as a limiter gets.

use super::counter::{Counter, Counters};
use super::request::{Charge, MAX_WINDOWS, Request, Window};
use super::verdict::Verdict;

/// The answer, and what it changes.
#[derive(Clone, Copy, Debug)]
pub struct CounterDecision {
    /// The answer.
    pub verdict: Verdict,
    /// What to write; `None` to leave the counters as they are.
    pub change: Option<CounterChange>,
    /// Whether a counter was started by a clock that ran far ahead, and so counted as absent.
    pub clock_ahead: bool,
}

/// What a charge writes, in this order.
#[derive(Clone, Copy, Debug)]
pub struct CounterChange {
    charges: [CounterCharge; MAX_WINDOWS],
    charges_len: usize,
    removed: Counters,
    /// The expiry to set at last, in Unix milliseconds of the server's clock, if it is due or the
    /// counters did not exist: when the last of all windows stored ends.
    pub expires_at_ms: u64,
    /// Whether a window starts, or the key never expires, or in less than the longest window because a
    /// time of its own, of this request or an earlier one, is not the server's clock.
    pub expiry_due: bool,
}

/// What a charge does to one counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterCharge {
    /// The counter with the charge in it.
    pub counter: Counter,
    /// Units added to its current count, 0 to 2^53 - 1.
    pub added: u64,
    /// Whether its window starts with this charge, so that all of it is to be written.
    pub starts: bool,
}

impl CounterChange {
    /// First charge these, one for each window of the request that takes any of the cost.
    pub fn charges(&self) -> &[CounterCharge] {
        &self.charges[..self.charges_len]
    }

    /// Then remove these: windows of other calls that have passed, or must make room.
    pub fn removed(&self) -> &[Counter] {
        self.removed.as_slice()
    }
}

/// Judges `request` on the counters stored and plans what it writes, in O(windows).
///
/// `expires_at_ms` is when the key expires, in Unix milliseconds of the server's clock; `None` if never.
///
/// `precision_ms` is not looked at: counters have no stamps. A wait is exact unless `clock_ahead`: a
/// counter from a clock far ahead is absent now, and believed again once that time is near enough.
pub fn decide_counters(
    stored: &Counters,
    expires_at_ms: Option<u64>,
    request: &Request,
) -> CounterDecision {
    let mut standings = [Standing::default(); MAX_WINDOWS];
    let standings = &mut standings[..request.windows.len()];
    for (standing, window) in standings.iter_mut().zip(request.windows.iter()) {
        *standing = Standing::read(stored, *window, request);
    }

    let allowed = standings.iter().all(|standing| standing.admits(request));
    let charged = match request.charge {
        Charge::Always => request.cost,
        Charge::IfAllowed if allowed => request.cost,
        Charge::IfAllowed | Charge::Never => 0,
    };
    for standing in standings.iter_mut() {
        standing.charge(charged);
    }

    let mut reported = standings[0].verdict(request, allowed);
    for standing in &standings[1..] {
        reported = reported.or_binding(standing.verdict(request, allowed));
    }
    CounterDecision {
        verdict: reported,
        change: plan(stored, expires_at_ms, request, standings),
        clock_ahead: standings.iter().any(|standing| standing.clock_ahead),
    }
}

/// One window of the request, and what is counted of it.
#[derive(Clone, Copy, Default)]
struct Standing {
    window: Window,
    charge: CounterCharge,
    clock_ahead: bool,
}

impl Standing {
    fn read(stored: &Counters, window: Window, request: &Request) -> Self {
        let found = stored.find(window.window_ms);
        let clock_ahead =
            found.is_some_and(|counter| counter.runs_ahead_of(request.now_ms, request.clock_ms));
        let counter = match found.filter(|_| !clock_ahead) {
            Some(counter) => counter.rotated_to(request.now_ms),
            None => Counter::new(window.window_ms, request.now_ms),
        };
        let starts = clock_ahead || found.is_none_or(|found| found.start_ms != counter.start_ms);
        Self { window, charge: CounterCharge { counter, added: 0, starts }, clock_ahead }
    }

    fn admits(&self, request: &Request) -> bool {
        let usage = self.charge.counter.usage(request.now_ms);
        usage.saturating_add(request.cost) <= self.window.limit
    }

    /// Charges what the counter can take in, which is all of it unless it was forced.
    fn charge(&mut self, cost: u64) {
        let counter = &mut self.charge.counter;
        self.charge.added = cost.min(counter.room());
        counter.current += self.charge.added;
    }

    /// What this window says of the request, once it is charged.
    fn verdict(&self, request: &Request, allowed: bool) -> Verdict {
        let (counter, limit) = (&self.charge.counter, self.window.limit);
        let usage = counter.usage(request.now_ms);
        let wait_ms = |units| counter.falls_to_at_ms(units) - request.now_ms;
        let retry_after_ms = match limit.checked_sub(request.cost) {
            _ if allowed => Some(0),
            Some(units) if usage <= units => Some(0),
            Some(units) => Some(wait_ms(units)),
            None => None,
        };
        Verdict {
            allowed,
            limit,
            remaining: limit.saturating_sub(usage),
            retry_after_ms,
            reset_after_ms: if usage == 0 { 0 } else { wait_ms(0) },
            window_ms: self.window.window_ms,
        }
    }
}

/// Plans what the charges write; `None` if nothing was charged.
fn plan(
    stored: &Counters,
    expires_at_ms: Option<u64>,
    request: &Request,
    standings: &[Standing],
) -> Option<CounterChange> {
    let mut charges = [CounterCharge::default(); MAX_WINDOWS];
    let mut charges_len = 0;
    for standing in standings.iter().filter(|standing| standing.charge.added > 0) {
        charges[charges_len] = standing.charge;
        charges_len += 1;
    }
    if charges_len == 0 {
        return None;
    }

    let (others, removed) = others(stored, request);
    let named = standings.iter().map(|standing| &standing.charge.counter);
    // One that is believed ends within three windows, however far behind the clock the request's own
    // time is.
    let left_ms = |counter: &Counter| {
        counter.ends_at_ms().saturating_sub(request.now_ms).min(3 * counter.window_ms)
    };
    let lives_ms = named.chain(others.as_slice()).map(left_ms).max().unwrap_or(0);
    let starts = charges[..charges_len].iter().any(|charge| charge.starts);
    let due_ms = request.clock_ms + lives_ms.min(request.windows.longest_ms());
    // A time ahead of the clock must not bring forward what other calls need by the clock.
    let least_ms = if request.now_ms > request.clock_ms { expires_at_ms.unwrap_or(0) } else { 0 };
    Some(CounterChange {
        charges,
        charges_len,
        removed,
        expires_at_ms: (request.clock_ms + lives_ms).max(least_ms),
        expiry_due: starts || expires_at_ms.is_none_or(|present_ms| present_ms < due_ms),
    })
}

/// The counters stored that the request does not name: those that stay, and those that have passed,
/// or end first, the shorter one first, where more than [`MAX_WINDOWS`] would be stored.
fn others(stored: &Counters, request: &Request) -> (Counters, Counters) {
    let (mut stay, mut removed) = (Counters::default(), Counters::default());
    // For calls without a time of their own it has not passed before the clock says so.
    let passed_ms = request.now_ms.min(request.clock_ms);
    for counter in stored.as_slice() {
        if request.windows.iter().any(|window| window.window_ms == counter.window_ms) {
            continue;
        }
        let counts = counter.ends_at_ms() > passed_ms
            && !counter.runs_ahead_of(request.now_ms, request.clock_ms);
        let fits = if counts { stay.push(*counter) } else { removed.push(*counter) };
        debug_assert!(fits, "each takes as many as are stored");
    }
    while stay.as_slice().len() + request.windows.len() > MAX_WINDOWS {
        let ends_first = |counter: &&Counter| (counter.ends_at_ms(), counter.window_ms);
        let Some(first) = stay.as_slice().iter().min_by_key(ends_first).copied() else { break };
        stay.retain(|counter| counter.window_ms != first.window_ms);
        let fits = removed.push(first);
        debug_assert!(fits, "each takes as many as are stored");
    }
    (stay, removed)
}
