//! Chooses the steps of the program that an HTML page draws, and lists the variables that are live
//! at these steps on the fullest tiles of the model and of its pipeline stages.

use super::Inputs;
use crate::{
    memory::LiveCurves,
    model::{ProfileLookup, StepProgram, TileVariable, VariablesByPosition},
    report::{CategoryAtSteps, LayerAtSteps, LiveSteps, TileAtSteps, VariableAtSteps, thin},
};
use std::{cmp::Reverse, collections::BTreeSet};

/// Upper bound on the liveness steps that the charts of an HTML page draw.
const MAX_STEPS: usize = 400;
/// Lower bound on the steps that an HTML page draws. If the page would list too many variables, the
/// number of drawn steps is halved, but not below this bound.
const MIN_STEPS: usize = 25;
/// Upper bound on the variables that an HTML page lists by name for the model's fullest tile: the
/// largest ones at each step that the page draws. If there are more, the page draws fewer steps,
/// but at least 25. Each variable takes about 110 bytes of the page.
const MAX_LISTED: usize = 5000;
/// How many of the largest variables an HTML page lists for one drawn step on one tile.
const LARGEST_OF_STEP: usize = 20;
/// How many of the largest variables an HTML page lists for one layer on one tile.
const LARGEST_OF_LAYER: usize = 10;
/// An HTML page lists at most this many fullest tiles of stages besides the model's fullest tile.
const MAX_OTHERS: usize = 15;
/// An HTML page lists at least this many tiles besides the model's fullest tile, if the model has
/// them. If the fullest tiles of stages are fewer, the model's next fullest tiles are listed too.
const MIN_OTHERS: usize = 3;
/// Keeps an HTML page small: the page has at most this many values for the live bytes of one layer
/// on one tile at one drawn step. A tile whose values would exceed the bound has no bytes by layer,
/// but the fullest tile of the model always has them.
const MAX_SUMS: usize = 400_000;
/// Upper bound on the variables that an HTML page lists by name on all tiles together, except on
/// the model's fullest tile. Each of the other tiles may list an equal share of this number.
const MAX_LISTED_OF_OTHERS: usize = 15_000;

/// The steps of the program that the charts of an HTML page draw, at most 400, and the variables
/// that are live at these steps on the fullest tiles of the model and of its pipeline stages.
pub struct ChosenSteps<'a> {
    inputs: &'a Inputs<'a>,
    /// The live bytes of the whole model as curves over the liveness steps. Among the steps that
    /// the page draws are those where a curve begins, ends or peaks.
    curves: &'a LiveCurves,
    lists: &'a [Vec<TileVariable>],
    steps: Vec<u32>,
    /// For each listed tile, its index and the variables that the HTML page lists by name, the
    /// largest first. The model's fullest tile is the first one.
    tiles: Vec<(u32, Vec<TileVariable>)>,
}

impl<'a> ChosenSteps<'a> {
    /// Chooses the steps that an HTML page draws, and the variables that it lists by name on each
    /// of `tiles`. If the first tile, the fullest one of the model, has too many variables to list,
    /// fewer steps are drawn. `lists` has all variables of `tiles`.
    pub fn new(
        inputs: &'a Inputs<'a>,
        curves: &'a LiveCurves,
        lists: &'a [Vec<TileVariable>],
        tiles: Vec<u32>,
    ) -> Self {
        let mut chosen = Self {
            inputs,
            curves,
            lists,
            steps: Vec::new(),
            tiles: Vec::new(),
        };
        let mut max_steps = MAX_STEPS;
        loop {
            chosen.steps = chosen.steps_of_curves(max_steps);
            if max_steps <= MIN_STEPS || chosen.largest(tiles[0]).len() <= MAX_LISTED {
                break;
            }
            max_steps /= 2;
        }
        chosen.tiles = tiles
            .iter()
            .map(|&tile| (tile, chosen.largest(tile)))
            .collect();
        for (_, listed) in &mut chosen.tiles[1..] {
            listed.truncate(MAX_LISTED_OF_OTHERS / (tiles.len() - 1));
        }
        chosen
    }

