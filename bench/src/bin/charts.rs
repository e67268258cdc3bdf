//! Draws the pictures of all figures in docs/img again, and the tables of docs/BENCHMARKS.md.

use redis_rl_bench::{chart, page};

fn main() -> std::io::Result<()> {
    chart::draw(None)?;
    page::update(None)
}
