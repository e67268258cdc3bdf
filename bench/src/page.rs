//! The tables of docs/BENCHMARKS.md, made of the figures in docs/img: no figure is copied by hand.

use std::fs;
use std::path::PathBuf;

use crate::chart::bars::whole;
use crate::chart::figures::{Row, distinct, rows};
use crate::chart::folder;
use crate::csv::Table;
use crate::machine::project_file;

/// A table of the page: the figures that it shows, its first two lines, and the rows below them.
struct PageTable {
    csv: &'static str,
    head: &'static str,
    body: fn(&Table) -> Vec<String>,
}

const TABLES: [PageTable; 7] = [
    PageTable {
        csv: "instructions.csv",
        head: "| call | instructions | target | |\n|---|---:|---:|---|",
        body: instructions,
    },
    PageTable {
        csv: "listpack.csv",
        head: "| entries | steady, listpack | steady, skiplist | denied, listpack | denied, skiplist | \
               bytes an entry, listpack | skiplist |\n|---:|---:|---:|---:|---:|---:|---:|",
        body: listpack,
    },
    PageTable {
        csv: "goals.csv",
        head: "| goal | measured | |\n|---|---|---|",
        body: |table| lines(table, &["goal", "measured", "verdict"]),
    },
    PageTable {
        csv: "backlog.csv",
        head: "| slowest call of 100 | of the log had left | least of five trials, µs | most, µs |\n\
               |---|---|---:|---:|",
        body: |table| lines(table, &["contender", "left", "least_us", "most_us"]),
    },
    PageTable {
        csv: "time.csv",
        head: "| 50 calls at a time | | CPU µs | least to most | in the call, µs | p50, µs | p99, µs | \
               calls/s |\n|---|---|---:|---:|---:|---:|---:|---:|",
        body: time,
    },
    PageTable {
        csv: "memory.csv",
        head: "| bytes of a key | 10 requests | 100 | 1,000 | 10,000 | 100,000 | 1,000,000 |\n\
               |---|---:|---:|---:|---:|---:|---:|",
        body: memory,
    },
    PageTable {
        csv: "capacity.csv",
        head: "| GB for a million users | 10 a minute | 100 a minute | 1,000 a minute |\n\
               |---|---:|---:|---:|",
        body: capacity,
    },
];

/// Puts the tables that show that CSV file, or all, into the page anew.
///
/// # Errors
/// If a file cannot be read or written.
pub fn update(csv: Option<&str>) -> std::io::Result<()> {
    let mut text = fs::read_to_string(page())?;
    for table in TABLES.iter().filter(|table| csv.is_none_or(|csv| csv == table.csv)) {
        text = table.put_into(&text)?;
    }
    fs::write(page(), text)
}

fn page() -> PathBuf {
    project_file("docs/BENCHMARKS.md")
}

impl PageTable {
    /// The page with this table in the place of the one with the same head, and above it where it is from.
    fn put_into(&self, page: &str) -> std::io::Result<String> {
        let (before, rest) = page.split_once(self.head).unwrap_or_else(|| {
            panic!("docs/BENCHMARKS.md lacks a table that begins {}", self.head)
        });
        let rows = rest.split_inclusive('\n').skip(1).take_while(|line| line.starts_with('|'));
        let after = &rest[1 + rows.map(str::len).sum::<usize>()..];
        let table = Table::read(&folder().join(self.csv))?;
        let before = measured_on(before, &table.origin);
        Ok(format!("{before}{}\n{}\n{after}", self.head, (self.body)(&table).join("\n")))
    }
}

