//! Compares the steps at which variables are live in stages of a pipeline with the rules of
//! recomputation, applied to each variable, stage and step one by one.

use super::*;
use crate::{
    memory::pipeline::flows::{Life, UseInPipeline},
    memory::testing::share,
    model::{EVERYWHERE, Pass, meets},
};
use rustc_hash::FxHashMap;
use std::{cell::RefCell, rc::Rc};

/// Applies the rules of recomputation directly to each variable of one model and each liveness
/// step, to check the live bytes that [`MemoryModel`] computes faster.
struct Again<'a> {
    memory: &'a MemoryModel<'a>,
    is_again: bool,
    /// The places (In, layers) that can be recomputed in the backward pass: those whose liveness
    /// steps are known in the forward and in the backward pass. Out (the operations after the last
    /// layer) is never recomputed.
    places: Vec<u32>,
    /// The first liveness step after the forward and the backward pass.
    end: u32,
    /// One entry per use set (the operations that use a variable): whether any of these operations
    /// starts after the forward and the backward pass and computes something. Gradients with such a
    /// use set are live only until the end of the passes, when an accumulator takes them. All
    /// entries are false if the pipeline adds no accumulators.
    is_used_after: Vec<bool>,
    known: RefCell<FxHashMap<(u32, u32), OwnRanges>>,
}

type Steps = Range<u32>;

/// For each position (In, a layer or Out), the half-open live ranges in which it needs a certain
/// variable.
type OwnRanges = Rc<Vec<(u32, Vec<(u32, u32)>)>>;

impl<'a> Again<'a> {
    fn new(memory: &'a MemoryModel<'a>) -> Self {
        let positions = &memory.placement.positions;
        let flows = memory.flows.as_ref().expect("a pipeline");
        let has_out = positions.out().is_some() || positions.out_is_first();
        let places = 0..flows.places - u32::from(has_out);
        let mut rules = Self {
            memory,
            is_again: flows.recomputes_layers(),
            places: Vec::new(),
            end: u32::MAX,
            is_used_after: vec![false; memory.model.use_sets.len()],
            known: RefCell::default(),
        };
        rules.places = places.filter(|&place| rules.is_known(place)).collect();
        rules.find_used_after();
        rules
    }

    fn find_used_after(&mut self) {
        let (model, placement) = (self.memory.model, self.memory.placement);
        let placed = model.operations.iter().zip(&placement.operations);
        let in_passes = placed
            .filter(|(operation, placed)| placed.reason.is_own() && operation.pass != Pass::Update);
        let ends = in_passes.filter_map(|(operation, _)| Some(operation.window?.1 + 1));
        self.end = ends.max().unwrap_or(u32::MAX);
        let mut uses = 0..self.memory.uses.data.uses().len() as u32;
        let flows = self.flows();
        if !uses.any(|number| matches!(flows.of_use(number), UseInPipeline::Accumulated(_))) {
            return;
        }
        let starts_after = |&(first, _): &(u32, u32)| first >= self.end;
        let is_after = |group: usize| {
            let mut own = model
                .operations
                .iter()
                .filter(|own| own.group as usize == group);
            model.operation_groups[group].computes()
                && own.any(|own| own.window.filter(starts_after).is_some())
        };
        let sets = 0..model.use_sets.len() as u32;
        let is_used = |set| model.use_sets.groups(set).any(is_after);
        self.is_used_after = sets.map(is_used).collect();
    }

