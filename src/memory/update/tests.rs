//! Compares the memory of stages during the weight update with the rules of docs/model.md, applied
//! directly to random models.

use crate::{
    memory::tests::reference_model::{Plain, PlainVariable, STEPS, TILES, full, plain},
    memory::tests::reference_model::{memory, ranges},
    memory::{Pipeline, Recompute, Schedule, StatePlace},
    model::{Model, Pass},
};
use proptest::prelude::*;
use std::{collections::BTreeSet, ops::Range};

const REPLICAS: u64 = 3;

/// A random training model with its weight updates and the place of its optimizer state.
struct Case {
    plain: Plain,
    model: Model,
    updates: BTreeSet<u32>,
    /// One entry per variable: whether operations of the forward pass use the variable.
    is_forward: Vec<bool>,
    place: StatePlace,
}

fn lasts(plain: &Plain, v: &PlainVariable) -> bool {
    plain.live(v.class, 0) && plain.live(v.class, STEPS - 1)
}

impl Case {
    fn is_state(&self, v: &PlainVariable) -> bool {
        lasts(&self.plain, v) && self.is_of_updates(v)
    }

    fn is_of_updates(&self, v: &PlainVariable) -> bool {
        !v.users.is_empty() && v.users.is_subset(&self.updates)
    }

    /// Returns whether a variable is optimizer state that is not whole on the chip between updates.
    /// Scalars always stay whole. If state is sharded on the chip, only large tensors are sharded.
    fn is_away(&self, v: &PlainVariable) -> bool {
        let elements = v.bytes / 4;
        let is_large = elements >= 8192 && self.place.is_sharded();
        self.is_state(v) && (is_large || elements >= 2 && self.place.is_off_chip())
    }

    fn is_shared(&self, v: &PlainVariable) -> bool {
        self.is_away(v) && self.place.is_sharded() && v.bytes / 4 >= 8192
    }

    fn is_weight(&self, number: usize) -> bool {
        let v = &self.plain.variables[number];
        let is_updated = !v.users.is_disjoint(&self.updates);
        lasts(&self.plain, v) && is_updated && !self.is_state(v) && self.is_forward[number]
    }

    /// Returns the operation groups of each weight update. Groups that update one weight belong to
    /// one update, and so do groups that use the same optimizer state, unless the updates of
    /// several weights use it.
    fn joined(&self) -> Vec<BTreeSet<u32>> {
        let mut joined: Vec<BTreeSet<u32>> =
            self.updates.iter().map(|&group| [group].into()).collect();
        let large = || {
            let numbered = self.plain.variables.iter().enumerate();
            numbered.filter(|(_, v)| v.bytes >= 8)
        };
        let weights = || large().filter(|(number, _)| self.is_weight(*number));
        let of_weight =
            |groups: &&BTreeSet<u32>| weights().any(|(_, v)| !groups.is_disjoint(&v.users));
        let states = large().filter(|(_, v)| self.is_state(v));
        for (number, v) in weights().chain(states) {
            let met = joined.iter().filter(|groups| !groups.is_disjoint(&v.users));
            if !self.is_weight(number) && met.filter(of_weight).count() > 1 {
                continue;
            }
            let (met, mut rest): (Vec<_>, Vec<_>) = joined
                .into_iter()
                .partition(|own_groups| !own_groups.is_disjoint(&v.users));
            if !met.is_empty() {
                rest.push(met.into_iter().flatten().collect());
            }
            joined = rest;
        }
        joined
    }

