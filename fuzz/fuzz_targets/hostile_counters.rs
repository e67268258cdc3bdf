#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| redis_rl_fuzz::hostile_counters::run(data));
