//! A split that the user gives, to be evaluated beside the best one.

use super::named_layers::{layer_names, position};
use crate::message::{BadValue, usage};
use crate::model::Positions;
use crate::report::emit::blocks;
use crate::search::IpuCount;
use crate::solve::Plan;
use crate::wording::counted;
use anyhow::Result;
use std::ops::Range;

/// A split that the user gives (`--splits` or `--layers-per-ipu`), to be evaluated beside the best
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgedSplit {
    /// The name of the first layer of each stage but stage 0. `Out` counts as a layer.
    FirstLayers(Vec<String>),
    /// The number of layers on each IPU, from IPU 0. IPUs with `None` share the layers that remain
    /// evenly.
    LayersPerIpu(Vec<Option<usize>>),
}

impl JudgedSplit {
    /// Reads the value of `--splits`: the first layers of all stages but stage 0, separated by
    /// commas.
    ///
    /// # Errors
    /// If a name between two commas is empty.
    pub fn first_layers(list: &str) -> Result<Self, BadValue> {
        layer_names(list).map(Self::FirstLayers)
    }

    /// Reads the value of `--layers-per-ipu`: the number of layers on each IPU, such as `3,7,7,7`
    /// or `[3 7 -1 -1]`, where -1 is an equal share of the remaining layers.
    ///
    /// # Errors
    /// If the text is not a list of numbers.
    pub fn layers_per_ipu(list: &str) -> Result<Self, BadValue> {
        let plain = list.trim().trim_start_matches('[').trim_end_matches(']');
        let words = plain
            .split(|letter: char| letter == ',' || letter.is_whitespace())
            .filter(|word| !word.is_empty());
        let count = |word: &str| match word {
            "-1" => Some(None),
            number => number.parse().ok().map(Some),
        };
        let counts: Option<Vec<Option<usize>>> = words.map(count).collect();
        counts
            .filter(|counts| !counts.is_empty())
            .map(Self::LayersPerIpu)
            .ok_or_else(|| {
                BadValue::new(format!(
                    "'{list}' is not a list of numbers; write it like 3,7,7,7 or [3 7 -1 -1]"
                ))
            })
    }

    /// Returns the names of the layers that the split names; none for
    /// [`LayersPerIpu`](Self::LayersPerIpu).
    pub(super) fn layers(&self) -> impl Iterator<Item = &str> {
        let names: &[String] = match self {
            Self::FirstLayers(names) => names,
            Self::LayersPerIpu(_) => &[],
        };
        names.iter().map(String::as_str)
    }

    /// Returns the number of IPUs, including IPUs that run nothing.
    pub(super) fn ipus(&self) -> usize {
        match self {
            Self::FirstLayers(names) => names.len() + 1,
            Self::LayersPerIpu(counts) => counts.len(),
        }
    }

    /// Returns the stages of the split.
    /// `requested` has the number of IPUs of the request, and the number of amounts in
    /// `--mem-per-tile` (0 without the option).
    ///
    /// # Errors
    /// If a name is unknown, if the layers are not in the order of the model, if counts do not add
    /// up to the layers of the model, or if an IPU would run nothing although `requested` rules
    /// that out.
    pub(super) fn plan(
        &self,
        positions: &Positions,
        requested: (Option<IpuCount>, usize),
    ) -> Result<Plan> {
        let mut stages = self.positions_by_ipu(positions)?;
        if let Self::LayersPerIpu(_) = self {
            check_idle(requested, &stages)?;
            stages.retain(|stage| !stage.is_empty());
        }
        Plan::new(stages, positions.len()).ok_or_else(|| {
            usage(
                "--splits: a stage would have no layers; name the first layer of each stage but \
                 stage 0, each once and in the order of the model",
            )
        })
    }

    /// Returns the positions of the layers of each IPU from 0 on, empty for an IPU that runs
    /// nothing. An error if a name is unknown or counts do not add up.
    fn positions_by_ipu(&self, positions: &Positions) -> Result<Vec<Range<usize>>> {
        let starts: Vec<usize> = match self {
            Self::FirstLayers(names) => names
                .iter()
                .map(|name| position(positions, name, "--splits"))
                .collect::<Result<_>>()?,
            Self::LayersPerIpu(counts) => starts_of_counts(counts, positions)?,
        };
        let ends = starts.iter().copied().chain([positions.len()]);
        Ok([0]
            .into_iter()
            .chain(starts.iter().copied())
            .zip(ends)
            .map(|(start, end)| start..end)
            .collect())
    }

