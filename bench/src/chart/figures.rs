//! Finding the figures of a table by the names of its columns.

use crate::csv::Table;
use std::fmt::Debug;
use std::str::FromStr;

/// A row below the names of the columns.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    names: &'a [String],
    cells: &'a [String],
}

/// The rows below the names of the columns.
pub fn rows(table: &Table) -> impl Iterator<Item = Row<'_>> {
    let (names, rows) = table.rows.split_first().expect("a table has columns");
    rows.iter().map(|cells| Row { names, cells })
}

/// The different cells of a column, in the order in which they come.
pub fn distinct<'a>(table: &'a Table, name: &str) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for cell in rows(table).map(|row| row.text(name)) {
        if !distinct.contains(&cell) {
            distinct.push(cell);
        }
    }
    distinct
}

impl<'a> Row<'a> {
    /// # Panics
    /// If there is no such column.
    pub fn text(&self, name: &str) -> &'a str {
        let column = self.names.iter().position(|other| other == name);
        &self.cells[column.unwrap_or_else(|| panic!("no {name} in {:?}", self.names))]
    }

    /// # Panics
    /// If there is no such column, or the cell is no such number.
    pub fn number<T: FromStr<Err: Debug>>(&self, name: &str) -> T {
        self.text(name)
            .parse()
            .unwrap_or_else(|error| panic!("{name}: {error:?} in {:?}", self.cells))
    }
}