    /// Returns the variables that the HTML page lists by name, first the variables of the model's
    /// fullest tile. The caller must look up their names.
    pub fn listed(&self) -> impl Iterator<Item = &TileVariable> {
        self.tiles.iter().flat_map(|(_, listed)| listed)
    }

    /// Returns the live bytes of each tile that the HTML page lists, at each step that the page
    /// draws, by variable, category and layer. `lookup` has the categories of variables and the
    /// programs of steps; `names` has the names of the variables that [`listed`](Self::listed)
    /// returns.
    pub fn live_steps(&self, lookup: &ProfileLookup, names: &VariablesByPosition) -> LiveSteps {
        let points = &self.curves.all_tiles.points;
        let operations = &self.inputs.model.operations;
        let operation = |program: Option<&StepProgram>| {
            let operation = operations.get(program?.operation? as usize)?;
            Some(operation.name.to_string())
        };
        let runs = self.steps.iter().map(|&step| lookup.program_at(step));
        let mut room = MAX_SUMS;
        let mut tiles = (self.tiles.iter().enumerate()).map(|(place, (tile, listed))| {
            let mut live = self.tile_at_steps(lookup.category_names(), *tile, listed, names);
            let sums = live.layers.len() * self.steps.len();
            if place > 0 && sums > room {
                live.layers.clear();
            }
            room = room.saturating_sub(sums);
            live
        });
        LiveSteps {
            programs: (runs.clone())
                .map(|program| program.map_or_else(String::new, |program| program.name.clone()))
                .collect(),
            operations: runs.map(operation).collect(),
            not_always_live: (self.steps.iter())
                .map(|&step| {
                    let before = points.partition_point(|&(from, _)| from <= step);
                    points[..before].last().map_or(0, |&(_, bytes)| bytes)
                })
                .collect(),
            steps: self.steps.clone(),
            fullest: tiles.next().unwrap_or_default(),
            others: tiles.collect(),
        }
    }

    /// Computes the live bytes of `tile` at each step that the HTML page draws: in total, by
    /// category, and by layer. `categories` has the names of all categories, and `listed` the
    /// variables that the page lists by name.
    fn tile_at_steps(
        &self,
        categories: &[String],
        tile: u32,
        listed: &[TileVariable],
        names: &VariablesByPosition,
    ) -> TileAtSteps {
        let inputs = self.inputs;
        let none = BytesBySteps(vec![0; self.steps.len() + 1]);
        let [mut counts, mut bytes] = [none.clone(), none.clone()];
        let mut by_category = vec![none.clone(); categories.len()];
        let mut by_layer = vec![none; inputs.placement.positions.len()];
        let mut always_live = 0;
        for variable in &self.lists[tile as usize] {
            let spans = self.spans(variable);
            counts.add(&spans, 1);
            bytes.add(&spans, variable.bytes);
            by_category[usize::from(variable.category)].add(&spans, variable.bytes);
            for &layer in inputs.memory.layers_of(variable.set) {
                by_layer[layer as usize].add(&spans, variable.bytes);
            }
            if inputs.model.classes.is_always_live(variable.class) {
                always_live += variable.bytes;
            }
        }
        let highest = |category: &CategoryAtSteps| category.bytes.iter().max().copied();
        let mut categories: Vec<_> = (categories.iter().cloned().zip(by_category))
            .map(|(name, sums)| CategoryAtSteps {
                name,
                bytes: sums.by_step(),
            })
            .filter(|category| highest(category) > Some(0))
            .collect();
        categories.sort_by_key(|category| Reverse(highest(category)));
        TileAtSteps {
            tile,
            counts: counts.by_step(),
            bytes: bytes.by_step(),
            always_live,
            categories,
            layers: (by_layer.into_iter().enumerate())
                .map(|(position, sums)| LayerAtSteps {
                    name: inputs.name(position),
                    bytes: sums.by_step(),
                })
                .collect(),
            variables: listed.iter().map(|own| self.variable(own, names)).collect(),
        }
    }