    /// Returns the numbers (from 0) of the IPUs that run nothing, ascending; none if the split is
    /// invalid.
    pub(super) fn idle_ipus(&self, positions: &Positions) -> Vec<usize> {
        idle(&self.positions_by_ipu(positions).unwrap_or_default())
    }
}

/// Returns, for each IPU from 1 on, the first position of its layers; for an IPU that runs nothing,
/// the first position of the next IPU. `counts` has the number of layers on each IPU, `None` for an
/// even share. Numbers that add up to the number of layers count layers, others count blocks (layers
/// with one number in their names), as configuration files do. In runs on the first IPU; Out, if it
/// has a position of its own, runs on the last. An error if the numbers add up to neither.
fn starts_of_counts(counts: &[Option<usize>], positions: &Positions) -> Result<Vec<usize>> {
    let names = positions.layers();
    let blocks = blocks(names.iter().map(String::as_str));
    let mut all = counts.iter();
    let sum = all.try_fold(0usize, |sum, count| sum.checked_add((*count)?));
    let starts: Vec<usize> = match sum {
        Some(sum) if sum == names.len() => (0..names.len()).collect(),
        _ => blocks.iter().map(|block| block.start).collect(),
    };
    let counts = with_shares(counts, starts.len());
    let sum = counts
        .iter()
        .fold(0usize, |sum, &count| sum.saturating_add(count));
    if sum != starts.len() {
        return Err(usage(format!(
            "--layers-per-ipu: the counts add up to {sum}, but the model has {} ({}); give counts that \
             add up to either",
            counted(names.len(), "layer"),
            counted(blocks.len(), "block")
        )));
    }
    let last = blocks.last().map_or(names.len(), |block| block.end);
    let mut before = 0;
    let next = |count: &usize| {
        before += count;
        1 + starts.get(before).copied().unwrap_or(last)
    };
    let mut firsts: Vec<usize> = counts.iter().map(next).collect();
    firsts.pop();
    Ok(firsts)
}

/// Returns the number of layers on each IPU for a model of `layers` layers. `counts` has the fixed
/// numbers; IPUs with `None` share the remaining layers evenly, and if there is a remainder, the
/// first of them take one more each.
fn with_shares(counts: &[Option<usize>], layers: usize) -> Vec<usize> {
    let left = counts
        .iter()
        .flatten()
        .fold(layers, |left, &count| left.saturating_sub(count));
    let open = counts.iter().filter(|count| count.is_none()).count();
    let mut shares = (0..open).map(|place| left / open + usize::from(place < left % open));
    counts
        .iter()
        .map(|count| count.or_else(|| shares.next()).unwrap_or(0))
        .collect()
}

/// Returns the numbers (from 0) of the IPUs that run nothing. `stages` has the positions of each
/// IPU.
fn idle(stages: &[Range<usize>]) -> Vec<usize> {
    (0..stages.len())
        .filter(|ipu| stages[*ipu].is_empty())
        .collect()
}

