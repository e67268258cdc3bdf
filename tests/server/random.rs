//! The random streams of these tests.

#[path = "../seeded/random.rs"]
mod seeded;

pub use seeded::Random;

/// The seed of every stream, unless `RL_SEED` sets another.
const SEED: u64 = 20_261_130;

impl Random {
    /// The generator of a stream; shows its seed.
    pub fn seeded() -> Random {
        let seed = match std::env::var("RL_SEED") {
            Ok(seed) => seed.parse().expect("RL_SEED is a number"),
            Err(_) => SEED,
        };
        println!("RL_SEED={seed}");
        Random(seed)
    }

    /// One of the choices.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
