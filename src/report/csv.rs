//! The report as tables for a spreadsheet.
//!
//! A line `# stages` and a row for each stage with all that is known of it in
//! numbers, then a line `# layers` and a row for each layer. The first table is
//! left out without a split. All bytes are exact; the limit of a stage is that
//! of its IPU. Cells of what is not known are empty, such as cycles where the
//! profile has none. `In`, `Out` and `None` are the pseudo-layers. New columns
//! come last, so that programs may count.

use super::document::{Report, SplitFacts, StageFacts};
use super::{Format, Table};
use crate::memory::Parts;
use crate::model::PseudoLayers;
use std::io::{self, Write};

const STAGE_COLUMNS: [&str; 23] = [
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
    "Gaps there",
    "Peak step",
    "Median tile",
    "95th percentile tile",
    "All tiles",
    "Over the cut behind",
    "Doubled by the cut behind",
    "Cycles",
];

const LAYER_COLUMNS: [&str; 12] = [
    "Layer",
    "All tiles",
    "Variables",
    "Vertex code",
    "Vertex state",
    "Exchange code",
    "Control code",
    "Overhead",
    "Gaps",
    "Fullest tile",
    "Bytes there",
    "Cycles",
];

/// Writes both tables.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let stages = report.split.iter().map(|split| stages(split, report));
    for table in stages.chain([layers(report)]) {
        writeln!(out, "# {}", table.name)?;
        table.write(Format::Csv, out)?;
    }
    Ok(())
}

fn stages(split: &SplitFacts, report: &Report) -> Table {
    let cycles = report.execution.iter().flat_map(|own| &own.stages);
    let cycles: Vec<_> = cycles.collect();
    let mut table = Table::new("stages", &STAGE_COLUMNS);
    for stage in &split.stages {
        let mut cuts = report.cuts.iter();
        let cut = cuts.find(|cut| cut.after_stage == stage.stage);
        let mut cycles = cycles.iter();
        let cycles = cycles.find(|own| own.stage == stage.stage);
        let mut row = stage_row(report.pseudo_layers, stage);
        row.push(optional(cut.map(|cut| cut.bytes)));
        row.push(optional(cut.map(|cut| cut.duplicated)));
        row.push(optional(cycles.map(|own| own.cycles)));
        table.rows.push(row);
    }
    table
}

fn optional(number: Option<u64>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

fn stage_row(pseudo_layers: PseudoLayers, stage: &StageFacts) -> Vec<String> {
    let fullest = &stage.fullest_tile;
    let fits = if fullest.bytes <= fullest.limit {
        "yes"
    } else {
        "no"
    };
    let mut row = vec![
        stage.stage.to_string(),
        name(pseudo_layers, &stage.layer_from),
        name(pseudo_layers, &stage.layer_to),
        stage.layers.len().to_string(),
        fits.to_string(),
        fullest.limit.to_string(),
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

fn layers(report: &Report) -> Table {
    let cycles = report.execution.as_ref().map(|own| &own.layers);
    let mut table = Table::new("layers", &LAYER_COLUMNS);
    for (place, layer) in report.layers.iter().enumerate() {
        let name = name(report.pseudo_layers, &layer.name);
        let mut row = vec![name, layer.total.to_string()];
        row.extend(parts(&layer.parts));
        row.push(layer.fullest_tile.to_string());
        row.push(layer.fullest_tile_bytes.to_string());
        let cycles = cycles.and_then(|cycles| cycles.get(place));
        row.push(optional(cycles.map(|own| own.cycles)));
        table.rows.push(row);
    }
    table
}

/// The whole name, since a program may look for it; the table quotes it.
fn name(pseudo_layers: PseudoLayers, layer: &Option<String>) -> String {
    pseudo_layers.name_of(layer).to_string()
}

fn parts(parts: &Parts) -> [String; 7] {
    parts.bytes().map(|bytes| bytes.to_string())
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
        assert_eq!(stages[0][20], "4096");
        assert_eq!(stages[1][4..9], ["no", "637976", "1", "700024", "-62048"]);
        assert_eq!(stages[0][21..], ["2048", "410"]);
        assert_eq!(stages[1][20..], ["", "", "590"]);
        let layers = rows(layers);
        assert_eq!(layers.len(), report().layers.len());
        assert_eq!(layers[1][11], "400");
        let names: Vec<&str> = layers.iter().map(|row| &*row[0]).collect();
        assert_eq!(names, ["In", "0", "1", "2", "Out"]);
    }
}
