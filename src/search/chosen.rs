//! Which layers of each stage are kept whole, so that the least is recomputed (docs/model.md,
//! "Recomputation").

use super::{SearchError, SearchResult};
use crate::memory::{LayerChoice, MemoryModel, PlacedStage};
use crate::model::{Placement, TooManyPlaces};
use crate::time::StageTimes;
use std::ops::Range;
use std::slice::from_ref;

/// In how many ways each stage is computed at most.
const MAX_TRIED: usize = 2_000;

/// Which layers are kept whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// By position.
    pub kept: Vec<bool>,
    /// Does no other choice that fits recompute less, in any stage?
    pub is_optimal: bool,
}

/// Chooses for the stages of what was `found`, which fits where each layer is recomputed:
/// those that recompute the least in each stage. Takes what is found of them into `found`,
/// and gives the model that has them.
///
/// A stage is computed as if all others were recomputed, where it needs no less than with
/// what is chosen for these.
pub(super) fn choose<'a>(
    memory: &MemoryModel<'a>,
    placement: &Placement,
    found: &mut SearchResult,
) -> Result<MemoryModel<'a>, SearchError> {
    let out = placement.positions.out();
    let mut others = vec![LayerChoice::Recomputed; memory.layers()];
    others
        .iter_mut()
        .skip(out.unwrap_or(usize::MAX))
        .for_each(|choice| *choice = LayerChoice::Kept);
    let mut chosen = Chosen {
        kept: vec![false; memory.layers()],
        is_optimal: true,
    };
    for (ipu, stage) in PlacedStage::of_split(&found.stages).into_iter().enumerate() {
        let units = units(found.costed.times.as_ref(), out, &stage.positions);
        let weights: Vec<u128> = units.iter().map(|unit| unit.weight).collect();
        let bytes = |states: &[LayerChoice]| {
            let choices = with(&others, &units, states);
            let peaks = memory.choosing(&choices)?.peaks(from_ref(&stage));
            Ok::<u64, TooManyPlaces>(peaks.first().copied().unwrap_or(0))
        };
        let best = best(&weights, found.costed.limit_of(ipu), bytes)?;
        chosen.is_optimal &= best.is_optimal;
        for (unit, is_kept) in units.into_iter().zip(best.kept) {
            chosen.kept[unit.positions].fill(is_kept);
        }
    }
    let choice = |(open, &is_kept): (&LayerChoice, &bool)| match is_kept {
        true => LayerChoice::Kept,
        false => *open,
    };
    let choices: Vec<LayerChoice> = others.iter().zip(&chosen.kept).map(choice).collect();
    let memory = memory.choosing(&choices)?;
    found.memory = memory.split(&found.stages);
    let times = found.costed.times.take();
    found.costed.times = times.map(|stages| stages.keeping(&chosen.kept));
    found.chosen = Some(chosen);
    Ok(memory)
}

/// What is chosen for all positions, with the states of these units.
fn with(others: &[LayerChoice], units: &[Unit], states: &[LayerChoice]) -> Vec<LayerChoice> {
    let mut choices = others.to_vec();
    for (unit, &state) in units.iter().zip(states) {
        choices[unit.positions.clone()].fill(state);
    }
    choices
}

/// Positions that are kept or recomputed together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unit {
    positions: Range<usize>,
    /// What is saved where it is kept: cycles or, without any, layers.
    weight: u128,
}

/// The units of a stage: In with the first layer, and each other layer. Out is always kept.
/// From the last one on, since what a later layer keeps is free again when earlier ones run
/// their backward pass.
fn units(times: Option<&StageTimes>, out: Option<usize>, stage: &Range<usize>) -> Vec<Unit> {
    let with_in = stage.start == 0 && stage.len() > 1 && out != Some(1);
    let first = stage.start..stage.start + if with_in { 2 } else { 1 };
    let others = (first.end..stage.end).map(|position| position..position + 1);
    let units = [first].into_iter().chain(others);
    let units = units.filter(|positions| Some(positions.start) != out);
    let units = units.map(|positions| Unit {
        weight: times.map_or(1, |times| times.forward_without_out(&positions)),
        positions,
    });
    let mut units: Vec<Unit> = units.collect();
    units.reverse();
    units
}

