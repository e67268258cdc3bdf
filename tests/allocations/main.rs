//! What allocates nothing: deciding, and counting a denial. The allocator of this binary counts.

use rl::denied::Summary;
use rl::limiter::{
    Charge, Counters, Entry, Log, LogError, Request, Window, Windows, decide, decide_counters,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting what each thread asks of it.
struct Counting;

// SAFETY: everything is the system allocator's.
#[allow(unsafe_code, reason = "an allocator is unsafe to be one")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// A log of a hundred entries of one unit, a millisecond apart.
struct Hundred;

impl Hundred {
    fn at(stamp_ms: u64) -> Option<Entry> {
        (1..=100).contains(&stamp_ms).then_some(Entry { stamp_ms, total: stamp_ms, cost: 1 })
    }
}

impl Log for Hundred {
    fn len(&self) -> u64 {
        100
    }

    fn expires_at_ms(&self) -> Option<u64> {
        None
    }

    fn oldest(&mut self) -> Result<Option<Entry>, LogError> {
        Ok(Self::at(1))
    }

    fn newest(&mut self) -> Result<Option<Entry>, LogError> {
        Ok(Self::at(100))
    }

    fn first_from(&mut self, from_ms: u64) -> Result<Option<Entry>, LogError> {
        Ok(Self::at(from_ms.max(1)))
    }

    fn last_until(&mut self, until_ms: u64) -> Result<Option<Entry>, LogError> {
        Ok(Self::at(until_ms.min(100)))
    }
}

#[test]
fn the_allocator_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn deciding_allocates_nothing() {
    let mut windows = Windows::new(Window { window_ms: 90, limit: 95 });
    for window_ms in 1_000..1_007 {
        windows.push(Window { window_ms, limit: 150 }).unwrap();
    }
    for cost in [0, 1, 40, 60] {
        for charge in [Charge::Never, Charge::IfAllowed, Charge::Always] {
            let request = Request {
                windows,
                cost,
                charge,
                precision_ms: Some(7),
                max_entries: 50,
                now_ms: 120,
                clock_ms: 120,
            };
            let decided = allocations(|| {
                decide(&mut Hundred, &request).unwrap();
                decide_counters(&Counters::default(), None, &request);
            });
            assert_eq!(decided, 0, "{request:?}");
        }
    }
}

#[test]
fn counting_a_denial_allocates_nothing() {
    let mut summary = Summary::new(1);
    let names: Vec<String> = (0..2_000).map(|n| "x".repeat(n % 200) + &n.to_string()).collect();
    let counted = allocations(|| names.iter().for_each(|name| summary.record(name.as_bytes())));
    assert_eq!(counted, 0);
    assert!(!summary.top(10).is_empty());
}
