//! How each stage uses its memory, and the effect of moving a cut (`--explain`).

use super::{Sentence, beside_what_fits, of_limit, say};
use crate::memory::Parts;
use crate::model::PseudoLayers;
use crate::report::{Cut, LiveVariable, Move, PeakVariables, Report, SharedVariables, Stage};
use crate::wording::counted;

/// Upper bound on variables named at a peak.
const VARIABLES: usize = 5;
/// Upper bound on groups of layers that share variables.
const GROUPS: usize = 5;

/// Returns a paragraph for each stage and each cut, and one for variables that layers share. Each
/// line has its indent.
pub(in crate::report) fn explain(report: &Report) -> Vec<Sentence> {
    let pseudo_layers = report.pseudo_layers;
    let stages = report.split.iter().flat_map(|split| &split.stages);
    let mut lines = Vec::new();
    for (number, stage) in stages.enumerate() {
        lines.extend(of_stage(stage, pseudo_layers));
        if let Some(cut) = report.cuts.get(number) {
            lines.push(of_cut(cut));
            let moves = cut.moves.iter();
            lines.extend(moves.map(|moved| of_move(moved, cut, pseudo_layers)));
        }
    }
    let pipeline = report.pipeline.iter().filter(|_| report.refusal.is_none());
    lines.extend(pipeline.flat_map(beside_what_fits));
    lines.extend(accumulation(report));
    lines.extend(shared(&report.shared_variables));
    lines
}

fn of_stage(stage: &Stage, pseudo_layers: PseudoLayers) -> Vec<Sentence> {
    let full = &stage.fullest_tile;
    let step = full
        .peak_step
        .map_or(String::new(), |step| format!(" at step {step}"));
    let layers = if stage.layers.len() == 1 {
        "layer"
    } else {
        "layers"
    };
    let mut lines = vec![
        say(format!("stage {}, {layers} ", stage.stage))
            .layers(&stage.layers)
            .text(format!(": tile {}{step} is fullest with ", full.tile))
            .amount(full.bytes)
            .text(format!(", {}", of_limit(full.bytes, full.limit))),
        say("  there: ").and(parts(&full.parts)),
    ];
    lines.extend(of_pipeline(stage, pseudo_layers));
    if let Some(live) = &stage.peak_variables {
        lines.extend(variables(live, pseudo_layers));
    }
    lines.push(
        say("  half of the tiles have at most ")
            .amount(stage.tiles.median)
            .text(", 95 % at most ")
            .amount(stage.tiles.percentile_95),
    );
    lines
}

/// Says how many copies a stage keeps, and how much memory the update needs.
fn of_pipeline(stage: &Stage, pseudo_layers: PseudoLayers) -> Vec<Sentence> {
    let mut lines = of_copies(stage, pseudo_layers);
    let pipeline = stage.pipeline.as_ref();
    let update = pipeline.and_then(|pipeline| pipeline.update.as_ref());
    lines.extend(update.map(|update| {
        let line =
            say(format!("  in the update tile {} has at most ", update.tile)).amount(update.bytes);
        let line = match update.at_least < update.bytes {
            true => line
                .text(", and with a landing pad for one tensor of state at a time ")
                .amount(update.at_least),
            false => line,
        };
        line.text("; in the passes the fullest tile has ")
            .amount(update.in_passes)
    }));
    lines
}

fn of_copies(stage: &Stage, pseudo_layers: PseudoLayers) -> Vec<Sentence> {
    let pipeline = stage.pipeline.as_ref();
    let Some(pipeline) = pipeline.filter(|pipeline| pipeline.copies > 0) else {
        return Vec::new();
    };
    let head = say(format!(
        "  with {} after it, it keeps {} of what it stashes",
        counted(pipeline.depth, "pipeline stage"),
        counted(pipeline.copies, "more copy")
    ));
    let head = match pipeline.late_restores {
        Some(bytes) => head
            .text("; with late restores its fullest tile has ")
            .amount(bytes),
        None => head,
    };
    let stashed = pipeline.stashed.iter().map(|tensor| {
        let line = say("    stashed: ")
            .amount(tensor.bytes)
            .text(" ")
            .name(&*tensor.name);
        match tensor.layers.as_slice() {
            [] => line,
            [one] => line.text(" (").name(pseudo_layers.named(one)).text(")"),
            _ => line.text(" (layers ").layers(&tensor.layers).text(")"),
        }
    });
    [head].into_iter().chain(stashed).collect()
}

