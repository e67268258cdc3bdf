//! Calls and refunds to any counters, which no genuine limiter may have: every answer follows from
//! the estimate of what is stored, and no charge takes more than it leaves.

use crate::calls::{Stream, units, windows};
use crate::counter_memory::CounterMemory;
use crate::memory::request;
use crate::model::Call;
use arbitrary::{Result, Unstructured};
use rl::limiter::{
    Charge, Counter, CounterChange, CounterDecision, MAX_STAMP_MS, MAX_STORED_UNITS, MAX_WINDOWS,
    Request, decide_counters, plan_counter_refunds,
};

const MAX_CALLS: usize = 10;

pub fn run(data: &[u8]) {
    let _ = play(&mut Unstructured::new(data));
}

fn play(input: &mut Unstructured) -> Result<()> {
    let mut stream = Stream::new(input)?;
    let mut memory = any_counters(input, stream.now_ms())?;
    for _ in 0..MAX_CALLS {
        if input.is_empty() {
            break;
        }
        if input.ratio(1, 8)? {
            let units = units(input)?.max(1);
            refund(&mut memory, units, stream.now_ms(), stream.clock_ms());
        } else {
            let call = stream.next(input)?;
            let decision = memory.decide(&call);
            check(&decision, &memory, &request(&call));
            check_peek_writes_nothing(&memory, &call);
            memory.swc(&call);
        }
    }
    Ok(())
}

/// Counters of up to eight windows: what a hash may hold, whose starts need not be multiples.
fn any_counters(input: &mut Unstructured, now_ms: u64) -> Result<CounterMemory> {
    let mut counters = Vec::new();
    for (window_ms, _) in windows(input)? {
        let kind: u8 = input.arbitrary()?;
        let mut counter = Counter::new(window_ms, now_ms);
        if kind & 1 != 0 {
            counter.start_ms = input.int_in_range(0..=MAX_STAMP_MS)?;
        }
        counter.current = any_count(input, kind & 2 != 0)?;
        counter.previous = any_count(input, kind & 4 != 0)?;
        counters.push(counter);
    }
    let expires_at_ms = match input.arbitrary()? {
        true => Some(input.int_in_range(0..=i64::MAX as u64)?),
        false => None,
    };
    Ok(CounterMemory { expires_at_ms, ..CounterMemory::of(&counters) })
}

fn any_count(input: &mut Unstructured, large: bool) -> Result<u64> {
    if large { input.int_in_range(0..=MAX_STORED_UNITS) } else { units(input) }
}

/// The floor of the estimate, straight from its definition.
fn usage(memory: &CounterMemory, window_ms: u64, request: &Request) -> u128 {
    let (now_ms, latest_ms) = (request.now_ms, request.now_ms.max(request.clock_ms));
    let Some(counter) = memory.counters.find(window_ms) else { return 0 };
    if counter.start_ms > latest_ms + window_ms {
        return 0;
    }
    let start_ms = (now_ms - now_ms % window_ms).max(counter.start_ms);
    let (previous, current) = match start_ms - counter.start_ms {
        0 => (counter.previous, counter.current),
        passed_ms if passed_ms == window_ms => (counter.current, 0),
        _ => (0, 0),
    };
    let left_ms = window_ms - now_ms.saturating_sub(start_ms);
    u128::from(previous) * u128::from(left_ms) / u128::from(window_ms) + u128::from(current)
}

