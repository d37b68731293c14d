//! Compares a report with an earlier report: which layers grew, how the stages changed, and whether
//! the split still fits. [`read`] reads an earlier report, which `--export-json` wrote.

#[cfg(test)]
mod tests;

use super::{
    Cell, LayerMemory, Report, Split, Table, VERSION, table,
    terminal::{Severity, TextStyle},
};
use crate::{
    escape::printable,
    message::{FileError, GIVE_REPORT, Warning, unusable},
    model::PseudoLayers,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;

/// The comparison of a report with an earlier report on the same model.
#[derive(Debug)]
pub struct Comparison<'a> {
    reports: [&'a Report; 2],
    /// The layers of both reports, in the order of the later report. Layers that only the earlier
    /// report has come last.
    layers: Vec<ComparedLayer<'a>>,
    /// Reasons why the numbers of the two reports may not be comparable, such as different limits.
    pub warnings: Vec<Warning>,
}

/// The memory of one layer in the earlier and in the later of the two compared reports, in this
/// order; `None` for a report that lacks the layer.
#[derive(Debug)]
struct ComparedLayer<'a> {
    /// The name of the layer as the later report shows it, or as the earlier report does if the
    /// later one lacks the layer.
    name: &'a str,
    /// Bytes of the layer on its fullest tile, in the earlier and in the later report.
    on_tile: [Option<u64>; 2],
    /// Bytes of the layer over all tiles, in the earlier and in the later report.
    total: [Option<u64>; 2],
}

impl<'a> Comparison<'a> {
    /// Compares an `earlier` report with a `later` one. Layers are compared by name, and stages by
    /// index.
    pub fn new(earlier: &'a Report, later: &'a Report) -> Self {
        Self {
            reports: [earlier, later],
            layers: layers(earlier, later),
            warnings: warnings(earlier, later),
        }
    }

    /// Returns whether the split fits in the earlier and in the later report; `None` for a report
    /// that has no split, or whose profile contradicts itself too much to tell whether it fits.
    fn fits(&self) -> [Option<bool>; 2] {
        self.reports.map(|report| {
            let split = report.split.as_ref()?;
            report.has_verdict().then_some(split.fits)
        })
    }

    /// Returns `true` if the split of the later report does not fit, and the earlier report has a
    /// split that fits or no split. Returns `false` if the split of either report has no verdict.
    pub fn is_worse(&self) -> bool {
        let before = self.reports[0].split.as_ref();
        before.is_none_or(|split| split.fits) && self.fits()[1] == Some(false)
    }

    /// Returns the layers of both reports that need more bytes in the later one, on their fullest
    /// tile or over all tiles. Each has its name and two numbers of bytes: its growth on the
    /// fullest tile, and its growth over all tiles.
    fn grown(&self) -> impl Iterator<Item = (&str, [i128; 2])> {
        self.layers
            .iter()
            .filter_map(|layer| Some((layer.name, layer.growth()?)))
            .filter(|(_, growth)| growth.iter().any(|&bytes| bytes > 0))
    }
}

impl ComparedLayer<'_> {
    /// Returns by how many bytes a layer grew from the earlier to the later report (below 0 if it
    /// shrank): on its fullest tile, and over all tiles. Returns `None` for a new or removed layer.
    fn growth(&self) -> Option<[i128; 2]> {
        Some([more(self.on_tile)?, more(self.total)?])
    }

    fn kind(&self) -> &'static str {
        match (self.total[0], self.growth()) {
            (None, _) => "new",
            (_, None) => "gone",
            (_, Some(growth)) if growth > [0; 2] => "grew",
            _ => "shrank",
        }
    }
}

fn more([before, now]: [Option<u64>; 2]) -> Option<i128> {
    Some(i128::from(now?) - i128::from(before?))
}

fn layers<'a>(earlier: &'a Report, later: &'a Report) -> Vec<ComparedLayer<'a>> {
    let compared = |name, memory: [Option<&LayerMemory>; 2]| ComparedLayer {
        name,
        on_tile: memory.map(|memory| Some(memory?.fullest_tile_bytes)),
        total: memory.map(|memory| Some(memory?.total)),
    };
    let named = |report: &'a Report| {
        let name = |layer: &'a LayerMemory| (report.pseudo_layers.name_of(&layer.name), layer);
        report.layers.iter().map(name)
    };
    let mut left = Vec::from_iter(named(earlier));
    let mut layers: Vec<_> = named(later)
        .map(|(name, now)| {
            let place = left.iter().position(|&(before, _)| before == name);
            compared(name, [place.map(|place| left.remove(place).1), Some(now)])
        })
        .collect();
    layers.extend(
        left.into_iter()
            .map(|(name, before)| compared(name, [Some(before), None])),
    );
    layers
}

