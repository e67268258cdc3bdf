//! What a call costs in instructions.

use super::bars::{self, Group, whole};
use super::canvas::Frame;
use super::figures::{Row, rows};
use crate::csv::Table;

/// Heading, our own, and the workloads that each contender has for it.
type Asked = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const GROUPS: [Asked; 4] = [
    (
        "Denied",
        "RL.SLIDE",
        &[
            ("PING", "admitted"),
            ("RL.SWC", "denied"),
            ("RL.SLIDE", "denied by a skiplist log of 100"),
            ("CL.THROTTLE", "denied"),
            ("Lua counter", "denied"),
            ("Lua log", "denied by a skiplist log of 100"),
        ],
    ),
    (
        "Admitted to a log that grows",
        "RL.SLIDE",
        &[
            ("ZADD", "admitted to a growing skiplist log"),
            ("RL.SLIDE", "admitted to a growing skiplist log"),
            ("CL.THROTTLE", "admitted"),
            ("MULTI", "admitted to a growing skiplist log"),
            ("classic script", "admitted to a growing skiplist log"),
            ("Lua log", "admitted to a growing skiplist log"),
        ],
    ),
    (
        "Admitted to a log of 100, from which as many leave",
        "RL.SLIDE",
        &[
            ("RL.SLIDE", "admitted to a steady skiplist log of 100"),
            ("MULTI", "admitted to a steady skiplist log of 100"),
            ("classic script", "admitted to a steady skiplist log of 100"),
            ("Lua log", "admitted to a steady skiplist log of 100"),
        ],
    ),
    (
        "Admitted by a counter",
        "RL.SWC",
        &[
            ("INCR", "admitted"),
            ("HINCRBY", "admitted"),
            ("RL.SWC", "admitted"),
            ("CL.THROTTLE", "admitted"),
            ("Lua counter", "admitted"),
        ],
    ),
];

pub fn draw(table: &Table) -> String {
    let notes = [
        "Instructions of the whole server for each call, counted by callgrind: 50 calls in a pipeline, no AOF, \
         no replica.",
        "To the right, how many times those of the command in bold. Grey: what Redis itself needs at least.",
    ];
    let frame = Frame { title: "Instructions per call", notes: &notes, origin: &table.origin };
    let groups = GROUPS.map(|(heading, ours, asked)| {
        let found = asked.iter().filter_map(|(contender, workload)| {
            let is_it = |row: &Row| {
                (row.text("contender"), row.text("workload")) == (*contender, *workload)
            };
            let row = rows(table).find(is_it);
            // redis-cell is compared where its library is given.
            assert!(row.is_some() || *contender == "CL.THROTTLE", "no {contender}, {workload}");
            row.map(|row| (*contender, row.number("instructions")))
        });
        Group { heading, ours, bars: found.collect() }
    });
    bars::draw(frame, &groups, whole)
}
