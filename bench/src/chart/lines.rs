//! How figures grow with a size: both on scales of powers of ten, each line named at its end.

use super::canvas::{Canvas, Frame, INK, PALE_INK, Place, RULE, Text, WIDTH, colour_of, picture};
use std::ops::Range;

const HEIGHT: i32 = 470;
const LEFT: i32 = 80;
const RIGHT: i32 = WIDTH - 230;
const BOTTOM: i32 = HEIGHT - 80;

/// What the scales count.
pub struct Axes<'a> {
    pub across: &'a str,
    pub up: &'a str,
}

/// A contender, and its points: a size and a figure, both above 0, by size.
pub struct Line<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// Draws the lines into one field, with the figures at their ends as `shown` writes them.
pub fn draw(frame: Frame, axes: Axes, lines: &[Line], shown: impl Fn(f64) -> String) -> String {
    let top = 90 + 18 * frame.notes.len() as i32;
    let points = || lines.iter().flat_map(|line| &line.points);
    let sizes = Scale::over(points().map(|point| point.0), LEFT..RIGHT);
    let figures = Scale::over(points().map(|point| point.1), BOTTOM..top);
    picture(HEIGHT, frame, |canvas| {
        for (x, power) in sizes.powers() {
            canvas.line(vec![(x, top), (x, BOTTOM)], RULE, 1);
            canvas.text((x, BOTTOM + 16), &short(power), Text::of(12, PALE_INK).centred());
        }
        for (y, power) in figures.powers() {
            canvas.line(vec![(LEFT, y), (RIGHT, y)], RULE, 1);
            canvas.text((LEFT - 10, y), &short(power), Text::of(12, PALE_INK).to_the_left());
        }
        canvas.text((LEFT, top - 20), axes.up, Text::of(12, INK));
        let below = (LEFT + (RIGHT - LEFT) / 2, BOTTOM + 36);
        canvas.text(below, axes.across, Text::of(12, INK).centred());
        for line in lines {
            let place = |(size, figure): &(f64, f64)| (sizes.at(*size), figures.at(*figure));
            let places: Vec<Place> = line.points.iter().map(place).collect();
            places.iter().for_each(|at| canvas.dot(*at, 4, colour_of(line.name)));
            canvas.line(places, colour_of(line.name), 2);
        }
        name_ends(canvas, lines, &figures, shown);
    })
}

/// Writes names and last figures behind the lines, each where its line ends or as near as there is room.
fn name_ends(canvas: &Canvas, lines: &[Line], figures: &Scale, shown: impl Fn(f64) -> String) {
    let last = |line: &Line| line.points.last().expect("a line has points").1;
    let mut ends: Vec<(i32, &Line)> =
        lines.iter().map(|line| (figures.at(last(line)), line)).collect();
    ends.sort_by_key(|(y, _)| -*y);
    let mut lowest = BOTTOM;
    for (y, line) in ends {
        let y = y.min(lowest);
        lowest = y - 18;
        let text = format!("{} {}", line.name, shown(last(line)));
        canvas.bar((RIGHT + 12, y - 5), (RIGHT + 22, y + 5), colour_of(line.name));
        canvas.text((RIGHT + 28, y), &text, Text::of(12, INK));
    }
}

/// Powers of ten over a stretch of pixels.
struct Scale {
    powers: Range<i32>,
    pixels: Range<i32>,
}

impl Scale {
    /// From the power at or below all values to that at or above them.
    fn over(values: impl Iterator<Item = f64>, pixels: Range<i32>) -> Self {
        let (mut least, mut most) = (f64::MAX, f64::MIN);
        for value in values {
            (least, most) = (least.min(value), most.max(value));
        }
        let start = libm::log10(least).floor() as i32;
        let end = libm::log10(most).ceil() as i32;
        Self { powers: start..end.max(start + 1), pixels }
    }

    fn at(&self, value: f64) -> i32 {
        let Range { start, end } = self.powers;
        let share = (libm::log10(value) - f64::from(start)) / f64::from(end - start);
        let length = f64::from(self.pixels.end - self.pixels.start);
        self.pixels.start + (share * length).round() as i32
    }

    /// Where each power of ten is, and its value.
    fn powers(&self) -> impl Iterator<Item = (i32, f64)> {
        let Range { start, end } = self.powers;
        (start..=end)
            .map(|power| libm::exp10(f64::from(power)))
            .map(|value| (self.at(value), value))
    }
}

/// A power of ten: 1, 10, 100, 1k, ..., 1M.
fn short(value: f64) -> String {
    match value {
        1e6.. => format!("{}M", value / 1e6),
        1e3.. => format!("{}k", value / 1e3),
        _ => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_its_powers_at_even_distances() {
        let scale = Scale::over([20.0, 500_000.0].into_iter(), 100..600);
        let places: Vec<_> = scale.powers().map(|(at, value)| (at, short(value))).collect();
        let expected = [(100, "10"), (200, "100"), (300, "1k"), (400, "10k"), (500, "100k")];
        assert_eq!(places[..5], expected.map(|(at, text)| (at, text.to_string())));
        assert_eq!(places[5..], [(600, "1M".to_string())]);
    }

    #[test]
    fn lines_are_named_at_their_ends_without_overlap() {
        let line = |name, end| Line { name, points: vec![(10.0, 1.0), (1_000_000.0, end)] };
        let lines = [line("RL.SLIDE", 2.0), line("RL.PEEK", 2.0), line("Lua log", 900.0)];
        let frame = Frame { title: "Cost", notes: &[], origin: "a sample" };
        let svg =
            draw(frame, Axes { across: "entries", up: "µs" }, &lines, |us| format!("{us} µs"));
        let heights = ["RL.SLIDE 2 µs", "RL.PEEK 2 µs", "Lua log 900 µs"].map(|text| {
            let before = svg.split(text).next().unwrap();
            let y = before.rsplit(" y=\"").next().unwrap().split('"').next().unwrap();
            y.parse::<i32>().unwrap()
        });
        assert!(heights[0] - heights[1] >= 18 && heights[1] - heights[2] >= 18, "{heights:?}");
    }
}
