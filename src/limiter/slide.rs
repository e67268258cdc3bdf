//! The sliding window log: exact, at one entry a charge.
//!
//! The algorithm is the log of request times that everybody keeps in a sorted set, with one
//! difference: entries carry a running total. Usage is then the difference of two totals, so any
//! cost and each of several windows takes a look-up or two instead of a sum over the log, and because
//! totals rise with stamps, the entry whose leaving makes room is found by bisection.

use super::log::{Entry, Log, LogError, MAX_STORED_UNITS};
use super::request::{Charge, MAX_WINDOW_MS, MAX_WINDOWS, Request, Window};
use super::verdict::Verdict;

/// Entries that one charge may remove from the old end, so that no call pays for a backlog. A log
/// with more than these, all of which have left, is dropped whole.
pub const MAX_TRIMMED: u64 = 128;

/// A newest entry stamped later than now by more than this many of the longest window comes from a
/// clock that ran far ahead.
const AHEAD_WINDOWS: u64 = 2;

/// The part of the longest window that a new expiry is set beyond the least, so that most charges
/// find it late enough.
const EXPIRY_SLACK_SHARE: u64 = 4;

/// The answer, and what it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub verdict: Verdict,
    /// What to write; `None` to leave the log as it is.
    pub change: Option<Change>,
    /// Whether the log was stamped by a clock that ran far ahead, and so counted as empty.
    pub clock_ahead: bool,
}

/// What a charge writes, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// First drop the whole log, without blocking.
    pub drop_log: bool,
    /// Then add this entry.
    pub entry: Entry,
    /// Then remove the former newest entry, which the new one has taken in.
    pub replaced: Option<Entry>,
    /// Then remove the entries stamped this or earlier, the oldest first, at most [`MAX_TRIMMED`].
    pub trim_until_ms: Option<u64>,
    /// The expiry to set at last, in Unix milliseconds of the server's clock, if it is due or the
    /// log did not exist or was dropped.
    pub expires_at_ms: u64,
    /// Whether the expiry is too early as it is.
    pub expiry_due: bool,
    /// Whether the log had so many entries that its precision was bounded.
    pub capped: bool,
}

impl Change {
    /// Units charged.
    fn charged(&self) -> u64 {
        self.entry.cost - self.replaced.map_or(0, |entry| entry.cost)
    }
}

/// Judges `request` on `log` and plans what it writes.
///
/// Takes one look-up for the oldest entry and one for the newest, one more for each window that
/// some entries have left, and, for a denial that must wait for more than the first entry, a
/// bisection: O(log N) all of them. Nothing is written here, and nothing planned for a denial
/// unless it is charged all the same.
///
/// # Errors
/// [`LogError::Foreign`] if the log is none of ours, [`LogError::Full`] if it cannot take the cost.
pub fn decide(log: &mut impl Log, request: &Request) -> Result<Decision, LogError> {
    let stored = Ends::read(log)?;
    let clock_ahead = stored.is_some_and(|ends| ends.run_ahead_of(request, log));
    let ends = stored.filter(|_| !clock_ahead);

    let mut standings = [Standing::default(); MAX_WINDOWS];
    let standings = &mut standings[..request.windows.len()];
    for (standing, window) in standings.iter_mut().zip(request.windows.iter()) {
        *standing = Standing::read(log, ends, *window, request.now_ms)?;
    }

    let allowed = standings.iter().all(|standing| standing.admits(request.cost));
    let planned = match allowed || request.charge == Charge::Always {
        true => plan(log, request, ends, clock_ahead)?,
        false => None,
    };
    // Also planned for a request that only asks, for what may be wrong with the charge.
    let change = planned.filter(|_| request.charge != Charge::Never);

    let outcome = Outcome { request, newest: ends.map(|ends| ends.newest), allowed, change };
    let mut reported = outcome.verdict(log, &standings[0])?;
    for standing in &standings[1..] {
        reported = reported.or_binding(outcome.verdict(log, standing)?);
    }
    Ok(Decision { verdict: reported, change, clock_ahead })
}

