//! The comparison as tables, and in one line.

use super::{Comparison, LayerChange, StageBytes, Verdict, more};
use crate::report::terminal::{Severity, TextStyle};
use crate::report::{Table, printable};

impl Comparison {
    /// The verdicts, the stages, and the layers that are not what they were.
    pub fn tables(&self) -> [Table; 3] {
        [self.verdict_table(), self.stage_table(), self.layer_table()]
    }

    /// How many tables there are.
    pub const TABLES: usize = 3;

    fn verdict_table(&self) -> Table {
        let mut table = Table::new("compare-verdict", &["Of the split", "Before", "Now"]);
        let names = ["Fits", "Limit", "IPUs", "Stages", "Fullest tile"];
        let [before, now] = [&self.before, &self.now].map(|v| v.as_ref().map(cells));
        let (before, now) = (before.unwrap_or_default(), now.unwrap_or_default());
        for ((name, before), now) in names.into_iter().zip(before).zip(now) {
            table.rows.push(vec![name.to_string(), before, now]);
        }
        table
    }

    fn stage_table(&self) -> Table {
        let header = [
            "Stage",
            "Layers before",
            "Layers now",
            "Fullest tile before",
            "Fullest tile now",
            "Difference",
        ];
        let mut table = Table::new("compare-stages", &header);
        for stage in &self.stages {
            let bytes = |stage: &Option<StageBytes>| stage.as_ref().map(|s| s.fullest_tile);
            let mut row = vec![stage.stage.to_string()];
            row.extend(
                [&stage.before, &stage.now].map(|s| s.as_ref().map_or_else(String::new, names)),
            );
            row.extend(numbers(bytes(&stage.before), bytes(&stage.now)));
            table.rows.push(row);
        }
        table
    }

    fn layer_table(&self) -> Table {
        let header = [
            "Layer",
            "Change",
            "Fullest tile before",
            "Fullest tile now",
            "Difference",
            "Total before",
            "Total now",
            "Difference of totals",
        ];
        let mut table = Table::new("compare-layers", &header);
        for layer in self.layers.iter().filter(|layer| layer.before != layer.now) {
            let (before, now) = (layer.before, layer.now);
            let name = layer.name.clone();
            let mut row = vec![name, change(layer).to_string()];
            row.extend(numbers(
                before.map(|b| b.fullest_tile),
                now.map(|b| b.fullest_tile),
            ));
            row.extend(numbers(before.map(|b| b.total), now.map(|b| b.total)));
            table.rows.push(row);
        }
        table
    }

    /// What people want to know first, in one line.
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
        format!("compared: {verdict}{tiles}; {}", self.growth(look))
    }

    fn growth(&self, look: &TextStyle) -> String {
        let count = self.grown().count();
        let Some((layer, tile, total)) = self.grown().max_by_key(|&(_, tile, total)| (tile, total))
        else {
            return "no layer grew".to_string();
        };
        let amount = |bytes: i128| look.units.amount(u64::try_from(bytes).unwrap_or(0));
        let by = match tile > 0 {
            true => format!("{} on its fullest tile", amount(tile)),
            false => format!("{} over all tiles", amount(total)),
        };
        let name = printable(&layer.name);
        format!("layers that grew: {count}, most of all {name} by {by}")
    }
}

/// A verdict, cell by cell.
fn cells(verdict: &Verdict) -> [String; 5] {
    [
        yes_or_no(verdict.fits).to_string(),
        verdict.limit.to_string(),
        verdict.max_stages.to_string(),
        verdict.stages.to_string(),
        verdict.fullest_tile.to_string(),
    ]
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn change(layer: &LayerChange) -> &'static str {
    match (layer.before, layer.growth()) {
        (None, _) => "new",
        (_, None) => "gone",
        (_, Some((tile, total))) if tile > 0 || (tile == 0 && total > 0) => "grew",
        _ => "shrank",
    }
}

/// Before, now, and the difference; empty where one is not there.
fn numbers(before: Option<u64>, now: Option<u64>) -> [String; 3] {
    let difference = before
        .zip(now)
        .map(|(before, now)| more(before, now).to_string());
    let [before, now] = [before, now].map(|n| n.map(|n| n.to_string()).unwrap_or_default());
    [before, now, difference.unwrap_or_default()]
}

fn names(stage: &StageBytes) -> String {
    stage.layers.join(" ")
}
