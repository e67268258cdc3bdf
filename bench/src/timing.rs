//! Time: one contender's round of calls on its server, and the middle of many.

use std::time::Instant;

use crate::server::info_field;
use crate::wire::{Wire, encode_lines};
use crate::workloads::Run;

/// What a round of calls took, in microseconds but for the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Calls in a second, as the client saw them.
    pub calls_per_second: f64,
    /// The server's processor time for a call, all that it does included.
    pub cpu_us: f64,
    /// The time inside the command, as the server tells it.
    pub in_call_us: f64,
    /// From sending to the reply: half of the calls took no longer.
    pub p50_us: f64,
    /// The same of 99 in 100.
    pub p99_us: f64,
    /// The same of 999 in 1000.
    pub p999_us: f64,
}

/// Sends so many calls, some at a time, and measures them.
pub fn round(run: &Run, first: u64, calls: u64, pipeline: u64, wire: &mut Wire) -> Sample {
    // All is made before the clock starts, so that the client only sends and reads.
    let batches: Vec<_> = (first..first + calls)
        .step_by(pipeline as usize)
        .map(|start| {
            let mut bytes = Vec::new();
            let indices = start..(start + pipeline).min(first + calls);
            let commands: Vec<_> =
                indices.map(|index| encode_lines(&mut bytes, &run.call(index))).collect();
            (bytes, commands)
        })
        .collect();
    let mut waits_us = Vec::with_capacity(calls as usize);
    wire.run("CONFIG RESETSTAT");
    let cpu = cpu_seconds(wire);
    let start = Instant::now();
    for (bytes, commands) in batches {
        let sent = Instant::now();
        wire.send(&bytes);
        for commands in commands {
            run.check(commands, wire);
            waits_us.push(sent.elapsed().as_secs_f64() * 1e6);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds(wire) - cpu;
    waits_us.sort_by(f64::total_cmp);
    let quantile = |share: f64| waits_us[((calls - 1) as f64 * share) as usize];
    Sample {
        calls_per_second: calls as f64 / seconds,
        cpu_us: cpu * 1e6 / calls as f64,
        in_call_us: in_call_us(wire) / calls as f64,
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
    }
}

/// The median of each figure by itself.
pub fn median(samples: &[Sample]) -> Sample {
    let of = |figure: fn(&Sample) -> f64| {
        let mut figures: Vec<f64> = samples.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    Sample {
        calls_per_second: of(|sample| sample.calls_per_second),
        cpu_us: of(|sample| sample.cpu_us),
        in_call_us: of(|sample| sample.in_call_us),
        p50_us: of(|sample| sample.p50_us),
        p99_us: of(|sample| sample.p99_us),
        p999_us: of(|sample| sample.p999_us),
    }
}

/// The processor time that the server has taken, its own and the system's for it.
fn cpu_seconds(wire: &mut Wire) -> f64 {
    let info = wire.run("INFO cpu");
    let field = |name| info_field(info.text(), name).and_then(|value| value.parse::<f64>().ok());
    ["used_cpu_user", "used_cpu_sys"].map(|name| field(name).expect("INFO has it")).iter().sum()
}

/// The time in the command that took most. Others are called by it, or send and read it.
fn in_call_us(wire: &mut Wire) -> f64 {
    let info = wire.run("INFO commandstats");
    let times = info.text().lines().filter_map(|line| {
        line.split([':', ',']).find_map(|field| field.strip_prefix("usec=")?.parse().ok())
    });
    times.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_taken_of_each_figure() {
        let sample = |cpu_us, p99_us| Sample {
            calls_per_second: 1.0,
            cpu_us,
            in_call_us: 1.0,
            p50_us: 1.0,
            p99_us,
            p999_us: 1.0,
        };
        let middle = median(&[sample(3.0, 10.0), sample(1.0, 30.0), sample(2.0, 20.0)]);
        assert_eq!(middle, sample(2.0, 20.0));
    }
}
