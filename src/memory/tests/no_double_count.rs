//! Checks that the memory of a stage has no bytes twice: the size of each variable and each piece
//! of code is a separate bit, so the bytes of a stage show what is in it. A second count would
//! carry into another bit.

use super::{
    reference_model::{GROUPS, Plain, TILES, VERTEX_TYPES, full, memory, plain},
    *,
};
use crate::{
    model::{Layering, NO_LAYER},
    profile::{CodeKind, RecordedTile, TileBytes},
};

/// The number of variables in the model. The size in bytes of each variable is a different power of
/// two, so that the bits of a sum show which variables are in it.
const VARIABLES: usize = 20;
/// The recorded bytes of each kind of code that belong to no operation, as exponents of 2. All
/// variables and all code of operations have smaller powers of two as sizes, so these bytes show as
/// a bit of their own in a sum.
const UNEXPLAINED: [u32; 4] = [20, 21, 22, 23];
/// The bytes of fragmentation (recorded bytes that belong to no variable), a power of two that no
/// other size in the model has.
const REST: u64 = 1 << 24;

/// Gives each variable, and each piece of code of one kind, a different power of two as its size,
/// so that the bits of a sum show what is in it. Also gives every operation group an operation, as
/// in real models.
fn with_bits(mut plain: Plain) -> Plain {
    plain.variables.truncate(VARIABLES);
    for (bit, variable) in plain.variables.iter_mut().enumerate() {
        variable.bytes = 1 << bit;
    }
    for (bit, group) in plain.groups.iter_mut().enumerate() {
        for bytes in [&mut group.state, &mut group.exchange, &mut group.control] {
            bytes.fill(1 << bit);
        }
    }
    for (bit, code) in plain.vertex_code.iter_mut().enumerate() {
        code.fill(1 << bit);
    }
    plain
        .operations
        .extend((0..GROUPS).map(|group| (group, NO_LAYER)));
    plain
}

/// Makes a model from `plain`, in which sizes are different powers of two ([`with_bits`]). For each
/// kind of code, the compiler recorded the code of all operation groups and one more power of two,
/// which stands for code that belongs to no operation.
fn recorded(plain: &Plain) -> (Model, Layering) {
    let (mut model, layering) = plain.model();
    for kind in CodeKind::ALL {
        let bytes = |tile| code_bits(plain, 0..plain.layers, tile)[kind as usize];
        let more = 1 << UNEXPLAINED[kind as usize];
        let all = (0..TILES).map(|tile| bytes(tile) as u32 + more);
        model.recorded_code[kind as usize] = all.collect::<TileBytes>();
    }
    let rest = RecordedTile {
        total: REST,
        ..RecordedTile::default()
    };
    model.recorded.tiles = vec![rest; TILES as usize];
    (model, layering)
}

fn code_bits(plain: &Plain, layers: Range<usize>, tile: u32) -> [u64; 4] {
    let groups = plain.groups_of(layers);
    let of_groups = groups.iter().fold(0, |bits, group| bits | 1 << group);
    let instantiated = |kind: &u32| {
        let mut types = groups
            .iter()
            .map(|&group| &plain.groups[group as usize].types);
        types.any(|types| types[tile as usize].contains(kind))
    };
    let types = (0..VERTEX_TYPES).filter(instantiated);
    let types = types.fold(0, |bits, kind| bits | 1 << kind);
    [types, of_groups, of_groups, of_groups]
}

fn variable_bits(plain: &Plain, tile: u32, step: u32, test: impl Fn(usize) -> bool) -> u64 {
    let variables = plain.variables.iter().enumerate();
    let wanted = variables.filter(|(index, variable)| {
        variable.tile == tile && plain.live(variable.class, step) && test(*index)
    });
    wanted.fold(0, |bits, (index, _)| bits | 1 << index)
}

/// Cuts the layer order into stages, after each layer for which `cuts` is true.
fn stages(layers: usize, cuts: &[bool]) -> Vec<Range<usize>> {
    let cuts = (1..layers).zip(cuts).filter(|(_, is_cut)| **is_cut);
    let ends = cuts.map(|(layer, _)| layer).chain([layers]);
    let mut from = 0;
    ends.map(|to| std::mem::replace(&mut from, to)..to)
        .collect()
}

proptest! {
    #![proptest_config(crate::memory::testing::cases(500))]

    #[test]
    fn each_part_of_a_stage_holds_its_own_and_once(
        plain in plain().prop_map(with_bits),
        cuts in proptest::collection::vec(any::<bool>(), 6),
    ) {
        let (model, layering) = recorded(&plain);
        let placement = full(&model, &layering);
        let memory = memory(&model, &placement);
        let split = stages(plain.layers, &cuts);
        for (layers, stage) in split.iter().zip(memory.stages(&split)) {
            for tile in 0..TILES {
                let parts = stage.tiles[tile as usize];
                let step = stage.peak_steps[tile as usize].unwrap();
                let unused = |index: usize| plain.variables[index].users.is_empty();
                let is_counted = |index: usize| {
                    let counting = plain.counting(&plain.variables[index]);
                    counting.iter().any(|&layer| layers.contains(&(layer as usize)))
                };
                let [code, state, exchange, control] = code_bits(&plain, layers.clone(), tile);
                let unexplained: u64 = UNEXPLAINED.iter().map(|bit| 1 << bit).sum();
                let expected = Parts {
                    variables: variable_bits(&plain, tile, step, is_counted),
                    vertex_code: code,
                    vertex_state: state,
                    exchange_code: exchange,
                    control_code: control,
                    overhead: variable_bits(&plain, tile, step, unused) | unexplained,
                    gaps: REST,
                    ..Parts::default()
                };
                prop_assert_eq!(parts, expected, "{:?} tile {}", layers, tile);
                prop_assert_eq!(parts.variables & parts.overhead, 0);
            }
        }
    }

    #[test]
    fn all_layers_together_hold_everything_once(plain in plain().prop_map(with_bits)) {
        let (model, layering) = recorded(&plain);
        let placement = full(&model, &layering);
        let memory = memory(&model, &placement);
        let stage = &memory.stages(std::slice::from_ref(&(0..plain.layers)))[0];
        for tile in 0..TILES {
            let step = stage.peak_steps[tile as usize].unwrap();
            let code = model.recorded_code.iter().map(|bytes| u64::from(bytes.get(tile)));
            let variables = variable_bits(&plain, tile, step, |_| true);
            let all = variables + code.sum::<u64>() + REST;
            prop_assert_eq!(stage.tiles[tile as usize].total(), all, "tile {}", tile);
        }
    }
}
