//! The corpora of `fuzz/`, and with them every input that ever failed, given again to the functions
//! that are fuzzed: without a fuzzer, over the module as it is built.

#[path = "../limiter/counter_memory.rs"]
mod counter_memory;
#[path = "../limiter/memory.rs"]
#[allow(dead_code, reason = "no test uses all of it")]
mod memory;
#[path = "../model/mod.rs"]
mod model;
#[path = "../limiter/promises.rs"]
mod promises;

#[path = "../../fuzz/src/calls.rs"]
mod calls;
#[path = "../../fuzz/src/counters.rs"]
mod counters;
#[path = "../../fuzz/src/hostile_counters.rs"]
mod hostile_counters;
#[path = "../../fuzz/src/hostile_log.rs"]
mod hostile_log;
#[path = "../../fuzz/src/log.rs"]
mod log;
#[path = "../../fuzz/src/parse.rs"]
mod parse;

use std::fs;
use std::path::Path;

/// Runs every file of a target's corpus; the last one printed is the one that fails.
fn replay(target: &str, run: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut inputs = 0;
    for file in fs::read_dir(corpus).unwrap() {
        let path = file.unwrap().path();
        println!("{}", path.display());
        run(&fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 10, "only {inputs} inputs are there");
}

#[test]
fn any_words_are_parsed_or_refused() {
    replay("parse", parse::run);
}

#[test]
fn a_log_answers_as_the_model() {
    replay("log", log::run);
}

#[test]
fn any_entries_are_charged_no_more_than_they_leave() {
    replay("hostile_log", hostile_log::run);
}

#[test]
fn counters_answer_as_the_model() {
    replay("counters", counters::run);
}

#[test]
fn any_counters_are_charged_no_more_than_they_leave() {
    replay("hostile_counters", hostile_counters::run);
}
