//! What a call costs in the server's processor time: by contender, and by the size of a log.

use super::bars::{self, Group};
use super::canvas::Frame;
use super::figures::{Row, distinct, rows};
use super::lines::{self, Axes, Line};
use crate::csv::Table;

/// Heading, scenario, and our own.
const GROUPS: [(&str, &str, &str); 4] = [
    ("Denied", "denied", "RL.SLIDE"),
    ("Admitted to a thousand logs that grow", "admitted", "RL.SLIDE"),
    ("Admitted to a log of 100, from which as many leave", "steady", "RL.SLIDE"),
    ("Admitted by a counter", "counter admitted", "RL.SWC"),
];

/// Who is asked at each size of a log: as it is called here, the contender, and a word of its workload.
const BY_SIZE: [(&str, &str, &str); 4] = [
    ("RL.SLIDE denied", "RL.SLIDE", "denied"),
    ("RL.SLIDE one in, one out", "RL.SLIDE", "steady"),
    ("Lua log denied", "Lua log", "denied"),
    ("Lua log one in, one out", "Lua log", "steady"),
];

/// The contenders of some scenarios, side by side.
pub fn draw(table: &Table) -> String {
    let notes = [
        "Microseconds of the server's processor for each call, the median of all rounds: 50 calls in a \
         pipeline, no AOF,",
        "no replica. To the right, how many times that of the command in bold. Grey: what Redis itself needs \
         at least.",
    ];
    let frame = Frame { title: "Processor time per call", notes: &notes, origin: &table.origin };
    let groups = GROUPS.map(|(heading, scenario, ours)| {
        let bars = pipelined(table, |name| name == scenario)
            .map(|row| (row.text("contender"), row.number("cpu_us")));
        Group { heading, ours, bars: bars.collect() }
    });
    bars::draw(frame, &groups, microseconds)
}

/// A call on logs of ten entries to a million.
pub fn draw_sizes(table: &Table) -> String {
    let notes = ["Microseconds of the server's processor for each call, 50 in a pipeline."];
    let frame =
        Frame { title: "A call on a log of any size", notes: &notes, origin: &table.origin };
    let lines = BY_SIZE.map(|(name, contender, word)| {
        let is_it =
            |row: &Row| row.text("contender") == contender && row.text("workload").contains(word);
        let points = pipelined(table, |name| name.starts_with(A_LOG_OF)).filter(is_it);
        let points = points.map(|row| (entries(row), row.number("cpu_us")));
        Line { name, points: points.collect() }
    });
    let axes = Axes { across: "entries in the log", up: "µs a call" };
    lines::draw(frame, axes, &lines, microseconds)
}

/// How the scenarios of logs of one size are called.
const A_LOG_OF: &str = "a log of ";

fn entries(row: Row) -> f64 {
    let size = row.text("scenario").trim_start_matches(A_LOG_OF);
    size.parse().unwrap_or_else(|error| panic!("{size:?} is no size: {error}"))
}

/// The rows of some scenarios in which many calls are sent at a time, so that the server is never idle.
fn pipelined<'a>(
    table: &'a Table,
    is_asked: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Row<'a>> {
    let deep = *distinct(table, "pipeline").last().expect("there are rows");
    rows(table).filter(move |row| row.text("pipeline") == deep && is_asked(row.text("scenario")))
}

fn microseconds(figure: f64) -> String {
    format!("{figure:.1} µs")
}
