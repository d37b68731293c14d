//! The update as a phase of its own, against the rule word by word.

use crate::memory::tests::reference_model::{Plain, PlainVariable, STEPS, TILES, full, plain};
use crate::memory::tests::reference_model::{memory, ranges};
use crate::memory::{Pipeline, Recompute, Schedule, StatePlace, Storage};
use crate::model::{Model, Pass, PassPlaces};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;

const REPLICAS: u64 = 3;

/// A model whose operations are in any pass, and what of it updates.
struct Case {
    plain: Plain,
    model: Model,
    updates: BTreeSet<u32>,
    /// By variable: do operations of the forward pass use it?
    is_forward: Vec<bool>,
    place: StatePlace,
}

/// Is it live on the first and on the last step?
fn lasts(plain: &Plain, own: &PlainVariable) -> bool {
    plain.live(own.class, 0) && plain.live(own.class, STEPS - 1)
}

impl Case {
    fn is_state(&self, own: &PlainVariable) -> bool {
        lasts(&self.plain, own) && self.is_of_updates(own)
    }

    /// Do only updates use it?
    fn is_of_updates(&self, own: &PlainVariable) -> bool {
        !own.users.is_empty() && own.users.is_subset(&self.updates)
    }

    /// Does it leave the chip, or a part of it? Scalars stay, and only large tensors are
    /// shared out.
    fn is_away(&self, own: &PlainVariable) -> bool {
        let elements = own.bytes / 4;
        let is_large = elements >= 8192 && self.place.is_sharded();
        self.is_state(own) && (is_large || elements >= 2 && self.place.is_off_chip())
    }

    fn is_shared(&self, own: &PlainVariable) -> bool {
        self.is_away(own) && self.place.is_sharded() && own.bytes / 4 >= 8192
    }

    fn is_weight(&self, number: usize) -> bool {
        let own = &self.plain.variables[number];
        let is_updated = !own.users.is_disjoint(&self.updates);
        lasts(&self.plain, own) && is_updated && !self.is_state(own) && self.is_forward[number]
    }

    /// Operations that update one weight, or use the same state, are one update.
    fn joined(&self) -> Vec<BTreeSet<u32>> {
        let mut joined: Vec<BTreeSet<u32>> = self.updates.iter().map(|&own| [own].into()).collect();
        for (number, own) in self.plain.variables.iter().enumerate() {
            let joins = own.bytes >= 8 && (self.is_state(own) || self.is_weight(number));
            if !joins {
                continue;
            }
            let (met, mut rest): (Vec<_>, Vec<_>) = joined
                .into_iter()
                .partition(|own_groups| !own_groups.is_disjoint(&own.users));
            if !met.is_empty() {
                rest.push(met.into_iter().flatten().collect());
            }
            joined = rest;
        }
        joined
    }

    fn stage(&self, range: &Range<usize>, tile: u32) -> u64 {
        let plain = &self.plain;
        let counts = |own: &PlainVariable| {
            let places = plain.counting(own);
            let meets = places
                .iter()
                .any(|&place| range.contains(&(place as usize)));
            own.tile == tile && (own.users.is_empty() || meets)
        };
        let numbered = plain.variables.iter().enumerate();
        let all: Vec<_> = numbered.filter(|(_, own)| counts(own)).collect();
        let bytes = |own: &PlainVariable| u64::from(own.bytes);
        let share = |own: &PlainVariable| bytes(own).div_ceil(REPLICAS);
        let is_temporary = |own: &PlainVariable| !lasts(plain, own) && self.is_of_updates(own);
        let stays = |own: &PlainVariable| !self.is_away(own) && !is_temporary(own);
        let kept: u64 = match self.place.is_off_chip() {
            true => 0,
            false => all
                .iter()
                .filter(|(_, own)| self.is_shared(own))
                .map(|(_, own)| share(own))
                .sum(),
        };
        let live = |step: u32| -> u64 {
            let live = all
                .iter()
                .filter(|(_, own)| stays(own) && plain.live(own.class, step));
            live.map(|(_, own)| bytes(own)).sum()
        };
        let passes = (0..STEPS).map(live).max().unwrap();
        let lasting = all.iter().filter(|(_, own)| stays(own));
        let is_always = |own: &PlainVariable| plain.classes[own.class as usize].is_none();
        let lasting = lasting.filter(|(_, own)| lasts(plain, own) || is_always(own));
        let lasting: u64 = lasting.map(|(_, own)| bytes(own)).sum();
        let updates = self.joined();
        let taken = updates.iter().map(|groups| {
            let used = || all.iter().filter(|(_, own)| !own.users.is_disjoint(groups));
            let of_all = plain
                .variables
                .iter()
                .filter(|own| !own.users.is_disjoint(groups));
            let is_shared_out = of_all.into_iter().any(|own| self.is_shared(own));
            let loaded: u64 = used()
                .filter(|(_, own)| self.is_away(own) && self.place.is_off_chip())
                .map(|(_, own)| {
                    if self.is_shared(own) {
                        share(own)
                    } else {
                        bytes(own)
                    }
                })
                .sum();
            let windows = groups
                .iter()
                .filter_map(|&own| plain.groups[own as usize].window);
            let steps = windows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            let temporaries = self.temporaries(groups, steps, &all);
            let weights = || used().filter(|(number, _)| self.is_weight(*number));
            let whole: u64 = weights().map(|(_, own)| bytes(own)).sum();
            let shares: u64 = weights().map(|(_, own)| share(own)).sum();
            let made = match is_shared_out {
                false => temporaries,
                // The profile accumulates, so that there are no further gradients.
                true => (temporaries.div_ceil(REPLICAS) + shares).max(whole + shares),
            };
            loaded + loaded.max(made)
        });
        let update = lasting + taken.max().unwrap_or(0);
        kept + passes.max(update)
    }

