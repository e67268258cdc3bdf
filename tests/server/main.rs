//! The commands inside a real `redis-server`, one server per test.
//!
//! The tests hold the documentation's promises from outside: they know the replies, the stored form, the effects and the
//! errors that are promised, and nothing of the code. Time comes in through `AT`, through planted
//! entries or through a [`clock::Clock`], never through sleeping, so that no verdict depends on how fast
//! the machine is.
//!
//! `RL_MODULE` names the module to load (else it is built), `REDIS_SERVER` the server to load it into.

#[allow(dead_code, reason = "only the build is needed here, not which tests catch which bug")]
#[path = "../broken/mod.rs"]
mod broken;
#[path = "../model/mod.rs"]
mod model;

mod cli;
mod client;
mod clock;
mod cluster_harness;
mod dataset;
mod harness;
mod journal;
mod load;
mod random;
mod random_calls;
mod redis_py;
mod sentinel;
mod wire;

mod arguments;
mod clock_at;
mod clock_exact;
mod clock_load;
mod clock_steps;
mod clock_walk;
mod cluster;
mod cluster_failover;
mod cluster_reshard;
mod counter_effects;
mod counter_foreign;
mod counter_replies;
mod counter_stored_form;
mod counter_windows;
mod crashes;
mod cut_connections;
mod denied;
mod disk;
mod docs;
mod events;
mod eviction;
mod expiry;
mod failover;
mod faults;
mod foreign;
mod gates;
mod hostile;
mod info;
mod keys;
mod lagging_replicas;
mod leaks;
mod lifecycle;
mod memory;
mod memory_in_flight;
mod metadata;
mod moves;
mod peek;
mod peek_access;
mod persistence;
mod precision;
mod refund_counters;
mod refund_effects;
mod refund_log;
mod replicas;
mod replication;
mod replies;
mod rights;
mod scripting;
mod security;
mod settings;
mod side_effects;
mod slow_reader;
mod stored_form;
mod stream;
mod trimming;
mod windows;
