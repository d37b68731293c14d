//! Adds the programs of one operation: its stages, and the tiles on which their exchanges and
//! compute sets run.

use super::model::{Model, Op, Shape};
use super::places::Places;
use super::program_builder::Builder;
use super::random::topic;
use super::recompiled;
use super::settings::{Outlined, Settings};
use super::sizes;
use super::templates::Kind;
use super::tree::{ComputeSet, Share, Stage, Type, Window};

const LARGE: u32 = 1000;

impl Builder<'_> {
    /// Adds the programs of one operation; some are in a sequence or loop of their own.
    pub(super) fn op(&mut self, parent: u32, index: usize) {
        let op = &self.model.ops[index];
        self.op = Some(index);
        let contexts = &self.contexts.ops[index];
        let about = [topic::STAGE, index as u64, 0, 1];
        let parent = match self.settings.random.below(8, about) {
            0 if op.stages > 2 => self.repeat(parent, contexts.poplibs, 4),
            1 | 2 if op.stages > 1 => self.add(parent, Type::Sequence, contexts.poplibs),
            _ => parent,
        };
        // The results of a call are copied after it.
        let results = u32::from(op.call.is_some());
        let before = op.stages.saturating_sub(results);
        let share = recompiled::share_of_temporaries(self.settings, self.model, index);
        if before > 0 && share != 1000 {
            let position = self.tree.programs[parent as usize].children.len();
            self.begun.push((index, parent, position));
        }
        for stage in 0..before {
            self.stage(parent, index, stage);
        }
        if let Some(site) = op.call {
            let row = self.tree.calls.len();
            self.tree.calls.push(self.model.calls[site].function);
            // The program of a call of PopART has the context of the operation.
            let debug_id = match op.name.is_empty() {
                true => contexts.op,
                false => contexts.poplibs,
            };
            self.add_row(parent, Type::Call, debug_id, row);
        }
        for stage in before..op.stages {
            self.stage(parent, index, stage);
        }
        self.op = None;
    }

    /// Returns the places for which a stage works: those of its operation, or of the weights on
    /// which it works.
    fn share(&self, index: usize, stage: u32) -> Share {
        let op = &self.model.ops[index];
        let Some(weights) = op.works_on.get(stage as usize) else {
            return Share::of(op.places);
        };
        let part = |&weight: &usize| {
            let places = self.model.weights[weight].places;
            (places, sizes::window(self.settings, weight))
        };
        let mut parts: Vec<(Places, Window)> = weights.iter().map(part).collect();
        let places = parts.iter().map(|part| part.0).collect();
        if is_gather(op, stage) {
            // Each IPU adds up the values of its own places.
            parts.clear();
        }
        Share { places, parts }
    }

    fn stage(&mut self, parent: u32, index: usize, stage: u32) {
        let op = &self.model.ops[index];
        let shape = shape(self.settings, op, index, stage);
        let share = self.share(index, stage);
        let places = share.places;
        let (set_context, debug_id) = self.contexts.ops[index].stages[stage as usize];
        let at = (parent, debug_id);
        let first = self.tree.programs.len();
        let exchange = (shape != Shape::Compute).then(|| {
            let what = if shape == Shape::Copy { "copy" } else { "cs" };
            let number = self.tree.stages.len();
            let name = format!("{what}{number}_{}/{stage}/ExchangePre", op.name);
            self.exchange(at, Some(index), name, share.clone())
        });
        if shape == Shape::Exchanged {
            self.add(parent, Type::WriteUndef, debug_id);
        }
        let compute_set = (shape != Shape::Copy).then(|| {
            let row = self.tree.compute_sets.len();
            let window = self.compute_window(index, stage);
            let id = self.add_row(parent, Type::OnTileExecute, debug_id, row);
            self.tree.programs[id as usize].code.1 = window;
            self.tree.compute_sets.push(ComputeSet {
                // As in real files, its context has the same name.
                name: self.contexts.name(set_context).to_string(),
                op: index,
                window,
                debug_id: set_context,
                share,
            });
            row
        });
        for program in &mut self.tree.programs[first..] {
            program.places = Some(places);
        }
        self.tree.op_stages[index].push(self.tree.stages.len());
        self.tree.stages.push(Stage {
            op: index,
            exchange,
            compute_set,
            programs: (first as u32, self.tree.programs.len() as u32 - 1),
        });
    }

    /// Returns the tiles of an exchange, and the earlier exchange whose code it can use: one in
    /// eight equals an earlier exchange.
    pub(super) fn exchange_place(&self, row: usize, op: Option<usize>) -> (Window, Option<usize>) {
        let random = self.settings.random;
        let about = |what| [topic::EXCHANGE, row as u64, what, 0];
        let is_whole = |op: usize| {
            let op = &self.model.ops[op];
            !op.works_on.is_empty() || op.call.is_some()
        };
        if op.is_none_or(is_whole) {
            return (self.everywhere(), None);
        }
        if row > 8 && random.chance(125, about(0)) {
            let other = row - 1 - random.below(row as u64 / 2, about(1)) as usize;
            let original = self.tree.exchanges[other].shares.unwrap_or(other);
            let owner = self.tree.exchanges[original].op;
            if original > 0 && !owner.is_some_and(is_whole) {
                return (self.tree.exchanges[original].window, Some(original));
            }
        }
        (self.exchange_window(random.hash(about(2))), None)
    }

    /// Returns the tiles of an exchange. The data that exchanges receive are a sixth of the
    /// variables of a large model; if fewer variables are wanted, fewer tiles take part.
    fn exchange_window(&self, hash: u64) -> Window {
        const ENOUGH: u64 = 6000;
        let window = self.part_of_the_tiles(hash);
        let is_limited = self.settings.variables.is_some() && self.settings.tiles >= LARGE;
        let share = match is_limited {
            true => self.settings.variables_per_tile().min(ENOUGH),
            false => ENOUGH,
        };
        let count = u64::from(window.count) * share / ENOUGH;
        Window {
            count: count.max(1) as u32,
            ..window
        }
    }

    /// Returns a run of tiles: some 300 of a large device, a third of a small one.
    fn part_of_the_tiles(&self, hash: u64) -> Window {
        let tiles = u64::from(self.settings.tiles);
        let count = match self.settings.tiles {
            LARGE.. => 100 + hash % 400,
            _ => 1 + tiles / 8 + hash % (tiles / 3),
        };
        let first = (hash >> 20) % (tiles - count + 1);
        Window {
            first: first as u32,
            count: count as u32,
        }
    }

    /// Returns the tiles of a compute set. The main stages run on all tiles, later stages on a part
    /// of them.
    fn compute_window(&self, index: usize, stage: u32) -> Window {
        match self.model.ops[index].works_on.get(stage as usize) {
            Some(weights) if weights.len() == 1 => {
                return sizes::window(self.settings, weights[0]);
            }
            Some(_) if is_gather(&self.model.ops[index], stage) => {
                return Window::all(1);
            }
            Some(_) => return self.everywhere(),
            None => {}
        }
        let about = [topic::STAGE, index as u64, stage.into(), 2];
        match stage {
            0 | 1 => self.everywhere(),
            _ => self.part_of_the_tiles(self.settings.random.hash(about)),
        }
    }
}