    /// What is made, where that is most: by places, which count one beside the other.
    fn temporaries(
        &self,
        groups: &BTreeSet<u32>,
        steps: Option<(u32, u32)>,
        all: &[(usize, &PlainVariable)],
    ) -> u64 {
        let Some((first, last)) = steps else { return 0 };
        let made: Vec<_> = all
            .iter()
            .map(|(_, own)| *own)
            .filter(|own| !own.users.is_disjoint(groups) && self.is_of_updates(own))
            .filter(|own| !lasts(&self.plain, own))
            .collect();
        let places: BTreeSet<_> = made.iter().map(|own| self.plain.counting(own)).collect();
        let of_places = places.iter().map(|places| {
            let live = |step: u32| -> u64 {
                let here = made
                    .iter()
                    .filter(|own| self.plain.counting(own) == *places);
                let here = here.filter(|own| self.plain.live(own.class, step));
                here.map(|own| u64::from(own.bytes)).sum()
            };
            (first..=last).map(live).max().unwrap_or(0)
        });
        of_places.sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn stages_take_what_the_rule_says(
        plain in plain(),
        passes in prop::collection::vec(0usize..3, 16),
        place in prop::sample::select(vec![
            StatePlace::OffChip,
            StatePlace::Sharded,
            StatePlace::ShardedOffChip,
        ]),
    ) {
        let (mut model, layering) = plain.model();
        model.backward_start = Some(STEPS / 2);
        model.recording.accumulates = true;
        let kinds = [Pass::Forward, Pass::Backward, Pass::Update];
        for (operation, &pass) in model.operations.iter_mut().zip(passes.iter().cycle()) {
            operation.pass = kinds[pass];
            operation.is_update = operation.pass == Pass::Update;
        }
        let updates = model.operations.iter().filter(|own| own.is_update);
        let updates: BTreeSet<u32> = updates.map(|own| own.group).collect();
        let placement = full(&model, &layering);
        let by_pass = PassPlaces::new(&model, &placement);
        // A set for each variable, the last of those that it is made up of.
        let mut sets = 0u32;
        let is_forward = plain.variables.iter().map(|own| {
            sets += own.users.len() as u32;
            !own.users.is_empty() && !by_pass.places(sets).0.is_empty()
        }).collect();
        let case = Case { plain, model, updates, is_forward, place };
        let pipeline = Pipeline {
            schedule: Schedule::Sequential,
            recompute: Recompute::None,
            state: place,
            accumulators: Storage::OnChip,
            replicas: REPLICAS,
            ..Pipeline::default()
        };
        let memory = memory(&case.model, &placement).in_pipeline(pipeline).unwrap();
        for range in ranges(memory.layers()) {
            let [stage] = <[_; 1]>::try_from(memory.stages(std::slice::from_ref(&range))).unwrap();
            for tile in 0..TILES {
                // Code is none of the update.
                let parts = &stage.tiles[tile as usize];
                let code = parts.vertex_code + parts.vertex_state + parts.exchange_code + parts.control_code;
                let found = parts.total() - code;
                prop_assert_eq!(found, case.stage(&range, tile), "{:?} {} {:?}", &range, tile, place);
            }
        }
    }
}