    fn flows(&self) -> &'a Flows {
        self.memory.flows.as_ref().expect("a pipeline")
    }

    fn knows(&self, place: u32) -> bool {
        self.places.contains(&place)
    }

    fn is_known(&self, place: u32) -> bool {
        let windows = &self.flows().windows;
        windows.at(place).forward.is_some() && windows.at(place).backward.is_some()
    }

    fn forward(&self, place: u32) -> Steps {
        let known = self.flows().windows.at(place).forward;
        known.map_or(0..0, |(first, last)| first..last + 1)
    }

    fn backward(&self, place: u32) -> Steps {
        let known = self.flows().windows.at(place).backward;
        known.map_or(u32::MAX..u32::MAX, |(first, last)| first..last + 1)
    }

    /// Returns the liveness steps of the profile that stand for the recomputation of a layer: those
    /// of its forward pass, and all further steps until the forward pass of the next layer starts,
    /// since the profile may list the layer's last steps as steps of other layers.
    fn again(&self, place: u32) -> Steps {
        let window = self.forward(place);
        window.start..window.end.max(self.forward(place + 1).start)
    }

    /// Returns the liveness steps between the forward and the backward pass of a place (In or a
    /// layer), at which its activations are not live if the place is recomputed. In (the operations
    /// before the first layer) is recomputed together with the first layer. For In, these are the
    /// steps after the forward passes and before the backward passes of both.
    fn gap(&self, place: u32) -> Steps {
        let has_layers = !self.memory.placement.positions.layers().is_empty();
        let next = place + 1 + u32::from(place == 0 && has_layers);
        let places = (place..next).filter(|&place| self.is_known(place));
        let places: Vec<u32> = places.collect();
        let ends = places.iter().map(|&place| self.forward(place).end).max();
        let starts = places.iter().map(|&place| self.backward(place).start).min();
        let from = ends.expect("one").max(self.forward(next).start);
        from..starts.expect("one").min(self.backward(next).end)
    }

    /// Returns whether a variable is live at a step in a stage of the pipeline, directly by the
    /// rules of docs/model.md.
    fn is_live(&self, stage: &Range<usize>, (class, set): (u32, u32), step: u32) -> bool {
        let (memory, classes) = (self.memory, &self.memory.model.classes);
        let counted = memory.counted(set);
        if counted != EVERYWHERE && !meets(memory.sets.places(counted), stage) {
            return false;
        }
        let number = memory.uses.data.number(class, set);
        let Some(flow) = number.and_then(|number| self.flows().of(number)) else {
            return classes.is_live(class, step);
        };
        let flow = &self.flows().list[flow as usize];
        let ranges = &self.until_summed(classes.ranges(class), set, flow)[..];
        let positions = memory.sets.places(counted);
        let own = |&position: &u32| {
            let own = self.own_ranges(position, (class, set), flow);
            (position, self.until_summed(&own, set, flow))
        };
        let mut known = self.known.borrow_mut();
        let known = known.entry((class, set));
        let all = || Rc::new(positions.iter().map(own).collect());
        let own = known.or_insert_with(all).clone();
        if own.iter().all(|(_, own)| own == ranges) {
            let has_other = self.has_other(stage, flow);
            let stage = Some(stage).filter(|_| counted != EVERYWHERE);
            let [always, more] = self.lives(flow, set, (ranges, stage), step);
            return always || more && has_other;
        }
        let given = |(position, own): &(u32, Vec<(u32, u32)>)| {
            let is_given = flow.maker() != Some(*position) && flow.forward.contains(position);
            let until = if self.is_again && is_given && self.knows(*position) {
                self.backward(*position).start
            } else {
                0
            };
            let mut kept: Vec<(u32, u32)> = Vec::new();
            for &(from, to) in own {
                match kept.last_mut() {
                    Some(last) if last.1 >= from => last.1 = last.1.max(to),
                    Some(_) => kept.push((from, to)),
                    None => kept.push((from, to.max(until))),
                }
            }
            (*position, self.lives(flow, set, (&kept, None), step))
        };
        let lives: Vec<(u32, [bool; 2])> = own.iter().map(given).collect();
        let is_always = |&(position, [always, _]): &(u32, [bool; 2])| {
            always && stage.contains(&(position as usize))
        };
        let more = lives.iter().filter(|(_, [_, more])| *more);
        let more: Vec<u32> = more.map(|(position, _)| *position).collect();
        let is_other = |&position: &u32| {
            let position = position as usize;
            self.has_other(&(position..position + 1), flow)
        };
        let is_more = if more.iter().all(is_other) {
            meets(&more, stage)
        } else {
            self.has_other(stage, flow)
        };
        lives.iter().any(is_always) || is_more
    }

    /// Returns `steps`, the half-open live ranges of a variable. If the variable is a gradient that
    /// is added to an accumulator, steps after the forward and the backward pass are left out. A
    /// variable counts as such a gradient if the backward pass makes it, and an operation after
    /// both passes computes with it.
    fn until_summed(&self, steps: &[(u32, u32)], set: u32, flow: &Flow) -> Vec<(u32, u32)> {
        let begins_before = steps.first().is_some_and(|&(from, _)| from < self.end);
        let is_summed = self.is_used_after[set as usize] && flow.life == Life::Backward;
        let end = if is_summed && begins_before {
            self.end
        } else {
            u32::MAX
        };
        let steps = steps.iter().map(|&(from, to)| (from, to.min(end)));
        steps.filter(|(from, to)| from < to).collect()
    }

    /// Returns the half-open ranges of liveness steps at which `position` (In, a layer or Out)
    /// needs a variable. These are the live ranges of the variable in the profile, with two
    /// exceptions:
    /// - A range in which only other positions use the variable is left out, if `position` uses it
    ///   in another range.
    /// - A range that spans the start of the backward pass ends with the last use by `position`, if
    ///   another position uses the variable later in the range. But if this last use is in the
    ///   forward pass, and a later position still needs the variable in this pass, the range lasts
    ///   until the pass ends.
    fn own_ranges(&self, position: u32, (class, set): (u32, u32), flow: &Flow) -> Vec<(u32, u32)> {
        let (model, placement) = (self.memory.model, self.memory.placement);
        let ends = |position: u32, (from, to): (u32, u32)| {
            let operations = model.operations.iter().zip(&placement.operations);
            let own = operations.filter(|(operation, placed)| {
                let mut users = model.use_sets.groups(set);
                let places = placement.by_pass.sets.places(placed.places).iter();
                let mut places = places.map(|&place| placement.positions.of_place(place));
                users.any(|group| group == operation.group as usize)
                    && (!placed.reason.is_own() || places.any(|at| at == position as usize))
            });
            let steps = own.filter_map(|(operation, _)| operation.window);
            let here = steps.filter(|&(first, last)| first < to && last >= from);
            here.map(|(_, last)| to.min(last + 1)).max()
        };
        let positions = self.memory.sets.places(self.memory.counted(set));
        let ranges = model.classes.ranges(class);
        if positions.len() < 2 || (ranges.len() < 2 && flow.life != Life::AcrossPasses) {
            return ranges.to_vec();
        }
        let is_used = ranges.iter().any(|&range| ends(position, range).is_some());
        let mut own = Vec::new();
        for &(from, to) in ranges {
            let all = positions.iter().filter_map(|&at| ends(at, (from, to)));
            let (last, end) = (all.max(), ends(position, (from, to)));
            let backward_start = model.backward_start.unwrap_or(0);
            let spans_passes =
                from < backward_start && backward_start < to && flow.life == Life::AcrossPasses;
            own.extend(match end {
                None if is_used && last.is_some() => None,
                Some(end) if spans_passes && Some(end) != last => {
                    let goes_on = end <= backward_start && flow.forward.last() != Some(&position);
                    Some((from, if goes_on { backward_start } else { end }))
                }
                _ => Some((from, to)),
            });
        }
        own
    }

    /// Returns two values about a variable with the live ranges `ranges`: whether it is live at
    /// `step` in every stage that has it, and whether it is live then at least in stages with a
    /// place (In, a layer or Out) that uses the variable but does not make it. Both values take the
    /// recomputation of layers into account. If the variable is live only because one place is
    /// recomputed at `step`, both are false for a `stage` without this place.
    fn lives(
        &self,
        flow: &Flow,
        set: u32,
        (ranges, stage): (&[(u32, u32)], Option<&Range<usize>>),
        step: u32,
    ) -> [bool; 2] {
        let is_live = ranges.iter().any(|&(from, to)| (from..to).contains(&step));
        let is_in = |again: &[u32]| match (again, stage) {
            ([], _) => false,
            ([place], Some(stage)) => self.has(stage, *place),
            _ => true,
        };
        let held = |is_of: &dyn Fn(u32) -> bool| {
            if is_live {
                Vec::new()
            } else {
                self.held(ranges, step, is_of)
            }
        };
        match flow.life {
            _ if !self.is_again => [is_live, false],
            Life::Forward => {
                let others = self.others(flow);
                let until = others.iter().map(|&place| self.backward(place).start).min();
                let first = ranges.first().map(|&(from, _)| from);
                let kept = first.zip(until);
                let is_kept = kept.is_some_and(|(from, until)| (from..until).contains(&step));
                [is_live, is_kept && !is_live]
            }
            Life::AcrossPasses if flow.is_layered(self.memory.placement, set) => {
                let maker = flow.maker().filter(|maker| self.knows(*maker));
                let Some(maker) = maker else {
                    return [is_live || is_in(&held(&|_| true)), false];
                };
                let is_free = self.gap(maker).contains(&step);
                let is_own = |place: u32| place.max(1) == maker.max(1);
                let (of_others, of_own) = (held(&|place| !is_own(place)), held(&is_own));
                let is_kept = is_live || is_in(&of_others);
                let is_run_again = of_others.is_empty() && is_in(&of_own);
                [is_kept && !is_free, is_kept && is_free || is_run_again]
            }
            _ => [is_live || is_in(&held(&|_| true)), false],
        }
    }

    /// Returns the places (In, layers, Out) that use the tensors of `flow` (tensors with the same
    /// users) but do not make them. If the tensors are live only in the forward pass, users that
    /// are not recomputed are left out, since they do not need the tensors a second time.
    fn others(&self, flow: &Flow) -> Vec<u32> {
        let is_forward = flow.life == Life::Forward;
        let backward = flow.backward.iter().filter(|_| !is_forward);
        let users = flow.forward.iter().chain(backward).copied();
        let users = users.filter(|&user| Some(user) != flow.maker());
        users
            .filter(|&user| !is_forward || self.knows(user))
            .collect()
    }

    fn has_other(&self, stage: &Range<usize>, flow: &Flow) -> bool {
        self.others(flow).iter().any(|&user| self.has(stage, user))
    }

    fn has(&self, stage: &Range<usize>, place: u32) -> bool {
        let is_out = self.flows().out_is_first && place == self.flows().places - 1;
        stage.contains(&(if is_out { 0 } else { place as usize }))
    }

    /// Returns the places (In or layers) that are recomputed at `step` and for which a variable
    /// with the live ranges `ranges` must be live meanwhile. It must be if it is live at the start
    /// of the place's backward pass. In (the operations before the first layer) is recomputed
    /// together with the first layer. Only places for which `is_of` returns true are considered.
    fn held(&self, ranges: &[(u32, u32)], step: u32, is_of: &dyn Fn(u32) -> bool) -> Vec<u32> {
        let mut again = Vec::new();
        for &place in self.places.iter().filter(|place| is_of(**place)) {
            let before = self.backward(place).start;
            let is_over = |&(from, to): &(u32, u32)| from < before && before < to;
            if !ranges.iter().any(is_over) {
                continue;
            }
            let with_in = (place == 1 && self.knows(0)).then_some(0);
            let run = [Some(place), with_in].into_iter().flatten();
            again.extend(run.filter(|&place| self.again(place).contains(&step)));
        }
        again.sort_unstable();
        again.dedup();
        again
    }

    /// Returns the highest live bytes of a stage on a tile at any liveness step. For each step, the
    /// bytes of all variables that are live by the rules of recomputation ([`Again::is_live`]) are
    /// summed. Variables that every stage has are included.
    fn most(&self, stage: &Range<usize>, tile: u32) -> u64 {
        let mut live = vec![0; self.memory.model.steps() as usize];
        for variable in self.memory.uses.on_tile(tile) {
            for (step, live) in (0..).zip(&mut live) {
                let is_live = self.is_live(stage, (variable.class, variable.set), step);
                *live += variable.bytes * u64::from(is_live);
            }
        }
        live.into_iter().max().unwrap_or(0)
    }

    /// Compares the memory of pipeline stages with the rules of recomputation. Of all stages every
    /// `every[0]`-th is compared, and of its tiles every `every[1]`-th.
    fn check(&self, every: [usize; 2]) {
        let stages = ranges(self.memory.layers());
        let found = stages.iter().zip(self.memory.stages(&stages));
        for (stage, found) in found.step_by(every[0]) {
            let code = self.memory.code_of(stage, true);
            for (tile, parts) in found.tiles.iter().enumerate().step_by(every[1]) {
                let found = parts.variables + parts.overhead - code[tile].overhead;
                assert_eq!(
                    found,
                    self.most(stage, tile as u32),
                    "{stage:?}, tile {tile}"
                );
            }
        }
    }
}

