//! The bytes of code and vertex state, by the layers that need them (docs/model.md, "Code"). Also
//! two kinds of bytes that belong to no operation: the overhead, which every stage needs whatever
//! its layers, and fragmentation.

use super::{MemoryModel, Rules, entering::GrowingSums, steps::each_stretch};
use crate::{
    model::{GroupCode, Model, NOWHERE, PlaceSet, PlaceSets, Placement, TooManyPlaces},
    profile::{CodeKind, TileBytes, TileRun},
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::{array::from_fn, collections::BTreeMap, ops::Range};

/// Code of one `kind` that several positions (In, layers, Out) may share: a stage with any position
/// of `set` takes the bytes of this code once. `bytes` lists runs of tiles in ascending order.
#[derive(Debug)]
pub struct CodeItem {
    pub kind: CodeKind,
    pub set: PlaceSet,
    pub bytes: Vec<TileSum>,
}

/// Consecutive tiles, from `from` to `to` (exclusive), with the same number of bytes of code on
/// each. Tiles without code are left out, so `bytes` is never 0.
#[derive(Debug, Clone, Copy)]
pub struct TileSum {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

/// Returns the bytes of code of one operation group on each tile, by kind. Vertex code is left out,
/// since operation groups share it. In the full memory model, all memory of vertices besides their
/// code counts as vertex state, and a loop has control code in addition to that of its body.
pub fn by_kind(code: &GroupCode, rules: Rules) -> [(CodeKind, &TileBytes); 3] {
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

/// Code of some programs, and the set of positions (In, layers, Out) whose operations run these
/// programs.
pub type PlacedCode<'a> = (&'a GroupCode, PlaceSet);

/// Sums the code in `placed` by kind and by the set of positions (In, layers, Out) that need it.
/// Code that several positions share belongs to the set of all these positions, so that a stage has
/// it only once. New sets are added to `sets`. The sums are complete on `tiles`; on other tiles,
/// bytes may be missing.
pub fn collect(
    (model, rules): (&Model, Rules),
    placed: &[PlacedCode<'_>],
    tiles: &Range<u32>,
    sets: &mut PlaceSets,
) -> Vec<CodeItem> {
    let of_vertices = vertex_code(model, placed, tiles, sets);
    let mut parts: FxHashMap<_, Vec<&[TileRun]>> = of_vertices
        .iter()
        .map(|(&set, runs)| ((CodeKind::VertexCode, set), vec![&runs[..]]))
        .collect();
    for &(code, set) in placed {
        for (kind, bytes) in by_kind(code, rules) {
            parts
                .entry((kind, set))
                .or_default()
                .push(met(bytes, tiles));
        }
    }
    let mut items: Vec<CodeItem> = parts
        .into_par_iter()
        .map(|((kind, set), runs)| CodeItem {
            kind,
            set,
            bytes: add_up(&runs),
        })
        .filter(|item| !item.bytes.is_empty())
        .collect();
    items.sort_by_key(|item| (item.set, item.kind as u8));
    items
}

/// Sums up the bytes of the pieces of code in `items` on each tile of `tiles`. The result has one
/// entry per tile, with the bytes by [`CodeKind`].
pub fn by_tile<'a>(
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

fn met<'a>(bytes: &'a TileBytes, tiles: &Range<u32>) -> &'a [TileRun] {
    let mut runs = bytes.runs();
    // `tiles` are usually all tiles of the model, so that no run has to be left out. The first and
    // the last run show this without a binary search, which would read distant memory addresses.
    if tiles.start > 0 && runs.first().is_some_and(|run| run.to <= tiles.start) {
        runs = &runs[runs.partition_point(|run| run.to <= tiles.start)..];
    }
    if runs.last().is_some_and(|run| run.from >= tiles.end) {
        runs = &runs[..runs.partition_point(|run| run.from < tiles.end)];
    }
    runs
}

/// Returns the code of each operation group (operations with one debug context) with the positions
/// (In, layers, Out) that run it. If a group is divided into clusters (programs that use the same
/// variables), each cluster has its own entry. Code that no position needs is left out.
pub fn placed<'a>(model: &'a Model, placement: &Placement) -> Vec<PlacedCode<'a>> {
    let mut placed = Vec::new();
    for (number, group) in model.operation_groups.iter().enumerate() {
        let of_cluster = &placement.of_cluster[number];
        placed.extend(
            group
                .clusters
                .iter()
                .map(|cluster| &cluster.code)
                .zip(of_cluster.iter().copied()),
        );
        if of_cluster.is_empty() {
            placed.push((&group.code, placement.of_group[number]));
        }
    }
    placed.retain(|&(_, set)| set != NOWHERE);
    placed
}