    /// Describes a variable for the HTML page: its name from `names`, and the drawn steps at which
    /// the variable is live.
    fn variable(&self, variable: &TileVariable, names: &VariablesByPosition) -> VariableAtSteps {
        VariableAtSteps {
            variable: self.inputs.live_variable(&names[&variable.position]),
            is_always_live: self.inputs.model.classes.is_always_live(variable.class),
            live: (self.spans(variable).into_iter())
                .map(|(from, to)| (self.steps[from], self.steps[to - 1]))
                .collect(),
        }
    }

    /// Returns when `variable` is live, as half-open ranges of indices into the list of steps that
    /// the HTML page draws.
    fn spans(&self, variable: &TileVariable) -> Vec<(usize, usize)> {
        spans(
            self.inputs.model.classes.ranges(variable.class),
            &self.steps,
        )
    }

    /// Returns the steps that the HTML page draws, at most `max_steps`, in ascending order. Peaks,
    /// the ends of curves, the start of the backward pass and the ends of layers are chosen first.
    /// High and low points in the curve of the fullest tile fill the remaining room.
    fn steps_of_curves(&self, max_steps: usize) -> Vec<u32> {
        let on_tile = &self.curves.on_tile;
        let stages = self.inputs.peaks.stages.iter().flatten();
        let turn = self.inputs.model.backward_start;
        let mut chosen: BTreeSet<u32> = [on_tile, &self.curves.all_tiles]
            .into_iter()
            .chain(stages.map(|stage| &stage.on_tile))
            .flat_map(|curve| [curve.peak().1, curve.window.0, curve.window.1])
            .chain(
                turn.into_iter()
                    .flat_map(|first| [first.saturating_sub(1), first]),
            )
            .collect();
        let spans = self.inputs.memory.layer_spans();
        // A deep model has more layers than an HTML page can draw steps. Half of `max_steps` is
        // kept for high and low points of the curve, so only every n-th layer has its ends drawn.
        let every = (spans.len() * 2).div_ceil(max_steps / 2).max(1);
        let drawn = spans.iter().step_by(every);
        chosen.extend(drawn.flat_map(|span| [span.from, span.to]));
        for (step, _) in thin(&on_tile.points, max_steps.saturating_sub(chosen.len())) {
            if chosen.len() < max_steps {
                chosen.insert(step);
            }
        }
        let (first, last) = on_tile.window;
        chosen.retain(|step| (first..=last).contains(step));
        chosen.into_iter().take(max_steps).collect()
    }

    /// Chooses the variables of `tile` that the HTML page lists by name, the largest first:
    /// - for each drawn step, the 20 largest variables that are not always live
    /// - the 20 largest always-live variables
    /// - for each layer, its 10 largest variables
    ///
    /// Variables that are live at no drawn step are left out.
    fn largest(&self, tile: u32) -> Vec<TileVariable> {
        let mut of_step = vec![0; self.steps.len()];
        let mut of_layer = vec![0; self.inputs.placement.positions.len()];
        let mut always = 0;
        let is_listed = |variable: &TileVariable| {
            let spans = self.spans(variable);
            if spans.is_empty() {
                return false;
            }
            let mut is_large = false;
            let mut count = |so_far: &mut usize, limit: usize| {
                is_large |= *so_far < limit;
                *so_far += 1;
            };
            if self.inputs.model.classes.is_always_live(variable.class) {
                // Always-live variables have a limit of their own. They are live at each step that
                // the HTML page draws, so they would fill the page's list of each step, and
                // variables that are live only at some steps would be left out.
                count(&mut always, LARGEST_OF_STEP);
            } else {
                spans
                    .into_iter()
                    .flat_map(|(from, to)| from..to)
                    .for_each(|step| count(&mut of_step[step], LARGEST_OF_STEP));
            }
            for &layer in self.inputs.memory.layers_of(variable.set) {
                count(&mut of_layer[layer as usize], LARGEST_OF_LAYER);
            }
            is_large
        };
        let variables = self.lists[tile as usize].iter().copied();
        variables.filter(is_listed).collect()
    }
}

