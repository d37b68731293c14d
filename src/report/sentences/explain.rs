//! Sentences of `--explain`, which say how each stage uses its memory and what moving a cut would
//! change, and sentences about the weights that several layers share.

use super::other_pipelines;
use crate::{
    model::{LayerNames, WeightTie},
    report::phrases::{Amount, Bytes, Count, at_step, in_parentheses, layers, name},
    report::{Cut, Move, PeakVariables, Phrase, Report, SharedVariables, Stage},
    wording::{counted, displayed, join, listed, share},
};

/// Maximum number of the largest variables that `--explain` lists at the memory peak of a stage.
/// Variables whose names differ only in numbers count as one.
const VARIABLES: usize = 5;
/// Maximum number of groups of layers that `--explain` lists. The layers of a group use the same
/// always-live variables.
const GROUPS: usize = 5;

/// Returns the lines of `--explain`: the memory of each stage, the effect of moving each cut, the
/// best splits in other pipelines, the bytes that the prediction adds for gradient accumulators,
/// and the variables that layers share. Details are indented.
pub fn explain(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, stage) in report.stages().iter().enumerate() {
        lines.extend(of_stage(report, stage));
        if let Some(cut) = report.cuts.get(number) {
            lines.push(of_cut(report, cut));
            lines.extend(cut.moves.iter().map(|own| of_move(report, own, cut)));
        }
    }
    let pipeline = report.pipeline.iter().filter(|_| report.refusal.is_none());
    lines.extend(pipeline.flat_map(other_pipelines));
    lines.extend(accumulation(report));
    lines.extend(shared(&report.shared_variables));
    lines
}

fn of_stage(report: &Report, stage: &Stage) -> Vec<String> {
    let full = &stage.fullest_tile;
    let mut lines = vec![
        format!(
            "stage {}, layer{} {}: tile {}{} is fullest with {}, {} of the limit",
            stage.stage,
            if stage.layers.len() == 1 { "" } else { "s" },
            layers(&stage.layers),
            full.tile,
            at_step(full.peak_step),
            Amount(full.bytes),
            share(full.bytes, full.limit)
        ),
        format!("  there: {}", with_bytes(&full.parts.named())),
    ];
    if full.parts.variables > 0 {
        lines.push(format!(
            "  of the variables: {}",
            with_bytes(&full.variable_kinds.named())
        ));
    }
    lines.extend(of_copies(report, stage));
    lines.extend(of_update(stage));
    if let Some(live) = &stage.peak_variables {
        lines.extend(variables(report, live));
    }
    lines.push(format!(
        "  half of the tiles have at most {}, 95 % at most {}",
        Amount(stage.tiles.median),
        Amount(stage.tiles.percentile_95)
    ));
    lines
}

/// Lists kinds of memory, such as vertex code, with their bytes as words of a sentence. `named` has
/// the names and the bytes of all kinds; kinds without bytes are left out.
fn with_bytes(named: &[(&str, u64)]) -> String {
    join(
        named
            .iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|&(name, bytes)| format!("{name} {}", Bytes(bytes))),
        ", ",
    )
}

/// Returns the line that compares the bytes of a stage in the weight update with those in the
/// forward and backward passes; `None` if optimizer state is on the chip.
fn of_update(stage: &Stage) -> Option<String> {
    let update = stage.update()?;
    let with_one_pad = match Amount(update.at_least) {
        least if update.at_least < update.bytes => {
            format!(", and with a landing pad for one tensor of state at a time {least}")
        }
        _ => String::new(),
    };
    Some(format!(
        "  in the update tile {} has at most {}{with_one_pad}; in the passes the fullest tile has {}",
        update.tile,
        Amount(update.bytes),
        Amount(update.in_passes)
    ))
}

/// Returns the lines that say how many additional copies of each stashed variable a stage keeps,
/// and list the largest stashed variables. There are no lines if the stage keeps no such copies.
fn of_copies(report: &Report, stage: &Stage) -> Vec<String> {
    let Some(pipeline) = stage
        .pipeline
        .as_ref()
        .filter(|pipeline| pipeline.copies > 0)
    else {
        return Vec::new();
    };
    let late = pipeline.late_restores.map(Amount);
    let mut lines = vec![format!(
        "  with {} after it, it keeps {} of what it stashes{}",
        counted(pipeline.depth, "pipeline stage"),
        counted(pipeline.copies, "more copy"),
        late.map_or(String::new(), |bytes| format!(
            "; with late restores its fullest tile has {bytes}"
        ))
    )];
    lines.extend(pipeline.stashed.iter().map(|tensor| {
        let of = users(report, &tensor.layers).map_or(String::new(), |users| format!(" ({users})"));
        format!(
            "    stashed: {} {}{of}",
            Amount(tensor.bytes),
            name(&tensor.name)
        )
    }));
    lines
}

