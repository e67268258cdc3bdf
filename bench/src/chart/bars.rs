//! Bars in groups, the shortest first, each with its figure and how many times it is our own.

use super::canvas::{Canvas, Frame, INK, PALE_INK, Place, RULE, Text, WIDTH, colour_of, picture};

const ROW: i32 = 24;
const LABELS: i32 = 150;
/// Where the longest bar ends: its figures stand behind it.
const RIGHT: i32 = WIDTH - 150;

/// What is compared.
pub struct Group<'a> {
    pub heading: &'a str,
    /// The contender whose figure the others are told as a multiple of.
    pub ours: &'a str,
    /// Contenders and their figures.
    pub bars: Vec<(&'a str, f64)>,
}

/// Draws the groups one below the other, all to one scale, with the figures as `shown` writes them.
pub fn draw(frame: Frame, groups: &[Group], shown: impl Fn(f64) -> String) -> String {
    let top = 66 + 18 * frame.notes.len() as i32;
    let height = |group: &Group| 36 + ROW * group.bars.len() as i32;
    let all = groups.iter().flat_map(|group| &group.bars);
    let longest = all.map(|(_, value)| *value).fold(0.0, f64::max);
    let scale = f64::from(RIGHT - LABELS - 12) / longest;
    let total: i32 = groups.iter().map(height).sum();
    picture(top + total + 30, frame, |canvas| {
        let mut top = top;
        for group in groups {
            draw_group(canvas, (20, top), group, scale, &shown);
            top += height(group);
        }
    })
}

fn draw_group(
    canvas: &Canvas,
    at: Place,
    group: &Group,
    scale: f64,
    shown: impl Fn(f64) -> String,
) {
    let (left, first) = (LABELS + 12, at.1 + 28);
    canvas.text(at, group.heading, Text::of(14, INK).bold());
    let mut bars = group.bars.clone();
    bars.sort_by(|one, other| one.1.total_cmp(&other.1));
    let ours = bars.iter().find(|(name, _)| *name == group.ours).map(|(_, value)| *value);
    let ours = ours.unwrap_or_else(|| panic!("{} is not in {:?}", group.ours, group.heading));
    canvas.line(
        vec![(left - 1, first - 10), (left - 1, first + ROW * bars.len() as i32 - 14)],
        RULE,
        1,
    );
    for (row, (name, value)) in bars.iter().enumerate() {
        let middle = first + ROW * row as i32;
        let right = left + (value * scale).ceil() as i32;
        let look = Text::of(12, INK);
        let is_ours = *name == group.ours;
        let label = if is_ours { look.bold() } else { look };
        canvas.text((LABELS, middle), name, label.to_the_left());
        canvas.bar((left, middle - 8), (right, middle + 8), colour_of(name));
        canvas.text((right + 6, middle), &shown(*value), label);
        if !is_ours {
            let ratio = format!("{:.2} ×", value / ours);
            canvas.text((WIDTH - 20, middle), &ratio, Text::of(12, PALE_INK).to_the_left());
        }
    }
}

/// A whole number with commas between thousands.
pub fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(svg: &str) -> Vec<&str> {
        svg.lines().filter(|line| !line.starts_with('<')).collect()
    }

    #[test]
    fn bars_are_sorted_and_told_as_multiples_of_ours() {
        let frame = Frame { title: "Cost", notes: &[], origin: "a sample" };
        let bars = vec![("Lua", 30_000.0), ("RL.SLIDE", 10_000.0), ("PING", 999.0)];
        let group = Group { heading: "denied", ours: "RL.SLIDE", bars };
        let svg = draw(frame, &[group], whole);
        let expected = [
            "Cost", "a sample", "denied", "PING", "999", "0.10 ×", "RL.SLIDE", "10,000", "Lua",
            "30,000", "3.00 ×",
        ];
        assert_eq!(texts(&svg), expected);
    }

    #[test]
    fn thousands_are_told_apart() {
        let numbers = [0.0, 999.4, 1_000.0, 12_345.0, 123_456.0, 1_234_567.0].map(whole);
        assert_eq!(numbers, ["0", "999", "1,000", "12,345", "123,456", "1,234,567"]);
    }
}
