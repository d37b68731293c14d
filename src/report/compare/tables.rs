//! Writes the comparison of two reports: as tables, and as one line of text.

use super::{BytesChange, ComparedBytes, Comparison, more};
use crate::report::table::table;
use crate::report::terminal::{Severity, TextStyle};
use crate::report::{Cell, Report, Split, Table, printable};

/// The names of the rows in the table of verdicts. The last two rows are about the time of a step,
/// and are left out if neither report has this time.
const VERDICT: [&str; 7] = [
    "Fits",
    "Limit",
    "IPUs",
    "Stages",
    "Peak memory",
    "Micro-batches of a step",
    "Cycles of a step",
];

/// Returns the values of `report` in the table of verdicts, in the order of [`VERDICT`].
fn verdict(report: &Report) -> [Cell; 7] {
    let Some(split) = &report.split else {
        return [const { Cell::Empty }; 7];
    };
    let step = report.step.as_ref();
    [
        split.fits.into(),
        split.limit.into(),
        split.max_stages.into(),
        split.stages.len().into(),
        split.peak().into(),
        step.map(|step| step.micro_batches).into(),
        step.map(|step| step.cycles).into(),
    ]
}

impl Comparison<'_> {
    /// Returns three tables that compare the reports: the verdicts on their splits, the stages of
    /// the splits, and the layers that differ.
    pub fn tables(&self) -> [Table; 3] {
        [self.verdict_table(), self.stage_table(), self.layer_table()]
    }

    /// The number of tables that [`tables`](Self::tables) returns.
    pub const TABLES: usize = 3;

    /// Returns the tables of the comparison for people: the tables that [`tables`](Self::tables)
    /// returns, with only the rows that differ between the reports, and without empty tables.
    pub fn changes(&self) -> Vec<Table> {
        let [mut verdict, mut stages, layers] = self.tables();
        verdict.rows.retain(|row| row.cells[1] != row.cells[2]);
        let mut changes = self.stages.iter();
        stages.rows.retain(|_| {
            changes
                .next()
                .is_some_and(|change| change.before != change.now)
        });
        [verdict, stages, layers]
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .collect()
    }

    /// Returns the table of verdicts: whether the split of each report fits, and numbers of the
    /// split such as its limit and its peak.
    fn verdict_table(&self) -> Table {
        let [before, now] = self.reports.map(verdict);
        let mut rows: Vec<_> = (VERDICT.into_iter().zip(before).zip(now)).collect();
        let has_step = |report: &&Report| report.split.is_some() && report.step.is_some();
        if !self.reports.iter().any(has_step) {
            rows.truncate(VERDICT.len() - 2);
        }
        table!("compare-verdict", rows, |((name, before), now)| {
            "Of the split" Text (name),
            "Before" Text (before),
            "Now" Text (now),
        })
    }

    fn stage_table(&self) -> Table {
        let layers = |own: &Option<ComparedBytes>| own.as_ref().map(|own| own.layers.clone());
        table!("compare-stages", self.stages.iter().enumerate(), |(number, stage)|
            let tile = stage.both(|memory| Some(memory.fullest_tile));
        {
            "Stage" Count (number),
            "Layers before" Layers (layers(&stage.before)),
            "Layers now" Layers (layers(&stage.now)),
            "Peak memory before" Bytes (tile[0]),
            "Peak memory now" Bytes (tile[1]),
            "Difference" Change (more(tile)),
        })
    }

    fn layer_table(&self) -> Table {
        let changed = self.layers.iter().filter(|layer| layer.before != layer.now);
        table!("compare-layers", changed, |layer|
            let tile = layer.both(|memory| Some(memory.fullest_tile));
            let total = layer.both(|memory| memory.total);
        {
            "Layer" Text (layer.now.as_ref().or(layer.before.as_ref()).map(|memory| &memory.layers)),
            "Change" Text (kind(layer)),
            "Peak memory before" Bytes (tile[0]),
            "Peak memory now" Bytes (tile[1]),
            "Difference" Change (more(tile)),
            "Total before" Bytes (total[0]),
            "Total now" Bytes (total[1]),
            "Difference of totals" Change (more(total)),
        })
    }

    /// Returns one line that says whether the model fits now, whether it did before, and which
    /// layer grew most. `look` determines the units and the colours.
    pub fn summary(&self, look: &TextStyle) -> String {
        let (tone, verdict) = match self.fits() {
            [_, None] => (Severity::Notable, "no split to judge"),
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
        let count = self.grown().count();
        let most = self.grown().max_by_key(|&(_, growth)| growth);
        let Some((layer, [on_tile, total])) = most else {
            return "no layer grew".to_string();
        };
        let (bytes, tiles) = match on_tile {
            1.. => (on_tile, "on its fullest tile"),
            _ => (total, "over all tiles"),
        };
        format!(
            "layers that grew: {count}, most of all {} by {} {tiles}",
            printable(layer),
            look.units.amount(u64::try_from(bytes).unwrap_or(0))
        )
    }
}

fn kind(layer: &BytesChange) -> &'static str {
    match (&layer.before, layer.growth()) {
        (None, _) => "new",
        (_, None) => "gone",
        (_, Some(growth)) if growth > [0; 2] => "grew",
        _ => "shrank",
    }
}
