//! The traffic of a day: when each request comes.

use super::limiters::Limit;
use crate::random::Random;
use std::f64::consts::TAU;

/// What the random traffic grows from.
pub const SEED: u64 = 20_261_201;

/// Midnight, UTC, in Unix milliseconds: windows of the clock start here too.
pub const MIDNIGHT_MS: u64 = 1_796_083_200_000;
const DAY_MS: u64 = 86_400_000;

/// Requests by the times at which they come, which never fall.
pub struct Traffic {
    pub name: &'static str,
    pub times_ms: Vec<u64>,
}

/// All traffic that the limiters are tried with. On average of the day the random ones ask for as
/// much as the limit allows, so that it matters now and then.
pub fn all(limit: Limit) -> Vec<Traffic> {
    let mean = limit.units as f64 / limit.window_ms as f64;
    // 20 s of every 70: a length at which bursts come at every place of a minute.
    let bursty = |at_ms: u64| if at_ms % 70_000 < 20_000 { 3.5 * mean } else { 0.0 };
    let daily = |at_ms: u64| {
        let turn = at_ms as f64 / DAY_MS as f64;
        mean * (1.0 - 0.8 * libm::cos(TAU * turn))
    };
    vec![
        Traffic { name: "Poisson", times_ms: random(mean, |_| mean) },
        Traffic { name: "bursty", times_ms: random(3.5 * mean, bursty) },
        Traffic { name: "daily", times_ms: random(1.8 * mean, daily) },
        Traffic { name: "boundary attack", times_ms: boundary_attack(limit) },
        Traffic { name: "slow attack", times_ms: slow_attack(limit) },
    ]
}

/// A Poisson process whose rate, in requests a millisecond, changes with the time since midnight and
/// is never above `peak`: one of the peak rate, of which the share is kept that the rate is of it.
///
/// Logarithms and cosines are taken by `libm` and not by the machine, so that all of them draw the
/// same.
fn random(peak: f64, rate: impl Fn(u64) -> f64) -> Vec<u64> {
    let mut random = Random(SEED);
    // Uniform in (0, 1].
    let mut uniform = || (random.below(1 << 53) + 1) as f64 / (1_u64 << 53) as f64;
    let mut times_ms = Vec::new();
    let mut at_ms = 0.0;
    loop {
        at_ms -= libm::log(uniform()) / peak;
        if at_ms >= DAY_MS as f64 {
            return times_ms;
        }
        if uniform() * peak <= rate(at_ms as u64) {
            times_ms.push(MIDNIGHT_MS + at_ms as u64);
        }
    }
}

/// As many as the limit at the last moment of a window of the clock, and again a millisecond later; in
/// every third window, when all limiters have forgotten the last time.
fn boundary_attack(limit: Limit) -> Vec<u64> {
    attack(limit, |boundary_ms| vec![boundary_ms; limit.units as usize])
}

/// As many as the limit at the last moment of a window of the clock, and then three requests in the time
/// of each that would be free, all through the next window.
fn slow_attack(limit: Limit) -> Vec<u64> {
    let step_ms = limit.window_ms / limit.units / 3;
    attack(limit, |boundary_ms| {
        (boundary_ms..boundary_ms + limit.window_ms - 1).step_by(step_ms as usize).collect()
    })
}

/// As many as the limit a millisecond before every third boundary, and what follows.
fn attack(limit: Limit, follow: impl Fn(u64) -> Vec<u64>) -> Vec<u64> {
    let boundaries_ms = (limit.window_ms..DAY_MS).step_by(3 * limit.window_ms as usize);
    let attacks = boundaries_ms.flat_map(|since_midnight_ms| {
        let boundary_ms = MIDNIGHT_MS + since_midnight_ms;
        let mut times_ms = vec![boundary_ms - 1; limit.units as usize];
        times_ms.extend(follow(boundary_ms));
        times_ms
    });
    attacks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_traffic_asks_for_as_much_as_the_limit_allows() {
        let limit = Limit { units: 100, window_ms: 60_000 };
        for traffic in all(limit) {
            let Traffic { name, times_ms } = traffic;
            assert!(times_ms.is_sorted(), "{name}");
            assert!(times_ms.iter().all(|at_ms| (0..DAY_MS).contains(&(at_ms - MIDNIGHT_MS))));
            let requests = times_ms.len();
            if !name.ends_with("attack") {
                assert!(requests.abs_diff(144_000) < 2_000, "{requests} of {name}");
            }
        }
    }
}
