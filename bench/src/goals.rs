//! What the times should be: multiples of others in the same run.

use crate::backlog::Backlog;
use crate::csv::Table;
use crate::timing::Sample;

/// A contender at a workload in a scenario, and the median of its rounds.
pub struct Timing {
    pub scenario: &'static str,
    pub contender: &'static str,
    pub workload: &'static str,
    pub pipeline: u64,
    pub median: Sample,
    /// The least and the most processor time of a round.
    pub cpu_us_range: (f64, f64),
}

/// A scenario, a contender in it, and a word of its workload.
type Place = (&'static str, &'static str, &'static str);

/// Ours, how many times another's it should take at most, and the other.
const MULTIPLES: [(Place, f64, Place); 8] = [
    (("denied", "RL.SLIDE", "denied"), 1.0 / 7.0, ("denied", "Lua log", "denied")),
    (("denied", "RL.SLIDE", "denied"), 0.6, ("denied", "CL.THROTTLE", "denied")),
    (("steady", "RL.SLIDE", "steady"), 1.0 / 5.0, ("steady", "Lua log", "steady")),
    (("steady", "RL.SLIDE", "steady"), 1.0, ("steady", "CL.THROTTLE", "admitted")),
    (
        ("counter admitted", "RL.SWC", "admitted"),
        1.0 / 6.0,
        ("counter admitted", "Lua counter", "admitted"),
    ),
    (
        ("counter admitted", "RL.SWC", "admitted"),
        0.8,
        ("counter admitted", "CL.THROTTLE", "admitted"),
    ),
    (("a log of 1000000", "RL.SLIDE", "denied"), 1.5, ("a log of 1000", "RL.SLIDE", "denied")),
    (("a log of 1000000", "RL.SLIDE", "steady"), 1.5, ("a log of 1000", "RL.SLIDE", "steady")),
];

/// The slowest call on a backlog of RL.SLIDE.
const WORST_US: f64 = 200.0;

/// A goal, what was measured, and whether that is met.
pub struct Verdict {
    pub goal: String,
    pub measured: String,
    pub met: bool,
}

impl Verdict {
    /// Whether the goal is met, in a word.
    pub fn word(&self) -> &'static str {
        if self.met { "met" } else { "missed" }
    }
}

/// The goals whose figures are there, each judged.
pub fn judge(timings: &[Timing], backlogs: &[Backlog]) -> Vec<Verdict> {
    let multiples = MULTIPLES.iter().flat_map(|(ours, most, theirs)| {
        let (ours_at, theirs_at) = (find(timings, ours)?, find(timings, theirs)?);
        let goal = format!("{} <= {most:.2} x {}", shown(ours), shown(theirs));
        let ratios = FIGURES.map(|(name, figure)| (name, figure(ours_at) / figure(theirs_at)));
        Some(ratios.map(|(name, ratio)| verdict(&goal, name, ratio, *most)))
    });
    let keys = [("RL.SLIDE", "denied"), ("RL.SWC", "admitted")].into_iter().flat_map(|ours| {
        let more = to_incr(timings, "a million keys", ours)?;
        let less = to_incr(timings, "a thousand keys", ours)?;
        let goal = format!("{} to INCR on a million keys, no more than on a thousand", ours.0);
        Some([verdict(&goal, "server CPU", more, less)])
    });
    let worst = backlogs.iter().filter(|backlog| backlog.contender == "RL.SLIDE");
    let worst = worst.map(|backlog| {
        let goal = format!("the slowest call when {} of a log left <= {WORST_US} us", backlog.left);
        verdict(&goal, "smallest of the trials", backlog.smallest_us(), WORST_US)
    });
    multiples.flatten().chain(keys.flatten()).chain(worst).collect()
}

/// A figure of a timing, and its name.
type Figure = (&'static str, fn(&Timing) -> f64);

/// What is compared: all that the server does for a call, and the time in the command alone.
const FIGURES: [Figure; 2] = [
    ("server CPU", |timing| timing.median.cpu_us),
    ("in the call", |timing| timing.median.in_call_us),
];

fn verdict(goal: &str, figure: &str, measured: f64, most: f64) -> Verdict {
    let measured_as = format!("{figure} {measured:.3} of at most {most:.3}");
    Verdict { goal: goal.to_string(), measured: measured_as, met: measured <= most }
}

fn to_incr(
    timings: &[Timing],
    scenario: &'static str,
    ours: (&'static str, &'static str),
) -> Option<f64> {
    let ours = find(timings, &(scenario, ours.0, ours.1))?;
    let incr = find(timings, &(scenario, "INCR", ""))?;
    Some(ours.median.cpu_us / incr.median.cpu_us)
}

/// The timing in a pipeline, where the server is never idle.
fn find<'a>(timings: &'a [Timing], place: &Place) -> Option<&'a Timing> {
    timings.iter().find(|timing| {
        let same = (timing.scenario, timing.contender) == (place.0, place.1);
        same && timing.pipeline > 1 && timing.workload.contains(place.2)
    })
}

fn shown(place: &Place) -> String {
    match place.0.strip_prefix("a log of") {
        Some(entries) => format!("{} {} by{entries}", place.1, place.2),
        None => format!("{} {}", place.1, place.2),
    }
}

/// The verdicts, as they are kept.
pub fn table(origin: &str, verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(origin, &["goal", "measured", "verdict"]);
    for verdict in verdicts {
        table.row(&[&verdict.goal, &verdict.measured, verdict.word()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(scenario: &'static str, contender: &'static str, cpu_us: f64) -> Timing {
        let median = Sample {
            calls_per_second: 1.0,
            cpu_us,
            in_call_us: 1.0,
            p50_us: 1.0,
            p99_us: 1.0,
            p999_us: 1.0,
        };
        let workload = "denied by a log";
        Timing { scenario, contender, workload, pipeline: 50, median, cpu_us_range: (0.0, 0.0) }
    }

    #[test]
    fn a_goal_is_met_up_to_its_multiple() {
        let met = |ours: f64| {
            let timings = [timing("denied", "RL.SLIDE", ours), timing("denied", "Lua log", 70.0)];
            judge(&timings, &[])[0].met
        };
        assert!(met(9.9));
        assert!(!met(10.1));
    }

    #[test]
    fn the_slowest_call_is_the_best_of_the_trials() {
        let backlog = |worst_us: Vec<f64>| Backlog { contender: "RL.SLIDE", left: "all", worst_us };
        assert!(judge(&[], &[backlog(vec![150.0, 900.0])])[0].met);
        assert!(!judge(&[], &[backlog(vec![250.0, 900.0])])[0].met);
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert!(judge(&[timing("denied", "RL.SLIDE", 1.0)], &[]).is_empty());
    }
}
