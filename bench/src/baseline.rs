//! The gate: instructions of today against those that are committed.

use crate::csv::Table;

/// How much of the baseline a row may take.
const MOST_PERCENT: u64 = 110;

/// What is wrong with rows of `measured`, each a name and its instructions, on this server.
pub fn compare(baseline: &Table, server: &str, measured: &[(String, u64)]) -> Vec<String> {
    if release(&baseline.origin) != release(server) {
        let taken = &baseline.origin;
        return vec![format!(
            "the baseline was taken on {taken}, and this is {server}: figures compare on one \
             version only. `make bench-baseline` takes another"
        )];
    }
    measured.iter().filter_map(|(name, now)| judge(before(baseline, name), name, *now)).collect()
}

/// A table of the rows, which the next run is compared with.
pub fn table(server: &str, measured: &[(String, u64)]) -> Table {
    let mut table = Table::new(server, &["row", "instructions"]);
    for (name, instructions) in measured {
        table.row(&[name, &instructions.to_string()]);
    }
    table
}

fn judge(before: Option<u64>, name: &str, now: u64) -> Option<String> {
    let Some(before) = before else {
        return Some(format!("{name}: the baseline lacks it. `make bench-baseline` takes another"));
    };
    (now * 100 > before * MOST_PERCENT).then(|| {
        let above = 100.0 * (now as f64 / before as f64 - 1.0);
        format!("{name}: {now} instructions are {above:.1} % above {before}")
    })
}

fn before(baseline: &Table, name: &str) -> Option<u64> {
    let row = baseline.rows.iter().find(|row| row[0] == name)?;
    row[1].parse().ok()
}

/// Name, major and minor version.
fn release(server: &str) -> &str {
    server.rsplit_once('.').map_or(server, |(release, _)| release)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
        rows.iter().map(|(name, instructions)| (name.to_string(), *instructions)).collect()
    }

    fn complaints(server: &str, measured: &[(&str, u64)]) -> Vec<String> {
        let baseline = table("redis 7.0.15", &rows(&[("PING", 2000), ("denied", 9000)]));
        compare(&baseline, server, &rows(measured))
    }

    #[test]
    fn a_tenth_worse_passes_and_more_does_not() {
        assert_eq!(complaints("redis 7.0.15", &[("PING", 2200), ("denied", 5000)]), [""; 0]);
        let found = complaints("redis 7.0.15", &[("PING", 2201), ("denied", 9000)]);
        assert_eq!(found, ["PING: 2201 instructions are 10.1 % above 2000"]);
    }

    #[test]
    fn a_row_that_the_baseline_lacks_fails() {
        let found = complaints("redis 7.0.15", &[("admitted", 1)]);
        assert!(found[0].starts_with("admitted: the baseline lacks it"), "{found:?}");
    }

    #[test]
    fn another_release_is_not_compared_and_fails() {
        assert_eq!(complaints("redis 7.0.16", &[("PING", 2000)]), [""; 0]);
        for server in ["redis 7.2.15", "valkey 7.0.15"] {
            let found = complaints(server, &[("PING", 2000)]);
            assert!(found[0].starts_with("the baseline was taken on redis 7.0.15"), "{found:?}");
        }
    }

    #[test]
    fn a_baseline_is_read_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("rl-baseline-{}", std::process::id()));
        let written = table("redis 7.0.15", &rows(&[("PING", 2000)]));
        written.write(&path);
        let read = Table::read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap(), written);
    }
}
