//! One burst over the boundary of a minute, as three limiters see it.

use super::canvas::{
    Canvas, Frame, GREY, INK, PALE_INK, Place, RULE, Text, VERMILLION, WIDTH, colour_of, picture,
};
use super::figures::{distinct, rows};
use crate::csv::Table;
use plotters::style::Color;

const LEFT: i32 = 60;
const RIGHT: i32 = WIDTH - 30;
const PANEL: i32 = 168;
const WINDOW_MS: u64 = 60_000;
const LIMIT: usize = 10;
/// Shown is the time from here,
const START_MS: u64 = 40_000;
/// where the curves begin at 0, to here.
const END_MS: u64 = 180_000;

pub fn draw(table: &Table) -> String {
    let notes = [
        "A limit of 10 in any 60 s. Curves: requests admitted in the 60 s before each moment. Marks: \
         each request, admitted (full)",
        "or denied (pale). The same requests come to each limiter.",
    ];
    let limiters = distinct(table, "limiter");
    let foot = 98 + PANEL * limiters.len() as i32;
    let title = "One burst over a minute's boundary";
    let frame = Frame { title, notes: &notes, origin: &table.origin };
    picture(foot + 46, frame, |canvas| {
        for (index, limiter) in limiters.iter().enumerate() {
            let of_it = rows(table).filter(|row| row.text("limiter") == *limiter);
            let decisions: Vec<(u64, bool)> =
                of_it.map(|row| (row.number("at_ms"), row.text("admitted") == "1")).collect();
            panel(canvas, 100 + PANEL * index as i32, limiter, &decisions);
        }
        for minute in 1..=END_MS / WINDOW_MS {
            let x = across(minute * WINDOW_MS);
            canvas.text((x, foot), &format!("{minute}:00"), Text::of(12, PALE_INK).centred());
        }
    })
}

fn across(at_ms: u64) -> i32 {
    LEFT + (RIGHT - LEFT) * (at_ms - START_MS) as i32 / (END_MS - START_MS) as i32
}

fn panel(canvas: &Canvas, top: i32, limiter: &str, decisions: &[(u64, bool)]) {
    let (floor, colour) = (top + 122, colour_of(limiter));
    let up = |count: usize| floor - 5 * count as i32;
    let curve = trailing(decisions);
    let most = curve.iter().map(|(_, count)| *count).max().unwrap_or(0);

    canvas.text((LEFT, top), limiter, Text::of(14, INK).bold());
    let said = format!("at most {most} in 60 s");
    let look = Text::of(12, if most > LIMIT { VERMILLION } else { INK });
    canvas.text((RIGHT, top), &said, look.bold().to_the_left());
    for minute in 1..=END_MS / WINDOW_MS {
        let x = across(minute * WINDOW_MS);
        canvas.line(vec![(x, up(20)), (x, floor + 18)], RULE, 1);
    }
    for (count, say) in [(0, "0"), (LIMIT, "10"), (2 * LIMIT, "20")] {
        canvas.text((LEFT - 8, up(count)), say, Text::of(12, PALE_INK).to_the_left());
    }

    let ends_ms = curve.iter().skip(1).map(|(at_ms, _)| *at_ms).chain([END_MS]);
    let mut steps: Vec<Place> = vec![(LEFT, floor)];
    for ((from_ms, count), end_ms) in curve.iter().zip(ends_ms) {
        let (from, end) = (across(*from_ms), across(end_ms));
        canvas.bar((from, up((*count).min(LIMIT))), (end, floor), colour.mix(0.2));
        if *count > LIMIT {
            canvas.bar((from, up(*count)), (end, up(LIMIT)), VERMILLION.mix(0.45));
        }
        steps.extend([(from, up(*count)), (end, up(*count))]);
    }
    canvas.line(vec![(LEFT, floor), (RIGHT, floor)], GREY, 1);
    canvas.dashes((LEFT, up(LIMIT)), (RIGHT, up(LIMIT)), INK);
    canvas.line(steps, colour, 2);
    canvas.text((LEFT + 6, up(LIMIT) - 9), "limit", Text::of(12, INK));
    for (at_ms, admitted) in decisions {
        let x = across(*at_ms);
        let colour = if *admitted { colour } else { RULE };
        canvas.bar((x - 1, floor + 6), (x + 2, floor + 18), colour);
    }
}

/// How many were admitted in the window before each moment: when that changes, and to what.
fn trailing(decisions: &[(u64, bool)]) -> Vec<(u64, usize)> {
    let admitted_ms = decisions.iter().filter(|(_, admitted)| *admitted).map(|(at_ms, _)| *at_ms);
    let admitted_ms: Vec<u64> = admitted_ms.collect();
    let leave_ms = admitted_ms.iter().map(|at_ms| at_ms + WINDOW_MS);
    let mut moments_ms: Vec<u64> = admitted_ms.iter().copied().chain(leave_ms).collect();
    moments_ms.retain(|at_ms| *at_ms < END_MS);
    moments_ms.push(START_MS);
    moments_ms.sort();
    moments_ms.dedup();
    let counts = moments_ms.iter().map(|now_ms| {
        let inside = |at_ms: &&u64| **at_ms <= *now_ms && *now_ms < **at_ms + WINDOW_MS;
        (*now_ms, admitted_ms.iter().filter(inside).count())
    });
    counts.collect()
}
