//! What a million users need of memory.

use super::bars::{self, Group};
use super::canvas::Frame;
use super::figures::rows;
use crate::csv::Table;

/// Heading, and the requests of each user in a minute.
const GROUPS: [(&str, u64); 2] =
    [("Each with 10 requests in the last minute", 10), ("Each with 100", 100)];

pub fn draw(table: &Table) -> String {
    let notes =
        ["Gigabytes, with the tables that find and expire the keys. To the right, how many \
         times those of RL.SLIDE."];
    let frame = Frame { title: "Memory for a million users", notes: &notes, origin: &table.origin };
    let groups = GROUPS.map(|(heading, requests)| {
        let bars = rows(table)
            .filter(|row| row.number::<u64>("requests_per_minute") == requests)
            .map(|row| (row.text("keeper"), row.number("gigabytes_per_million_users")));
        Group { heading, ours: "RL.SLIDE", bars: bars.collect() }
    });
    bars::draw(frame, &groups, |gigabytes| format!("{gigabytes:.2} GB"))
}
