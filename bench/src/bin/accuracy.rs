//! Simulates, prints the tables, and writes the figures and the pictures of accuracy in docs/img.

use redis_rl_bench::accuracy::{SEED, csv, rows, tables, timeline_csv};
use redis_rl_bench::chart;

fn main() -> std::io::Result<()> {
    println!("seed {SEED}\n");
    let rows = rows();
    println!("{}", tables(&rows).join("\n"));
    let folder = chart::folder();
    for (file, table) in [("accuracy.csv", csv(&rows)), ("timeline.csv", timeline_csv())] {
        table.write(&folder.join(file));
        chart::draw(Some(file))?;
    }
    Ok(())
}
