//! Random models as plain lists, and the rules of the memory model applied to them directly, to
//! check the fast computations.

use super::*;
use crate::{
    model::{
        EVERYWHERE, GroupCode, Layering, NO_USERS, OperationGroup, Rules, UseSets, VariableGroup,
        VariableGroups, testing,
    },
    profile::{LiveClasses, TileBytes},
};
use proptest::collection::vec;
use std::{collections::BTreeSet, ops::Range};

pub(crate) const TILES: u32 = 3;
pub(crate) const STEPS: u32 = 14;
const CLASSES: u32 = 6;
pub(crate) const GROUPS: u32 = 7;
pub(crate) const VERTEX_TYPES: u32 = 3;

#[derive(Debug, Clone)]
pub(crate) struct Plain {
    /// One entry per equivalence class of variables: the half-open live ranges; `None` for a class
    /// that is always live.
    pub(crate) classes: Vec<Option<Vec<(u32, u32)>>>,
    pub(crate) groups: Vec<PlainGroup>,
    /// One entry per operation: its operation group and its layer.
    pub(crate) operations: Vec<(u32, u32)>,
    pub(crate) variables: Vec<PlainVariable>,
    pub(crate) vertex_code: Vec<Vec<u32>>,
    pub(crate) layers: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct PlainGroup {
    pub(crate) window: Option<(u32, u32)>,
    pub(crate) state: Vec<u32>,
    pub(crate) exchange: Vec<u32>,
    pub(crate) control: Vec<u32>,
    /// One entry per tile: the types of the vertices that the operation group has on the tile.
    pub(crate) types: Vec<BTreeSet<u32>>,
}

#[derive(Debug, Clone)]
pub(crate) struct PlainVariable {
    pub(crate) tile: u32,
    pub(crate) bytes: u32,
    pub(crate) class: u32,
    pub(crate) users: BTreeSet<u32>,
}

fn spans() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let span = (0..STEPS, 1..=STEPS).prop_map(|(from, len)| (from, (from + len).min(STEPS)));
    vec(span, 0..4)
}

pub(crate) fn by_tile(max: u32) -> impl Strategy<Value = Vec<u32>> {
    vec(0..max, TILES as usize)
}

fn group() -> impl Strategy<Value = PlainGroup> {
    let window = proptest::option::weighted(0.9, (0..STEPS, 0..STEPS));
    let types = vec(
        proptest::collection::btree_set(0..VERTEX_TYPES, 0..3),
        TILES as usize,
    );
    (window, by_tile(3), by_tile(3), by_tile(3), types).prop_map(
        |(window, state, exchange, control, types)| PlainGroup {
            window: window.map(|(a, b)| (a.min(b), a.max(b))),
            state,
            exchange,
            control,
            types,
        },
    )
}

fn variable() -> impl Strategy<Value = PlainVariable> {
    let users = proptest::collection::btree_set(0..GROUPS, 0..4);
    (0..TILES, 1u32..20, 0..CLASSES, users).prop_map(|(tile, bytes, class, users)| PlainVariable {
        tile,
        bytes,
        class,
        users,
    })
}

/// Generates random lists of variables. The variables of one list in five are huge: their bytes on
/// a tile may add up to more than 32 bits can hold.
fn variables() -> impl Strategy<Value = Vec<PlainVariable>> {
    let times = prop_oneof![4 => Just(1), 1 => Just(1 << 27)];
    (vec(variable(), 0..40), times).prop_map(|(mut variables, times)| {
        for variable in &mut variables {
            variable.bytes *= times;
        }
        variables
    })
}

pub(crate) fn plain() -> impl Strategy<Value = Plain> {
    (1usize..7).prop_flat_map(|layers| {
        (
            vec(proptest::option::weighted(0.8, spans()), CLASSES as usize),
            vec(group(), GROUPS as usize),
            vec((0..GROUPS, 0..layers as u32), 0..9),
            vec(0..GROUPS, layers - 1),
            variables(),
            vec(by_tile(9), VERTEX_TYPES as usize),
        )
            .prop_map(
                move |(classes, groups, mut operations, firsts, variables, vertex_code)| {
                    // In these random models, every layer has at least one operation. Only the
                    // position 0, which stands for operations without a layer, may be empty.
                    operations.extend(firsts.into_iter().zip(1..));
                    Plain {
                        classes,
                        groups,
                        operations,
                        variables,
                        vertex_code,
                        layers,
                    }
                },
            )
    })
}

