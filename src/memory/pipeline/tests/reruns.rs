//! Layers that run again, against the rules applied to each variable, stage and step by
//! themselves.

use super::*;
use crate::analysis::Analysis;
use crate::memory::pipeline::flows::Life;
use crate::memory::stage::meets;
use crate::model::{EVERYWHERE, LayerOptions};
use std::path::Path;

/// The memory of a model whose layers run again.
struct Again<'a> {
    memory: &'a MemoryModel<'a>,
    /// Places that run again: all but Out, as far as it is known when they run.
    places: Vec<u32>,
}

/// Half-open.
type Steps = Range<u32>;

impl<'a> Again<'a> {
    fn new(memory: &'a MemoryModel<'a>) -> Self {
        let positions = &memory.placement.positions;
        let flows = memory.flows.as_ref().expect("a pipeline");
        let has_out = positions.out().is_some() || positions.out_is_first();
        let places = 0..flows.places - u32::from(has_out);
        let mut rules = Self {
            memory,
            places: Vec::new(),
        };
        rules.places = places.filter(|&place| rules.is_known(place)).collect();
        rules
    }

    fn flows(&self) -> &'a Flows {
        self.memory.flows.as_ref().expect("a pipeline")
    }

    fn knows(&self, place: u32) -> bool {
        self.places.contains(&place)
    }

    /// Is it known when a place runs?
    fn is_known(&self, place: u32) -> bool {
        let windows = &self.flows().windows;
        windows.forward(place).is_some() && windows.backward(place).is_some()
    }

    /// The steps of a place in the forward pass; none of one that is not there.
    fn forward(&self, place: u32) -> Steps {
        let known = self.flows().windows.forward(place);
        known.map_or(0..0, |(first, last)| first..last + 1)
    }

    fn backward(&self, place: u32) -> Steps {
        let known = self.flows().windows.backward(place);
        known.map_or(u32::MAX..u32::MAX, |(first, last)| first..last + 1)
    }

    /// The steps on which a place runs again: up to those of the next one, since some may
    /// be listed elsewhere.
    fn again(&self, place: u32) -> Steps {
        let window = self.forward(place);
        window.start..window.end.max(self.forward(place + 1).start)
    }

    /// The steps between both passes of a place, of In with the first layer.
    fn gap(&self, place: u32) -> Steps {
        let positions = &self.memory.placement.positions;
        let has_layers = !positions.layers().is_empty();
        let places = place..if place == 0 && has_layers {
            2
        } else {
            place + 1
        };
        let next = places.end;
        let places = places.filter(|&place| self.is_known(place));
        let places: Vec<u32> = places.collect();
        let ends = places.iter().map(|&place| self.forward(place).end).max();
        let starts = places.iter().map(|&place| self.backward(place).start).min();
        let from = ends.expect("one").max(self.forward(next).start);
        from..starts.expect("one").min(self.backward(next).end)
    }

    /// Is what a variable is at a step in a stage with these positions, by the rules word
    /// by word?
    fn is_live(&self, stage: &Range<usize>, (class, set): (u32, u32), step: u32) -> bool {
        let (memory, classes) = (self.memory, &self.memory.model.classes);
        let counted = memory.counted(set);
        if counted != EVERYWHERE && !meets(memory.sets.places(counted), stage) {
            return false;
        }
        let is_live = classes.is_live(class, step);
        let number = memory.uses.of_data(class, set);
        let Some(flow) = number.and_then(|number| self.flows().of(number)) else {
            return is_live;
        };
        let flow = &self.flows().list[flow as usize];
        let ranges = classes.ranges(class);
        let maker = flow.forward.first().copied().filter(|_| !flow.is_streamed);
        match flow.life {
            Life::Forward => {
                let again = |place: &&u32| Some(**place) != maker && self.places.contains(place);
                let again: Vec<u32> = flow.forward.iter().filter(again).copied().collect();
                let until = again.iter().map(|&place| self.backward(place).start).min();
                let is_kept = again.iter().any(|&place| self.has(stage, place))
                    && until.is_some_and(|until| (ranges[0].0..until).contains(&step));
                is_live || is_kept
            }
            Life::AcrossPasses if flow.is_layered(memory.placement, set) => {
                let maker = maker.filter(|maker| self.places.contains(maker));
                let users = flow.forward.iter().chain(&flow.backward);
                let mut others = users.filter(|&&user| Some(user) != maker);
                match maker {
                    Some(maker) if !others.any(|&user| self.has(stage, user)) => {
                        (is_live || self.waits(ranges, step, Some(maker.max(1))))
                            && !self.gap(maker).contains(&step)
                    }
                    _ => is_live || self.waits(ranges, step, None),
                }
            }
            _ => is_live || self.waits(ranges, step, None),
        }
    }

    /// Has a stage this place?
    fn has(&self, stage: &Range<usize>, place: u32) -> bool {
        let is_out = self.flows().out_is_first && place == self.flows().places - 1;
        stage.contains(&(if is_out { 0 } else { place as usize }))
    }

    /// Does what has these live ranges wait while a place runs again, but for one?
    fn waits(&self, ranges: &[(u32, u32)], step: u32, without: Option<u32>) -> bool {
        self.places.iter().any(|&place| {
            let before = self.backward(place).start;
            let waits = ranges
                .iter()
                .any(|&(from, to)| from < before && before < to);
            let with_in = place == 1 && self.knows(0) && self.again(0).contains(&step);
            let is_own = Some(place) == without || (place == 0 && without == Some(1));
            waits && !is_own && (with_in || self.again(place).contains(&step))
        })
    }

    /// By tile: the most that is live of a stage, with what every stage has.
    fn most(&self, stage: &Range<usize>, tile: u32) -> u64 {
        let mut live = vec![0; self.memory.model.steps() as usize];
        for variable in self.memory.uses.on_tile(tile) {
            for (step, live) in (0..).zip(&mut live) {
                let is_live = self.is_live(stage, (variable.class, variable.set), step);
                *live += u64::from(variable.bytes) * u64::from(is_live);
            }
        }
        live.into_iter().max().unwrap_or(0)
    }

    /// Holds every stage on some tiles against the rules.
    fn check(&self, every: usize) {
        let stages = ranges(self.memory.layers());
        for (stage, found) in stages.iter().zip(self.memory.stages(&stages)) {
            let code = self.memory.code_of(stage, true);
            for (tile, parts) in found.tiles.iter().enumerate().step_by(every) {
                let found = parts.variables + parts.overhead - code[tile].overhead;
                let what = (stage, tile);
                assert_eq!(found, self.most(stage, tile as u32), "{what:?}");
            }
        }
    }
}