/// Groups the vertex code on `tiles` by the positions (In, layers, Out) that share it: all
/// positions that have a vertex of one type on a tile share the code of this type there. Each set
/// of positions gets a list of ranges of tiles, with the bytes on each tile of the range. New sets
/// of positions are added to `sets`.
fn vertex_code(
    model: &Model,
    placed: &[PlacedCode<'_>],
    tiles: &Range<u32>,
    sets: &mut PlaceSets,
) -> FxHashMap<PlaceSet, Vec<TileRun>> {
    let mut by_type: BTreeMap<u32, Vec<(PlaceSet, &[TileRun])>> = BTreeMap::new();
    for &(code, set) in placed {
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
        let present = uses
            .iter()
            .flat_map(|&(set, runs)| runs.iter().map(move |run| (run.from, run.to, set)));
        each_stretch(present, |first, end, owners| {
            let set = sets.union_of(owners.keys().copied());
            let here = met(code, &(first..end)).iter().map(|run| TileRun {
                from: run.from.max(first),
                to: run.to.min(end),
                ..*run
            });
            found.entry(set).or_default().extend(here);
        });
    }
    found
}

/// Adds up bytes of code that are given for runs of tiles, which may overlap. Returns ascending,
/// disjoint runs with the sum of the bytes on each tile; tiles without bytes are in no run.
fn add_up(parts: &[&[TileRun]]) -> Vec<TileSum> {
    let runs = || parts.iter().copied().flatten();
    let first = runs().map(|run| run.from).min().unwrap_or(0);
    let end = runs().map(|run| run.to).max().unwrap_or(0);
    let mut changes = vec![0i64; (end - first) as usize + 1];
    for run in runs() {
        changes[(run.from - first) as usize] += i64::from(run.value);
        changes[(run.to - first) as usize] -= i64::from(run.value);
    }
    let mut sums: Vec<TileSum> = Vec::new();
    let (mut bytes, mut from) = (0, 0);
    for (to, change) in (first..).zip(changes).filter(|&(_, change)| change != 0) {
        if bytes > 0 {
            sums.push(TileSum {
                from,
                to,
                bytes: bytes as u64,
            });
        }
        bytes += change;
        from = to;
    }
    sums
}

/// Loads the bytes of code on `tiles` (at most `N` tiles) into `code`, which then gives their sum
/// for a range of layers, by [`CodeKind`], while the range grows by one layer at a time.
///
/// # Errors
/// If the tiles have more code than any real tile.
pub fn load<const N: usize>(
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

/// Returns the bytes of a piece of code on each of `tiles`, in an array with one entry per tile.
/// Returns `None` if the code is on none of `tiles`. `sums` has the bytes of the code on all tiles,
/// as disjoint runs of tiles in ascending order.
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

/// Bytes of one tile that belong to no operation: its overhead (code that every stage needs) and
/// its fragmentation.
///
/// Overhead code is measured: for each kind of code, the recorded bytes beyond the code of all
/// operations. Each IPU of a pipeline has its own stack, run-time and host exchange, so the full
/// memory model assumes that every stage needs this code.
///
/// Fragmentation is the recorded bytes of a tile beyond always-live variables and the peak of all
/// other variables (36 bytes on one tile of a real profile, up to 18 % of a tile in others). A
/// stage has a share of the fragmentation, in proportion to the bytes that it takes of the tile
/// (docs/model.md, "Overhead and fragmentation").
#[derive(Debug, Clone, Default)]
pub struct TileOverhead {
    /// The recorded bytes of code on the tile, by [`CodeKind`]. The code
    /// that is predicted for a stage is limited to these bytes, since operations may share code
    /// that is predicted for each of them.
    recorded: [u64; 4],
    /// The bytes of code that every stage needs, since they belong to no operation: the recorded
    /// bytes minus the code of all operations, but at least 0, by
    /// [`CodeKind`].
    pub code: [u64; 4],
    /// Bytes of fragmentation on the tile: its recorded bytes beyond always-live variables and the
    /// peak of all other variables.
    pub fragmentation: u64,
    /// All recorded bytes of the tile except the fragmentation. A stage that takes fewer bytes gets
    /// a proportional share of the fragmentation.
    rest: u64,
}

impl TileOverhead {
    /// Returns one entry per tile, for the classic memory model: no overhead (bytes that every
    /// stage needs), no fragmentation, and no limit on the bytes of code that are predicted for a
    /// stage ([`TileOverhead::capped`]).
    pub fn none(model: &Model) -> Vec<Self> {
        let of_tile = Self {
            recorded: [u64::MAX; 4],
            ..Self::default()
        };
        vec![of_tile; model.target.num_tiles as usize]
    }

    /// Computes the overhead (bytes that every stage needs) and the fragmentation of each tile in
    /// the full memory model.
    pub fn of_tiles(model: &Model) -> Vec<Self> {
        let explained = explained((model, Rules::Full), 0..model.target.num_tiles, |_| true);
        (0u32..)
            .zip(explained)
            .map(|(tile, explained)| {
                let recorded = model
                    .recorded_code
                    .each_ref()
                    .map(|bytes| u64::from(bytes.get(tile)));
                let of_tile = model.recorded.tiles.get(tile as usize);
                let fragmentation = of_tile.map_or(0, |tile| tile.beyond_variables());
                Self {
                    recorded,
                    code: from_fn(|kind| recorded[kind].saturating_sub(explained[kind])),
                    fragmentation,
                    rest: of_tile.map_or(0, |tile| tile.total.saturating_sub(fragmentation)),
                }
            })
            .collect()
    }

    /// Returns the fragmentation, in bytes and rounded up, of a stage that takes `bytes` bytes of
    /// the tile besides fragmentation. The result never falls as `bytes` grows; if `bytes` is at
    /// least what the whole model takes, the result is the whole fragmentation of the tile.
    pub fn fragmentation_of(&self, bytes: u64) -> u64 {
        if self.fragmentation == 0 || bytes >= self.rest {
            return self.fragmentation;
        }
        (u128::from(self.fragmentation) * u128::from(bytes)).div_ceil(u128::from(self.rest)) as u64
    }

    /// Returns the bytes of fragmentation that a replica's share of sharded optimizer state adds to
    /// the tile. `shares` is the size of the share on this tile in bytes. Without a share the
    /// result is 0, even on a tile whose recorded bytes are all fragmentation.
    pub fn fragmentation_of_shares(&self, shares: u64) -> u64 {
        match shares {
            0 => 0,
            _ => self.fragmentation_of(shares),
        }
    }

    /// Returns the highest number of bytes that a stage may take on the tile so that these bytes,
    /// together with their fragmentation, are at most `total` bytes: the inverse of
    /// [`TileOverhead::fragmentation_of`].
    pub fn without_fragmentation(&self, total: u64) -> u64 {
        if total >= self.rest.saturating_add(self.fragmentation) {
            return total - self.fragmentation;
        }
        let all = u128::from(self.rest) + u128::from(self.fragmentation);
        (u128::from(total) * u128::from(self.rest) / all.max(1)) as u64
    }

    /// Returns the bytes of code of a stage, by [`CodeKind`]: those in `code`, but of each kind at
    /// most the bytes that were recorded on the tile. Operations may share code that `code` counts
    /// several times.
    pub fn capped(&self, code: [u64; 4]) -> [u64; 4] {
        from_fn(|kind| code[kind].min(self.recorded[kind]))
    }
}

pub fn by_lane<const N: usize>(
    tiles: &[TileOverhead],
    of: impl Fn(usize, &TileOverhead) -> u64,
) -> [u64; N] {
    from_fn(|lane| tiles.get(lane).map_or(0, |tile| of(lane, tile)))
}

/// Returns the bytes of code that one stage would have if it had exactly the operation groups for
/// whose indices `is_wanted` is true. The result has one entry per tile of `tiles`, by
/// [`CodeKind`].
pub fn explained(
    (model, rules): (&Model, Rules),
    tiles: Range<u32>,
    is_wanted: impl Fn(usize) -> bool,
) -> Vec<[u64; 4]> {
    let mut sets = PlaceSets::default();
    let stage = sets.one(0);
    let wanted: Vec<_> = model
        .operation_groups
        .iter()
        .enumerate()
        .filter(|&(number, _)| is_wanted(number))
        .map(|(_, group)| (&group.code, stage))
        .collect();
    by_tile(&collect((model, rules), &wanted, &tiles, &mut sets), &tiles)
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
            let found = add_up(&[&runs]);
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

    proptest! {
        #[test]
        fn shares_of_fragmentation_grow_and_can_be_taken_away(bytes in 0u64..90, rest in 0u64..300) {
            let tile = TileOverhead { fragmentation: bytes, rest, ..TileOverhead::default() };
            prop_assert_eq!(tile.fragmentation_of(rest), bytes);
            let with = |bytes: u64| bytes + tile.fragmentation_of(bytes);
            for bytes in 0..400 {
                prop_assert!(tile.fragmentation_of(bytes) <= tile.fragmentation_of(bytes + 1));
                let most = tile.without_fragmentation(with(bytes));
                prop_assert!(with(most) <= with(bytes) && with(most + 1) > with(bytes));
                prop_assert!(bytes <= most);
            }
        }
    }
}
