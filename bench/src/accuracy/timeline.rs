//! A burst over the boundary of a minute, told request by request.

use super::limiters::{EXACT, LIMITERS, Limit};
use super::report::ORIGIN;
use super::traffic::MIDNIGHT_MS;
use crate::csv::Table;

const LIMIT: Limit = Limit { units: 10, window_ms: 60_000 };

/// Ten requests in the ten seconds before the boundary, ten in those after it, and then one every
/// four seconds.
fn times_ms() -> impl Iterator<Item = u64> {
    (50_500..70_500).step_by(1_000).chain((74_500..180_000).step_by(4_000))
}

/// What the fixed window, the counter and the exact log answer, in ms from a minute's beginning on.
pub fn csv() -> Table {
    let mut table = Table::new(ORIGIN, &["limiter", "at_ms", "admitted"]);
    let shown = ["fixed window", "RL.SWC", EXACT];
    for (limiter, fresh) in LIMITERS.iter().filter(|(name, _)| shown.contains(name)) {
        let mut fresh = fresh(LIMIT);
        for at_ms in times_ms() {
            let admitted = u64::from(fresh.admits(MIDNIGHT_MS + at_ms));
            table.row(&[limiter.to_string(), at_ms.to_string(), admitted.to_string()]);
        }
    }
    table
}
