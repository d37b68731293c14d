//! Makes the tables of the model that the options request, such as that of `--operation-breakdown`.

use super::options::Options;
use crate::analysis::Layers;
use crate::memory::MemoryModel;
use crate::message::usage;
use crate::model::Model;
use crate::profile::RecordedTile;
use crate::report::{self, Table};
use anyhow::Result;

/// Returns the requested tables in the order in which they are printed. The table of `--diagnose`
/// is not among them.
///
/// # Errors
/// If `--memory-totals` needs recorded memory that the profile lacks, or names an unknown tile.
pub(super) fn tables(
    options: &Options,
    layers: &Layers<'_>,
    memory: &MemoryModel<'_>,
) -> Result<Vec<Table>> {
    let model = layers.model();
    let placement = &layers.placement;
    let positions = &placement.positions;
    let mut tables = Vec::new();
    if options.layers.list_layers {
        tables.extend(report::layer_list(
            model,
            &layers.layering,
            placement,
            memory,
        ));
    }
    if options.tables.operation_breakdown {
        tables.push(report::operations(
            model,
            &layers.layering,
            placement,
            &memory.operation_groups(),
        ));
    }
    if options.tables.layer_breakdown {
        tables.push(report::layers(positions, &memory.single_layers()));
    }
    if options.tables.memory_totals {
        let whole = memory
            .stages(std::slice::from_ref(&(0..positions.len())))
            .iter()
            .map(|stage| stage.sums().total())
            .sum();
        tables.push(report::totals(whole, &recorded_tiles(options, model)?));
    }
    if options.tables.memory_affinity || options.tables.interlayer_communication {
        let (between, names) = (memory.layer_traffic(), positions.names());
        if options.tables.memory_affinity {
            tables.push(Table::matrix(
                "memory-affinity",
                &names,
                &between.affinity(),
            ));
        }
        if options.tables.interlayer_communication {
            tables.push(Table::matrix(
                "interlayer-communication",
                &names,
                &between.communication(),
            ));
        }
    }
    Ok(tables)
}

/// Number of tiles in the table of `--memory-totals` if `--tiles` names none.
const FULLEST_TILES: usize = 10;

/// Returns the number and the recorded bytes of each tile that `--memory-totals` shows: the tiles
/// of `--tiles` in their order, or the fullest tiles, the fullest first.
fn recorded_tiles(options: &Options, model: &Model) -> Result<Vec<(u32, RecordedTile)>> {
    let recorded = &model.recorded.tiles;
    if recorded.is_empty() {
        anyhow::bail!(
            "the profile has no table `memory_by_tile`, which --memory-totals shows; leave the \
             option out, or record the profile again"
        );
    }
    let Some(tiles) = &options.tables.tiles else {
        let mut all: Vec<_> = (0u32..).zip(recorded.iter().copied()).collect();
        all.sort_by_key(|&(_, tile)| std::cmp::Reverse(tile.total));
        all.truncate(FULLEST_TILES);
        return Ok(all);
    };
    let tile = |&tile: &u32| match recorded.get(tile as usize) {
        Some(&recorded) => Ok((tile, recorded)),
        None => Err(usage(format!(
            "--tiles: there is no tile {tile}; give tiles from 0 to {}",
            recorded.len() - 1
        ))),
    };
    tiles.iter().map(tile).collect()
}

/// Returns the tables of `--diagnose`; none if it was not requested.
pub(super) fn diagnosis(options: &Options, model: &Model, memory: &MemoryModel<'_>) -> Vec<Table> {
    let peak = model.memory_peak.iter().filter(|_| options.tables.diagnose);
    peak.flat_map(|peak| report::diagnosis(model, memory, peak))
        .collect()
}