/// What is best for one stage, by unit.
#[derive(Debug, PartialEq, Eq)]
struct Best {
    kept: Vec<bool>,
    is_optimal: bool,
}

/// The units to keep with the highest sum of `weights` so that `bytes` are at most `limit`;
/// none where not even that fits. `bytes` of what has open units are at most those of each
/// way to close them.
fn best<E>(
    weights: &[u128],
    limit: u64,
    bytes: impl FnMut(&[LayerChoice]) -> Result<u64, E>,
) -> Result<Best, E> {
    let mut search = Branches {
        weights,
        limit,
        bytes,
        states: vec![LayerChoice::Open; weights.len()],
        best: vec![false; weights.len()],
        highest: 0,
        left: MAX_TRIED,
    };
    let is_optimal = search.go_on(0, 0)?;
    Ok(Best {
        kept: search.best,
        is_optimal,
    })
}

/// All ways to decide on the units, one after the other, without those that cannot be better
/// than the best or do not fit.
struct Branches<'a, F> {
    weights: &'a [u128],
    limit: u64,
    bytes: F,
    /// Those that are decided come first.
    states: Vec<LayerChoice>,
    best: Vec<bool>,
    highest: u128,
    left: usize,
}

impl<E, F: FnMut(&[LayerChoice]) -> Result<u64, E>> Branches<'_, F> {
    /// Goes on from the first `decided` units, of which those kept weigh `kept`. Were all
    /// ways tried that may be better?
    fn go_on(&mut self, decided: usize, kept: u128) -> Result<bool, E> {
        let rest: u128 = self.weights[decided..].iter().sum();
        if kept + rest <= self.highest {
            return Ok(true);
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(false);
        };
        self.left = left;
        if (self.bytes)(&self.states)? > self.limit {
            return Ok(true);
        }
        if decided == self.weights.len() {
            self.highest = kept;
            let states = self.states.iter();
            self.best = states.map(|&state| state == LayerChoice::Kept).collect();
            return Ok(true);
        }
        let mut is_done = true;
        for state in [LayerChoice::Kept, LayerChoice::Recomputed] {
            let more = match state {
                LayerChoice::Kept => self.weights[decided],
                LayerChoice::Recomputed | LayerChoice::Open => 0,
            };
            self.states[decided] = state;
            is_done &= self.go_on(decided + 1, kept + more)?;
        }
        self.states[decided] = LayerChoice::Open;
        Ok(is_done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use crate::memory::{Pipeline, Recompute, Schedule};
    use crate::model::{LayerOptions, PlacementOptions, Rules};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Bytes of units that need some where they are kept and others where they are
    /// recomputed, and more for some neighbours; those that are open need the least.
    fn bytes(units: &[(u64, u64, u64)], states: &[LayerChoice]) -> u64 {
        let cycles = |(&(kept, again, _), state): (&(u64, u64, u64), &LayerChoice)| match state {
            LayerChoice::Kept => kept,
            LayerChoice::Recomputed => again,
            LayerChoice::Open => kept.min(again),
        };
        let sum: u64 = units.iter().zip(states).map(cycles).sum();
        let pairs = units.iter().zip(states.windows(2));
        let both = pairs.filter(|(_, two)| *two == [LayerChoice::Recomputed, LayerChoice::Kept]);
        sum + both.map(|((_, _, both), _)| both).sum::<u64>()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn no_other_choice_is_better(
            units in vec((0u64..30, 0u64..30, 0u64..9), 0..9),
            weights in vec(0u128..20, 9),
            limit in 0u64..200,
        ) {
            let weights = &weights[..units.len()];
            let found = best(weights, limit, |states| Ok::<_, ()>(bytes(&units, states))).unwrap();
            let weight = |kept: Vec<bool>| -> u128 {
                let kept = kept.into_iter().zip(weights).filter(|(is_kept, _)| *is_kept);
                kept.map(|(_, weight)| weight).sum()
            };
            let fitting = all(units.len()).filter(|states| bytes(&units, states) <= limit);
            let kept = |states: Vec<LayerChoice>| {
                states.into_iter().map(|state| state == LayerChoice::Kept).collect()
            };
            let highest = fitting.map(|states| weight(kept(states))).max();
            prop_assert!(found.is_optimal);
            prop_assert_eq!(weight(found.kept), highest.unwrap_or(0));
        }
    }

    /// All ways to decide on so many units.
    fn all(units: usize) -> impl Iterator<Item = Vec<LayerChoice>> {
        (0..1u32 << units).map(move |set| {
            let state = |unit: usize| match set >> unit & 1 {
                1 => LayerChoice::Kept,
                _ => LayerChoice::Recomputed,
            };
            (0..units).map(state).collect()
        })
    }

    fn weight(units: &[Unit], states: &[LayerChoice]) -> u128 {
        let kept = units.iter().zip(states);
        let kept = kept.filter(|(_, state)| **state == LayerChoice::Kept);
        kept.map(|(unit, _)| unit.weight).sum()
    }

    #[test]
    fn stages_of_fixtures_have_the_best_of_all_choices() {
        let (mut checked, mut between) = (0, 0);
        for name in [
            "training-pipeline",
            "tied-weights",
            "poptorch-bert-training",
        ] {
            let folder = std::path::Path::new("fixtures").join(name);
            let read = Analysis::read(&folder.join("profile.pop"), &folder.join("debug.cbor"));
            let analysis = read.expect(name);
            let options = (LayerOptions::default(), PlacementOptions::default());
            let layers = analysis.layers(Rules::Full, &options.0, &options.1);
            let layers = layers.expect(name);
            let pipeline = Pipeline {
                schedule: Schedule::Popart,
                recompute: Recompute::Chosen,
                ..Pipeline::default()
            };
            let memory = layers
                .memory()
                .and_then(|model| Ok(model.in_pipeline(pipeline)?));
            let (memory, out) = (memory.expect(name), layers.placement.positions.out());
            for start in 0..memory.layers() {
                for end in (start + 1..=memory.layers()).filter(|end| end - start <= 4) {
                    let stage = PlacedStage {
                        positions: start..end,
                        after: Some(if end == memory.layers() { 0 } else { 2 }),
                    };
                    let units = units(None, out, &stage.positions);
                    let others = vec![LayerChoice::Recomputed; memory.layers()];
                    let bytes = |states: &[LayerChoice]| {
                        let memory = memory.choosing(&with(&others, &units, states))?;
                        Ok::<u64, TooManyPlaces>(memory.peaks(from_ref(&stage))[0])
                    };
                    let computed = all(units.len()).map(|states| (bytes(&states).unwrap(), states));
                    let computed: Vec<_> = computed.collect();
                    let weights: Vec<u128> = units.iter().map(|unit| unit.weight).collect();
                    for limit in computed.iter().flat_map(|number| [number.0, number.0 - 1]) {
                        let fitting = computed.iter().filter(|stage| stage.0 <= limit);
                        let highest = fitting.map(|(_, choices)| weight(&units, choices)).max();
                        let found = best(&weights, limit, bytes).unwrap();
                        let kept = found.kept.iter().filter(|kept| **kept).count() as u128;
                        assert!(found.is_optimal);
                        assert_eq!(kept, highest.unwrap_or(0), "{name} {stage:?} {limit}");
                        checked += 1;
                        between += usize::from(kept > 0 && kept < units.len() as u128);
                    }
                }
            }
        }
        assert!(checked > 300 && between > 30, "{checked} {between}");
    }
}
