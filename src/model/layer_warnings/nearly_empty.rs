//! Layers with hardly any bytes.

use crate::message::Warning;
use crate::model::UsedBytes;
use crate::wording::{grouped, listed};

/// The parts of the median layer's bytes below which a layer is doubtful: those of its
/// own, and those of all that it uses. The layers of one model differ: the first and
/// the last block of a ResNet by a factor of 200 in their weights, but in the other
/// direction in their activations, and by less than 10 in both together. An operation
/// that a regex takes for a layer has some constants and padding of its own, and uses
/// an activation or two of a layer's dozens. A layer that shares all that it has with
/// others uses as much as they do.
const DOUBTFUL: UsedBytes = UsedBytes { own: 100, all: 10 };

/// So many layers have a median that says something.
const MIN_LAYERS: usize = 3;

/// Names the layers with hardly any bytes, next to the others.
pub(super) fn nearly_empty(names: &[String], bytes: &[UsedBytes]) -> Option<Warning> {
    let median = UsedBytes {
        own: median(bytes.iter().map(|layer| layer.own))?,
        all: median(bytes.iter().map(|layer| layer.all))?,
    };
    let is_doubtful = |layer: &UsedBytes| {
        layer.own.saturating_mul(DOUBTFUL.own) < median.own
            && layer.all.saturating_mul(DOUBTFUL.all) < median.all
    };
    let doubtful = names
        .iter()
        .zip(bytes)
        .filter(|(_, used)| is_doubtful(used));
    let doubtful: Vec<String> = doubtful
        .map(|(name, layer)| format!("{name} ({})", grouped(layer.own)))
        .collect();
    (bytes.len() >= MIN_LAYERS && !doubtful.is_empty()).then(|| {
        Warning::new(format!(
            "{} of {} layers have less than 1 % of the {} bytes of variables that the median \
             layer has of its own, so the regex probably matches something that is no layer: {}; \
             look at the names in --list-layers, and set --layer-name-regex to one that matches \
             layers alone",
            doubtful.len(),
            names.len(),
            grouped(median.own),
            listed(&doubtful)
        ))
    })
}

/// The lower of both in the middle.
fn median(numbers: impl Iterator<Item = u64>) -> Option<u64> {
    let mut sorted: Vec<u64> = numbers.collect();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layers that share nothing.
    fn warning(unshared: &[u64]) -> Option<String> {
        let layers = unshared.iter().map(|&own| UsedBytes { own, all: own });
        let found = nearly_empty(&names(unshared.len()), &layers.collect::<Vec<_>>());
        found.map(|warning| warning.to_string())
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| number.to_string()).collect()
    }

    #[test]
    fn layers_below_a_hundredth_of_the_median_are_named() {
        let text = warning(&[10_000, 99, 12_000, 100, 11_000]).expect("a warning");
        for part in ["1 of 5 layers", "the 10,000 bytes", ": 1 (99);"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let many: Vec<u64> = [vec![0; 10], vec![100; 11]].concat();
        let text = warning(&many).expect("a warning");
        assert!(text.contains("7 (0) and 2 more;"), "{text}");
    }

    #[test]
    fn few_or_equal_layers_are_not_doubted_nor_those_that_share_much() {
        for unshared in [
            &[][..],
            &[0],
            &[0, 1_000_000],
            &[0; 4],
            &[7; 9],
            &[1, 2, 90],
        ] {
            assert_eq!(warning(unshared), None, "{unshared:?}");
        }
        let layer = |own, all| UsedBytes { own, all };
        let of_first = |all| {
            let layers = [layer(0, all), layer(5_000, 5_000), layer(5_000, 9_000)];
            nearly_empty(&names(3), &layers)
        };
        assert_eq!(of_first(500), None);
        assert!(of_first(499).is_some());
    }
}