fn layer_by_layer<'a>(model: &'a Model, placement: &'a Placement) -> MemoryModel<'a> {
    let pipeline = Pipeline {
        schedule: Schedule::Sequential,
        recompute: Recompute::Layer,
        accumulator: Accumulator::AsWeight,
        ..Pipeline::default()
    };
    memory(model, placement)
        .in_pipeline(pipeline)
        .expect("few places")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn layers_that_run_again_have_what_the_rules_say(mut case in in_passes()) {
        case.3 = case.3.or(Some(STEPS / 2));
        let (model, layering) = model(&case);
        for placement in placements(&model, &layering) {
            Again::new(&layer_by_layer(&model, &placement)).check(1);
        }
    }
}

#[test]
fn layers_of_fixtures_that_run_again_have_what_the_rules_say() {
    let mut freed = 0;
    for name in ["training-pipeline", "tied-weights", "tensorflow-cnn"] {
        let folder = Path::new("fixtures").join(name);
        let read = Analysis::read(&folder.join("profile.pop"), &folder.join("debug.cbor"));
        let model = read.expect(name).model;
        let layering = Layering::new(&model.operations, &LayerOptions::default());
        let placement = Placement::full(&model, &layering, &PlacementOptions::default());
        let placement = placement.expect("few places");
        let again = layer_by_layer(&model, &placement);
        Again::new(&again).check(7);
        // And a part is free while other layers run, where the peak is in their passes.
        let whole = std::slice::from_ref(&(0..again.layers())).to_vec();
        let [kept, free] = [memory(&model, &placement), again].map(|memory| {
            let peak = memory.stages(&whole).remove(0);
            peak.sums().variables
        });
        assert!(free <= kept, "{name}: {free} of {kept}");
        freed += kept - free;
    }
    assert!(freed > 0);
}
