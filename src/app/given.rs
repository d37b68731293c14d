//! Layers and splits that were given by name or by number.

use super::{Options, usage};
use crate::model::{Positions, PseudoLayers};
use crate::report::printable;
use crate::solve::Plan;
use crate::wording::counted;
use anyhow::Result;
use std::ops::Range;

/// How many layers a message names.
const NAMES_SHOWN: usize = 20;

/// The position of a layer, or of what `In`, `Out` or `None` mean.
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

/// The name that no position has, and why there is none.
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

/// The split of `--check-splits` or `--layers-per-ipu`.
pub(super) fn given(options: &Options, positions: &Positions) -> Result<Option<Plan>> {
    let ends = match (
        &options.results.check_splits,
        &options.results.layers_per_ipu,
    ) {
        (Some(names), _) => ends_of_names(&names.0, positions)?,
        (None, Some(counts)) => {
            ends_of_counts(&counts.counts(positions.layers().len()), positions)?
        }
        (None, None) => return Ok(None),
    };
    let mut start = 0;
    let stage = |&end: &usize| -> Range<usize> { std::mem::replace(&mut start, end)..end };
    let plan = Plan::new(ends.iter().map(stage).collect(), positions.len());
    plan.map(Some).ok_or_else(|| {
        usage(
            "--check-splits: the layers are not in the order of the model; name the last layer of \
             each stage but the last, each once and in that order",
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

/// The end of each stage, from how many layers each IPU has. What runs before
/// the layers is on the first IPU and Out, where it is a place of its own, on
/// the last: a 0 there leaves it alone.
fn ends_of_counts(counts: &[usize], positions: &Positions) -> Result<Vec<usize>> {
    let layers = positions.layers().len();
    let sum = counts
        .iter()
        .fold(0usize, |sum, &count| sum.saturating_add(count));
    if sum != layers {
        return Err(usage(format!(
            "--layers-per-ipu: the counts add up to {sum}, but the model has {}; give counts that \
             add up to these",
            counted(layers, "layer")
        )));
    }
    let last = counts.len() - 1;
    if let Some(ipu) = (1..last).find(|&ipu| counts[ipu] == 0) {
        return Err(idle(
            ipu,
            "only the first IPU and the last may have 0 layers",
        ));
    }
    if last > 0 && counts[last] == 0 && positions.out().is_none() {
        return Err(empty_last(positions, last));
    }
    let mut end = 1;
    let mut ends: Vec<usize> = counts
        .iter()
        .map(|count| {
            end += count;
            end
        })
        .collect();
    ends[last] = positions.len();
    Ok(ends)
}

/// Why the last IPU cannot have 0 layers.
fn empty_last(positions: &Positions, ipu: usize) -> anyhow::Error {
    let why = if positions.out_is_first() {
        "what runs after the layers (Out) is on the first IPU"
    } else {
        "this memory model has no Out, what runs after the layers"
    };
    idle(ipu, why)
}

fn idle(ipu: usize, why: &str) -> anyhow::Error {
    usage(format!(
        "--layers-per-ipu: IPU {ipu} would have nothing to do, since {why}; leave the 0 out"
    ))
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

    /// The names of the stages, or the error.
    fn stages(counts: &[usize], positions: &Positions) -> String {
        let ends = match ends_of_counts(counts, positions) {
            Ok(ends) => ends,
            Err(error) => return error.to_string(),
        };
        let mut start = 0;
        let stage = |end| {
            let range = std::mem::replace(&mut start, end)..end;
            let names = range.map(|place| positions.name(place).to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        ends.into_iter().map(stage).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn counts_become_stages() {
        let [apart, together, classic] = orders();
        let cases: [(&[usize], [&str; 3]); 4] = [
            (
                &[2, 2],
                ["In 0 1 | 2 3 Out", "In Out 0 1 | 2 3", "None 0 1 | 2 3"],
            ),
            (
                &[0, 4],
                ["In | 0 1 2 3 Out", "In Out | 0 1 2 3", "None | 0 1 2 3"],
            ),
            (&[4], ["In 0 1 2 3 Out", "In Out 0 1 2 3", "None 0 1 2 3"]),
            (
                &[1, 3, 0],
                [
                    "In 0 | 1 2 3 | Out",
                    "--layers-per-ipu: IPU 2 would have nothing to do, since what runs after the \
                     layers (Out) is on the first IPU; leave the 0 out",
                    "--layers-per-ipu: IPU 2 would have nothing to do, since this memory model has \
                     no Out, what runs after the layers; leave the 0 out",
                ],
            ),
        ];
        for (counts, expected) in cases {
            for (positions, expected) in [&apart, &together, &classic].into_iter().zip(expected) {
                assert_eq!(stages(counts, positions), expected, "{counts:?}");
            }
        }
        assert_eq!(stages(&[0, 4, 0], &apart), "In | 0 1 2 3 | Out");
    }

    #[test]
    fn ipus_without_work_are_refused() {
        let [apart, ..] = orders();
        for (counts, part) in [
            (&[2, 0, 2][..], "IPU 1 would"),
            (&[0, 0, 4], "IPU 1 would"),
            (&[2, 2, 0, 0], "IPU 2 would"),
            (&[2, 1], "add up to 3, but the model has 4 layers"),
            (&[usize::MAX, 2], "but the model has 4"),
        ] {
            let error = stages(counts, &apart);
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
