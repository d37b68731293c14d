//! The programs of one operation, and where its exchanges and compute sets run.

use super::model::{Op, Shape};
use super::places::Places;
use super::program_builder::Builder;
use super::random::topic;
use super::sizes;
use super::stages::shape;
use super::tree::{ComputeSet, Share, Stage, Type, Window};

/// Tiles of a large device, at least.
const LARGE: u32 = 1000;

impl Builder<'_> {
    /// The programs of one operation; some stand in a sequence or loop of
    /// their own.
    pub(super) fn op(&mut self, parent: u32, index: usize) {
        let model = self.model;
        let op = &model.ops[index];
        self.op = Some(index);
        let poplibs = self.contexts.ops[index].poplibs;
        let parent = match self
            .settings
            .random
            .below(8, [topic::STAGE, index as u64, 0, 1])
        {
            0 if op.stages > 2 => self.repeat(parent, poplibs, 4),
            1 | 2 if op.stages > 1 => self.add(parent, Type::Sequence, poplibs),
            _ => parent,
        };
        // The results of a call are copied after it.
        let results = u32::from(op.call.is_some());
        let before = op.stages.saturating_sub(results);
        for stage in 0..before {
            self.stage(parent, index, stage);
        }
        if let Some(site) = op.call {
            self.call_program(parent, index, model.calls[site].function);
        }
        for stage in before..op.stages {
            self.stage(parent, index, stage);
        }
        self.op = None;
    }

    /// The program of a call. PopART's has the context of the operation.
    fn call_program(&mut self, parent: u32, index: usize, function: usize) {
        let row = self.tree.calls.len();
        self.tree.calls.push(function);
        let contexts = &self.contexts.ops[index];
        let debug_id = if self.model.ops[index].name.is_empty() {
            contexts.op
        } else {
            contexts.poplibs
        };
        self.add_row(parent, Type::Call, debug_id, row);
    }

    /// The places of a stage: those of its operation, or of the weights that it
    /// works on.
    fn share(&self, index: usize, stage: u32) -> Share {
        let op = &self.model.ops[index];
        let Some(weights) = op.works_on.get(stage as usize) else {
            return Share {
                places: op.places,
                parts: Vec::new(),
            };
        };
        let is_gather = is_gather(op, stage);
        let part = |&weight: &usize| {
            let places = self.model.weights[weight].places;
            (places, sizes::window(self.settings, weight))
        };
        let parts: Vec<(Places, Window)> = weights.iter().map(part).collect();
        let places = parts.iter().map(|part| part.0);
        Share {
            places: places.fold(Places::NONE, |all, one| all | one),
            // Each IPU adds up its own.
            parts: if is_gather { Vec::new() } else { parts },
        }
    }

    fn stage(&mut self, parent: u32, index: usize, stage: u32) {
        let op = &self.model.ops[index];
        let shape = shape(self.settings, op, index, stage);
        let share = self.share(index, stage);
        let (set_context, debug_id) = self.contexts.ops[index].stages[stage as usize];
        let base = format!("{}/{}", op.name, stage);
        let first = self.tree.programs.len() as u32;
        let exchange = (shape != Shape::Compute).then(|| {
            let what = if shape == Shape::Copy { "copy" } else { "cs" };
            let name = format!("{what}{}_{base}/ExchangePre", self.tree.stages.len());
            self.exchange(parent, debug_id, Some(index), name, share.clone())
        });
        if shape == Shape::Exchanged {
            self.add(parent, Type::WriteUndef, debug_id);
        }
        let compute_set = (shape != Shape::Copy).then(|| {
            let set = ComputeSet {
                // As in real files, its context has the same name.
                name: self.contexts.name(set_context).to_string(),
                op: index,
                window: self.compute_window(index, stage),
                debug_id: set_context,
                share: share.clone(),
            };
            self.execute(parent, debug_id, set)
        });
        let last = self.tree.programs.len() as u32 - 1;
        self.finish_stage(Stage {
            op: index,
            exchange,
            compute_set,
            programs: (first, last),
            share,
        });
    }

    fn finish_stage(&mut self, stage: Stage) {
        for program in &mut self.tree.programs[stage.programs.0 as usize..] {
            program.places = Some(stage.share.places);
        }
        self.tree.op_stages[stage.op].push(self.tree.stages.len());
        self.tree.stages.push(stage);
    }

    fn execute(&mut self, parent: u32, debug_id: u32, set: ComputeSet) -> usize {
        let row = self.tree.compute_sets.len();
        let id = self.add_row(parent, Type::OnTileExecute, debug_id, row);
        self.tree.programs[id as usize].code.1 = set.window;
        self.tree.compute_sets.push(set);
        row
    }

    /// Tiles of an exchange, and the earlier one whose code it can use: one in
    /// eight is equal to an earlier one.
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

    /// The data that exchanges receive is a sixth of the variables of a large
    /// model: where fewer variables are wanted, fewer tiles take part.
    fn exchange_window(&self, hash: u64) -> Window {
        const ENOUGH: u64 = 6000;
        let window = self.part_of_the_tiles(hash);
        let share = match self.settings.variables {
            Some(_) if self.settings.tiles >= LARGE => {
                self.settings.variables_per_tile().min(ENOUGH)
            }
            _ => ENOUGH,
        };
        let count = u64::from(window.count) * share / ENOUGH;
        Window {
            count: count.max(1) as u32,
            ..window
        }
    }

    /// A run of tiles: some 300 of a large device, a third of a small one.
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

    /// Main stages run everywhere, later ones on a part of the tiles.
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
        match (stage, self.settings.random.hash(about)) {
            (0 | 1, _) => self.everywhere(),
            (_, hash) => self.part_of_the_tiles(hash),
        }
    }
}

/// Does a stage of a global operation add up what was made of all weights, on one tile?
fn is_gather(op: &Op, stage: u32) -> bool {
    op.shapes.get(stage as usize) == Some(&Shape::Exchanged)
}
