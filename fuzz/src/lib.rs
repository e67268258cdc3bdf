//! What is fuzzed, and the models it is held against: one function a target, which takes any bytes
//! and panics if something is wrong.
//!
//! The pure files of the module are compiled here by themselves, under the module's name. So neither
//! the module API nor its build is needed, and coverage is of nothing else. `tests/fuzzed/` gives the
//! corpora to the same functions, over the module as it is.

extern crate self as rl;

#[path = "../../src/commands"]
pub mod commands {
    pub mod parse;
}
#[path = "../../src/decimal.rs"]
#[allow(dead_code, reason = "only the store writes digits")]
mod decimal;
#[path = "../../src/limiter/mod.rs"]
pub mod limiter;

#[path = "../../tests/limiter/counter_memory.rs"]
pub mod counter_memory;
#[path = "../../tests/limiter/memory.rs"]
pub mod memory;
#[path = "../../tests/model/mod.rs"]
pub mod model;
#[path = "../../tests/limiter/promises.rs"]
pub mod promises;

pub mod calls;
pub mod counters;
pub mod hostile_counters;
pub mod hostile_log;
pub mod log;
pub mod parse;
