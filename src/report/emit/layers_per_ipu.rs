//! `layers_per_ipu`, as the configurations of Graphcore's examples and of
//! Optimum take it: an entry for each IPU of a replica, and together the number
//! of layers. The first entry's layers are the first ones. It is 0 where the
//! first IPU has only what runs before the layers, or the last one only what
//! runs after them. `--layers-per-ipu` reads the same.

use super::lines::{COUNTS, FREE, LAST_STAGE, Lines};
use super::{EmitError, Pipeline, printable};
use crate::memory::{Recompute, StatePlace};
use crate::model::PseudoLayers;

pub(super) fn write(
    pipeline: Pipeline<'_>,
    notes: &mut Lines<'_>,
    text: &mut Lines<'_>,
) -> Result<(), EmitError> {
    let names: Vec<&str> = pipeline.layers().map(|(_, layer)| layer).collect();
    let numbers: Option<Vec<u64>> = names.iter().map(|name| number(name)).collect();
    match numbers {
        Some(numbers) => {
            ascending(&names, &numbers)?;
            let gaps = gaps(&numbers);
            if !gaps.is_empty() {
                notes.add(missing(&gaps));
            }
        }
        None => notes.add(format!(
            "The layers have no numbers. They are counted in this order: {}",
            printable(&names.join(" "))
        )),
    }
    let out = match pipeline.report.pseudo_layers {
        PseudoLayers::NoneFirst => None,
        PseudoLayers::InAndOut => Some(LAST_STAGE),
        PseudoLayers::OutWithIn => Some("0"),
    };
    if let Some(out) = out {
        notes.add(format!(
            "In (embedding and the like) belongs on IPU 0, Out (head, loss) on IPU {out}: see that \
             the model's code puts them there."
        ));
    }
    notes.add(format!("IPUs that are left over: {FREE} (see --num-ipus)."));
    text.add(format!("layers_per_ipu: [{COUNTS}]"));
    training(pipeline, text);
    Ok(())
}

/// Gradient accumulation, recomputation, and where state is. The entries are those of Optimum's
/// configurations.
fn training(pipeline: Pipeline<'_>, text: &mut Lines<'_>) {
    text.by_stages(|stages| {
        let steps = pipeline.accumulation(stages)?;
        Some(format!("gradient_accumulation_steps: {steps}"))
    });
    let Some(training) = pipeline.training() else {
        return;
    };
    let every_layer = training.recompute == Recompute::Layer;
    text.add(format!("recompute_checkpoint_every_layer: {every_layer}"));
    if training.state != StatePlace::OnChip {
        let is_off = training.state.is_off_chip();
        text.add(format!("optimizer_state_offchip: {is_off}"));
    }
    if training.state.is_sharded() {
        text.add("replicated_tensor_sharding: true");
        text.add(format!("replication_factor: {}", training.replicas));
    }
}

/// The number of a layer whose name is nothing else.
fn number(name: &str) -> Option<u64> {
    let digits = name.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| name.parse().ok()).flatten()
}

fn ascending(names: &[&str], numbers: &[u64]) -> Result<(), EmitError> {
    let pairs = names.windows(2).zip(numbers.windows(2));
    for (names, numbers) in pairs {
        if let ([before, after], [lower, higher]) = (names, numbers)
            && lower >= higher
        {
            return Err(EmitError::NotAscending {
                before: before.to_string(),
                after: after.to_string(),
            });
        }
    }
    Ok(())
}

/// The numbers that are left out, as ranges with both ends. Counting may start
/// with 0 or with 1.
fn gaps(numbers: &[u64]) -> Vec<(u64, u64)> {
    let first = numbers.first().filter(|&&first| first > 1);
    let mut gaps: Vec<(u64, u64)> = first.map(|&first| (0, first - 1)).into_iter().collect();
    for pair in numbers.windows(2) {
        if let &[lower, higher] = pair
            && higher - lower > 1
        {
            gaps.push((lower + 1, higher - 1));
        }
    }
    gaps
}

/// The maximum number of gaps that are named.
const GAPS_SHOWN: usize = 8;

fn missing(gaps: &[(u64, u64)]) -> String {
    let shown = gaps.iter().take(GAPS_SHOWN);
    let shown = shown.map(|(from, to)| {
        if from == to {
            from.to_string()
        } else {
            format!("{from} to {to}")
        }
    });
    let mut shown: Vec<String> = shown.collect();
    if gaps.len() > GAPS_SHOWN {
        shown.push("and more".into());
    }
    format!(
        "Layers that the profile does not have: {}. If the model has them, add them to the entries.",
        shown.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_left_out() {
        assert_eq!(gaps(&[]), []);
        assert_eq!(gaps(&[0, 1, 2]), []);
        assert_eq!(gaps(&[1, 2]), []);
        assert_eq!(gaps(&[2, 3, 5, 9]), [(0, 1), (4, 4), (6, 8)]);
        assert_eq!(gaps(&[0, u64::MAX]), [(1, u64::MAX - 1)]);
    }

    #[test]
    fn names_that_are_numbers() {
        assert_eq!(number("012"), Some(12));
        for name in ["", "a", "-1", "+1", "99999999999999999999"] {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
