//! What the benchmarks share.
//!
//! The limiters are compiled here from the module's own files, under the module's name, and run over
//! memory as the tests run them.

extern crate self as rl;

#[path = "../../tests/limiter/counter_memory.rs"]
pub mod counter_memory;
#[path = "../../src/limiter/mod.rs"]
pub mod limiter;
#[path = "../../tests/limiter/memory.rs"]
pub mod memory;
#[path = "../../tests/model/mod.rs"]
pub mod model;
#[path = "../../tests/seeded/random.rs"]
pub mod random;

pub mod accuracy;
pub mod backlog;
pub mod baseline;
pub mod callgrind;
pub mod chart;
pub mod contenders;
pub mod csv;
pub mod demo;
pub mod footprint;
pub mod goals;
pub mod machine;
pub mod page;
pub mod scenarios;
pub mod server;
pub mod timing;
pub mod wire;
pub mod workloads;
