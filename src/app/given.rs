//! Layers and splits that the user gave, by name or by number.

use super::options::{LayersPerIpu, NumIpus};
use super::{Options, usage};
use crate::model::{Positions, PseudoLayers};
use crate::report::emit::blocks;
use crate::report::printable;
use crate::solve::Plan;
use crate::wording::counted;
use anyhow::Result;
use std::ops::Range;

/// Upper bound on layers in a message.
const NAMES_SHOWN: usize = 20;

/// Returns the position of a layer or of `In`, `Out` or `None`. `source` is the option that named
/// it.
pub(super) fn position(positions: &Positions, layer: &str, source: &str) -> Result<usize> {
    if let Some(position) = positions.find(layer) {
        return Ok(position);
    }
    let names = positions.names();
    let shown = names.iter().take(NAMES_SHOWN).map(|name| printable(name));
    let shown: Vec<String> = shown.collect();
    let more = if names.len() > NAMES_SHOWN {
        format!(" ... {}", printable(&names[names.len() - 1]))
    } else {
        String::new()
    };
    Err(usage(format!(
        "{}: there is no {}; name one of the layers {}{more}",
        printable(source),
        unknown(layer, positions.pseudo_layers()),
        shown.join(" ")
    )))
}

/// Describes a name that no position has, and explains why.
fn unknown(layer: &str, pseudo_layers: PseudoLayers) -> String {
    match (layer, pseudo_layers) {
        ("In" | "Out", PseudoLayers::NoneFirst) => format!(
            "{layer}, since all operations without a layer are one place, None, in the \
             classic memory model"
        ),
        ("None", _) => "None, since operations without a layer are in In, in Out or in \
                        the layers that they belong to; only the classic memory model has None"
            .to_string(),
        _ => format!("layer {}", printable(layer)),
    }
}

/// Returns the split of `--check-splits` or `--layers-per-ipu`, and its number of IPUs with idle
/// ones.
pub(super) fn given(options: &Options, positions: &Positions) -> Result<Option<(Plan, usize)>> {
    let (ends, ipus) = match (
        &options.results.check_splits,
        &options.results.layers_per_ipu,
    ) {
        (Some(names), _) => {
            let ends = ends_of_names(&names.0, positions)?;
            let ipus = ends.len();
            (ends, ipus)
        }
        (None, Some(counts)) => {
            let mut ends = ends_of_counts(counts, positions)?;
            let ipus = ends.len();
            check_idle(options, &ends)?;
            ends.dedup();
            (ends, ipus)
        }
        (None, None) => return Ok(None),
    };
    let mut start = 0;
    let stage = |&end: &usize| -> Range<usize> { std::mem::replace(&mut start, end)..end };
    let plan = Plan::new(ends.iter().map(stage).collect(), positions.len());
    plan.map(|plan| Some((plan, ipus))).ok_or_else(|| {
        usage(
            "--check-splits: the layers are not in the order of the model; name the last layer of \
             each stage except the final one, each once and in the order of the model",
        )
    })
}

fn ends_of_names(names: &[String], positions: &Positions) -> Result<Vec<usize>> {
    let mut ends = Vec::new();
    for name in names {
        ends.push(position(positions, name, "--check-splits")? + 1);
    }
    ends.push(positions.len());
    Ok(ends)
}

/// Returns the end position of each IPU, exclusive, from the number of layers on each IPU. The
/// counts are of all layers or of blocks, as in configurations. Operations before the layers run on
/// the first IPU; Out, if it has a position of its own, runs on the last. An idle IPU ends where
/// the IPU before it ends.
fn ends_of_counts(counts: &LayersPerIpu, positions: &Positions) -> Result<Vec<usize>> {
    let names = positions.layers();
    let blocks = blocks(names.iter().map(String::as_str));
    let given = counts
        .0
        .iter()
        .try_fold(0usize, |sum, count| sum.checked_add((*count)?));
    let starts: Vec<usize> = match given {
        Some(sum) if sum == names.len() => (0..names.len()).collect(),
        _ => blocks.iter().map(|block| block.start).collect(),
    };
    let counts = counts.counts(starts.len());
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
    let end = |count: &usize| {
        before += count;
        1 + starts.get(before).copied().unwrap_or(last)
    };
    let mut ends: Vec<usize> = counts.iter().map(end).collect();
    if let Some(end) = ends.last_mut() {
        *end = positions.len();
    }
    Ok(ends)
}

