//! Pictures of the CSV files in docs/img, as SVG: `make charts` draws them again.
//!
//! Nothing here measures, and nothing depends on the machine: the same figures make the same bytes.

mod accuracy;
pub mod bars;
pub mod canvas;
mod capacity;
pub mod figures;
mod instructions;
pub mod lines;
mod time;
mod timeline;

use crate::csv::Table;
use crate::machine::project_file;
use std::path::PathBuf;

/// A picture: its file's name, the figures that it shows, and how they are drawn.
struct Picture {
    name: &'static str,
    csv: &'static str,
    draw: fn(&Table) -> String,
}

const PICTURES: [Picture; 6] = [
    Picture { name: "accuracy.svg", csv: "accuracy.csv", draw: accuracy::draw },
    Picture { name: "capacity.svg", csv: "capacity.csv", draw: capacity::draw },
    Picture { name: "instructions.svg", csv: "instructions.csv", draw: instructions::draw },
    Picture { name: "sizes.svg", csv: "time.csv", draw: time::draw_sizes },
    Picture { name: "time.svg", csv: "time.csv", draw: time::draw },
    Picture { name: "timeline.svg", csv: "timeline.csv", draw: timeline::draw },
];

/// The folder of the figures and the pictures.
pub fn folder() -> PathBuf {
    project_file("docs/img")
}

/// Draws the pictures of that CSV file again, or all of which there are figures.
///
/// # Errors
/// If a file cannot be read or written.
pub fn draw(csv: Option<&str>) -> std::io::Result<()> {
    let asked = PICTURES.iter().filter(|picture| csv.is_none_or(|csv| csv == picture.csv));
    for picture in asked.filter(|picture| picture.is_measured()) {
        std::fs::write(folder().join(picture.name), picture.drawn()?)?;
        println!("drew docs/img/{}", picture.name);
    }
    Ok(())
}

impl Picture {
    /// Whether its figures are there.
    fn is_measured(&self) -> bool {
        folder().join(self.csv).exists()
    }

    fn drawn(&self) -> std::io::Result<String> {
        Ok((self.draw)(&Table::read(&folder().join(self.csv))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pictures_show_the_figures_beside_them() {
        for picture in PICTURES {
            let kept = std::fs::read_to_string(folder().join(picture.name)).ok();
            let drawn = picture.is_measured().then(|| picture.drawn().unwrap());
            assert!(kept == drawn, "{} is not what make charts draws", picture.name);
        }
        assert!(PICTURES.iter().any(Picture::is_measured));
    }
}