/// Returns the names of layers, such as those that use a variable, as words of a sentence; `None`
/// if there are none.
fn users(report: &Report, names: &LayerNames) -> Option<String> {
    match names.as_slice() {
        [] => None,
        [one] => Some(name(report.pseudo_layers.in_sentence(one)).to_string()),
        _ => Some(format!("layers {}", layers(names))),
    }
}

/// Returns the line about gradient accumulators, which a profile lacks if it was recorded without
/// gradient accumulation: the most bytes that the prediction adds for them on the fullest tile of
/// any stage. Returns `None` if it adds none.
fn accumulation(report: &Report) -> Option<String> {
    let (bytes, stage) = report
        .stages()
        .iter()
        .map(|stage| (stage.fullest_tile.parts.accumulators, stage.stage))
        .max()
        .filter(|&(bytes, _)| bytes > 0)?;
    Some(format!(
        "the profile has no gradient accumulators: {} are added for them on the fullest tile of \
         stage {stage}; record with gradient accumulation for the exact bytes",
        Amount(bytes)
    ))
}

fn variables(report: &Report, live: &PeakVariables) -> Vec<String> {
    let mut lines = Vec::new();
    if !live.categories.is_empty() {
        let categories = join(
            live.categories
                .iter()
                .map(|own| format!("{} {}", name(&own.name), Bytes(own.bytes))),
            ", ",
        );
        lines.push(format!("  live then by category: {categories}"));
    }
    lines.extend(live.largest.iter().take(VARIABLES).map(|sum| {
        let variable = &sum.variable;
        let count = (sum.count > 1).then(|| counted(sum.count, "variable"));
        let facts = count.into_iter().chain([
            name(&variable.category).to_string(),
            users(report, &variable.layers).unwrap_or("no layer".to_string()),
        ]);
        format!(
            "    {} {} ({})",
            Amount(variable.bytes),
            name(&variable.name),
            join(facts, ", ")
        )
    }));
    lines
}

fn of_cut(report: &Report, cut: &Cut) -> String {
    let doubled = match cut.duplicated {
        0 => String::new(),
        bytes => format!(
            ", {} that are always live are needed on both sides",
            Amount(bytes)
        ),
    };
    format!(
        "cut before {}: {} flow over it{doubled}",
        name(report.pseudo_layers.in_sentence(&cut.layer_from)),
        Amount(cut.bytes)
    )
}

fn of_move(report: &Report, layer_move: &Move, cut: &Cut) -> String {
    let [before, after] = [0, 1].map(|side| {
        format!(
            "stage {} {} {}",
            (cut.stage as usize + side).saturating_sub(1),
            Amount(layer_move.fullest_tile_bytes[side]),
            in_parentheses(layer_move.change[side])
        )
    });
    format!(
        "  with {} in stage {}: {before}, {after}",
        users(report, &layer_move.layers).unwrap_or_default(),
        layer_move.to_stage
    )
}

fn shared(groups: &[SharedVariables]) -> Vec<String> {
    let share = match groups.len() {
        0 => return Vec::new(),
        1 => "group of layers shares",
        _ => "groups of layers share",
    };
    let mut lines = vec![format!(
        "{} {share} variables that are always live; a cut between them doubles these:",
        Count(groups.len() as u64)
    )];
    lines.extend(groups.iter().take(GROUPS).map(|own| {
        let layers = layers(&own.layers);
        format!("  {} of layers {layers}", Amount(own.bytes))
    }));
    lines
}

/// Maximum number of tied weights (weights of several layers) that are listed by name.
const MAX_TIED: usize = 5;

/// Returns a sentence for each tied weight (a weight that several layers use), the weight with the
/// most bytes first. After 5 weights, a last line gives the number of the others.
pub fn tied_weights(report: &Report) -> Vec<String> {
    let all = &report.tied_weights;
    let mut lines: Vec<_> = all
        .iter()
        .take(MAX_TIED)
        .map(|weight| tied_weight(report, weight))
        .collect();
    if let Some(more @ 1..) = all.len().checked_sub(MAX_TIED) {
        lines.push(format!("and {} more", counted(more, "tied weight")));
    }
    lines
}

/// Returns the sentence that says which layers use a tied weight, and which IPUs have a copy of the
/// weight.
fn tied_weight(report: &Report, tied: &WeightTie) -> String {
    let names = report.pseudo_layers.names_of(&tied.layers);
    let has_in = tied.layers.contains(&None);
    let stages = join(&tied.stages, ", ");
    let place = match (tied.stages.as_slice(), tied.is_untied) {
        ([], false) => "on one IPU in every split".to_string(),
        ([], true) => "untied".to_string(),
        ([one], _) => format!("on IPU {one}"),
        (_, true) => {
            format!("untied, with a copy on each of IPUs {stages}; untie it in the model too")
        }
        (_, false) => format!("on IPUs {stages}, which no framework runs"),
    };
    format!(
        "tied weight {} ({}) {} {}: {place}",
        name(&tied.weight),
        Amount(tied.bytes),
        if has_in { "of" } else { "of layers" },
        Phrase::List(listed(names.into_iter().map(displayed)))
    )
}
