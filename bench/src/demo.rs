//! A show: one burst after the other, and what three limiters let pass of them.
//!
//! The times are made up, so the show runs at any speed and always ends the same.

use crate::wire::Wire;

/// Units in any window.
pub const LIMIT: usize = 10;
/// The window, in ms.
pub const WINDOW_MS: u64 = 60_000;
/// How long the show lasts, in its own time.
pub const END_MS: u64 = 240_000;
/// What one column of a timeline stands for.
const COLUMN_MS: u64 = 5_000;
/// When the show begins: with a whole minute, in Unix milliseconds.
const ORIGIN_MS: u64 = 1_796_083_200_000;

/// The limiters, by the names that the show calls them.
pub const NAMES: [&str; 3] = ["fixed window", "RL.SWC", "RL.SLIDE"];

/// When requests come: a few now and then, and a burst over the boundary of the second minute, one at
/// the beginning of the third, and one over its end.
pub fn times_ms() -> Vec<u64> {
    let quiet = (3_000..END_MS).step_by(13_000);
    let bursts = [(51_000, 18), (121_500, 14), (170_500, 22)];
    let bursts =
        bursts.into_iter().flat_map(|(from, count)| (0..count).map(move |n| from + 900 * n));
    let mut times_ms: Vec<u64> = quiet.chain(bursts).collect();
    times_ms.sort_unstable();
    times_ms
}

/// Asks all three at a time of the show: which of them admit.
pub fn ask(wire: &mut Wire, at_ms: u64) -> [bool; 3] {
    let (minute, at) = (at_ms / WINDOW_MS, ORIGIN_MS + at_ms);
    let count = wire.run(&format!("INCR fixed:{minute}")).integer();
    if count == 1 {
        wire.run(&format!("PEXPIRE fixed:{minute} {WINDOW_MS}"));
    }
    let mut allowed = |command| {
        let reply = wire.run(&format!("{command} {command} 60s {LIMIT} AT {at}"));
        matches!(&reply, crate::wire::Reply::Array(fields) if fields[0].integer() == 1)
    };
    [count <= LIMIT as i64, allowed("RL.SWC"), allowed("RL.SLIDE")]
}

/// What one limiter has answered so far.
#[derive(Default)]
pub struct Track {
    admitted_ms: Vec<u64>,
    denied_ms: Vec<u64>,
}

impl Track {
    /// Notes an answer.
    pub fn note(&mut self, at_ms: u64, admitted: bool) {
        if admitted { &mut self.admitted_ms } else { &mut self.denied_ms }.push(at_ms);
    }

    /// The most that it has admitted in any window.
    pub fn fullest(&self) -> usize {
        let times_ms = &self.admitted_ms;
        let inside = |(first, at_ms): (usize, &u64)| {
            times_ms[first..].partition_point(|later_ms| *later_ms < at_ms + WINDOW_MS)
        };
        times_ms.iter().enumerate().map(inside).max().unwrap_or(0)
    }
}

/// How many come in each column; a dot for none, and a star for more than nine.
fn columns(times_ms: &[u64]) -> String {
    let cell = |column| match times_ms.iter().filter(|at_ms| **at_ms / COLUMN_MS == column).count()
    {
        0 => '.',
        count => {
            u32::try_from(count).ok().and_then(|count| char::from_digit(count, 10)).unwrap_or('*')
        }
    };
    (0..END_MS / COLUMN_MS).map(cell).collect()
}

/// How lines are coloured.
pub struct Paint {
    green: &'static str,
    red: &'static str,
    off: &'static str,
}

/// For a terminal.
pub const COLOURS: Paint = Paint { green: "\x1b[32m", red: "\x1b[31m", off: "\x1b[0m" };
/// For all else.
pub const PLAIN: Paint = Paint { green: "", red: "", off: "" };

/// The timelines of the three, with their counts.
pub fn timelines(tracks: &[Track; 3], paint: &Paint) -> Vec<String> {
    let minutes = (0..END_MS / WINDOW_MS).map(|minute| format!("{:<12}", format!("|{minute} min")));
    let mut lines = vec![format!("{:24}{}", "", minutes.collect::<String>().trim_end())];
    let Paint { green, red, off } = paint;
    for (name, track) in NAMES.iter().zip(tracks) {
        let rows =
            [(*name, "admitted", green, &track.admitted_ms), ("", "denied", red, &track.denied_ms)];
        for (name, what, colour, times_ms) in rows {
            let (cells, count) = (columns(times_ms), times_ms.len());
            lines.push(format!("{name:14}{what:10}{colour}{cells}{off}{count:5}"));
        }
    }
    lines
}

/// The table at the end.
pub fn table(tracks: &[Track; 3]) -> Vec<String> {
    let mut lines = vec![
        format!("| limit: {LIMIT} in any 60 s | admitted | denied | most in any 60 s |"),
        "|---|---|---|---|".to_string(),
    ];
    for (name, track) in NAMES.iter().zip(tracks) {
        let (admitted, denied) = (track.admitted_ms.len(), track.denied_ms.len());
        let fullest = track.fullest();
        let above = match fullest.saturating_sub(LIMIT) {
            0 => String::new(),
            above => format!(": {above} above the limit"),
        };
        lines.push(format!("| {name} | {admitted} | {denied} | {fullest}{above} |"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(admitted_ms: &[u64], denied_ms: &[u64]) -> Track {
        Track { admitted_ms: admitted_ms.to_vec(), denied_ms: denied_ms.to_vec() }
    }

    #[test]
    fn a_window_holds_what_has_not_left_it() {
        assert_eq!(track(&[], &[1]).fullest(), 0);
        assert_eq!(track(&[0, 1, 59_999], &[]).fullest(), 3);
        assert_eq!(track(&[0, 1, 60_000], &[]).fullest(), 2, "the first has left by then");
        assert_eq!(track(&[0, 60_000, 60_001, 60_002, 130_000], &[]).fullest(), 3);
    }

    #[test]
    fn columns_count_what_comes_in_them() {
        let times_ms: Vec<u64> = [0, 4_999, 5_000].into_iter().chain(10_000..10_010).collect();
        assert_eq!(&columns(&times_ms)[..4], "21*.");
        assert_eq!(columns(&times_ms).len(), 48);
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let all = || track(&times_ms(), &times_ms());
        let tracks = [all(), all(), all()];
        for line in timelines(&tracks, &PLAIN).iter().chain(&table(&tracks)) {
            assert!(line.len() <= 79, "{line}");
            assert!(!line.contains('\x1b'), "{line:?}");
        }
    }
}