impl Plain {
    pub(crate) fn model(&self) -> (Model, Layering) {
        let mut sets = UseSets::default();
        let items: Vec<(u16, VariableGroup)> = self
            .variables
            .iter()
            .map(|v| {
                let set = v
                    .users
                    .iter()
                    .fold(NO_USERS, |set, &group| sets.push(set, group));
                let (class, bytes) = (v.class, v.bytes);
                (v.tile as u16, VariableGroup { class, set, bytes })
            })
            .collect();
        let always = self.classes.iter().map(Option::is_none).collect();
        let ranges = (0u32..).zip(&self.classes).flat_map(|(class, ranges)| {
            let ranges = ranges.iter().flatten();
            ranges.map(move |&(from, to)| (class, from, to))
        });
        let operation = |&(group, _): &(u32, u32)| testing::operation(group, "", "");
        let model = Model {
            operations: self.operations.iter().map(operation).collect(),
            operation_groups: self.groups.iter().map(PlainGroup::group).collect(),
            classes: LiveClasses::new(always, ranges.collect(), STEPS),
            variables: VariableGroups::new(TILES, items.into_iter()),
            use_sets: sets,
            vertex_code: self
                .vertex_code
                .iter()
                .map(|c| c.iter().copied().collect())
                .collect(),
            ..testing::model(TILES, 0)
        };
        let names = (0..self.layers).map(|layer| layer.to_string());
        let layers = self.operations.iter().map(|&(_, layer)| layer);
        let layering = Layering::of(names.collect(), layers.collect());
        (model, layering)
    }

    pub(crate) fn groups_of(&self, layers: Range<usize>) -> BTreeSet<u32> {
        let inside = self.operations.iter();
        let inside = inside.filter(|(_, layer)| layers.contains(&(*layer as usize)));
        inside.map(|&(group, _)| group).collect()
    }

    fn window(&self, groups: &BTreeSet<u32>) -> Option<(u32, u32)> {
        let windows = groups
            .iter()
            .filter_map(|&group| self.groups[group as usize].window);
        windows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    pub(crate) fn live(&self, class: u32, step: u32) -> bool {
        match &self.classes[class as usize] {
            None => true,
            Some(ranges) => ranges.iter().any(|&(from, to)| (from..to).contains(&step)),
        }
    }

    /// Computes the memory of a stage on one tile, directly by the rules of docs/model.md, "The
    /// memory of a stage", to check the fast computation.
    pub(crate) fn stage(&self, layers: Range<usize>, tile: u32) -> (Parts, Option<u32>) {
        let all = self.groups_of(layers.clone());
        let layered = self.groups_of(layers.start.max(1)..layers.end);
        let window = if layered.is_empty() {
            self.window(&all)
        } else {
            self.window(&layered)
        };
        let on_tile = self.variables.iter().filter(|v| v.tile == tile);
        let used: Vec<_> = on_tile.filter(|v| !v.users.is_disjoint(&layered)).collect();
        let live = |step: u32| -> u64 {
            let live = used.iter().filter(|v| self.live(v.class, step));
            live.map(|v| u64::from(v.bytes)).sum()
        };
        let steps = window.map(|(first, last)| first..=last);
        let peak = steps.and_then(|steps| steps.rev().max_by_key(|&step| live(step)));
        let types: BTreeSet<u32> = all
            .iter()
            .flat_map(|&group| {
                self.groups[group as usize].types[tile as usize]
                    .iter()
                    .copied()
            })
            .collect();
        let sum = |bytes: fn(&PlainGroup) -> &Vec<u32>| -> u64 {
            let groups = all.iter().map(|&group| &self.groups[group as usize]);
            groups
                .map(|group| u64::from(bytes(group)[tile as usize]))
                .sum()
        };
        let code = |&kind: &u32| u64::from(self.vertex_code[kind as usize][tile as usize]);
        let parts = Parts {
            variables: peak.map_or(0, live),
            vertex_code: types.iter().map(code).sum(),
            vertex_state: sum(|group| &group.state),
            exchange_code: sum(|group| &group.exchange),
            control_code: sum(|group| &group.control),
            ..Parts::default()
        };
        (parts, peak)
    }

    /// Returns whether a variable flows from layer `a` to layer `b` (docs/model.md, "What layers
    /// share"): a live range of the variable begins at a step of `a` and ends at a step of `b`, and
    /// both layers use it.
    pub(crate) fn flows(&self, variable: &PlainVariable, a: usize, b: usize) -> bool {
        let (in_a, in_b) = (self.groups_of(a..a + 1), self.groups_of(b..b + 1));
        let both = !variable.users.is_disjoint(&in_a) && !variable.users.is_disjoint(&in_b);
        let (Some(from), Some(to)) = (self.window(&in_a), self.window(&in_b)) else {
            return false;
        };
        let inside = |start: u32, end: u32| {
            (from.0..=from.1).contains(&start) && to.0 < end && end <= to.1 + 1
        };
        // Live ranges that touch count as one: a range begins at a live step if the step before is
        // not live.
        let live = |step: u32| step < STEPS && self.live(variable.class, step);
        let starts = (0..STEPS).filter(|&s| live(s) && (s == 0 || !live(s - 1)));
        let end = |start: u32| (start..=STEPS).find(|&step| !live(step)).unwrap();
        both && starts.into_iter().any(|start| inside(start, end(start)))
    }
}

impl Plain {
    /// Returns all layers that use a variable: a stage with any of these layers has the variable's
    /// bytes.
    pub(crate) fn counting(&self, variable: &PlainVariable) -> BTreeSet<u32> {
        let users = self.operations.iter();
        let users = users.filter(|(group, _)| variable.users.contains(group));
        users.map(|&(_, layer)| layer).collect()
    }