// ---------------------------------------------------------------------------------------------
// Counting
// ---------------------------------------------------------------------------------------------

/// Both ends of a log that has entries, and the units between them.
#[derive(Clone, Copy)]
struct Ends {
    oldest: Entry,
    newest: Entry,
    units: u64,
}

impl Ends {
    fn read(log: &mut impl Log) -> Result<Option<Self>, LogError> {
        let Some(newest) = log.newest()? else { return Ok(None) };
        let oldest = log.oldest()?.ok_or(LogError::Foreign)?;
        let units = newest.units_since(&oldest);
        if !(newest.cost..=MAX_STORED_UNITS).contains(&units) {
            return Err(LogError::Foreign);
        }
        Ok(Some(Self { oldest, newest, units }))
    }

    /// Whether the newest entry comes from a clock far ahead: more than [`AHEAD_WINDOWS`] of the
    /// longest window that uses the log.
    ///
    /// That may be longer than any of the request's, and then the expiry shows it: whoever set that
    /// did so by the clock that stamped the newest entry or an earlier one, true or not, a window and
    /// its slack behind the stamp.
    fn run_ahead_of(&self, request: &Request, log: &impl Log) -> bool {
        let latest_ms = request.now_ms.max(request.clock_ms);
        let is_far_from =
            |longest_ms| self.newest.stamp_ms > latest_ms + AHEAD_WINDOWS * longest_ms;
        if !is_far_from(request.windows.longest_ms()) {
            return false;
        }
        is_far_from(self.shown_window_ms(log, request.clock_ms))
    }

    /// The longest window that the expiry shows to use the log, 0 if it shows none: it lies a window
    /// and its slack behind a stamp, and behind the clock that set it.
    fn shown_window_ms(&self, log: &impl Log, clock_ms: u64) -> u64 {
        let since_ms = self.newest.stamp_ms.max(clock_ms);
        let lives_ms = log.expires_at_ms().unwrap_or(0).saturating_sub(since_ms);
        let shown_ms = lives_ms - lives_ms / (EXPIRY_SLACK_SHARE + 1);
        shown_ms.min(MAX_WINDOW_MS)
    }
}

/// How full one window is before the request.
#[derive(Clone, Copy, Default)]
struct Standing {
    window: Window,
    /// The first entry inside the window, if `usage` is not 0.
    first: Entry,
    usage: u64,
}

impl Standing {
    fn read(
        log: &mut impl Log,
        ends: Option<Ends>,
        window: Window,
        now_ms: u64,
    ) -> Result<Self, LogError> {
        let counted = ends.filter(|ends| window.counts(ends.newest.stamp_ms, now_ms));
        let Some(ends) = counted else { return Ok(Self { window, ..Self::default() }) };
        let first = match window.counts(ends.oldest.stamp_ms, now_ms) {
            true => ends.oldest,
            false => log.first_from(window.opens_at_ms(now_ms))?.ok_or(LogError::Foreign)?,
        };
        let usage = ends.newest.units_since(&first);
        if !(ends.newest.cost..=ends.units).contains(&usage) {
            return Err(LogError::Foreign);
        }
        Ok(Self { window, first, usage })
    }

    fn admits(&self, cost: u64) -> bool {
        self.usage + cost <= self.window.limit
    }

