//! What takes the memory of each stage, and what moving a layer would do.

use super::{TextStyle, layers};
use crate::memory::Parts;
use crate::model::PseudoLayers;
use crate::report::Report;
use crate::report::Units;
use crate::report::document::{Cut, Move, PeakVariables, StageFacts};
use crate::report::text::share;
use crate::report::{grouped, printable};

/// How many variables of a stage are named.
const VARIABLES: usize = 5;
/// How many groups of layers that share variables are named.
const TIES: usize = 5;

/// A paragraph for each stage and each cut, and one for what layers share.
pub fn explain(report: &Report, look: &TextStyle) -> String {
    let words = Words {
        units: look.units.for_bytes(report.memory.limit),
        pseudo_layers: report.pseudo_layers,
    };
    let stages = report.split.iter().flat_map(|split| &split.stages);
    let mut lines = Vec::new();
    for (number, stage) in stages.enumerate() {
        lines.extend(of_stage(stage, words));
        if let Some(cut) = report.cuts.get(number) {
            lines.extend(of_cut(cut, words));
        }
    }
    lines.extend(ties(report, words));
    lines.join("\n")
}

/// How amounts and layers are written.
#[derive(Clone, Copy)]
struct Words {
    units: Units,
    pseudo_layers: PseudoLayers,
}

fn of_stage(stage: &StageFacts, words: Words) -> Vec<String> {
    let Words {
        units,
        pseudo_layers,
    } = words;
    let full = &stage.fullest_tile;
    let step = match full.peak_step {
        Some(step) => format!(" at step {step}"),
        None => String::new(),
    };
    let mut lines = vec![
        format!(
            "stage {}, layers {}: tile {}{step} is fullest with {}, {} of the limit",
            stage.stage,
            layers(pseudo_layers, &stage.layers),
            full.tile,
            units.amount(full.bytes),
            share(full.bytes, full.limit)
        ),
        format!("  there: {}", parts(&full.parts, units)),
    ];
    if let Some(live) = &stage.peak_variables {
        lines.extend(variables(live, words));
    }
    let tiles = &stage.tiles;
    lines.push(format!(
        "  half of the tiles have at most {}, 95 % at most {}",
        units.amount(tiles.median),
        units.amount(tiles.percentile_95)
    ));
    lines
}

fn parts(parts: &Parts, units: Units) -> String {
    let named = Parts::NAMES.into_iter().zip(parts.bytes());
    let some = named.filter(|&(_, bytes)| bytes > 0);
    let some: Vec<String> = some
        .map(|(name, bytes)| format!("{name} {}", units.short(bytes)))
        .collect();
    some.join(", ")
}

fn variables(live: &PeakVariables, words: Words) -> Vec<String> {
    let Words {
        units,
        pseudo_layers,
    } = words;
    let categories = live.categories.iter().map(|category| {
        let name = printable(&category.name);
        format!("{name} {}", units.short(category.bytes))
    });
    let categories: Vec<String> = categories.collect();
    let mut lines = Vec::new();
    if !categories.is_empty() {
        lines.push(format!(
            "  live then by category: {}",
            categories.join(", ")
        ));
    }
    lines.extend(live.largest.iter().take(VARIABLES).map(|variable| {
        let of = match variable.layers.as_slice() {
            [] => "no layer".to_string(),
            [one] => printable(&pseudo_layers.named(one)),
            several => format!("layers {}", layers(pseudo_layers, several)),
        };
        format!(
            "    {} {} ({}, {of})",
            units.amount(variable.bytes),
            printable(&variable.name),
            printable(&variable.category)
        )
    }));
    lines
}

fn of_cut(cut: &Cut, words: Words) -> Vec<String> {
    let units = words.units;
    let mut flows = format!(
        "cut behind stage {}: {} flow over it",
        cut.after_stage,
        units.amount(cut.bytes)
    );
    if cut.duplicated > 0 {
        flows.push_str(&format!(
            ", {} that are always live are needed on both sides",
            units.amount(cut.duplicated)
        ));
    }
    let moves = cut.moves.iter().map(|change| of_move(change, cut, words));
    std::iter::once(flows).chain(moves).collect()
}

fn of_move(change: &Move, cut: &Cut, words: Words) -> String {
    let units = words.units;
    let side = |number: usize| {
        let by = change.change[number];
        let sign = if by < 0 { "-" } else { "+" };
        format!(
            "stage {} {} ({sign}{})",
            cut.after_stage as usize + number,
            units.amount(change.fullest_tile_bytes[number]),
            units.short(by.unsigned_abs())
        )
    };
    let moved = match change.layers.as_slice() {
        [one] => printable(&words.pseudo_layers.named(one)),
        several => layers(words.pseudo_layers, several),
    };
    format!(
        "  with {moved} in stage {}: {}, {}",
        change.to_stage,
        side(0),
        side(1)
    )
}

fn ties(report: &Report, words: Words) -> Vec<String> {
    if report.ties.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "{} groups of layers share variables that are always live; a cut between them doubles \
         these:",
        grouped(report.ties.len() as u64)
    )];
    lines.extend(report.ties.iter().take(TIES).map(|tie| {
        format!(
            "  {} of layers {}",
            words.units.amount(tie.bytes),
            layers(words.pseudo_layers, &tie.layers)
        )
    }));
    lines
}