/// The text with that origin in its last line that names one.
fn measured_on(text: &str, origin: &str) -> String {
    const WORDS: &str = "\nMeasured on ";
    let (before, rest) = text.rsplit_once(WORDS).expect("the page says where its figures are from");
    let after = &rest[rest.find('\n').unwrap_or(rest.len())..];
    format!("{before}{WORDS}{origin}.{after}")
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// The columns of those names, as they are.
fn lines(table: &Table, columns: &[&str]) -> Vec<String> {
    let cells = |row: Row| columns.iter().map(|name| code(row.text(name))).collect::<Vec<_>>();
    rows(table).map(|row| line(&cells(row))).collect()
}

/// The text with its first word as code where that is a command.
fn code(text: &str) -> String {
    let (first, rest) = text.split_at(text.find(' ').unwrap_or(text.len()));
    let is_command =
        first.len() > 3 && first.chars().all(|it| it == '.' || it.is_ascii_uppercase());
    let text = if is_command { format!("`{first}`{rest}") } else { text.to_string() };
    // The file has no commas, for they part its cells.
    text.replace(';', ",")
}

fn instructions(table: &Table) -> Vec<String> {
    let call = |row: &Row| match (row.text("contender"), row.text("workload")) {
        (contender @ ("PING" | "INCR" | "HINCRBY"), _) => code(contender),
        (contender, workload) => code(&format!("{contender} {workload}")),
    };
    let cells = |row: Row| {
        let measured: f64 = row.number("instructions");
        let (target, verdict) = match row.text("target") {
            "" => (String::new(), String::new()),
            _ => judged(measured, row.number("target")),
        };
        line(&[call(&row), whole(measured), target, verdict])
    };
    rows(table).map(cells).collect()
}

fn judged(measured: f64, target: f64) -> (String, String) {
    let over = measured / target - 1.0;
    let verdict =
        if over > 0.0 { format!("missed by {:.0} %", over * 100.0) } else { "met".into() };
    (whole(target), verdict)
}

fn listpack(table: &Table) -> Vec<String> {
    let sizes = distinct(table, "entries").into_iter();
    let cells = |entries| {
        let at = |encoding, name| find(table, [("entries", entries), ("encoding", encoding)], name);
        let count = |encoding, name| whole(at(encoding, name).parse().expect("a number"));
        let mut cells = vec![entries.to_string()];
        for name in ["steady", "denied"] {
            cells.extend(["listpack", "skiplist"].map(|encoding| count(encoding, name)));
        }
        cells.extend(["listpack", "skiplist"].map(|it| at(it, "bytes_per_entry").to_string()));
        line(&cells)
    };
    sizes.map(cells).collect()
}

fn time(table: &Table) -> Vec<String> {
    let deep = distinct(table, "pipeline").pop().expect("there are rows");
    let cells = |row: Row| {
        let number = |name| row.number::<f64>(name);
        line(&[
            row.text("scenario").to_string(),
            code(&format!("{} {}", row.text("contender"), row.text("workload"))),
            format!("{:.2}", number("cpu_us")),
            format!("{:.2} to {:.2}", number("cpu_us_least"), number("cpu_us_most")),
            format!("{:.2}", number("in_call_us")),
            whole(number("p50_us")),
            whole(number("p99_us")),
            whole(number("calls_per_second")),
        ])
    };
    rows(table).filter(|row| row.text("pipeline") == deep).map(cells).collect()
}

/// The least of the forms in which the server keeps a key: the one that it takes unless it is told otherwise.
fn memory(table: &Table) -> Vec<String> {
    by_keeper(table, "requests", |of| whole(of.number("bytes")))
}

fn capacity(table: &Table) -> Vec<String> {
    by_keeper(table, "requests_per_minute", |of| of.text("gigabytes_per_million_users").to_string())
}

/// A line for each keeper, with a cell for each of the different values of that column: its first row.
fn by_keeper(table: &Table, column: &str, cell: fn(Row) -> String) -> Vec<String> {
    let values = distinct(table, column);
    let line_of = |keeper| {
        let of = |value: &&str| {
            let is_it = |row: &Row| row.text("keeper") == keeper && row.text(column) == *value;
            cell(rows(table).find(is_it).expect("each keeper has the same columns"))
        };
        line(&[vec![name_of(keeper)], values.iter().map(of).collect()].concat())
    };
    distinct(table, "keeper").into_iter().map(line_of).collect()
}

fn name_of(keeper: &str) -> String {
    match keeper {
        "RL.SLIDE PRECISION 1s" => "`RL.SLIDE` with `PRECISION 1s`".to_string(),
        "Lua log" => "Lua log, members of time and number".to_string(),
        "Lua log of UUIDs" => "Lua log, UUIDs".to_string(),
        command => code(command),
    }
}

/// The cell of that column in the row that has these.
fn find<'a>(table: &'a Table, cells: [(&str, &str); 2], column: &str) -> &'a str {
    let is_it = |row: &Row| cells.iter().all(|(name, cell)| row.text(name) == *cell);
    rows(table).find(is_it).unwrap_or_else(|| panic!("no row has {cells:?}")).text(column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_figures_that_are_kept() {
        let text = fs::read_to_string(page()).unwrap();
        for table in TABLES {
            let is_kept = table.put_into(&text).unwrap() == text;
            assert!(
                is_kept,
                "docs/BENCHMARKS.md has other figures than {}: make charts",
                table.csv
            );
        }
    }

    #[test]
    fn the_last_origin_is_replaced() {
        let text = "\nMeasured on a.\n\nMeasured on b.\nNo replica.\n";
        let wanted = "\nMeasured on a.\n\nMeasured on c.\nNo replica.\n";
        assert_eq!(measured_on(text, "c"), wanted);
    }

    #[test]
    fn a_target_is_met_or_missed_by_a_share() {
        assert_eq!(judged(9_000.0, 9_000.0), ("9,000".into(), "met".into()));
        assert_eq!(judged(9_900.0, 9_000.0), ("9,000".into(), "missed by 10 %".into()));
    }

    #[test]
    fn commands_are_code() {
        assert_eq!(code("RL.SLIDE admitted; cost 500"), "`RL.SLIDE` admitted, cost 500");
        assert_eq!(code("Lua log denied"), "Lua log denied");
        assert_eq!(code("all but the newest"), "all but the newest");
    }
}