/// Returns an error if an IPU runs nothing although it counts: if `ipus`, the requested number of
/// IPUs, is smaller than the number of `stages`, or if there are several `amounts` of memory, one for
/// each IPU. `stages` has the positions of each IPU.
fn check_idle((ipus, amounts): (Option<IpuCount>, usize), stages: &[Range<usize>]) -> Result<()> {
    let Some(ipu) = idle(stages).first().copied() else {
        return Ok(());
    };
    if amounts > 1 {
        return Err(usage(format!(
            "--layers-per-ipu: IPU {ipu} would run nothing, which is only possible with one \
             --mem-per-tile for all IPUs; give one amount, or leave the 0 out"
        )));
    }
    match ipus {
        Some(IpuCount::Exactly(ipus)) if ipus < stages.len() => Err(usage(format!(
            "--layers-per-ipu: there are counts for {}, but --num-ipus is {ipus}: IPU {ipu} runs \
             nothing, but still counts as an IPU; set --num-ipus to the number of counts",
            counted(stages.len(), "IPU")
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::orders;
    use crate::model::{Layering, PseudoLayers};

    /// Returns the names of the layers on each IPU, separated by `|`, or the text of the error.
    fn ipus(counts: &str, positions: &Positions) -> String {
        let split = JudgedSplit::layers_per_ipu(counts).expect("counts");
        let stages = match split.positions_by_ipu(positions) {
            Ok(stages) => stages,
            Err(error) => return error.to_string(),
        };
        let ipu = |range: Range<usize>| {
            let names = range.map(|place| positions.name(place).to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        stages.into_iter().map(ipu).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn counts_become_ipus() {
        let [apart, together, classic] = orders();
        let cases = [
            (
                "2,2",
                ["In 0 1 | 2 3 Out", "In Out 0 1 | 2 3", "None 0 1 | 2 3"],
            ),
            (
                "[0 4]",
                ["In | 0 1 2 3 Out", "In Out | 0 1 2 3", "None | 0 1 2 3"],
            ),
            ("4", ["In 0 1 2 3 Out", "In Out 0 1 2 3", "None 0 1 2 3"]),
            (
                "1 -1 0",
                [
                    "In 0 | 1 2 3 | Out",
                    "In Out 0 | 1 2 3 | ",
                    "None 0 | 1 2 3 | ",
                ],
            ),
            (
                "0 0 -1",
                [
                    "In |  | 0 1 2 3 Out",
                    "In Out |  | 0 1 2 3",
                    "None |  | 0 1 2 3",
                ],
            ),
        ];
        for (counts, expected) in cases {
            for (positions, expected) in [&apart, &together, &classic].into_iter().zip(expected) {
                assert_eq!(ipus(counts, positions), expected, "{counts:?}");
            }
        }
        assert_eq!(ipus("2,0,2", &apart), "In 0 1 |  | 2 3 Out");
        assert_eq!(ipus("2,2,0,0", &apart), "In 0 1 | 2 3 |  | Out");
        assert_eq!(idle(&[0..3, 3..5, 5..5, 5..6]), [2]);
    }

    /// Layers before the first block are on the first IPU, layers after the last block on the last
    /// IPU.
    #[test]
    fn counts_are_of_layers_or_of_blocks() {
        let names = ["", "embeddings", "0.attention", "0.output", "1", "pooler"];
        let layering = Layering::of(names.map(String::from).to_vec(), Vec::new());
        let positions = Positions::new(&layering, PseudoLayers::InAndOut);
        let whole = "In embeddings 0.attention 0.output | 1 pooler Out";
        assert_eq!(ipus("1,1", &positions), whole);
        assert_eq!(ipus("-1,-1", &positions), whole);
        let layers = "In embeddings 0.attention | 0.output 1 pooler Out";
        assert_eq!(ipus("2,3", &positions), layers);
        let part = "add up to 3, but the model has 5 layers (2 blocks)";
        assert!(ipus("1,2", &positions).contains(part));
    }

    #[test]
    fn counts_that_are_too_few_or_too_many() {
        let [apart, ..] = orders();
        for (counts, part) in [
            ("2,1", "add up to 3, but the model has 4 layers"),
            ("18446744073709551615,2", "but the model has 4"),
        ] {
            let error = ipus(counts, &apart);
            assert!(error.contains(part), "{counts:?}: {error}");
        }
    }

    #[test]
    fn shares_are_as_even_as_possible() {
        let counts = |list: &str| match JudgedSplit::layers_per_ipu(list) {
            Ok(JudgedSplit::LayersPerIpu(counts)) => Some(with_shares(&counts, 12)),
            _ => None,
        };
        assert_eq!(counts("[3, 7, 0]"), Some(vec![3, 7, 0]));
        assert_eq!(counts("[0 4 -1 -1]"), Some(vec![0, 4, 4, 4]));
        assert_eq!(counts("-1,-1,-1,-1,-1"), Some(vec![3, 3, 2, 2, 2]));
        assert_eq!(counts("13 -1"), Some(vec![13, 0]));
        assert_eq!((counts("3,x"), counts("")), (None, None));
    }
}
