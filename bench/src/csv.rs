//! Tables in files: a first line that says where they are from, the names of the columns, and rows.

use std::fs;
use std::path::Path;

use crate::{chart, page};

/// A table whose cells hold no commas.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Where the figures are from: machine and versions.
    pub origin: String,
    /// The names of the columns, and below them the rows.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns, without rows.
    pub fn new(origin: &str, columns: &[&str]) -> Table {
        let mut table = Table { origin: origin.to_string(), rows: Vec::new() };
        table.row(columns);
        table
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[impl ToString]) {
        self.rows.push(cells.iter().map(|cell| cell.to_string().replace(',', ";")).collect());
    }

    /// Writes the table to a file.
    pub fn write(&self, path: &Path) {
        let lines = self.rows.iter().map(|cells| cells.join(",") + "\n").collect::<String>();
        fs::write(path, format!("# {}\n{lines}", self.origin))
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        println!("written: {}", path.display());
    }

    /// Writes the table to that file in docs/img, and draws its pictures and the page's tables again.
    pub fn keep(&self, file: &str) {
        self.write(&chart::folder().join(file));
        chart::draw(Some(file)).expect("the pictures can be drawn");
        page::update(Some(file)).expect("the page can be written");
    }

    /// Reads the table in a file.
    pub fn read(path: &Path) -> std::io::Result<Table> {
        Ok(Table::parse(&fs::read_to_string(path)?))
    }

    fn parse(text: &str) -> Table {
        let (origin, rows) = text.split_once('\n').unwrap_or((text, ""));
        let cells = |line: &str| line.split(',').map(String::from).collect();
        let origin = origin.trim_start_matches("# ").to_string();
        Table { origin, rows: rows.lines().map(cells).collect() }
    }
}
