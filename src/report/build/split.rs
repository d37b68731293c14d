//! Makes the report's split with its stages, and the cuts with the bytes that cross them.

use super::{Inputs, NamedVariables};
use crate::{
    memory::{Parts, PlacedStage, StageMemory, VariableKinds},
    report::{
        Cut, FullestTile, Fullness, GLOBAL_EXCHANGE, HOST_EXCHANGE, LayerMemory, Move, Split,
        Stage, TileParts,
    },
    search::{SearchResult, free_bytes},
    solve::CompiledStage,
};
use std::ops::Range;

impl Inputs<'_> {
    pub(super) fn split(&self, search: &SearchResult<'_>, named: &NamedVariables) -> Split {
        let (request, shown) = (&search.costs.request(), &search.shown);
        let placed = shown.stages.last().map_or(0, |last| last.end);
        let kinds = self.memory.variable_kinds(&shown.stages, &shown.memory);
        Split {
            fits: shown.fits,
            limit: request.highest_limit(),
            limits: Some(request.limits.clone()).filter(|limits| limits.len() > 1),
            max_stages: search.costs.ipus as u32,
            replicas: search.costs.replicas() as u64,
            fewest_ipus: search.fewest_ipus().map(|ipus| ipus as u32),
            is_given: request.given.is_some(),
            starts: shown
                .stages
                .iter()
                .skip(1)
                .filter_map(|stage| self.name(stage.start))
                .collect(),
            by_counts: (search.claims.by_counts.as_ref()).map(|claim| self.best_split(claim)),
            modules: self.layering.module_calls(self.model),
            stages: PlacedStage::of_split(&shown.stages)
                .iter()
                .zip(kinds)
                .enumerate()
                .map(|(number, (placed, kinds))| self.stage(search, named, number, placed, kinds))
                .collect(),
            unplaced: self.names(placed..self.placement.positions.len()),
            too_large: shown
                .too_large
                .iter()
                .map(|(position, memory)| self.layer(*position, memory))
                .collect(),
        }
    }

    fn stage(
        &self,
        search: &SearchResult<'_>,
        named: &NamedVariables,
        number: usize,
        placed: &PlacedStage,
        variable_kinds: VariableKinds,
    ) -> Stage {
        let (limit, memory) = (search.costs.limit_of(number), &search.shown.memory[number]);
        let range = &placed.positions;
        let (all_tiles_curve, fullest_tile_curve) = self.peaks.of_stage(number).unzip();
        let (peak_variables, stashed) = named.of_stages.get(number).cloned().unwrap_or_default();
        let positions = &self.placement.positions;
        let parts = memory.sums();
        let (tile, bytes) = (memory.max_tile(), memory.max_tile_bytes());
        Stage {
            stage: number as u32,
            amp: search.costs.proportion(search.shown.profiles[number]),
            layer_from: self.name(range.start),
            layer_to: self.name(range.end - 1),
            layers: self.names(range.clone()),
            positions: range.start as u32..range.end as u32,
            has_out: match positions.out() {
                Some(out) => range.contains(&out),
                None => positions.out_is_first() && range.start == 0,
            },
            total: parts.total(),
            parts,
            fullest_tile: FullestTile {
                tile,
                bytes,
                limit,
                free: free_bytes(limit, bytes),
                parts: memory.tiles.get(tile as usize).copied().unwrap_or_default(),
                variable_kinds,
                overhead_code: self.overhead_code(tile),
                peak_step: memory.peak_step(),
            },
            tiles: Fullness::of(memory.tiles.iter().map(Parts::total), limit),
            all_tiles_curve,
            fullest_tile_curve,
            pipeline: self.stage_pipeline(placed, memory, stashed),
            peak_variables,
        }
    }

    /// Returns the bytes of code (by kind) and of vertex state that every stage needs on `tile`,
    /// whatever layers the stage has. Returns `None` in the classic memory model, which leaves
    /// these bytes out.
    fn overhead_code(&self, tile: u32) -> Option<TileParts> {
        let [vertex_code, vertex_state, exchange_code, control_code] =
            self.memory.overhead_code(tile)?;
        let category = |wanted: &str| {
            self.model
                .recorded
                .categories
                .iter()
                .find(|category| category.name == wanted)
                .map_or(0, |category| category.bytes.get(tile).into())
        };
        Some(TileParts {
            vertex_code,
            vertex_state,
            exchange_code,
            control_code,
            host_exchange_code: category(HOST_EXCHANGE),
            global_exchange_code: category(GLOBAL_EXCHANGE),
            ..TileParts::default()
        })
    }

    /// Returns the memory of one position of the layer order (In, a layer or Out) as if it were a
    /// stage of its own.
    pub(in crate::report) fn layer(&self, position: usize, memory: &StageMemory) -> LayerMemory {
        let parts = memory.sums();
        LayerMemory {
            name: self.name(position),
            total: parts.total(),
            parts,
            fullest_tile: memory.max_tile(),
            fullest_tile_bytes: memory.max_tile_bytes(),
            module: self
                .placement
                .positions
                .module(position)
                .filter(|path| self.layering.has_module(self.model, path))
                .map(str::to_string),
        }
    }

    /// Returns the cuts of the split, each with the bytes that cross the cut and the bytes of
    /// always-live variables that the cut duplicates. If the search computed even the bytes of
    /// stages that do not fit, each cut also states how the bytes change if a layer moves across
    /// it. `shared` has groups of layers, as positions in the layer order, with the bytes of the
    /// always-live variables that all layers of a group use.
    pub(super) fn cuts(&self, search: &SearchResult<'_>, shared: &[(Vec<u32>, u64)]) -> Vec<Cut> {
        (self.stages().windows(2))
            .enumerate()
            .map(|(number, sides)| {
                let boundary = sides[0].end;
                Cut {
                    stage: number as u32 + 1,
                    layer_from: self.name(boundary),
                    bytes: search.costs.by_profile[search.shown.profiles[number]]
                        .bytes_over_cut(boundary),
                    duplicated: shared
                        .iter()
                        .filter(|(layers, _)| {
                            let before =
                                layers.iter().filter(|&&layer| (layer as usize) < boundary);
                            (1..layers.len()).contains(&before.count())
                        })
                        .map(|&(_, bytes)| bytes)
                        .sum(),
                    moves: self.moves(search, number, sides),
                }
            })
            .collect()
    }

    /// Returns the effect on memory of moving one layer across a cut: the last layer before the
    /// cut, or the first layer after it. Moves that would empty a stage are left out. The list is
    /// empty if the search computed no bytes of stages that do not fit, or if only the split was
    /// requested. `number` is the index of the stage before the cut; `sides` has the ranges of
    /// layers of the stages before and after the cut.
    fn moves(&self, search: &SearchResult<'_>, number: usize, sides: &[Range<usize>]) -> Vec<Move> {
        if !search.costs.has_all() || !self.is_full() {
            return Vec::new();
        }
        let (start, at, end) = (sides[0].start, sides[0].end, sides[1].end);
        let (problem, shown) = (search.costs.problem(), &search.shown);
        let moved = |(new, to_stage): (usize, usize)| {
            let compiled = |positions, side| CompiledStage {
                positions,
                profile: shown.profiles[number + side],
            };
            let after = shown.stages.len() - 1 - number;
            let bytes = [
                problem.peak(&compiled(start..new, 0), after)?,
                problem.peak(&compiled(new..end, 1), after - 1)?,
            ];
            Some(Move {
                layers: self.names(at.min(new)..at.max(new)),
                to_stage: to_stage as u32,
                fullest_tile_bytes: bytes,
                change: [0, 1].map(|side| free_bytes(bytes[side], shown.peaks[number + side])),
            })
        };
        [(at - 1, number + 1), (at + 1, number)]
            .into_iter()
            .filter(|&(new, _)| start < new && new < end)
            .filter_map(moved)
            .collect()
    }
}