    fn stage(&self, range: &Range<usize>, tile: u32) -> u64 {
        let plain = &self.plain;
        let counts = |v: &PlainVariable| {
            let places = plain.counting(v);
            let meets = places
                .iter()
                .any(|&place| range.contains(&(place as usize)));
            v.tile == tile && (v.users.is_empty() || meets)
        };
        let numbered = plain.variables.iter().enumerate();
        let all: Vec<_> = numbered.filter(|(_, v)| counts(v)).collect();
        let bytes = |v: &PlainVariable| u64::from(v.bytes);
        let share = |v: &PlainVariable| bytes(v).div_ceil(REPLICAS);
        let is_temporary = |v: &PlainVariable| !lasts(plain, v) && self.is_of_updates(v);
        let stays = |v: &PlainVariable| !self.is_away(v) && !is_temporary(v);
        let kept: u64 = match self.place.is_off_chip() {
            true => 0,
            false => all
                .iter()
                .filter(|(_, v)| self.is_shared(v))
                .map(|(_, v)| share(v))
                .sum(),
        };
        let live = |step: u32| -> u64 {
            let live = all
                .iter()
                .filter(|(_, v)| stays(v) && plain.live(v.class, step));
            live.map(|(_, v)| bytes(v)).sum()
        };
        let passes = (0..STEPS).map(live).max().unwrap();
        let lasting = all.iter().filter(|(_, v)| stays(v));
        let is_always = |v: &PlainVariable| plain.classes[v.class as usize].is_none();
        let lasting = lasting.filter(|(_, v)| lasts(plain, v) || is_always(v));
        let lasting: u64 = lasting.map(|(_, v)| bytes(v)).sum();
        let updates = self.joined();
        let taken = updates.iter().map(|groups| {
            let used = || all.iter().filter(|(_, v)| !v.users.is_disjoint(groups));
            let of_all = plain
                .variables
                .iter()
                .filter(|v| !v.users.is_disjoint(groups));
            let is_shared_out = of_all.into_iter().any(|v| self.is_shared(v));
            let loaded: u64 = used()
                .filter(|(_, v)| self.is_away(v) && self.place.is_off_chip())
                .map(|(_, v)| {
                    if self.is_shared(v) {
                        share(v)
                    } else {
                        bytes(v)
                    }
                })
                .sum();
            let windows = groups
                .iter()
                .filter_map(|&group| plain.groups[group as usize].window);
            let steps = windows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            let temporaries = self.temporaries(groups, steps, &all);
            let weights = || used().filter(|(number, _)| self.is_weight(*number));
            let whole: u64 = weights().map(|(_, weight)| bytes(weight)).sum();
            let shares: u64 = weights().map(|(_, weight)| share(weight)).sum();
            let made = match is_shared_out {
                false => temporaries,
                // The models of this test have accumulators of gradients, so a weight update needs
                // no further memory for gradients.
                true => (temporaries.div_ceil(REPLICAS) + shares).max(whole + shares),
            };
            loaded + loaded.max(made)
        });
        let update = lasting + taken.max().unwrap_or(0);
        kept + passes.max(update)
    }

    /// Returns the bytes of the tensors that one weight update makes. Tensors are grouped by the
    /// layers that use them: the result is the sum of the peaks of all groups.
    fn temporaries(
        &self,
        groups: &BTreeSet<u32>,
        steps: Option<(u32, u32)>,
        all: &[(usize, &PlainVariable)],
    ) -> u64 {
        let Some((first, last)) = steps else { return 0 };
        let made: Vec<_> = all
            .iter()
            .map(|(_, v)| *v)
            .filter(|v| !v.users.is_disjoint(groups) && self.is_of_updates(v))
            .filter(|v| !lasts(&self.plain, v))
            .collect();
        let places: BTreeSet<_> = made.iter().map(|v| self.plain.counting(v)).collect();
        let of_places = places.iter().map(|places| {
            let live = |step: u32| -> u64 {
                let here = made.iter().filter(|v| self.plain.counting(v) == *places);
                let here = here.filter(|v| self.plain.live(v.class, step));
                here.map(|v| u64::from(v.bytes)).sum()
            };
            (first..=last).map(live).max().unwrap_or(0)
        });
        of_places.sum()
    }
}

proptest! {
    #![proptest_config(crate::memory::testing::cases(400))]

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
        let updates = model.operations.iter().filter(|operation| operation.is_update);
        let updates: BTreeSet<u32> = updates.map(|update| update.group).collect();
        let placement = full(&model, &layering);
        let by_pass = &placement.by_pass;
        // This test's models store use sets as paths: a variable with users A, B and C adds the use
        // sets A, AB and ABC to the list. `sets` becomes the index of the last one, with all users.
        let mut sets = 0u32;
        let is_forward = plain.variables.iter().map(|v| {
            sets += v.users.len() as u32;
            !v.users.is_empty() && !by_pass.places(sets).0.is_empty()
        }).collect();
        let case = Case { plain, model, updates, is_forward, place };
        let pipeline = Pipeline {
            schedule: Schedule::Sequential,
            recompute: Recompute::None,
            state: place,
            replicas: REPLICAS,
            ..Pipeline::default()
        };
        let memory = memory(&case.model, &placement).in_pipeline(pipeline).unwrap();
        for range in ranges(memory.layers()) {
            let [stage] = <[_; 1]>::try_from(memory.stages(std::slice::from_ref(&range))).unwrap();
            for tile in 0..TILES {
                // The expected bytes (`Case::stage`) do not include the code of the stage, so its
                // code is subtracted from the computed bytes.
                let parts = &stage.tiles[tile as usize];
                let code = parts.vertex_code + parts.vertex_state + parts.exchange_code + parts.control_code;
                let found = parts.total() - code;
                prop_assert_eq!(found, case.stage(&range, tile), "{:?} {} {:?}", &range, tile, place);
            }
        }
    }
}
