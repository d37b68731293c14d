//! The comparison of two reports as tables, and in one line.

use super::{Comparison, LayerChange, Verdict, more};
use crate::report::printable;
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::terminal::{Severity, TextStyle};

impl Comparison {
    /// Returns the tables of the verdicts, the stages, and the layers.
    pub fn tables(&self) -> [Table; 3] {
        [self.verdict_table(), self.stage_table(), self.layer_table()]
    }

    /// Number of tables that [`tables`](Self::tables) returns.
    pub const TABLES: usize = 3;

    /// Returns the tables for people: only rows that changed, and no empty tables.
    pub fn changes(&self) -> Vec<Table> {
        let mut changed = self.clone();
        changed.stages.retain(|stage| stage.before != stage.now);
        let [mut verdict, stages, layers] = changed.tables();
        verdict.rows.retain(|row| row.cells[1] != row.cells[2]);
        let tables = [verdict, stages, layers].into_iter();
        tables.filter(|table| !table.rows.is_empty()).collect()
    }

    fn verdict_table(&self) -> Table {
        let columns = ["Of the split", "Before", "Now"].map(Column::text);
        let mut table = Table::new("compare-verdict", &columns);
        let names = [
            "Fits",
            "Limit",
            "IPUs",
            "Stages",
            "Peak memory",
            "Micro-batches of a step",
            "Cycles of a step",
        ];
        let cells = [&self.before, &self.now].map(|verdict| verdict.as_ref().map(cells));
        let [before, now] = cells.map(|cells| cells.unwrap_or([const { Cell::Empty }; 7]));
        let rows = names.into_iter().zip(before.into_iter().zip(now));
        let steps = [self.before, self.now].map(|verdict| verdict.and_then(|verdict| verdict.step));
        let count = if steps == [None, None] { 5 } else { 7 };
        for (name, (before, now)) in rows.take(count) {
            table.row("", cells![name, before, now]);
        }
        table
    }

    fn stage_table(&self) -> Table {
        let columns = [
            Column::new("Stage", Kind::Count, ""),
            Column::new("Layers before", Kind::Layers, ""),
            Column::new("Layers now", Kind::Layers, ""),
            Column::new("Peak memory before", Kind::Bytes, ""),
            Column::new("Peak memory now", Kind::Bytes, ""),
            Column::new("Difference", Kind::Change, ""),
        ];
        let mut table = Table::new("compare-stages", &columns);
        for stage in &self.stages {
            let both = [&stage.before, &stage.now];
            let [before, now] =
                both.map(|stage| stage.as_ref().map(|stage| stage.layers.join(" ")));
            let bytes = both.map(|stage| stage.as_ref().map(|stage| stage.fullest_tile));
            let mut row = cells![stage.stage, before, now];
            row.extend(numbers(bytes));
            table.row("", row);
        }
        table
    }

    fn layer_table(&self) -> Table {
        let columns = [
            Column::text("Layer"),
            Column::text("Change"),
            Column::new("Peak memory before", Kind::Bytes, ""),
            Column::new("Peak memory now", Kind::Bytes, ""),
            Column::new("Difference", Kind::Change, ""),
            Column::new("Total before", Kind::Bytes, ""),
            Column::new("Total now", Kind::Bytes, ""),
            Column::new("Difference of totals", Kind::Change, ""),
        ];
        let mut table = Table::new("compare-layers", &columns);
        for layer in self.layers.iter().filter(|layer| layer.before != layer.now) {
            let both = [layer.before, layer.now];
            let mut row = cells![&*layer.name, change(layer)];
            row.extend(numbers(
                both.map(|stage| stage.map(|stage| stage.fullest_tile)),
            ));
            row.extend(numbers(both.map(|stage| stage.map(|stage| stage.total))));
            table.row("", row);
        }
        table
    }

    /// Describes the most important changes in one line.
    pub fn summary(&self, look: &TextStyle) -> String {
        let verdict = match (self.before.map(|v| v.fits), self.now.map(|v| v.fits)) {
            (_, None) => look.toned(Severity::Notable, "no split to judge"),
            (Some(true), Some(false)) => look.toned(Severity::Bad, "it fitted and no longer does"),
            (Some(false), Some(true)) => look.toned(Severity::Good, "it fits, and did not before"),
            (_, Some(true)) => look.toned(Severity::Good, "it fits"),
            (_, Some(false)) => look.toned(Severity::Bad, "it does not fit"),
        };
        let tiles = match (self.before, self.now) {
            (Some(before), Some(now)) => format!(
                "; the fullest tile had {} and has {}",
                look.units.amount(before.fullest_tile),
                look.units.short(now.fullest_tile)
            ),
            _ => String::new(),
        };
        let changes = match self.is_unchanged() {
            true => "verdict, stages and layers are what they were".to_string(),
            false => self.growth(look),
        };
        format!("compared: {verdict}{tiles}; {changes}")
    }

    fn growth(&self, look: &TextStyle) -> String {
        let count = self.grown().count();
        let Some((layer, tile, total)) = self.grown().max_by_key(|&(_, tile, total)| (tile, total))
        else {
            return "no layer grew".to_string();
        };
        let amount = |bytes: i128| look.units.amount(u64::try_from(bytes).unwrap_or(0));
        let by = if tile > 0 {
            format!("{} on its fullest tile", amount(tile))
        } else {
            format!("{} over all tiles", amount(total))
        };
        let name = printable(&layer.name);
        format!("layers that grew: {count}, most of all {name} by {by}")
    }
}

/// Returns the cells of a verdict, one for each row.
fn cells(verdict: &Verdict) -> [Cell; 7] {
    [
        verdict.fits.into(),
        verdict.limit.into(),
        verdict.max_stages.into(),
        verdict.stages.into(),
        verdict.fullest_tile.into(),
        verdict.step.map(|(batches, _)| batches).into(),
        verdict.step.map(|(_, cycles)| cycles).into(),
    ]
}

fn change(layer: &LayerChange) -> &'static str {
    match (layer.before, layer.growth()) {
        (None, _) => "new",
        (_, None) => "gone",
        (_, Some((tile, total))) if tile > 0 || (tile == 0 && total > 0) => "grew",
        _ => "shrank",
    }
}

/// Returns the cells for before, now, and the difference; empty for a missing number.
fn numbers([before, now]: [Option<u64>; 2]) -> [Cell; 3] {
    let both = before.zip(now);
    let difference = both.map(|(before, now)| more(before, now));
    [before.into(), now.into(), difference.into()]
}
