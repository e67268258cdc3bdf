//! Calls and refunds to a log of any entries, which no genuine one may have: every answer follows
//! from the totals as they stand, no charge takes more than they leave, and an error changes nothing.

use crate::calls::{Stream, units};
use crate::memory::{Memory, request};
use crate::model::Call;
use arbitrary::{Result, Unstructured};
use rl::limiter::{
    Change, Charge, Decision, Entry, LogError, MAX_STAMP_MS, MAX_STORED_UNITS, Request, decide,
    plan_log_refund,
};

const MAX_ENTRIES: usize = 20;
const MAX_CALLS: usize = 10;

pub fn run(data: &[u8]) {
    let _ = play(&mut Unstructured::new(data));
}

fn play(input: &mut Unstructured) -> Result<()> {
    let mut stream = Stream::new(input)?;
    let mut log = any_log(input, stream.now_ms())?;
    for _ in 0..MAX_CALLS {
        if input.is_empty() {
            break;
        }
        if input.ratio(1, 8)? {
            refund(&mut log, units(input)?.max(1));
        } else {
            let call = stream.next(input)?;
            slide(&mut log, &call, input.ratio(1, 8)?);
        }
    }
    Ok(())
}

/// Entries in any relation that a sorted set can hold: by stamp, then as the members sort, each
/// member once.
fn any_log(input: &mut Unstructured, now_ms: u64) -> Result<Memory> {
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..input.int_in_range(0..=MAX_ENTRIES)? {
        let entry = any_entry(input, now_ms, entries.last())?;
        let is_member = |other: &Entry| (other.total, other.cost) == (entry.total, entry.cost);
        if !entries.iter().any(is_member) {
            entries.push(entry);
        }
    }
    sort(&mut entries);
    let expires_at_ms = match input.arbitrary()? {
        true => Some(input.int_in_range(0..=i64::MAX as u64)?),
        false => None,
    };
    let max_entries = input.int_in_range(0..=MAX_ENTRIES as u64)?;
    Ok(Memory { entries, expires_at_ms, max_entries })
}

fn any_entry(input: &mut Unstructured, now_ms: u64, last: Option<&Entry>) -> Result<Entry> {
    let kind: u8 = input.arbitrary()?;
    let near_ms = now_ms.saturating_sub(128) + u64::from(input.arbitrary::<u8>()?);
    let stamp_ms = match kind & 1 {
        0 => near_ms.min(MAX_STAMP_MS),
        _ => input.int_in_range(0..=MAX_STAMP_MS)?,
    };
    let cost = match kind & 2 {
        0 => units(input)?.max(1),
        _ => input.int_in_range(1..=MAX_STORED_UNITS)?,
    };
    let total = match (kind & 4, last) {
        (0, Some(last)) => last.total.wrapping_add(cost),
        (0, None) => cost,
        _ => input.arbitrary()?,
    };
    Ok(Entry { stamp_ms, total, cost })
}

fn sort(entries: &mut [Entry]) {
    entries.sort_by_key(|entry| (entry.stamp_ms, entry.total, entry.cost.to_string()));
}

fn slide(log: &mut Memory, call: &Call, peeks: bool) {
    log.expire(call.clock_ms);
    let mut request = Request { max_entries: log.max_entries, ..request(call) };
    if peeks {
        request.charge = Charge::Never;
    }
    let before = log.clone();
    let decision = decide(log, &request);
    assert_eq!(*log, before);
    match decision {
        Ok(decision) => {
            check(&decision, &before, &request);
            if let Some(change) = &decision.change {
                log.apply(change);
                sort(&mut log.entries);
            }
        }
        Err(LogError::Full) => assert!(request.charge != Charge::Always, "force never fails"),
        Err(LogError::Foreign) => assert!(!is_genuine(&before.entries), "{before:?}"),
    }
}

