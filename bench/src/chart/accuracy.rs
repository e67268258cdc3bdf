//! How far each limiter goes beyond the limit, and how much it denies without need.

use super::canvas::{Canvas, Frame, INK, PALE_INK, RULE, Text, WIDTH, colour_of, picture};
use super::csv::{Csv, Line};

const ROW: i32 = 24;
const LABELS: i32 = 200;
const COLUMN: i32 = (WIDTH - LABELS - 20) / 5;
/// The length of a bar of 100 %.
const WHOLE: f64 = 70.0;

pub fn draw(csv: &Csv) -> String {
    let limiters = csv.distinct("limiter");
    let block = 56 + ROW * limiters.len() as i32;
    let notes = [
        "A simulated day each, under a limit of 100 requests in any 60 s. Random traffic asks for 100 a \
         minute on average;",
        "the attacks come at the boundaries of minutes.",
    ];
    let frame = Frame { title: "How accurate limiters are", notes: &notes, origin: &csv.origin };
    picture(114 + 2 * block, frame, |canvas| {
        let over = |line: &Line| {
            let limit: u64 = line.number("limit");
            let over = line.number::<u64>("most_in_window").saturating_sub(limit);
            100.0 * over as f64 / limit as f64
        };
        let heading =
            "Worst over-admission: the most in any 60 s, above the limit, in % of the limit";
        matrix(canvas, 100, heading, csv, over);
        let denied = |line: &Line| {
            100.0 * line.number::<f64>("wrongly_denied") / line.number::<f64>("requests")
        };
        let heading = "Denied though the last 60 s had room, in % of the requests";
        matrix(canvas, 100 + block, heading, csv, denied);
    })
}

/// A row for each limiter, a column for each traffic.
fn matrix(canvas: &Canvas, top: i32, heading: &str, csv: &Csv, percent: impl Fn(&Line) -> f64) {
    canvas.text((20, top), heading, Text::of(14, INK).bold());
    let first = top + 46;
    let (traffic, limiters) = (csv.distinct("traffic"), csv.distinct("limiter"));
    let left = |column: usize| LABELS + 14 + COLUMN * column as i32;
    for (column, name) in traffic.iter().enumerate() {
        canvas.text((left(column), top + 24), name, Text::of(12, PALE_INK));
        let foot = first + ROW * (limiters.len() as i32 - 1) + 9;
        canvas.line(vec![(left(column) - 1, first - 9), (left(column) - 1, foot)], RULE, 1);
    }
    for (row, limiter) in limiters.iter().enumerate() {
        let middle = first + ROW * row as i32;
        canvas.text((LABELS, middle), limiter, Text::of(12, INK).to_the_left());
        let of_100 = |line: &Line| line.text("limit") == "100" && line.text("limiter") == *limiter;
        for line in csv.lines().filter(of_100) {
            let column = traffic.iter().position(|name| *name == line.text("traffic"));
            let left = left(column.expect("it is one of them"));
            let percent = percent(&line);
            let right = left + (percent / 100.0 * WHOLE).ceil() as i32;
            if right > left {
                canvas.bar((left, middle - 8), (right, middle + 8), colour_of(limiter));
            }
            canvas.text((right + 5, middle), &shown(percent), Text::of(12, INK));
        }
    }
}

/// A share with one decimal where it is small; nothing but 0 is shown as 0.
fn shown(percent: f64) -> String {
    match percent {
        0.0 => "0".to_string(),
        ..0.05 => "< 0.1 %".to_string(),
        ..9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}