fn check(decision: &CounterDecision, memory: &CounterMemory, request: &Request) {
    let (verdict, cost) = (&decision.verdict, u128::from(request.cost));
    let usage = |window_ms| usage(memory, window_ms, request);
    let fits = |window_ms, limit| usage(window_ms) + cost <= u128::from(limit);
    let allowed = request.windows.iter().all(|window| fits(window.window_ms, window.limit));
    assert_eq!(verdict.allowed, allowed, "{request:?} on {memory:?}");

    let charges = decision.change.as_ref().map_or(&[][..], |change| change.charges());
    let charge = charges.iter().find(|charge| charge.counter.window_ms == verdict.window_ms);
    let used = usage(verdict.window_ms) + charge.map_or(0, |charge| u128::from(charge.added));
    let left = u128::from(verdict.limit).saturating_sub(used);
    assert_eq!(u128::from(verdict.remaining), left, "{request:?} on {memory:?}");

    if decision.change.is_some() {
        check_change(decision, memory, request);
    } else {
        assert!(!allowed || cost == 0, "{request:?} on {memory:?}");
    }
}

/// What is to be written is what was asked for, and takes nothing that the request counts.
fn check_change(decision: &CounterDecision, memory: &CounterMemory, request: &Request) {
    let Some(change) = &decision.change else { return };
    let names = |window_ms| request.windows.iter().any(|window| window.window_ms == window_ms);
    for charge in change.charges() {
        let is_whole = charge.added == request.cost;
        assert!(names(charge.counter.window_ms));
        assert!(is_whole || charge.counter.current == MAX_STORED_UNITS, "a charge is cut short");
        assert!(is_whole || request.charge == Charge::Always);
        assert!((charge.added..=MAX_STORED_UNITS).contains(&charge.counter.current));
    }
    assert!(decision.verdict.allowed || request.charge == Charge::Always);
    assert!(change.removed().iter().all(|removed| !names(removed.window_ms)));
    let others = memory.counters.as_slice().iter().filter(|other| !names(other.window_ms));
    assert!(others.count() - change.removed().len() + request.windows.len() <= MAX_WINDOWS);
    check_expiry(memory, request, change);
}

/// The key lives as long as what is charged counts, or for the longest window, and no longer than three
/// windows or as before.
fn check_expiry(memory: &CounterMemory, request: &Request, change: &CounterChange) {
    let charged = change.charges().iter().map(|charge| charge.counter);
    let longest_ms = request.windows.longest_ms();
    let left_ms =
        |counter: Counter| counter.ends_at_ms().saturating_sub(request.now_ms).min(longest_ms);
    let least_ms = request.clock_ms + charged.map(left_ms).max().unwrap_or(0);
    let expires_at_ms = match change.expiry_due {
        true => change.expires_at_ms,
        false => memory.expires_at_ms.expect("a key without an expiry gets one"),
    };
    assert!(expires_at_ms >= least_ms, "{expires_at_ms}, not {least_ms}");
    let stored = memory.counters.as_slice().iter().map(|counter| counter.window_ms);
    let longest_ms = stored.chain([longest_ms]).max().unwrap_or(0);
    let most_ms = (request.clock_ms + 3 * longest_ms).max(memory.expires_at_ms.unwrap_or(0));
    assert!(expires_at_ms <= most_ms, "{expires_at_ms}, not {most_ms}");
}

fn check_peek_writes_nothing(memory: &CounterMemory, call: &Call) {
    let peek = Request { charge: Charge::Never, ..request(call) };
    let peeked = decide_counters(&memory.counters, memory.expires_at_ms, &peek);
    assert!(peeked.change.is_none());
    assert_eq!(peeked.verdict.allowed, memory.decide(call).verdict.allowed);
}

fn refund(memory: &mut CounterMemory, units: u64, now_ms: u64, clock_ms: u64) {
    let refunds = plan_counter_refunds(&memory.counters, units, now_ms, clock_ms);
    for refund in refunds.as_slice() {
        let stored = memory.counters.find(refund.counter.window_ms).expect("it is stored");
        assert_eq!(stored.current - refund.current, refund.counter.current);
        assert_eq!(stored.previous - refund.previous, refund.counter.previous);
        assert!((1..=units).contains(&(refund.current + refund.previous)));
    }
    assert_eq!(memory.refund(units, now_ms, clock_ms), refunds.units());
}
