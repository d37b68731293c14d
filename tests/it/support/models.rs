//! Small random models, as generated or with unusual but sound changes.

use std::path::{Path, PathBuf};

use super::Words;

/// Reproducible pseudorandom numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Returns true once in `times` times on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

const FRAMEWORKS: [&str; 4] = ["popart", "poptorch", "tensorflow", "poplar"];
const MODES: [&str; 2] = ["inference", "training"];
const OUTLINED: [&str; 3] = ["none", "once", "per-call"];

/// Returns the step for a long list of cases: one case of `part`, or each one with `SEEDS`.
pub fn share(part: usize) -> usize {
    if std::env::var_os("SEEDS").is_some() {
        1
    } else {
        part
    }
}

/// Pairs each case with each of `others`: one pair of `part`, or all pairs with `SEEDS`.
pub fn pairs<'a, A, B>(
    cases: &'a [A],
    others: &'a [B],
    part: usize,
) -> impl Iterator<Item = (&'a A, &'a B)> {
    let all = cases.iter();
    let all = all.flat_map(|case| others.iter().map(move |other| (case, other)));
    all.step_by(share(part))
}

/// Returns `0..count`, or the range in `SEEDS`.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    let Ok(seeds) = std::env::var("SEEDS") else {
        return 0..count;
    };
    let (from, to) = seeds.split_once("..").expect("SEEDS=from..to");
    from.parse().expect("a seed")..to.parse().expect("a seed")
}

/// Returns the options of a small random model.
pub fn options(seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let framework = FRAMEWORKS[seed as usize % 4];
    let (mode, outlined) = (random.one_of(&MODES), random.one_of(&OUTLINED));
    sized(framework, mode, outlined, seed, &mut random)
}

/// Returns options of small models of every framework, mode and way of outlining, `seeds` of each.
/// Some outlined ones are nested, and each framework has one that is out of memory.
pub fn every_kind(seeds: u64) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for framework in FRAMEWORKS {
        for mode in MODES {
            for outlined in OUTLINED {
                for seed in 0..seeds {
                    let seed = seed + 100 * all.len() as u64;
                    all.push(sized(framework, mode, outlined, seed, &mut Random(seed)));
                    if outlined != "none" && seed.is_multiple_of(2) {
                        all.last_mut().expect("one").push("--nested".to_string());
                    }
                }
            }
        }
        all.last_mut().expect("one").push("--overflow".to_string());
    }
    all
}

/// Returns all options, with random sizes.
fn sized(
    framework: &str,
    mode: &str,
    outlined: &str,
    seed: u64,
    random: &mut Random,
) -> Vec<String> {
    let (layers, tiles) = (1 + random.below(6), 4 + random.below(4));
    let variables = 1 + random.below(6);
    let bytes = 40_000 + 50_000 * random.below(7);
    let options = format!(
        "--framework {framework} --mode {mode} --outlined {outlined} --layers {layers} \
         --tiles {tiles} --vars-per-layer-tile {variables} --bytes-per-layer-tile {bytes} \
         --seed {seed} --page-size 1024"
    );
    options.split(' ').map(String::from).collect()
}

/// Writes the model of these options into a folder, and returns both files.
pub fn generate(folder: &Path, options: &(impl Words + ?Sized)) -> [PathBuf; 2] {
    synthesize::write(folder, options.words()).expect("both files");
    ["profile.pop", "debug.cbor"].map(|name| folder.join(name))
}
