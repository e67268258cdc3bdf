//! Reading a CSV file without quotes: a line that says where the figures are from, a line of names,
//! and lines of as many values.

use std::fmt::Debug;
use std::str::FromStr;

pub struct Csv {
    /// Where the figures are from.
    pub origin: String,
    names: Vec<String>,
    lines: Vec<Vec<String>>,
}

/// A line, whose values are found by name.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    csv: &'a Csv,
    values: &'a [String],
}

impl Csv {
    /// # Panics
    /// If a line has not as many values as the first has names.
    pub fn parse(text: &str) -> Self {
        let split = |line: &str| line.split(',').map(str::to_string).collect::<Vec<_>>();
        let (origin, table) = text.split_once('\n').expect("a CSV file has lines");
        let origin = origin.strip_prefix("# ").expect("the first says where they are from").into();
        let mut lines = table.lines().map(split);
        let names = lines.next().expect("the second has names");
        let lines: Vec<_> = lines.collect();
        for line in &lines {
            assert_eq!(line.len(), names.len(), "{line:?}");
        }
        Self { origin, names, lines }
    }

    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.lines.iter().map(|values| Line { csv: self, values })
    }

    /// The different values of that name, in the order in which they come.
    pub fn distinct(&self, name: &str) -> Vec<&str> {
        let mut distinct = Vec::new();
        for line in self.lines() {
            let value = line.text(name);
            if !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        distinct
    }
}

impl<'a> Line<'a> {
    /// # Panics
    /// If there is no such name.
    pub fn text(&self, name: &str) -> &'a str {
        let index = self.csv.names.iter().position(|other| other == name);
        &self.values[index.unwrap_or_else(|| panic!("no {name} in {:?}", self.csv.names))]
    }

    /// # Panics
    /// If there is no such name, or its value is no such number.
    pub fn number<T: FromStr<Err: Debug>>(&self, name: &str) -> T {
        self.text(name).parse().unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }
}
