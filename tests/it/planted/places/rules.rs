//! Models that are placed wrongly without some rule of placement: the rule was switched off once.
//! Most rules have tests made by hand instead, in `src/model/placement/tests`.

use super::planted::Planted;
use super::{Errors, drawn};
use crate::support::each;

/// Largest relative error by which the fullest tile of a range may be predicted too high.
const MOST_OVER: f64 = 0.40;

/// Options of the generator. Contexts of plain Poplar identify neither weights nor passes; a fused
/// optimiser has one compute set over all weights.
const MODELS: [&str; 3] = [
    "--framework popart --mode training --optimiser adam-fused --names variable --outlined once \
     --outline-backward",
    "--mode training --framework tensorflow --optimiser adam-fused --moment-width 1",
    "--framework poplar --mode training --gradient-norm --names none",
];

#[test]
fn models_that_need_a_rule_are_placed_as_planted() {
    each(&MODELS, |options| {
        let model = Errors::new(0, &Planted::with(drawn::with_options(options)));
        let ranges = model.ranges.iter();
        let over: Vec<_> = ranges.filter(|range| range.over > MOST_OVER).collect();
        let misses = model.misses();
        let is_right = misses.is_empty() && model.wrong.is_empty() && over.is_empty();
        assert!(is_right, "{misses:#?} {:#?} {over:#?}", model.wrong);
    });
}
