//! The figures of all limiters under all traffic, as CSV and as tables of the documentation.

use super::judge::{Outcome, judge};
use super::limiters::{EXACT, LIMITERS, Limit};
use super::traffic::{self, SEED};
use crate::csv::Table;

/// Where the figures are from.
pub const ORIGIN: &str = "simulated: make accuracy";

/// The limits tried: a usual one, and a small one.
const LIMITS: [Limit; 2] =
    [Limit { units: 100, window_ms: 60_000 }, Limit { units: 10, window_ms: 60_000 }];

/// What one limiter did with one traffic.
pub struct Row {
    pub limit: Limit,
    pub traffic: &'static str,
    pub limiter: &'static str,
    pub outcome: Outcome,
}

/// All of them, by limit, then by traffic.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for limit in LIMITS {
        for traffic in traffic::all(limit) {
            for (limiter, fresh) in LIMITERS {
                let outcome = judge(limit, &traffic.times_ms, &mut *fresh(limit));
                rows.push(Row { limit, traffic: traffic.name, limiter, outcome });
            }
        }
    }
    rows
}

/// The file that is kept: counts, so that shares can be taken of them.
pub fn csv(rows: &[Row]) -> Table {
    let mut table = Table::new(
        &format!("{ORIGIN}, seed {SEED}"),
        &[
            "limit",
            "window_ms",
            "traffic",
            "limiter",
            "requests",
            "admitted",
            "wrongly_admitted",
            "wrongly_denied",
            "most_in_window",
            "most_room_denied",
        ],
    );
    for Row { limit, traffic, limiter, outcome } in rows {
        table.row(&[
            limit.units.to_string(),
            limit.window_ms.to_string(),
            traffic.to_string(),
            limiter.to_string(),
            outcome.requests.to_string(),
            outcome.admitted.to_string(),
            outcome.wrongly_admitted.to_string(),
            outcome.wrongly_denied.to_string(),
            outcome.most_in_window.to_string(),
            outcome.most_room_denied.to_string(),
        ]);
    }
    table
}

/// For each limit three tables in Markdown.
pub fn tables(rows: &[Row]) -> [String; 2] {
    LIMITS.map(|limit| {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.limit.units == limit.units).collect();
        let admitted = |row: &Row| {
            let exact = |exact: &&&Row| exact.limiter == EXACT && exact.traffic == row.traffic;
            let exact = rows.iter().find(exact).expect("the exact log is among them").outcome;
            percent(row.outcome.admitted, exact.admitted)
        };
        let over = |row: &Row| {
            let most = row.outcome.most_in_window.saturating_sub(row.limit.units);
            share(row, row.outcome.wrongly_admitted, &format!("+{}", percent(most, limit.units)))
        };
        let under = |row: &Row| {
            let room = percent(row.outcome.most_room_denied, limit.units);
            share(row, row.outcome.wrongly_denied, &room)
        };
        let per = format!("{} per {} s", limit.units, limit.window_ms / 1000);
        [
            table(&format!("admitted wrongly, {per}"), &rows, over),
            table(&format!("denied wrongly, {per}"), &rows, under),
            table(&format!("admitted in all, {per}"), &rows, admitted),
        ]
        .join("\n")
    })
}

/// The share of the row's requests that these are, and how far the worst of them was off.
fn share(row: &Row, count: u64, worst: &str) -> String {
    match count {
        0 => "0".to_string(),
        _ => format!("{} ({worst})", percent(count, row.outcome.requests)),
    }
}

/// A table with a line for each limiter and a column for each traffic.
fn table(corner: &str, rows: &[&Row], cell: impl Fn(&Row) -> String) -> String {
    let of = |name: &'static str| rows.iter().filter(move |row| row.limiter == name).copied();
    let traffic: Vec<&str> = of(EXACT).map(|row| row.traffic).collect();
    let mut text =
        format!("| {corner} | {} |\n|---{}|\n", traffic.join(" | "), "|---".repeat(traffic.len()));
    for (limiter, _) in LIMITERS {
        let cells: Vec<String> = of(limiter).map(&cell).collect();
        text += &format!("| {limiter} | {} |\n", cells.join(" | "));
    }
    text
}

/// `count` in percent of `all`, with one decimal where it is below 10; nothing but 0 is shown as 0.
pub fn percent(count: u64, all: u64) -> String {
    let percent = 100.0 * count as f64 / all as f64;
    match percent {
        0.0 => "0".to_string(),
        ..0.05 => "< 0.1 %".to_string(),
        ..9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::timeline;
    use std::sync::LazyLock;

    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(rows);

    fn of(name: &str) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(move |row| row.limiter.starts_with(name))
    }

    fn most(limiter: &str, traffic: &str) -> Vec<(u64, u64)> {
        let rows = of(limiter).filter(|row| row.traffic == traffic);
        rows.map(|row| (row.limit.units, row.outcome.most_in_window)).collect()
    }

    #[test]
    fn the_exact_log_is_never_wrong() {
        let exact: Vec<_> = ROWS.iter().filter(|row| row.limiter == EXACT).collect();
        assert_eq!(exact.len(), 10);
        for Row { outcome, limit, traffic, .. } in exact {
            assert_eq!((outcome.wrongly_admitted, outcome.wrongly_denied), (0, 0), "{traffic}");
            assert_eq!(outcome.most_in_window, limit.units, "{traffic}");
            assert!(outcome.admitted < outcome.requests, "{traffic} never meets the limit");
        }
    }

    #[test]
    fn a_log_of_any_precision_never_admits_wrongly() {
        assert_eq!(of("RL.SLIDE PRECISION").count(), 30);
        for row in of("RL.SLIDE PRECISION") {
            assert_eq!(row.outcome.wrongly_admitted, 0, "{}, {}", row.limiter, row.traffic);
            assert_eq!(row.outcome.most_in_window, row.limit.units, "{}", row.limiter);
        }
        assert!(of("RL.SLIDE PRECISION").any(|row| row.outcome.wrongly_denied > 0));
    }

    #[test]
    fn a_fixed_window_admits_twice_the_limit_at_a_boundary() {
        assert_eq!(most("fixed window", "boundary attack"), [(100, 200), (10, 20)]);
    }

    #[test]
    fn a_counter_admits_up_to_twice_the_limit_and_no_more() {
        assert_eq!(most("RL.SWC", "boundary attack"), [(100, 100), (10, 10)]);
        assert_eq!(most("RL.SWC", "slow attack"), [(100, 200), (10, 20)]);
        for row in of("RL.SWC") {
            assert!(row.outcome.most_in_window <= 2 * row.limit.units, "{}", row.traffic);
        }
    }

    #[test]
    fn the_figures_kept_are_those_of_this_code() {
        let folder = crate::chart::folder();
        let kept = |file: &str| Table::read(&folder.join(file)).unwrap();
        assert!(kept("accuracy.csv") == csv(&ROWS), "make accuracy writes other figures");
        assert!(kept("timeline.csv") == timeline::csv(), "make accuracy writes other decisions");
        let page = std::fs::read_to_string(folder.join("../BENCHMARKS.md")).unwrap();
        for tables in tables(&ROWS) {
            assert!(page.contains(&tables), "docs/BENCHMARKS.md has not these:\n{tables}");
        }
    }
}