/// Returns whether a stage of a global operation adds up the results of all weights, on one tile.
fn is_gather(op: &Op, stage: u32) -> bool {
    op.shapes.get(stage as usize) == Some(&Shape::Exchanged)
}

/// Returns the shape of a stage; `index` is the number of the operation.
pub fn shape(settings: &Settings, op: &Op, index: usize, stage: u32) -> Shape {
    if let Some(&shape) = op.shapes.get(stage as usize) {
        return shape;
    }
    let about = [topic::STAGE, index as u64, stage.into(), 0];
    match (stage, op.kind, settings.random.below(100, about)) {
        (0, Kind::Elementwise | Kind::Update, _) => Shape::Compute,
        (0, ..) | (_, _, 0..32) => Shape::Exchanged,
        (_, _, 32..44) => Shape::Copy,
        _ => Shape::Compute,
    }
}

/// Gives the operations further stages, whose programs add about `missing` steps to the program.
pub fn lengthen(settings: &Settings, model: &mut Model, missing: usize) {
    let calls = match settings.outlined {
        Outlined::PerCall => model.calls.len(),
        _ => 1,
    };
    let mut steps = 0;
    while steps < missing {
        let ops = model.ops.iter_mut().enumerate();
        let real = ops.filter(|(_, op)| op.stages > 0 && op.shapes.is_empty());
        for (index, op) in real {
            let times = if op.function.is_some() { calls } else { 1 };
            for _ in 0..op.kind.stages().min(3) {
                steps += shape(settings, op, index, op.stages).programs() * times;
                op.stages += 1;
            }
            if steps >= missing {
                return;
            }
        }
    }
}
