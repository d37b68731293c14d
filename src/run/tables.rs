//! The tables of results.

use super::subject::Subject;
use super::usage;
use crate::cli::Options;
use crate::model::{Model, Rules};
use crate::profile::RecordedTile;
use crate::report::{Table, breakdown, diagnosis};
use anyhow::Result;

/// The tables that were asked for, in their order.
pub(super) fn tables(subject: &Subject<'_>) -> Result<Vec<Table>> {
    let Subject {
        options,
        layering,
        placement,
        memory,
        ..
    } = *subject;
    let model = subject.model();
    let mut tables = Vec::new();
    if options.operation_breakdown {
        let bodies = memory.operation_groups();
        tables.push(match options.memory_model {
            Rules::Classic => breakdown::operations(model, layering, &bodies),
            Rules::Full => breakdown::assigned(model, layering, placement, &bodies),
        });
    }
    if options.layer_breakdown {
        tables.push(breakdown::layers(
            &placement.positions,
            &memory.single_layers(),
        ));
    }
    if options.memory_totals {
        let layers = 0..placement.positions.len();
        let whole = memory.stages(std::slice::from_ref(&layers));
        let whole = whole.iter().map(|stage| stage.sums().total()).sum();
        tables.push(breakdown::totals(whole, &recorded_tiles(options, model)?));
    }
    if options.memory_affinity || options.interlayer_communication {
        let between = memory.between();
        let names = breakdown::layer_names(&placement.positions);
        if options.memory_affinity {
            let cells = between.affinity();
            tables.push(Table::matrix("memory-affinity", &names, &cells));
        }
        if options.interlayer_communication {
            let cells = between.communication();
            tables.push(Table::matrix("interlayer-communication", &names, &cells));
        }
    }
    Ok(tables)
}

/// How many tiles the totals show when none are named.
const FULLEST_TILES: usize = 10;

/// The tiles of `--tiles`, or the fullest, with what the compiler recorded.
fn recorded_tiles(options: &Options, model: &Model) -> Result<Vec<(u32, RecordedTile)>> {
    let recorded = &model.recorded.tiles;
    if recorded.is_empty() {
        anyhow::bail!("the profile has no table `memory_by_tile`, which --memory-totals shows");
    }
    let Some(wanted) = &options.tiles else {
        let mut all: Vec<_> = (0u32..).zip(recorded.iter().copied()).collect();
        all.sort_by_key(|&(_, tile)| std::cmp::Reverse(tile.total));
        all.truncate(FULLEST_TILES);
        return Ok(all);
    };
    let tile = |&tile: &u32| {
        let found = recorded
            .get(tile as usize)
            .map(|&recorded| (tile, recorded));
        let last = recorded.len() - 1;
        let unknown = || {
            usage(format!(
                "--tiles: there is no tile {tile}, the last is {last}"
            ))
        };
        found.ok_or_else(unknown)
    };
    wanted.0.iter().map(tile).collect()
}

pub(super) fn diagnosis(subject: &Subject<'_>) -> Vec<Table> {
    let (model, memory) = (subject.model(), subject.memory);
    match &model.memory_peak {
        Some(bottleneck) if subject.options.diagnose => {
            diagnosis::tables(model, memory, bottleneck)
        }
        _ => Vec::new(),
    }
}