/// Says how many bytes are added for accumulators, which recording with gradient accumulation would
/// make exact.
fn accumulation(report: &Report) -> Option<Sentence> {
    let stages = report.split.iter().flat_map(|split| &split.stages);
    let accumulators = stages.map(|stage| (stage.fullest_tile.parts.accumulators, stage.stage));
    let (bytes, stage) = accumulators.max().filter(|&(bytes, _)| bytes > 0)?;
    Some(
        say("the profile has no gradient accumulators: ")
            .amount(bytes)
            .text(format!(
                " are added for them on the fullest tile of stage {stage}; record with gradient \
                 accumulation for the exact bytes"
            )),
    )
}

/// Names the parts that take memory.
fn parts(parts: &Parts) -> Sentence {
    let named = parts.named().into_iter();
    let some = named.filter(|&(_, bytes)| bytes > 0);
    let some = some.map(|(name, bytes)| say(format!("{name} ")).bytes(bytes));
    Sentence::join(some, ", ")
}

fn variables(live: &PeakVariables, pseudo_layers: PseudoLayers) -> Vec<Sentence> {
    let mut lines = Vec::new();
    if !live.categories.is_empty() {
        let categories = live.categories.iter();
        let categories = categories.map(|category| {
            let name = Sentence::default().name(&category.name);
            name.text(" ").bytes(category.bytes)
        });
        lines.push(say("  live then by category: ").and(Sentence::join(categories, ", ")));
    }
    let variable = |variable: &LiveVariable| {
        let line = say("    ")
            .amount(variable.bytes)
            .text(" ")
            .name(&variable.name)
            .text(" (")
            .name(&variable.category);
        let line = match variable.layers.as_slice() {
            [] => line.text(", no layer"),
            [one] => line.text(", ").name(pseudo_layers.named(one)),
            _ => line.text(", layers ").layers(&variable.layers),
        };
        line.text(")")
    };
    lines.extend(live.largest.iter().take(VARIABLES).map(variable));
    lines
}

fn of_cut(cut: &Cut) -> Sentence {
    let flows = say(format!("cut after stage {}: ", cut.after_stage))
        .amount(cut.bytes)
        .text(" flow over it");
    if cut.duplicated == 0 {
        return flows;
    }
    flows
        .text(", ")
        .amount(cut.duplicated)
        .text(" that are always live are needed on both sides")
}

fn of_move(layer_move: &Move, cut: &Cut, pseudo_layers: PseudoLayers) -> Sentence {
    let side = |number: usize| {
        let change = layer_move.change[number];
        let sign = if change < 0 { "-" } else { "+" };
        say(format!("stage {} ", cut.after_stage as usize + number))
            .amount(layer_move.fullest_tile_bytes[number])
            .text(format!(" ({sign}"))
            .bytes(change.unsigned_abs())
            .text(")")
    };
    let moved = match layer_move.layers.as_slice() {
        [one] => say("  with ").name(pseudo_layers.named(one)),
        _ => say("  with ").layers(&layer_move.layers),
    };
    let moved = moved.text(format!(" in stage {}: ", layer_move.to_stage));
    moved.and(Sentence::join([side(0), side(1)], ", "))
}

fn shared(groups: &[SharedVariables]) -> Vec<Sentence> {
    if groups.is_empty() {
        return Vec::new();
    }
    let share = match groups.len() {
        1 => " group of layers shares",
        _ => " groups of layers share",
    };
    let head = Sentence::default()
        .count(groups.len() as u64)
        .text(share)
        .text(" variables that are always live; a cut between them doubles these:");
    let group = |variables: &SharedVariables| {
        say("  ")
            .amount(variables.bytes)
            .text(" of layers ")
            .layers(&variables.layers)
    };
    let groups = groups.iter().take(GROUPS).map(group);
    [head].into_iter().chain(groups).collect()
}
