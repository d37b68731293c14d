//! Makes reproducible random choices: every choice is a hash of the seed and of the subject of the
//! choice, so nothing depends on the order in which choices are made.

/// Returns the result of one round of the splitmix64 finaliser.
fn finalise(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[derive(Debug, Clone, Copy)]
pub struct Random(pub u64);

impl Random {
    pub fn hash(self, about: [u64; 4]) -> u64 {
        let about = about.into_iter();
        about.fold(self.0, |hash, value| finalise(hash ^ value))
    }

    /// Returns a number below `bound` (0 if `bound` is 0). `about` identifies the choice.
    pub fn below(self, bound: u64, about: [u64; 4]) -> u64 {
        match bound {
            0 => 0,
            bound => self.hash(about) % bound,
        }
    }

    /// Returns `true` in `per_mille` of 1000 choices. `about` identifies the choice.
    pub fn chance(self, per_mille: u64, about: [u64; 4]) -> bool {
        self.below(1000, about) < per_mille
    }
}

/// The topics of choices: the first number of every hash.
pub mod topic {
    pub const SIZE: u64 = 1;
    pub const TILE: u64 = 2;
    pub const LAYER: u64 = 3;
    pub const STAGE: u64 = 4;
    pub const VERTEX: u64 = 5;
    pub const EXCHANGE: u64 = 6;
    pub const VARIABLE: u64 = 7;
    pub const CLASS: u64 = 9;
    pub const CONTEXT: u64 = 10;
    pub const CYCLES: u64 = 11;
    pub const COMPILATION: u64 = 12;
}