fn recomputing<'a>(recompute: Recompute, memory: &MemoryModel<'a>) -> MemoryModel<'a> {
    let pipeline = Pipeline {
        schedule: Schedule::Sequential,
        recompute,
        ..Pipeline::default()
    };
    memory.in_pipeline(pipeline).unwrap()
}

proptest! {
    #![proptest_config(crate::memory::testing::cases(300))]

    #[test]
    fn stages_have_what_their_operations_need(mut case in in_passes()) {
        case.3 = case.3.or(Some(STEPS / 2));
        let (model, layering) = model(&case);
        for placement in placements(&model, &layering) {
            let memory = memory(&model, &placement);
            for recompute in [Recompute::None, Recompute::Layer] {
                Again::new(&recomputing(recompute, &memory)).check([1, 1]);
            }
        }
    }
}

#[test]
fn layers_of_fixtures_that_run_again_have_what_the_rules_say() {
    let mut freed = 0;
    let fixtures = ["training-pipeline", "tied-weights", "tensorflow-cnn"];
    for name in fixtures.into_iter().step_by(share(3)) {
        let model = testing::fixture(name);
        let layering = Layering::original(&model.operations);
        let options = PlacementOptions::default();
        let placement = Placement::full(&model, &layering, &options).unwrap();
        let [kept, again] = [Recompute::None, Recompute::Layer]
            .map(|recompute| recomputing(recompute, &memory(&model, &placement)));
        Again::new(&kept).check([share(5), 29]);
        Again::new(&again).check([share(3), 29]);
        // If layers are recomputed, their activations are not live between their forward and
        // backward passes, which may lower the peak of a stage with all layers. The test requires
        // that this stage has fewer bytes of variables then, summed over all models.
        let [kept, free] = [kept, again].map(|memory| {
            let whole = 0..memory.layers();
            memory.stages(&[whole])[0].sums().variables
        });
        freed += kept as i64 - free as i64;
    }
    assert!(freed > 0);
}
