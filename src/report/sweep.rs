//! The best split for each number of IPUs, as a table.

use super::Table;
use super::document::Sweep;
use crate::model::PseudoLayers;

/// One row for each number of IPUs. Where none fits, the row is about the
/// split that would need the least.
pub fn table(sweep: &Sweep, pseudo_layers: PseudoLayers) -> Table {
    let columns = [
        "IPUs",
        "Fits",
        "Bytes on the fullest tile",
        "Free bytes",
        "Bytes over the cuts",
        "Cycles of the slowest stage",
        "Stages",
        "Split",
        "Hint",
    ];
    let mut table = Table::new("sweep", &columns);
    for row in &sweep.rows {
        let cycles = row.slowest_stage_cycles;
        table.rows.push(vec![
            row.ipus.to_string(),
            if row.fits { "yes" } else { "no" }.to_string(),
            row.fullest_tile_bytes.to_string(),
            row.free.to_string(),
            row.cut_bytes.to_string(),
            cycles.map_or(String::new(), |cycles| cycles.to_string()),
            row.stages.len().to_string(),
            split(&row.stages, pseudo_layers),
            row.hint.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// `In 0 1 | 2 3 Out`.
pub(super) fn split(stages: &[Vec<Option<String>>], pseudo_layers: PseudoLayers) -> String {
    let stages = stages.iter();
    let stages = stages.map(|layers| pseudo_layers.names_of(layers).join(" "));
    stages.collect::<Vec<_>>().join(" | ")
}