    /// The stamp of the entry with which the oldest `units` of this window have left.
    ///
    /// Bisects over time between the first entry and the newest. Each step lands on an entry, so a
    /// sparse log takes no more steps than it has entries, and no log more than 40: a step halves the
    /// time, which is three of the longest windows at most.
    fn stamp_freeing(
        &self,
        log: &mut impl Log,
        units: u64,
        newest_ms: u64,
    ) -> Result<u64, LogError> {
        if units <= self.first.cost {
            return Ok(self.first.stamp_ms);
        }
        let units_until = |found: Option<Entry>| match found {
            Some(entry) if entry.units_since(&self.first) <= self.usage => {
                Ok((entry.stamp_ms, entry.units_since(&self.first)))
            }
            _ => Err(LogError::Foreign),
        };
        let (mut low_ms, mut high_ms) = (self.first.stamp_ms, newest_ms);
        while low_ms < high_ms {
            let middle_ms = low_ms.midpoint(high_ms);
            let (last_ms, freed) = units_until(log.last_until(middle_ms)?)?;
            if freed >= units {
                high_ms = last_ms;
                continue;
            }
            let (next_ms, freed) = units_until(log.first_from(middle_ms + 1)?)?;
            if freed >= units {
                return Ok(next_ms);
            }
            low_ms = next_ms;
        }
        Ok(high_ms)
    }
}

// ---------------------------------------------------------------------------------------------
// Reporting
// ---------------------------------------------------------------------------------------------

/// What became of the request, which each window sees in its own way.
struct Outcome<'a> {
    request: &'a Request,
    /// The newest entry before the request.
    newest: Option<Entry>,
    allowed: bool,
    change: Option<Change>,
}

impl Outcome<'_> {
    /// Units that the window holds after the request.
    fn usage(&self, standing: &Standing) -> u64 {
        standing.usage + self.change.map_or(0, |change| change.charged())
    }

    fn verdict(&self, log: &mut impl Log, standing: &Standing) -> Result<Verdict, LogError> {
        let (window, usage) = (standing.window, self.usage(standing));
        let retry_after_ms = match self.allowed {
            true => Some(0),
            false => self.retry_after_ms(log, standing)?,
        };
        let newest = self.change.map(|change| change.entry).or(self.newest);
        let reset_after_ms = match newest {
            Some(newest) if usage > 0 => self.wait_ms(window, newest.stamp_ms),
            _ => 0,
        };
        Ok(Verdict {
            allowed: self.allowed,
            limit: window.limit,
            remaining: window.limit.saturating_sub(usage),
            retry_after_ms,
            reset_after_ms,
            window_ms: window.window_ms,
        })
    }

    /// Milliseconds until the window alone would admit the cost; `None` if it never can.
    fn retry_after_ms(
        &self,
        log: &mut impl Log,
        standing: &Standing,
    ) -> Result<Option<u64>, LogError> {
        let (cost, limit) = (self.request.cost, standing.window.limit);
        if cost > limit {
            return Ok(None);
        }
        let usage = self.usage(standing);
        let excess = (usage + cost).saturating_sub(limit);
        if excess == 0 {
            return Ok(Some(0));
        }
        let stamp_ms = match (self.change, self.newest) {
            // Forced: all that was there must leave, and some of the new entry.
            (Some(change), _) if excess > usage - change.entry.cost => change.entry.stamp_ms,
            (_, newest) => {
                standing.stamp_freeing(log, excess, newest.map_or(0, |newest| newest.stamp_ms))?
            }
        };
        Ok(Some(self.wait_ms(standing.window, stamp_ms)))
    }

    /// Milliseconds until an entry of that stamp leaves the window.
    fn wait_ms(&self, window: Window, stamp_ms: u64) -> u64 {
        window.leaves_at_ms(stamp_ms) - self.request.now_ms
    }
}

// ---------------------------------------------------------------------------------------------
// Charging
// ---------------------------------------------------------------------------------------------

