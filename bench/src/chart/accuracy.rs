//! How far each limiter goes beyond the limit, and how much it denies without need.

use super::canvas::{Canvas, Frame, INK, PALE_INK, RULE, Text, WIDTH, colour_of, picture};
use super::figures::{Row, distinct, rows};
use crate::accuracy::percent;
use crate::csv::Table;

const ROW: i32 = 24;
const LABELS: i32 = 200;
const COLUMN: i32 = (WIDTH - LABELS - 20) / 5;
/// The length of a bar of 100 %.
const WHOLE: f64 = 70.0;

pub fn draw(table: &Table) -> String {
    let limiters = distinct(table, "limiter");
    let block = 56 + ROW * limiters.len() as i32;
    let notes = [
        "A simulated day each, under a limit of 100 requests in any 60 s. Random traffic asks for 100 a \
         minute on average;",
        "the attacks come at the boundaries of minutes.",
    ];
    let frame = Frame { title: "How accurate limiters are", notes: &notes, origin: &table.origin };
    picture(114 + 2 * block, frame, |canvas| {
        let over = |row: &Row| {
            let limit = row.number("limit");
            (row.number::<u64>("most_in_window").saturating_sub(limit), limit)
        };
        let heading =
            "Worst over-admission: the most in any 60 s, above the limit, in % of the limit";
        matrix(canvas, 100, heading, table, over);
        let denied = |row: &Row| (row.number("wrongly_denied"), row.number("requests"));
        let heading = "Denied though the last 60 s had room, in % of the requests";
        matrix(canvas, 100 + block, heading, table, denied);
    })
}

/// A part, and the whole that it is told in percent of.
type Share = (u64, u64);

/// A row for each limiter, a column for each traffic.
fn matrix(canvas: &Canvas, top: i32, heading: &str, table: &Table, share: impl Fn(&Row) -> Share) {
    canvas.text((20, top), heading, Text::of(14, INK).bold());
    let first = top + 46;
    let (traffic, limiters) = (distinct(table, "traffic"), distinct(table, "limiter"));
    let left = |column: usize| LABELS + 14 + COLUMN * column as i32;
    for (column, name) in traffic.iter().enumerate() {
        canvas.text((left(column), top + 24), name, Text::of(12, PALE_INK));
        let foot = first + ROW * (limiters.len() as i32 - 1) + 9;
        canvas.line(vec![(left(column) - 1, first - 9), (left(column) - 1, foot)], RULE, 1);
    }
    for (index, limiter) in limiters.iter().enumerate() {
        let middle = first + ROW * index as i32;
        canvas.text((LABELS, middle), limiter, Text::of(12, INK).to_the_left());
        let of_100 = |row: &Row| row.text("limit") == "100" && row.text("limiter") == *limiter;
        for row in rows(table).filter(of_100) {
            let column = traffic.iter().position(|name| *name == row.text("traffic"));
            let left = left(column.expect("it is one of them"));
            let (part, whole) = share(&row);
            let right = left + (part as f64 / whole as f64 * WHOLE).ceil() as i32;
            if right > left {
                canvas.bar((left, middle - 8), (right, middle + 8), colour_of(limiter));
            }
            canvas.text((right + 5, middle), &percent(part, whole), Text::of(12, INK));
        }
    }
}
