//! Deciding: integers in, a verdict out.
//!
//! Nothing here knows Redis, reads a clock, touches a float, allocates or imports from the rest of
//! the crate. A log is whatever implements [`Log`]: the sorted set of a key in the server, a plain
//! vector in the tests.
//!
//! ```
//! use rl::limiter::{Charge, Entry, Log, LogError, Request, Window, Windows, decide};
//!
//! /// A log in memory.
//! #[derive(Default)]
//! struct Memory(Vec<Entry>);
//!
//! impl Log for Memory {
//!     fn len(&self) -> u64 {
//!         self.0.len() as u64
//!     }
//!     fn expires_at_ms(&self) -> Option<u64> {
//!         None
//!     }
//!     fn oldest(&mut self) -> Result<Option<Entry>, LogError> {
//!         Ok(self.0.first().copied())
//!     }
//!     fn newest(&mut self) -> Result<Option<Entry>, LogError> {
//!         Ok(self.0.last().copied())
//!     }
//!     fn first_from(&mut self, from_ms: u64) -> Result<Option<Entry>, LogError> {
//!         Ok(self.0.iter().find(|entry| entry.stamp_ms >= from_ms).copied())
//!     }
//!     fn last_until(&mut self, until_ms: u64) -> Result<Option<Entry>, LogError> {
//!         Ok(self.0.iter().rfind(|entry| entry.stamp_ms <= until_ms).copied())
//!     }
//! }
//!
//! let now_ms = 1_796_037_190_903;
//! let request = Request {
//!     windows: Windows::new(Window { window_ms: 60_000, limit: 1 }),
//!     cost: 1,
//!     charge: Charge::IfAllowed,
//!     precision_ms: None,
//!     max_entries: 0,
//!     now_ms,
//!     clock_ms: now_ms,
//! };
//! let mut log = Memory::default();
//!
//! let first = decide(&mut log, &request)?;
//! assert!(first.verdict.allowed);
//! log.0.push(first.change.expect("an admission adds an entry").entry);
//!
//! let second = decide(&mut log, &request)?;
//! assert!(!second.verdict.allowed && second.change.is_none());
//! assert_eq!(second.verdict.retry_after_ms, Some(60_000));
//! # Ok::<(), rl::limiter::LogError>(())
//! ```

mod counter;
mod log;
mod refund;
mod request;
mod slide;
mod swc;
mod verdict;

pub use counter::{Counter, Counters};
pub use log::{Entry, Log, LogError, MAX_STAMP_MS, MAX_STORED_UNITS};
pub use refund::{
    CounterRefund, CounterRefunds, MAX_REFUNDED, Refund, plan_counter_refunds, plan_log_refund,
};
pub use request::{
    Charge, MAX_UNITS, MAX_WINDOW_MS, MAX_WINDOWS, Request, Window, Windows, WindowsError,
};
pub use slide::{Change, Decision, MAX_TRIMMED, decide};
pub use swc::{CounterChange, CounterCharge, CounterDecision, decide_counters};
pub use verdict::Verdict;
