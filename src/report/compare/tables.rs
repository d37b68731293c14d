//! Writes the comparison of two reports: as tables, and as one line of text.

use super::{BytesChange, Comparison, both, growth, more};
use crate::report::table::table;
use crate::report::terminal::{Severity, TextStyle};
use crate::report::{Cell, Split, StepFacts, Table, printable};

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
        stages
            .rows
            .retain(|row| row.cells[1] != row.cells[2] || row.cells[3] != row.cells[4]);
        [verdict, stages, layers]
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .collect()
    }

    /// Returns the table of verdicts: whether the split of each report fits, and numbers of the
    /// split such as its limit and its peak. The rows about the time of a step are left out if
    /// neither report has this time.
    fn verdict_table(&self) -> Table {
        let of_split = |cell: fn(&Split) -> Cell| {
            let splits = self.reports.map(|report| report.split.as_ref());
            splits.map(|split| Cell::from(split.map(cell)))
        };
        let of_step = |number: fn(&StepFacts) -> u64| {
            let steps = self
                .reports
                .map(|report| report.split.as_ref().and(report.step.as_ref()));
            steps.map(|step| Cell::from(step.map(number)))
        };
        let of_steps = [
            (
                "Micro-batches of a step",
                of_step(|step| step.micro_batches),
            ),
            ("Cycles of a step", of_step(|step| step.cycles)),
        ];
        let rows = [
            ("Fits", of_split(|split| split.fits.into())),
            ("Limit", of_split(|split| split.limit.into())),
            ("IPUs", of_split(|split| split.max_stages.into())),
            ("Stages", of_split(|split| split.stages.len().into())),
            ("Peak memory", of_split(|split| split.peak().into())),
        ];
        let has_step = |(_, cells): &(_, [Cell; 2])| *cells != [Cell::Empty, Cell::Empty];
        let rows = rows
            .into_iter()
            .chain(of_steps.into_iter().filter(has_step));
        table!("compare-verdict", rows, |(name, [before, now])| {
            "Of the split" Text (name),
            "Before" Text (before),
            "Now" Text (now),
        })
    }

    fn stage_table(&self) -> Table {
        table!("compare-stages", self.stages.iter().enumerate(), |(number, stage)|
            let layers = stage.each_ref().map(|own| own.as_ref().map(|own| &own.layers));
            let tile = both(stage, |memory| Some(memory.fullest_tile));
        {
            "Stage" Count (number),
            "Layers before" Layers (layers[0]),
            "Layers now" Layers (layers[1]),
            "Peak memory before" Bytes (tile[0]),
            "Peak memory now" Bytes (tile[1]),
            "Difference" Change (more(tile)),
        })
    }

    fn layer_table(&self) -> Table {
        let changed = self.layers.iter().filter(|[before, now]| before != now);
        table!("compare-layers", changed, |layer|
            let tile = both(layer, |memory| Some(memory.fullest_tile));
            let total = both(layer, |memory| memory.total);
        {
            "Layer" Text (layer.iter().flatten().last().map(|memory| &memory.layers)),
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
    match (&layer[0], growth(layer)) {
        (None, _) => "new",
        (_, None) => "gone",
        (_, Some(growth)) if growth > [0; 2] => "grew",
        _ => "shrank",
    }
}