/// Whether each total follows from the one before, and all of them fit.
fn is_genuine(entries: &[Entry]) -> bool {
    let follows = |pair: &[Entry]| pair[1].total.wrapping_sub(pair[1].cost) == pair[0].total;
    let units: u128 = entries.iter().map(|entry| u128::from(entry.cost)).sum();
    entries.windows(2).all(follows) && units <= u128::from(MAX_STORED_UNITS)
}

/// The answer, against the definition of usage over totals.
fn check(decision: &Decision, log: &Memory, request: &Request) {
    let newest = log.entries.last().filter(|_| !decision.clock_ahead);
    let usage = |window_ms: u64| match newest {
        None => 0,
        Some(newest) => {
            let first = log.entries.iter().find(|e| request.now_ms < e.stamp_ms + window_ms);
            first.map_or(0, |first| newest.units_since(first))
        }
    };
    let verdict = &decision.verdict;
    let fits = |window_ms, limit| usage(window_ms) + request.cost <= limit;
    let allowed = request.windows.iter().all(|window| fits(window.window_ms, window.limit));
    assert_eq!(verdict.allowed, allowed, "{request:?} on {log:?}");

    let charged = decision.change.map_or(0, |change| units_charged(&change));
    let reported = request.windows.iter().find(|window| window.window_ms == verdict.window_ms);
    let left = verdict.limit.saturating_sub(usage(verdict.window_ms) + charged);
    assert_eq!(reported.map(|window| window.limit), Some(verdict.limit));
    assert_eq!(verdict.remaining, left, "{request:?} on {log:?}");
    if allowed {
        assert_eq!(verdict.retry_after_ms, Some(0));
    }
    match &decision.change {
        Some(change) => check_change(decision, change, log, request),
        None => assert!(!allowed || request.cost == 0 || request.charge != Charge::IfAllowed),
    }
}

fn units_charged(change: &Change) -> u64 {
    change.entry.cost - change.replaced.map_or(0, |replaced| replaced.cost)
}

/// What is to be written is what was asked for, and takes nothing that counts.
fn check_change(decision: &Decision, change: &Change, log: &Memory, request: &Request) {
    let (charged, longest_ms) = (units_charged(change), request.windows.longest_ms());
    match request.charge {
        Charge::Never => panic!("a peek writes"),
        Charge::IfAllowed => assert!(decision.verdict.allowed && charged == request.cost),
        Charge::Always => assert!((1..=request.cost).contains(&charged)),
    }
    let newest = log.entries.last();
    assert!(change.entry.stamp_ms >= request.now_ms);
    assert!(
        newest.is_none_or(|newest| change.drop_log || change.entry.stamp_ms >= newest.stamp_ms)
    );
    assert!(change.replaced.is_none_or(|replaced| newest == Some(&replaced)));
    assert!(change.trim_until_ms.is_none_or(|until_ms| until_ms + longest_ms <= request.now_ms));
    let has_left = |entry: &Entry| entry.stamp_ms + longest_ms <= request.now_ms;
    assert!(!change.drop_log || decision.clock_ahead || newest.is_some_and(has_left));
    let ahead_ms = (change.entry.stamp_ms - request.now_ms).min(2 * longest_ms);
    let least_ms = request.clock_ms + ahead_ms + longest_ms;
    assert!((least_ms..=least_ms + longest_ms / 4).contains(&change.expires_at_ms));
}

fn refund(log: &mut Memory, units: u64) {
    let newest_first = log.entries.iter().rev().map(|entry| Ok(*entry));
    let Ok(refund) = plan_log_refund(newest_first, units) else {
        assert!(!is_genuine(&log.entries), "{log:?}");
        return;
    };
    assert!(refund.units <= units);
    let costs = |log: &Memory| log.entries.iter().map(|e| u128::from(e.cost)).sum::<u128>();
    let held = costs(log);
    assert_eq!(log.refund(units), refund.units);
    assert_eq!(held - costs(log), u128::from(refund.units));
    sort(&mut log.entries);
}