fn warnings(earlier: &Report, later: &Report) -> Vec<Warning> {
    let facts = |report: &Report| {
        let around = match report.pseudo_layers {
            PseudoLayers::NoneFirst => "None before them",
            PseudoLayers::InAndOut => "In before them and Out after them",
            PseudoLayers::OutWithIn => "In and Out before them, on the first IPU",
        };
        [
            ("the memory model", report.provenance.memory_model.clone()),
            ("what is before and after the layers", around.to_string()),
            ("the limit of a tile", report.memory.limit.to_string()),
            (
                "the number of tiles",
                report.provenance.target.tiles.to_string(),
            ),
        ]
    };
    let warning = |text| Warning::new(format!("compared with another report: {text}"));
    facts(earlier)
        .into_iter()
        .zip(facts(later))
        .filter(|(before, now)| before != now)
        .map(|((subject, before), (_, now))| {
            warning(format!(
                "{subject} was {before} and is {now}; run both with the same options to compare \
                 only the model"
            ))
        })
        .chain(
            (earlier.split.is_none())
                .then(|| warning("it has no split; write it again with --solve".to_string())),
        )
        .collect()
}

impl Comparison<'_> {
    /// Makes three tables that compare the reports: the verdicts on their splits, the stages of the
    /// splits, and the layers that differ.
    pub fn tables(&self) -> [Table; 3] {
        [self.verdict_table(), self.stage_table(), self.layer_table()]
    }

    /// The number of tables that compare two reports (see [`tables`](Self::tables)).
    pub const TABLES: usize = 3;

    /// Returns the tables that compare the reports, for people: only rows that differ between the
    /// reports, and no empty tables.
    pub fn changes(&self) -> Vec<Table> {
        let [mut verdict, mut stages, layers] = self.tables();
        verdict.rows.retain(|row| row.cells[1] != row.cells[2]);
        stages
            .rows
            .retain(|row| row.cells[1] != row.cells[2] || row.cells[3] != row.cells[4]);
        [verdict, stages, layers]
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .collect()
    }

    /// Makes the table of verdicts: whether the split of each report fits, its limit, IPUs, stages
    /// and peak, and the micro-batches and cycles of a training step. A row that has a value for
    /// neither report is left out.
    fn verdict_table(&self) -> Table {
        let both = |cell: fn(&Report, &Split) -> Cell| {
            let of_split = |report: &Report| Some(cell(report, report.split.as_ref()?));
            self.reports
                .map(|report| of_split(report).unwrap_or(Cell::Empty))
        };
        let rows = [
            ("Fits", self.fits().map(Cell::from)),
            ("Limit", both(|_, split| split.limit.into())),
            ("IPUs", both(|_, split| split.max_stages.into())),
            ("Stages", both(|_, split| split.stages.len().into())),
            ("Peak memory", both(|_, split| split.peak().into())),
            (
                "Micro-batches of a step",
                both(|report, _| report.step.as_ref().map(|step| step.micro_batches).into()),
            ),
            (
                "Cycles of a step",
                both(|report, _| report.step.as_ref().map(|step| step.cycles).into()),
            ),
        ];
        let known = rows
            .into_iter()
            .filter(|(_, cells)| *cells != [Cell::Empty, Cell::Empty]);
        table!("compare-verdict", known, |(name, [before, now])| {
            "Of the split" Text (name),
            "Before" Text (before),
            "Now" Text (now),
        })
    }

    fn stage_table(&self) -> Table {
        let [before, now] = self.reports.map(|report| report.stages().len());
        table!("compare-stages", 0..before.max(now), |number|
            let layers = self.reports.map(|report| {
                let stage = report.stages().get(number)?;
                Some(report.pseudo_layers.names_of(&stage.layers).join(" "))
            });
            let tile = self.reports.map(|report| Some(report.stages().get(number)?.fullest_tile.bytes));
        {
            "Stage" Count (number),
            "Layers before" Layers (&layers[0]),
            "Layers now" Layers (&layers[1]),
            "Peak memory before" Bytes (tile[0]),
            "Peak memory now" Bytes (tile[1]),
            "Difference" Change (more(tile)),
        })
    }

    fn layer_table(&self) -> Table {
        let changed = (self.layers.iter()).filter(|layer| layer.growth() != Some([0; 2]));
        table!("compare-layers", changed, |layer| {
            "Layer" Text (layer.name),
            "Change" Text (layer.kind()),
            "Peak memory before" Bytes (layer.on_tile[0]),
            "Peak memory now" Bytes (layer.on_tile[1]),
            "Difference" Change (more(layer.on_tile)),
            "Total before" Bytes (layer.total[0]),
            "Total now" Bytes (layer.total[1]),
            "Difference of totals" Change (more(layer.total)),
        })
    }

    /// Returns one line that says whether the model fits in the later report, whether it did in the
    /// earlier one, and which layer grew most. `look` has the units and colours of the text.
    pub fn summary(&self, look: &TextStyle) -> String {
        let (tone, verdict) = match self.fits() {
            [_, None] => (Severity::Notable, "there is no verdict"),
            [Some(true), Some(false)] => (Severity::Bad, "it fitted and no longer does"),
            [Some(false), Some(true)] => (Severity::Good, "it fits, and did not before"),
            [_, Some(true)] => (Severity::Good, "it fits"),
            [_, Some(false)] => (Severity::Bad, "it does not fit"),
        };
        let verdict = look.toned(tone, verdict);
        let tiles = match self
            .reports
            .map(|report| report.split.as_ref().map(Split::peak))
        {
            [Some(before), Some(now)] => format!(
                "; the fullest tile had {} and has {}",
                look.units.amount(before),
                look.units.short(now)
            ),
            _ => String::new(),
        };
        let changes = if self.changes().is_empty() {
            "verdict, stages and layers are what they were".to_string()
        } else {
            self.growth(look)
        };
        format!("compared: {verdict}{tiles}; {changes}")
    }

    fn growth(&self, look: &TextStyle) -> String {
        let most = self.grown().max_by_key(|&(_, growth)| growth);
        let Some((layer, [on_tile, total])) = most else {
            return "no layer grew".to_string();
        };
        let (bytes, tiles) = match on_tile {
            1.. => (on_tile, "on its fullest tile"),
            _ => (total, "over all tiles"),
        };
        format!(
            "layers that grew: {}, most of all {} by {} {tiles}",
            self.grown().count(),
            printable(layer),
            look.units.amount(u64::try_from(bytes).unwrap_or(0))
        )
    }
}