/// Returns the idle IPUs, from the end positions of all IPUs.
fn idle(ends: &[usize]) -> Vec<usize> {
    let pairs = (1..).zip(ends.windows(2));
    pairs
        .filter(|(_, ends)| ends[0] == ends[1])
        .map(|(ipu, _)| ipu)
        .collect()
}

/// Refuses idle IPUs if there are too few IPUs, or limits for each IPU: idle IPUs count as IPUs,
/// and later stages run on IPUs with higher numbers.
fn check_idle(options: &Options, ends: &[usize]) -> Result<()> {
    let memory = options.limits.mem_per_tile.as_ref();
    let (is_few, ipus) = match options.limits.num_ipus {
        Some(NumIpus::Exactly(ipus)) => (ipus < ends.len(), ipus),
        _ => (false, 0),
    };
    match idle(ends).first() {
        Some(ipu) if memory.is_some_and(|memory| memory.0.len() > 1) => Err(usage(format!(
            "--layers-per-ipu: IPU {ipu} would run nothing, which is only possible with one \
             --mem-per-tile for all IPUs; give one amount, or leave the 0 out"
        ))),
        Some(ipu) if is_few => Err(usage(format!(
            "--layers-per-ipu: there are counts for {}, but --num-ipus is {ipus}: IPU {ipu} runs \
             nothing, but still counts as an IPU; set --num-ipus to the number of counts",
            counted(ends.len(), "IPU")
        ))),
        _ => Ok(()),
    }
}

/// Says which IPUs of `--layers-per-ipu` are idle.
pub(super) fn idle_ipus(options: &Options, positions: &Positions) -> Option<String> {
    let counts = options.results.layers_per_ipu.as_ref()?;
    let idle = idle(&ends_of_counts(counts, positions).ok()?);
    let names: Vec<String> = idle.iter().map(usize::to_string).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!(
            "idle IPUs, which run nothing but still count: {names}; stages are numbered \
                 without them"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Layering;

    fn layering() -> Layering {
        let names = ["", "0", "1", "2", "3"].map(String::from);
        Layering::of(names.to_vec(), Vec::new())
    }

    fn orders() -> [Positions; 3] {
        let layering = layering();
        [
            Positions::full(&layering, false),
            Positions::full(&layering, true),
            Positions::classic(&layering),
        ]
    }

    /// Returns the names of the layers on each IPU, or the error.
    fn ipus(counts: &str, positions: &Positions) -> String {
        let counts = counts.parse().expect("counts");
        let ends = match ends_of_counts(&counts, positions) {
            Ok(ends) => ends,
            Err(error) => return error.to_string(),
        };
        let mut start = 0;
        let ipu = |end| {
            let range = std::mem::replace(&mut start, end)..end;
            let names = range.map(|place| positions.name(place).to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        ends.into_iter().map(ipu).collect::<Vec<_>>().join(" | ")
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
        assert_eq!(idle(&[3, 5, 5, 6]), [2]);
    }

    /// Configurations count blocks. Layers before and after blocks are on the first and the last
    /// IPU.
    #[test]
    fn counts_are_of_layers_or_of_blocks() {
        let names = ["", "embeddings", "0.attention", "0.output", "1", "pooler"];
        let layering = Layering::of(names.map(String::from).to_vec(), Vec::new());
        let positions = Positions::full(&layering, false);
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
    fn names_that_the_model_does_not_have() {
        let error = |positions: &Positions, name: &str| {
            position(positions, name, "--pin x=0")
                .unwrap_err()
                .to_string()
        };
        let [apart, together, classic] = orders();
        assert_eq!(position(&apart, "In", "").unwrap(), 0);
        assert_eq!(position(&apart, "Out", "").unwrap(), 5);
        assert_eq!(position(&together, "Out", "").unwrap(), 0);
        assert_eq!(position(&classic, "None", "").unwrap(), 0);
        let text = error(&classic, "Out");
        assert!(
            text.starts_with("--pin x=0: there is no Out, since "),
            "{text}"
        );
        assert!(
            text.ends_with("; name one of the layers None 0 1 2 3"),
            "{text}"
        );
        let text = error(&apart, "None");
        assert!(text.contains("there is no None, since "), "{text}");
        let text = error(&apart, "7\u{1b}");
        assert_eq!(
            text,
            "--pin x=0: there is no layer 7\\u{1b}; name one of the layers In 0 1 2 3 Out"
        );
    }
}
