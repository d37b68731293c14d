//! The bytes of code and vertex state, by the layers that need them (docs/model.md, "Code").

use super::entering::GrowingSums;
use super::steps::each_stretch;
use super::{MemoryModel, Rules};
use crate::model::{GroupCode, Model, NOWHERE, PlaceSet, PlaceSets, Placement, TooManyPlaces};
use crate::profile::{CodeKind, TileBytes, TileRun};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of one `kind` of code that a stage has if it contains any position of `set`. The stage has
/// the bytes once, even if it contains several of these positions. `bytes` lists runs of tiles in
/// ascending order.
#[derive(Debug, Clone)]
pub(super) struct CodeItem {
    pub kind: CodeKind,
    pub set: PlaceSet,
    pub bytes: Vec<TileSum>,
}

/// Consecutive tiles `from..to` (end exclusive) that have `bytes` bytes each. `bytes` is never 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileSum {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

/// Returns the bytes of vertex state, exchange code and control code of one operation group, on
/// each tile. In the full memory model (`rules`) all memory of vertices besides their code counts
/// as vertex state, and loops have control code of their own. The code of vertex types is not part
/// of the result, since operation groups share it.
pub(super) fn by_kind(code: &GroupCode, rules: Rules) -> [(CodeKind, &TileBytes); 3] {
    let (vertices, control) = match rules {
        Rules::Classic => (&code.vertex_state, &code.control_code),
        Rules::Full => (&code.vertex_memory, &code.own_control_code),
    };
    [
        (CodeKind::VertexState, vertices),
        (CodeKind::ExchangeCode, &code.exchange_code),
        (CodeKind::ControlCode, control),
    ]
}

/// The code of an operation group, or of a cluster of it (its programs that use variables of the
/// same use sets), with the positions that need it.
pub(super) type PlacedCode<'a> = (&'a GroupCode, PlaceSet);

/// Sums the code in `placed` by kind and by the set of positions that need it. The code of vertex
/// types is included. The result is complete on `tiles` only: on other tiles, bytes may be missing.
/// New unions of sets of positions are added to `sets`.
pub(super) fn collect(
    (model, rules): (&Model, Rules),
    placed: &[PlacedCode<'_>],
    tiles: &Range<u32>,
    sets: &mut PlaceSets,
) -> Vec<CodeItem> {
    let mut parts = vertex_code(model, placed, tiles, sets);
    for &(code, set) in placed {
        for (kind, bytes) in by_kind(code, rules) {
            parts
                .entry((kind, set))
                .or_default()
                .extend_from_slice(met(bytes, tiles));
        }
    }
    let mut items: Vec<CodeItem> = parts
        .into_par_iter()
        .map(|((kind, set), runs)| CodeItem {
            kind,
            set,
            bytes: add_up(&runs),
        })
        .filter(|item| item.set != NOWHERE && !item.bytes.is_empty())
        .collect();
    items.sort_by_key(|item| (item.set, item.kind as u8));
    items
}

/// Returns the sums of the bytes of `items`: one entry per tile of `tiles`, with one sum per
/// [`CodeKind`], which is the index of the sum.
pub(super) fn by_tile<'a>(
    items: impl IntoIterator<Item = &'a CodeItem>,
    tiles: &Range<u32>,
) -> Vec<[u64; 4]> {
    let mut sums = vec![[0u64; 4]; tiles.len()];
    for item in items {
        for sum in &item.bytes {
            let (from, to) = (sum.from.max(tiles.start), sum.to.min(tiles.end));
            for tile in from..to {
                sums[(tile - tiles.start) as usize][item.kind as usize] += sum.bytes;
            }
        }
    }
    sums
}

/// Returns the runs of `bytes` that contain at least one of `tiles`. Runs that extend beyond
/// `tiles` are returned whole.
fn met<'a>(bytes: &'a TileBytes, tiles: &Range<u32>) -> &'a [TileRun] {
    let runs = bytes.runs();
    let runs = &runs[runs.partition_point(|run| run.to <= tiles.start)..];
    &runs[..runs.partition_point(|run| run.from < tiles.end)]
}

/// Returns the code of each operation group with the positions that need it. A group with clusters
/// (programs that use variables of the same use sets) has one entry for each cluster instead.
pub(super) fn placed<'a>(model: &'a Model, placement: &Placement) -> Vec<PlacedCode<'a>> {
    let mut placed = Vec::new();
    for (number, group) in model.operation_groups.iter().enumerate() {
        let of_cluster = &placement.of_cluster[number];
        let clusters = group.clusters.iter().map(|cluster| &cluster.code);
        placed.extend(clusters.zip(of_cluster.iter().copied()));
        if of_cluster.is_empty() {
            placed.push((&group.code, placement.of_group[number]));
        }
    }
    placed
}

