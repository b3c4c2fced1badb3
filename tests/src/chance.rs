//! Chance that can be repeated: numbers from a seed that is said.

use std::time::Duration;

/// Numbers that look random and are the same for the same seed.
#[derive(Debug, Clone)]
pub struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    /// With the seed in the variable SNAPBACK_SEED, else with `seed`; which one is said,
    /// and shown when the test fails.
    pub fn new(what: &str, seed: u64) -> Self {
        let given = std::env::var("SNAPBACK_SEED").ok().and_then(|text| text.parse().ok());
        let seed: u64 = given.unwrap_or(seed);
        crate::say(&format!("{what}: SNAPBACK_SEED={seed}"));
        Self { seed, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Passes over `count` numbers.
    pub fn skip(&mut self, count: u64) {
        for _ in 0..count {
            self.number();
        }
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// One of `items`.
    ///
    /// # Panics
    /// When there is none.
    pub fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// A while, at most `longest`.
    pub fn moment(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(self.below(10_000) as f64 / 10_000.0)
    }
}

/// How often something is tried: the number in the variable `name`, else `usual`.
pub fn times(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
