//! Plans everything that is decided before the first row is written.

use std::cmp::Ordering;

use super::author;
use super::code::{self, Code};
use super::contexts::{self, Contexts};
use super::groups::{Group, Role};
use super::liveness::{self, Classes, Steps, Variable};
use super::model::Model;
use super::op_programs;
use super::overhead::{self, Extra, category};
use super::placed::{self, NEEDED};
use super::program_builder;
use super::random::topic;
use super::recompiled;
use super::settings::{DEFAULT_PROPORTION, Framework, Settings};
use super::tree::{Tree, Type};

/// The whole planted model. Its size is of the order of the number of programs, classes and
/// contexts, plus 4 bytes for each variable.
#[derive(Debug)]
pub struct Plan {
    pub settings: Settings,
    pub model: Model,
    pub contexts: Contexts,
    pub tree: Tree,
    /// The variables of user data, by group.
    pub groups: Vec<Group>,
    pub classes: Classes,
    pub code: Code,
    /// By group, then by tile of its window: the id of the variable.
    pub var_ids: Vec<Vec<u32>>,
    /// By tile: the id of its first variable outside the groups.
    pub first_extra: Vec<u32>,
}

pub fn build(settings: Settings) -> Plan {
    let mut model = author::build(&settings);
    let first = contexts::build(&settings, &model);
    let plain = Settings {
        proportion: DEFAULT_PROPORTION,
        ..settings.clone()
    };
    let tree = program_builder::build(&plain, &model, &first);
    let missing = settings.steps.saturating_sub(tree.steps.len());
    op_programs::lengthen(&settings, &mut model, missing);
    let contexts = contexts::build(&settings, &model);
    let tree = program_builder::build(&settings, &model, &contexts);
    let code = code::build(&settings, &model, &tree);
    let groups = plan_groups(&settings, &model, &tree, &code);
    let groups = recompiled::reorder(&settings, groups);
    let classes = liveness::build(&settings, &tree, &groups);
    let mut plan = Plan {
        var_ids: groups.iter().map(|_| Vec::new()).collect(),
        settings,
        model,
        contexts,
        tree,
        groups,
        classes,
        code,
        first_extra: Vec::new(),
    };
    plan.number();
    plan
}

/// Plans the groups of variables: enough for the requested number of variables. If that number is
/// given for each layer, the groups that the model needs are planned in any case.
fn plan_groups(settings: &Settings, model: &Model, tree: &Tree, code: &Code) -> Vec<Group> {
    let planted = |density| placed::build(settings, model, tree, density);
    let needed = planted(NEEDED);
    let count = |groups: &[Group]| -> u64 {
        let counts = groups.iter().map(|group| u64::from(group.window.count));
        counts.sum()
    };
    let have = count(&needed);
    let wanted = match settings.variables {
        Some(all) => {
            let extras = |tile| overhead::on_tile(settings, tree, code, tile).len() as u64;
            all.saturating_sub((0..settings.tiles).map(extras).sum())
        }
        None => (settings.user_variables_per_tile() * u64::from(settings.tiles)).max(have),
    };
    // Plan twice or half the density, to see how many variables a unit of density makes.
    let other = match wanted.cmp(&have) {
        Ordering::Equal => return needed,
        Ordering::Greater => 2 * NEEDED,
        Ordering::Less => NEEDED / 2,
    };
    let step = count(&planted(other)).abs_diff(have).max(1);
    let change = wanted.abs_diff(have) * other.abs_diff(NEEDED) / step;
    let less = NEEDED.saturating_sub(change).max(1);
    planted(if wanted > have { NEEDED + change } else { less })
}

impl Plan {
    fn number(&mut self) {
        let mut next = 0u32;
        for tile in 0..self.settings.tiles {
            for (group, ids) in self.groups.iter().zip(&mut self.var_ids) {
                if group.window.holds(tile) {
                    ids.push(next);
                    next += 1;
                }
            }
            self.first_extra.push(next);
            next += self.extras_on(tile).len() as u32;
        }
    }
    pub fn var_id(&self, group: usize, tile: u32) -> u64 {
        let window = self.groups[group].window;
        u64::from(self.var_ids[group][(tile - window.first) as usize])
    }