    /// Computes the highest bytes of a stage on one tile at any step, directly by the rules of the
    /// full memory model, which counts all recorded memory. `recorded` has the bytes of code that
    /// the compiler recorded, and `explained` those of the code of all operations, both by kind of
    /// code. What is recorded beyond that of operations counts as overhead in every stage.
    pub(crate) fn full_stage(
        &self,
        layers: Range<usize>,
        tile: u32,
        recorded: [u64; 4],
        explained: [u64; 4],
    ) -> u64 {
        let on_tile = self.variables.iter().filter(|v| v.tile == tile);
        let counts = |v: &&PlainVariable| {
            let used = self.counting(v);
            v.users.is_empty() || used.iter().any(|&layer| layers.contains(&(layer as usize)))
        };
        let counted: Vec<_> = on_tile.filter(counts).collect();
        let live = |step: u32| -> u64 {
            let live = counted.iter().filter(|v| self.live(v.class, step));
            live.map(|v| u64::from(v.bytes)).sum()
        };
        let (classic, _) = self.stage(layers, tile);
        let explains = [
            classic.vertex_code,
            classic.vertex_state,
            classic.exchange_code,
            classic.control_code,
        ];
        let code = (0..4).map(|kind| {
            explains[kind].min(recorded[kind]) + recorded[kind].saturating_sub(explained[kind])
        });
        (0..STEPS).map(live).max().unwrap() + code.sum::<u64>()
    }
}

impl PlainGroup {
    fn group(&self) -> OperationGroup {
        let present = |kind: u32| {
            let tiles = self.types.iter();
            tiles
                .map(|types| u32::from(types.contains(&kind)))
                .collect()
        };
        OperationGroup {
            uid: 0,
            window: self.window,
            code: GroupCode {
                vertex_types: (0..VERTEX_TYPES)
                    .map(|kind| (kind, present(kind)))
                    .filter(|(_, tiles): &(u32, TileBytes)| !tiles.runs().is_empty())
                    .collect(),
                vertex_state: self.state.iter().copied().collect(),
                vertex_memory: self.state.iter().copied().collect(),
                exchange_code: self.exchange.iter().copied().collect(),
                control_code: self.control.iter().copied().collect(),
                own_control_code: self.control.iter().copied().collect(),
            },
            host_copies: Vec::new(),
            clusters: Vec::new(),
        }
    }
}

pub(crate) fn classic(model: &Model, layering: &Layering) -> Placement {
    Placement::classic(model, layering).expect("few places")
}

/// Assigns operations and variables to layers by the rules of the full memory model, with one
/// simplification for tests: operations before the first layer and after the last have one common
/// position.
pub(crate) fn full(model: &Model, layering: &Layering) -> Placement {
    let classic = classic(model, layering);
    let mut counted = classic.sharing.clone();
    counted[NO_USERS as usize] = EVERYWHERE;
    Placement {
        rules: Rules::Full,
        sharing: counted.clone(),
        counted,
        ..classic
    }
}

pub(crate) fn memory<'a>(model: &'a Model, placement: &'a Placement) -> MemoryModel<'a> {
    MemoryModel::new(model, placement).expect("little code")
}

pub(crate) fn costs(memory: &MemoryModel<'_>, limit: u64) -> RangeCosts {
    memory.range_costs(limit).expect("small tiles")
}

pub(crate) fn ranges(layers: usize) -> Vec<Range<usize>> {
    let from = 0..layers;
    from.flat_map(|from| (from + 1..=layers).map(move |to| from..to))
        .collect()
}