/// Returns the code of vertex types as runs of tiles. The keys are [`CodeKind::VertexCode`] and the
/// set of positions that need the code: on each tile, a vertex type is needed by all positions in
/// `placed` that have an instance of this type on the tile. Only runs that contain one of `tiles`
/// are included. New unions of sets of positions are added to `sets`.
fn vertex_code(
    model: &Model,
    placed: &[PlacedCode<'_>],
    tiles: &Range<u32>,
    sets: &mut PlaceSets,
) -> FxHashMap<(CodeKind, PlaceSet), Vec<TileRun>> {
    let mut by_type: BTreeMap<u32, Vec<(PlaceSet, &[TileRun])>> = BTreeMap::new();
    for &(code, set) in placed.iter().filter(|(_, set)| *set != NOWHERE) {
        for (vertex_type, present) in &code.vertex_types {
            let runs = met(present, tiles);
            if !runs.is_empty() {
                by_type.entry(*vertex_type).or_default().push((set, runs));
            }
        }
    }
    let mut found: FxHashMap<_, Vec<TileRun>> = FxHashMap::default();
    for (vertex_type, uses) in by_type {
        let code = &model.vertex_code[vertex_type as usize];
        let present = uses.iter().flat_map(|&(set, runs)| {
            let runs = runs.iter();
            runs.map(move |run| (run.from, run.to, set))
        });
        each_stretch(present, |first, end, owners| {
            let key = (CodeKind::VertexCode, sets.union_of(owners.keys().copied()));
            for run in code.runs() {
                let (from, to) = (run.from.max(first), run.to.min(end));
                if from < to {
                    let runs = found.entry(key).or_default();
                    runs.push(TileRun { from, to, ..*run });
                }
            }
        });
    }
    found
}

/// Merges runs of tiles into one ascending list of disjoint runs. Where `runs` overlap, their bytes
/// are added. Tiles without bytes are in no run.
fn add_up(runs: &[TileRun]) -> Vec<TileSum> {
    let mut changes: Vec<(u32, i64)> = runs
        .iter()
        .flat_map(|run| {
            [
                (run.from, run.value.into()),
                (run.to, -i64::from(run.value)),
            ]
        })
        .collect();
    changes.sort_unstable_by_key(|&(tile, _)| tile);
    let mut sums: Vec<TileSum> = Vec::new();
    let (mut bytes, mut from) = (0, 0);
    for at in changes.chunk_by(|a, b| a.0 == b.0) {
        let change: i64 = at.iter().map(|(_, change)| change).sum();
        if change != 0 {
            let to = at[0].0;
            if bytes > 0 {
                let bytes = bytes as u64;
                sums.push(TileSum { from, to, bytes });
            }
            bytes += change;
            from = to;
        }
    }
    sums
}

/// Replaces the contents of `code` by the bytes of the code of `model` on `tiles` (at most `N`
/// tiles). The kind of each sum in `code` is its [`CodeKind`].
///
/// # Errors
/// If the tiles have more code than any real tile.
pub(super) fn load<const N: usize>(
    model: &MemoryModel<'_>,
    tiles: &Range<u32>,
    code: &mut GrowingSums<N, 4>,
) -> Result<(), TooManyPlaces> {
    code.restart(model.layers());
    for item in &*model.code {
        if let Some(bytes) = on_tiles(&item.bytes, tiles) {
            code.enter(model, item.set, item.kind as usize, bytes);
        }
    }
    code.entries.check()
}

/// Returns the bytes that `sums` has on `tiles`: one lane per tile. `sums` lists disjoint runs of
/// tiles in ascending order. Returns `None` if none of `tiles` has bytes.
fn on_tiles<const N: usize>(sums: &[TileSum], tiles: &Range<u32>) -> Option<[u64; N]> {
    let here = sums[sums.partition_point(|sum| sum.to <= tiles.start)..]
        .iter()
        .take_while(|sum| sum.from < tiles.end);
    let mut found = None;
    for sum in here {
        let (from, to) = (sum.from.max(tiles.start), sum.to.min(tiles.end));
        let lanes = (from - tiles.start) as usize..(to - tiles.start) as usize;
        found.get_or_insert([0; N])[lanes].fill(sum.bytes);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tile_has_the_bytes_of_all_runs_on_it(
            runs in proptest::collection::vec((0u32..40, 1u32..10, 1u32..4), 0..12),
        ) {
            let run = |(from, length, value)| TileRun { from, to: from + length, value };
            let runs: Vec<TileRun> = runs.into_iter().map(run).collect();
            let found = add_up(&runs);
            for tile in 0..50 {
                let here = runs.iter().filter(|run| (run.from..run.to).contains(&tile));
                let expected: u64 = here.map(|run| u64::from(run.value)).sum();
                let here = found.iter().find(|sum| (sum.from..sum.to).contains(&tile));
                prop_assert_eq!(here.map_or(0, |sum| sum.bytes), expected);
            }
            prop_assert!(found.is_sorted_by(|a, b| a.to <= b.from && (a.to, a.bytes) != (b.from, b.bytes)));
        }

        #[test]
        fn each_lane_has_the_code_of_its_tile(
            runs in prop::collection::vec((0u32..4, 1u32..5, 1u64..9), 0..6),
            first in 0u32..20,
            count in 1u32..=4,
        ) {
            let mut from = 0;
            let sums: Vec<TileSum> = runs.into_iter().map(|(gap, length, bytes)| {
                let to = from + gap + length;
                TileSum { from: std::mem::replace(&mut from, to) + gap, to, bytes }
            }).collect();
            let found = on_tiles::<4>(&sums, &(first..first + count));
            let on = |tile| sums.iter().find(|sum| (sum.from..sum.to).contains(&tile));
            let mut expected = [0; 4];
            for (lane, tile) in (first..first + count).enumerate() {
                expected[lane] = on(tile).map_or(0, |sum| sum.bytes);
            }
            prop_assert_eq!(found.unwrap_or_default(), expected);
            prop_assert_eq!(found.is_some(), expected != [0; 4]);
        }
    }
}