    /// Returns the bytes of a group on a tile of its window. Tiles differ: some hold far more than
    /// the average, and each layer has its largest variables on some tiles of its own.
    pub fn bytes(&self, group: usize, tile: u32) -> u64 {
        let random = self.settings.random;
        let group = &self.groups[group];
        if let Some((other, times)) = group.like {
            return times * self.bytes(other, tile);
        }
        let tile = match group.is_mirrored {
            true => self.settings.tiles - 1 - tile,
            false => tile,
        };
        if self.settings.is_even() {
            return group.bytes.div_ceil(4).max(1) * 4;
        }
        let mut per_mille = 850 + random.below(200, [topic::TILE, tile.into(), 0, 0]);
        if random.below(29, [topic::TILE, tile.into(), 1, 0]) == 0 {
            per_mille += 300;
        }
        let layer = group.layer.map_or(0, |layer| u64::from(layer) + 1);
        if random.below(7, [topic::TILE, u64::from(tile / 4), 2, layer]) == 0 {
            per_mille += 350;
        }
        let jitter = 900 + random.below(200, [topic::SIZE, group.key, tile.into(), 0]);
        (group.bytes * per_mille * jitter / 1_000_000 / 4 * 4).max(4)
    }
    pub fn variable(&self, group: usize, tile: u32) -> Variable {
        let category = match self.groups[group].role {
            Role::Weight | Role::Activation | Role::Gradient | Role::Work => category::VARIABLE,
            Role::Message => category::MESSAGE,
            Role::Rearrangement => category::REARRANGEMENT,
            Role::OutputEdge => category::OUTPUT_EDGE,
            Role::Constant => category::CONSTANT,
        };
        let class = self.classes.on_tile(&self.settings, group, tile);
        Variable::new(category, class, self.bytes(group, tile))
    }

    /// Returns the bytes of a tile that no variable explains, beside the `explained` bytes.
    pub fn gap(&self, tile: u32, explained: u64) -> u64 {
        let percent = u64::from(self.settings.features.gaps);
        let about = [topic::TILE, tile.into(), 0, 6];
        match percent {
            0 => 0,
            _ => explained * (1 + self.settings.random.below(percent, about)) / 100,
        }
    }

    pub fn steps_of(&self, op: usize) -> Option<Steps> {
        let stages = self.tree.op_stages[op].iter();
        let steps = stages.flat_map(|&stage| self.stage_steps(stage));
        steps.reduce(|all, steps| (all.0.min(steps.0), all.1.max(steps.1)))
    }

    /// Returns the steps of a program stage, once for each time that the stage is listed.
    pub fn stage_steps(&self, stage: usize) -> impl Iterator<Item = Steps> + '_ {
        let (first, last) = self.tree.stages[stage].programs;
        let firsts = self.tree.listings[first as usize].iter();
        let lasts = self.tree.listings[last as usize].iter();
        firsts.zip(lasts).map(|(&first, &last)| (first, last + 1))
    }

    /// Returns the names of variables: first of the groups, then of all other variables.
    pub fn names(&self) -> Vec<String> {
        let groups = self.groups.iter().map(|group| group.name.clone());
        groups.chain(overhead::names(&self.code)).collect()
    }

    pub fn context_of_group(&self, group: &Group, index: usize) -> u32 {
        let tensor = group.mark.and_then(|of| self.contexts.of_tensor.get(&of));
        if let Some(contexts) = tensor {
            return contexts.variable;
        }
        let operation = &self.contexts.ops[group.op];
        match operation.float_var {
            Some(var) if group.is_float => var,
            _ => operation.vars[index % operation.vars.len()],
        }
    }

    /// Returns the groups on a tile, in the order of their variable ids.
    pub fn groups_on(&self, tile: u32) -> impl Iterator<Item = usize> + '_ {
        let groups = 0..self.groups.len();
        groups.filter(move |&group| self.groups[group].window.holds(tile))
    }

    /// Returns the variables on a tile that are in no group.
    pub fn extras_on(&self, tile: u32) -> Vec<Extra> {
        overhead::on_tile(&self.settings, &self.tree, &self.code, tile)
    }

    /// Returns the id in this file of a category, given as a position in [`overhead::categories`].
    /// Files of PopTorch count categories backwards, so that no reader relies on fixed numbers.
    pub fn category_id(&self, category: usize) -> usize {
        match self.settings.framework {
            Framework::Poptorch => overhead::categories().len() - 1 - category,
            _ => category,
        }
    }

    /// Returns the id in this file of a type of program; files of TensorFlow have other ids.
    pub fn type_id(&self, kind: Type) -> u32 {
        match self.settings.framework {
            Framework::Tensorflow => 40 - kind as u32,
            _ => kind as u32,
        }
    }
}
