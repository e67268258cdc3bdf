//! Numbers that look random: the same ones for the same seed.

/// The seed of every stream, unless `RL_SEED` sets another.
const SEED: u64 = 20_261_130;

/// A splitmix64 generator.
pub struct Random(u64);

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

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// One of the choices.
    pub fn one_of(&mut self, choices: &[&'static str]) -> &'static str {
        choices[self.below(choices.len() as u64) as usize]
    }
}