/// The fields `format` and `version`, by which [`read`] recognizes a JSON document as a report.
/// Reports of every version have both fields.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    format: Value,
    version: Value,
}

/// Reads a report from the JSON text `bytes`. The format and the version are checked first, so that
/// an error names the cause.
///
/// # Errors
/// For any input that is not a complete report of this [`VERSION`].
pub fn read(bytes: &[u8]) -> Result<Report, FileError> {
    let head: Head = serde_json::from_slice(bytes).or_else(|error| match error.classify() {
        Category::Data => Ok(Head::default()),
        _ => unusable(format!("it is not JSON: {error}; {GIVE_REPORT}")),
    })?;
    if head.format != "popliner-report" {
        return unusable(format!(
            "its format is {} instead of \"popliner-report\"; {GIVE_REPORT}",
            excerpt(&head.format)
        ));
    }
    if head.version != VERSION {
        return unusable(format!(
            "it is a report of version {}, and this popliner reads version {VERSION}; write it \
             again with --export-json of this popliner",
            excerpt(&head.version)
        ));
    }
    // Parses the JSON text of the report again instead of converting a parsed `Value`, since only
    // errors of parsing text have a line number.
    serde_json::from_slice(bytes).or_else(|error| {
        unusable(format!(
            "it is a report of version {VERSION}, but not a complete one: {error}; {GIVE_REPORT}"
        ))
    })
}

/// Upper bound on the characters of a JSON value that an error quotes.
const MAX_CHARACTERS: usize = 40;

fn excerpt(value: &Value) -> String {
    let text = match value {
        Value::Null => "missing".to_string(),
        value => value.to_string(),
    };
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
