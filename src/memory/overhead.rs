//! What every stage needs, whatever its layers.

use super::Rules;
use super::code::by_kind;
use crate::model::{CodeKind, Model};
use crate::profile::TileBytes;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Memory that no operation explains. Each IPU of a pipeline has its stack, its
/// run-time and its host exchange, so the full rules count it in every stage.
///
/// Measured: on each tile and for each kind of code, what the profile records
/// beyond what all operations together explain; the variables that no
/// operation uses, at the steps where they are live; and what the compiler
/// says the tile takes beyond always-live variables and the peak of the others
/// (36 bytes on one tile of a real profile). Assumed: that each stage of a
/// pipeline needs all of it.
#[derive(Debug, Clone)]
pub struct Overhead {
    /// By tile and [`CodeKind`]: the most that a stage can need.
    recorded: Vec<[u64; 4]>,
    /// By tile and [`CodeKind`]: what no operation explains of it.
    code: Vec<[u64; 4]>,
    /// By tile: what no lowered variable explains.
    rest: Vec<u64>,
}

impl Overhead {
    /// No overhead and no bound, as the classic rules have it.
    pub(super) fn none(model: &Model) -> Self {
        let tiles = model.target.num_tiles as usize;
        Self {
            recorded: vec![[u64::MAX; 4]; tiles],
            code: vec![[0; 4]; tiles],
            rest: vec![0; tiles],
        }
    }

    /// What the profile of `model` shows.
    pub(super) fn new(model: &Model) -> Self {
        let tiles = model.target.num_tiles as usize;
        let explained = explained(model, Rules::Full, 0..model.target.num_tiles, |_| true);
        let mut recorded = vec![[0; 4]; tiles];
        for (kind, bytes) in model.recorded_code.iter().enumerate() {
            for run in bytes.runs() {
                for tile in &mut recorded[run.from as usize..run.to as usize] {
                    tile[kind] = u64::from(run.value);
                }
            }
        }
        let beyond = |(recorded, explained): (&[u64; 4], &[u64; 4])| {
            std::array::from_fn(|kind| recorded[kind].saturating_sub(explained[kind]))
        };
        let code = recorded.iter().zip(&explained).map(beyond).collect();
        let mut rest = vec![0; tiles];
        for (rest, tile) in rest.iter_mut().zip(&model.recorded.tiles) {
            *rest = tile.beyond_variables();
        }
        Self {
            recorded,
            code,
            rest,
        }
    }

    /// Bytes on `tile` that do not change with the step.
    pub(super) fn fixed(&self, tile: usize) -> u64 {
        self.code[tile].iter().sum::<u64>() + self.rest[tile]
    }

    /// By [`CodeKind`]: code on `tile` that no operation explains.
    pub(super) fn code(&self, tile: usize) -> [u64; 4] {
        self.code[tile]
    }

    /// Bytes on `tile` that no lowered variable explains.
    pub(super) fn rest(&self, tile: usize) -> u64 {
        self.rest[tile]
    }

    /// What a stage needs of each kind of code on `tile` when its operations
    /// explain `own`: no more than the profile has, where code is shared.
    pub(super) fn capped(&self, tile: usize, own: [u64; 4]) -> [u64; 4] {
        std::array::from_fn(|kind| own[kind].min(self.recorded[tile][kind]))
    }
}

/// By tile of `tiles` and kind: the code of the bodies that `is_wanted` in one
/// stage.
pub(super) fn explained(
    model: &Model,
    rules: Rules,
    tiles: Range<u32>,
    is_wanted: impl Fn(usize) -> bool,
) -> Vec<[u64; 4]> {
    let mut explained = vec![[0; 4]; tiles.len()];
    let mut by_type: FxHashMap<u32, Vec<&TileBytes>> = FxHashMap::default();
    let bodies = model.bodies.iter().enumerate();
    for (_, body) in bodies.filter(|&(number, _)| is_wanted(number)) {
        for (kind, bytes) in by_kind(&body.code, rules) {
            for (here, value) in runs_in(bytes, &tiles) {
                for tile in &mut explained[here] {
                    tile[kind as usize] += u64::from(value);
                }
            }
        }
        for (vertex_type, bytes) in &body.code.vertex_types {
            by_type.entry(*vertex_type).or_default().push(bytes);
        }
    }
    let mut present = vec![false; tiles.len()];
    for (vertex_type, uses) in by_type {
        present.fill(false);
        for bytes in uses {
            for (here, _) in runs_in(bytes, &tiles) {
                present[here].fill(true);
            }
        }
        for (here, value) in runs_in(&model.vertex_code[vertex_type as usize], &tiles) {
            for (tile, _) in here.clone().zip(&present[here]).filter(|&(_, &is)| is) {
                explained[tile][CodeKind::VertexCode as usize] += u64::from(value);
            }
        }
    }
    explained
}

/// The runs of `bytes` that lie in `tiles`, counted from the first of these,
/// with their values.
fn runs_in<'a>(
    bytes: &'a TileBytes,
    tiles: &'a Range<u32>,
) -> impl Iterator<Item = (Range<usize>, u32)> + 'a {
    let runs = bytes.runs();
    let first = runs.partition_point(|run| run.to <= tiles.start);
    let runs = runs[first..].iter().take_while(|run| run.from < tiles.end);
    runs.map(|run| {
        let (from, to) = (run.from.max(tiles.start), run.to.min(tiles.end));
        let here = (from - tiles.start) as usize..(to - tiles.start) as usize;
        (here, run.value)
    })
}
