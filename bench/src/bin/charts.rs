//! Draws the pictures of all figures in docs/img again.

fn main() -> std::io::Result<()> {
    redis_rl_bench::chart::draw(None)
}