/// Plans the charge of `request`; `None` if there is nothing to charge.
fn plan(
    log: &impl Log,
    request: &Request,
    ends: Option<Ends>,
    clock_ahead: bool,
) -> Result<Option<Change>, LogError> {
    let longest_ms = request.windows.longest_ms();
    let slack_ms = longest_ms / EXPIRY_SLACK_SHARE;
    // The least that a key with such a newest stamp must live: until the entry has left. By the clock
    // that is no later than this, however far behind it the request's own time is.
    let lives_until_ms = |stamp_ms: u64| {
        let lead_ms = (stamp_ms - request.now_ms).min(AHEAD_WINDOWS * longest_ms);
        request.clock_ms + lead_ms + longest_ms
    };
    let has_left = |entry: &Entry| entry.stamp_ms + longest_ms <= request.now_ms;

    // Calls with windows no longer than these set no expiry beyond this one: if the key's is
    // later, a longer window uses the log too and needs what has left ours.
    let asked_ms = request.now_ms.next_multiple_of(request.precision_ms.unwrap_or(1));
    let stamp_ms = ends.map_or(0, |ends| ends.newest.stamp_ms).max(asked_ms);
    let expires_at_ms = log.expires_at_ms();
    let ours_until_ms = lives_until_ms(stamp_ms) + slack_ms;
    let is_ours_alone = expires_at_ms.is_none_or(|expiry_ms| expiry_ms <= ours_until_ms);

    let is_spent = |ends: &Ends| {
        let too_much = log.len() > MAX_TRIMMED || request.cost > MAX_STORED_UNITS - ends.units;
        too_much && is_ours_alone && has_left(&ends.newest)
    };
    let kept = ends.filter(|ends| !is_spent(ends));

    let room = MAX_STORED_UNITS - kept.map_or(0, |ends| ends.units);
    let charged = request.cost.min(room);
    if charged < request.cost && request.charge != Charge::Always {
        return Err(LogError::Full);
    }
    if charged == 0 {
        return Ok(None);
    }

    let bound_ms = kept.and_then(|ends| bound_ms(&ends, log, request, is_ours_alone));
    let precision_ms = request.precision_ms.max(bound_ms);
    let tick_ms = request.now_ms.next_multiple_of(precision_ms.unwrap_or(1));
    let (entry, replaces) = match kept {
        Some(ends) => ends.newest.followed_by(charged, tick_ms, precision_ms.is_some()),
        None => (Entry { stamp_ms: tick_ms, total: charged, cost: charged }, false),
    };
    let trims = kept.is_some_and(|ends| is_ours_alone && has_left(&ends.oldest));
    let least_ms = lives_until_ms(entry.stamp_ms);
    Ok(Some(Change {
        drop_log: clock_ahead || (ends.is_some() && kept.is_none()),
        entry,
        replaced: kept.map(|ends| ends.newest).filter(|_| replaces),
        trim_until_ms: trims.then(|| request.now_ms - longest_ms),
        expires_at_ms: least_ms + slack_ms,
        expiry_due: expires_at_ms.is_none_or(|expiry_ms| expiry_ms < least_ms),
        capped: bound_ms.is_some(),
    }))
}

/// The precision, in milliseconds, that a log of `max_entries` is kept with: then no more than that
/// many are added in the longest window that uses it, while those that it has leave. It never has more
/// than about twice as many.
///
/// Where a longer window of other calls keeps the log, nothing leaves meanwhile. How long that window
/// is the expiry shows, less of it as time goes by, and the log's own length more: by the longer of
/// the two it never has more than about six times as many.
fn bound_ms(ends: &Ends, log: &impl Log, request: &Request, is_ours_alone: bool) -> Option<u64> {
    if request.max_entries == 0 || log.len() < request.max_entries {
        return None;
    }
    let longest_ms = request.windows.longest_ms();
    if is_ours_alone {
        return Some(longest_ms.div_ceil(request.max_entries));
    }
    let span_ms = ends.newest.stamp_ms - ends.oldest.stamp_ms;
    let shown_ms = ends.shown_window_ms(log, request.clock_ms);
    let bound_ms = longest_ms.max(span_ms).max(shown_ms).div_ceil(request.max_entries);
    // No stamp may lie so far ahead that the next call takes it for one of a clock far ahead. With a
    // stamp ahead by three quarters of the window shown `V`, the expiry, `1.25 V` away, still shows
    // `0.8 * (1.25 - 0.75) V`, and two of these are more.
    Some(bound_ms.min((AHEAD_WINDOWS * longest_ms).max(shown_ms / 4 * 3)))
}
