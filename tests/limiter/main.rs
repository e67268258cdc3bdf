//! The limiter alone: no server, no clock, every field of every answer.

#[path = "../model/mod.rs"]
mod model;
#[path = "../seeded/properties.rs"]
mod seeded;

mod bounded;
mod canary;
mod counter_memory;
mod counters;
mod exhaustive;
mod looks;
mod memory;
mod promises;
mod properties;
mod refunds;
mod table;
mod totals;