/// Chooses the tiles whose variables an HTML page lists: the fullest tile of the model (`fullest`),
/// then the fullest tiles of stages (`stages`), at most 15. If these are fewer than 3 tiles besides
/// `fullest`, the next fullest tiles of the model (`all`) are added until there are 3.
pub fn listed_tiles(fullest: u32, stages: impl Iterator<Item = u32>, all: &[u32]) -> Vec<u32> {
    let mut tiles = vec![fullest];
    let all = all.iter().map(|&tile| (tile, MIN_OTHERS));
    for (tile, limit) in stages.map(|tile| (tile, MAX_OTHERS)).chain(all) {
        if tiles.len() <= limit && !tiles.contains(&tile) {
            tiles.push(tile);
        }
    }
    tiles
}

/// Converts half-open ranges of liveness steps to half-open ranges of indices into `steps`, the
/// steps that an HTML page draws. Ranges without a drawn step between them become one range, and a
/// range without drawn steps is dropped. Both inputs are ascending.
fn spans(ranges: &[(u32, u32)], steps: &[u32]) -> Vec<(usize, usize)> {
    let place = |step: u32| steps.partition_point(|&chosen| chosen < step);
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for &(from, to) in ranges {
        let (from, to) = (place(from), place(to));
        match spans.last_mut() {
            _ if from >= to => {}
            Some(last) if last.1 >= from => last.1 = to,
            _ => spans.push((from, to)),
        }
    }
    spans
}

/// Live bytes (or another number) at each step that an HTML page draws. Each entry is the
/// difference from the drawn step before, so that adding a number at a range of steps changes only
/// two entries. There is one more entry than there are drawn steps.
#[derive(Clone)]
struct BytesBySteps(Vec<u64>);

impl BytesBySteps {
    /// Adds `number`, such as live bytes, at all steps of `spans`, half-open ranges of indices into
    /// the list of steps that an HTML page draws. The stored differences may wrap around, but their
    /// running sums, the numbers of the steps, are exact.
    fn add(&mut self, spans: &[(usize, usize)], number: u64) {
        for &(from, to) in spans {
            self.0[from] = self.0[from].wrapping_add(number);
            self.0[to] = self.0[to].wrapping_sub(number);
        }
    }

    fn by_step(mut self) -> Vec<u64> {
        self.0.pop();
        self.0
            .into_iter()
            .scan(0u64, |sum, change| {
                *sum = sum.wrapping_add(change);
                Some(*sum)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_steps_become_ranges_of_chosen_steps() {
        let steps = [2, 5, 6, 9];
        assert_eq!(spans(&[(0, 2), (3, 5), (7, 9), (10, 99)], &steps), []);
        assert_eq!(spans(&[(0, 3), (6, 7)], &steps), [(0, 1), (2, 3)]);
        // A variable that is live at the steps 2, 4 and 5 gets one range of drawn steps: the step
        // 3, at which it is dead, is not drawn.
        assert_eq!(spans(&[(2, 3), (4, 6)], &steps), [(0, 2)]);
        assert_eq!(spans(&[(0, 100)], &steps), [(0, 4)]);
    }

    #[test]
    fn sums_are_by_step() {
        let mut sums = BytesBySteps(vec![0; 5]);
        sums.add(&[(0, 2), (3, 4)], 7);
        sums.add(&[(1, 4)], 10);
        assert_eq!(sums.by_step(), [7, 17, 10, 17]);
    }
}
