//! Writes the comparison of two reports: as tables, and as one line of text.

use super::{ComparedLayer, Comparison, growth, more};
use crate::escape::printable;
use crate::report::terminal::{Severity, TextStyle};
use crate::report::{Cell, Report, Split, Table, table};

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

    /// Makes the table of verdicts: whether the split of each report fits, and its limit, stages
    /// and peak. Rows about the time of a step are left out if neither report has the time.
    fn verdict_table(&self) -> Table {
        let both = |cell: fn(&Report, &Split) -> Cell| {
            self.reports.map(|report| {
                report
                    .split
                    .as_ref()
                    .map_or(Cell::Empty, |split| cell(report, split))
            })
        };
        let of_step = [
            (
                "Micro-batches of a step",
                both(|report, _| report.step.as_ref().map(|step| step.micro_batches).into()),
            ),
            (
                "Cycles of a step",
                both(|report, _| report.step.as_ref().map(|step| step.cycles).into()),
            ),
        ];
        let is_known = |(_, cells): &(_, [Cell; 2])| *cells != [Cell::Empty, Cell::Empty];
        let rows = [
            ("Fits", both(|_, split| split.fits.into())),
            ("Limit", both(|_, split| split.limit.into())),
            ("IPUs", both(|_, split| split.max_stages.into())),
            ("Stages", both(|_, split| split.stages.len().into())),
            ("Peak memory", both(|_, split| split.peak().into())),
        ]
        .into_iter()
        .chain(of_step.into_iter().filter(is_known));
        table!("compare-verdict", rows, |(name, [before, now])| {
            "Of the split" Text (name),
            "Before" Text (before),
            "Now" Text (now),
        })
    }

    fn stage_table(&self) -> Table {
        let count = self.reports.map(|report| report.stages().len());
        table!("compare-stages", 0..count[0].max(count[1]), |number|
            let stage = self.reports.map(|report| Some((report, report.stages().get(number)?)));
            let layers = stage.map(|own| {
                own.map(|(report, stage)| report.pseudo_layers.names_of(&stage.layers).join(" "))
            });
            let tile = stage.map(|own| Some(own?.1.fullest_tile.bytes));
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
        let changed = self
            .layers
            .iter()
            .filter(|layer| growth(layer) != Some([0; 2]));
        table!("compare-layers", changed, |layer|
            let tile = layer.map(|memory| Some(memory?.fullest_tile_bytes));
            let total = layer.map(|memory| Some(memory?.total));
        {
            "Layer" Text (self.name(layer)),
            "Change" Text (kind(layer)),
            "Peak memory before" Bytes (tile[0]),
            "Peak memory now" Bytes (tile[1]),
            "Difference" Change (more(tile)),
            "Total before" Bytes (total[0]),
            "Total now" Bytes (total[1]),
            "Difference of totals" Change (more(total)),
        })
    }

    /// Returns one line that says whether the model fits in the later report, whether it did in the
    /// earlier one, and which layer grew most. `look` has the units and colours of the text.
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

fn kind(layer: &ComparedLayer<'_>) -> &'static str {
    match (layer[0], growth(layer)) {
        (None, _) => "new",
        (_, None) => "gone",
        (_, Some(growth)) if growth > [0; 2] => "grew",
        _ => "shrank",
    }
}
