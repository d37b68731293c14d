//! The report as tables for a spreadsheet.
//!
//! A line `# stages` and a row for each stage with all that is known of it in
//! numbers, then a line `# layers` and a row for each layer. The first table is
//! left out without a split. All bytes are exact.

use super::document::{Cut, LayerMemory, Report, SplitFacts, StageFacts};
use super::{Format, Table};
use crate::memory::Parts;
use std::io::{self, Write};

const STAGE_COLUMNS: [&str; 20] = [
    "Stage",
    "First layer",
    "Last layer",
    "Layers",
    "Fits",
    "Limit",
    "Fullest tile",
    "Bytes there",
    "Free there",
    "Variables there",
    "Vertex code there",
    "Vertex state there",
    "Exchange code there",
    "Control code there",
    "Overhead there",
    "Peak step",
    "Median tile",
    "95th percentile tile",
    "All tiles",
    "Over the cut behind",
];

const LAYER_COLUMNS: [&str; 10] = [
    "Layer",
    "All tiles",
    "Variables",
    "Vertex code",
    "Vertex state",
    "Exchange code",
    "Control code",
    "Overhead",
    "Fullest tile",
    "Bytes there",
];

/// Writes both tables.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let stages = report.split.iter().map(|split| stages(split, &report.cuts));
    for table in stages.chain([layers(&report.layers)]) {
        writeln!(out, "# {}", table.name)?;
        table.write(Format::Csv, out)?;
    }
    Ok(())
}

fn stages(split: &SplitFacts, cuts: &[Cut]) -> Table {
    let mut table = Table::new("stages", &STAGE_COLUMNS);
    for stage in &split.stages {
        let cut = cuts.iter().find(|cut| cut.after_stage == stage.stage);
        let over_cut = cut.map(|cut| cut.bytes.to_string());
        let mut row = stage_row(stage, split.limit);
        row.push(over_cut.unwrap_or_default());
        table.rows.push(row);
    }
    table
}

fn stage_row(stage: &StageFacts, limit: u64) -> Vec<String> {
    let fullest = &stage.fullest_tile;
    let fits = if fullest.bytes <= limit { "yes" } else { "no" };
    let mut row = vec![
        stage.stage.to_string(),
        name(&stage.layer_from),
        name(&stage.layer_to),
        stage.layers.len().to_string(),
        fits.to_string(),
        limit.to_string(),
        fullest.tile.to_string(),
        fullest.bytes.to_string(),
        fullest.free.to_string(),
    ];
    row.extend(parts(&fullest.parts));
    let step = fullest.peak_step.map(|step| step.to_string());
    row.push(step.unwrap_or_default());
    let bytes = [stage.tiles.median, stage.tiles.percentile_95, stage.total];
    row.extend(bytes.map(|bytes| bytes.to_string()));
    row
}

fn layers(layers: &[LayerMemory]) -> Table {
    let mut table = Table::new("layers", &LAYER_COLUMNS);
    for layer in layers {
        let mut row = vec![name(&layer.name), layer.total.to_string()];
        row.extend(parts(&layer.parts));
        row.push(layer.fullest_tile.to_string());
        row.push(layer.fullest_tile_bytes.to_string());
        table.rows.push(row);
    }
    table
}

/// The whole name, since a program may look for it; the table quotes it.
fn name(layer: &Option<String>) -> String {
    layer.clone().unwrap_or_else(|| "None".to_string())
}

fn parts(parts: &Parts) -> [String; 6] {
    let Parts {
        variables,
        vertex_code,
        vertex_state,
        exchange_code,
        control_code,
        overhead,
    } = parts;
    [
        variables,
        vertex_code,
        vertex_state,
        exchange_code,
        control_code,
        overhead,
    ]
    .map(|bytes| bytes.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::testing::report;

    #[test]
    fn a_row_for_each_stage_and_each_layer() {
        let mut out = Vec::new();
        write(&report(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (stages, layers) = text.split_once("# layers\n").expect("two tables");
        let stages = stages.strip_prefix("# stages\n").expect("a name");
        let rows = |text: &str| -> Vec<Vec<String>> {
            let reader = csv::ReaderBuilder::new();
            let mut reader = reader.from_reader(text.as_bytes());
            let records = reader.records().map(|record| record.unwrap());
            records
                .map(|record| record.iter().map(String::from).collect())
                .collect()
        };
        let stages = rows(stages);
        assert_eq!(stages.len(), 2);
        assert_eq!(stages[0][19], "4096");
        assert_eq!(stages[1][4..9], ["no", "638976", "1", "700024", "-61048"]);
        assert_eq!(rows(layers).len(), report().layers.len());
    }
}
