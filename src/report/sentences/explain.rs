//! How each stage uses its memory, the effect of moving a cut (`--explain`), and the weights that
//! several layers share.

use super::{
    Amount, Bytes, Count, Phrase, Sentence, beside_what_fits, fill, in_parentheses, layers, name,
    say, text,
};
use crate::memory::Parts;
use crate::model::PseudoLayers;
use crate::report::{
    Cut, LiveVariable, Move, PeakVariables, Report, SharedVariables, Stage, TiedWeightFacts,
};
use crate::wording::displayed;
use crate::wording::{counted, listed, share};

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
    let step = full.peak_step.map(|step| format!(" at step {step}"));
    let plural = if stage.layers.len() == 1 { "" } else { "s" };
    let begin = format!("stage {}, layer{plural}", stage.stage);
    let tile = format!("tile {}{}", full.tile, step.unwrap_or_default());
    let share = format!("{} of the limit", share(full.bytes, full.limit));
    let mut lines = vec![
        fill(
            "{} {}: {} is fullest with {}, {}",
            [
                text(begin),
                layers(&stage.layers),
                text(tile),
                Amount(full.bytes),
                text(share),
            ],
        ),
        say("  there: ").and(parts(&full.parts)),
    ];
    lines.extend(of_pipeline(stage, pseudo_layers));
    if let Some(live) = &stage.peak_variables {
        lines.extend(variables(live, pseudo_layers));
    }
    let tiles = &stage.tiles;
    lines.push(fill(
        "  half of the tiles have at most {}, 95 % at most {}",
        [Amount(tiles.median), Amount(tiles.percentile_95)],
    ));
    lines
}

/// Says how many copies a stage keeps, and how much memory the update needs.
fn of_pipeline(stage: &Stage, pseudo_layers: PseudoLayers) -> Vec<Sentence> {
    let mut lines = of_copies(stage, pseudo_layers);
    let pipeline = stage.pipeline.as_ref();
    let update = pipeline.and_then(|pipeline| pipeline.update.as_ref());
    lines.extend(update.map(|update| {
        let with_one_pad = (update.at_least < update.bytes).then(|| {
            let line = ", and with a landing pad for one tensor of state at a time {}";
            fill(line, [Amount(update.at_least)])
        });
        let line = "  in the update tile {} has at most {}";
        let passes = "; in the passes the fullest tile has {}";
        fill(line, [text(update.tile), Amount(update.bytes)])
            .and_if(with_one_pad)
            .and(fill(passes, [Amount(update.in_passes)]))
    }));
    lines
}

fn of_copies(stage: &Stage, pseudo_layers: PseudoLayers) -> Vec<Sentence> {
    let pipeline = stage.pipeline.as_ref();
    let Some(pipeline) = pipeline.filter(|pipeline| pipeline.copies > 0) else {
        return Vec::new();
    };
    let late = pipeline.late_restores;
    let late = late.map(|bytes| {
        fill(
            "; with late restores its fullest tile has {}",
            [Amount(bytes)],
        )
    });
    let head = say(format!(
        "  with {} after it, it keeps {} of what it stashes",
        counted(pipeline.depth, "pipeline stage"),
        counted(pipeline.copies, "more copy")
    ));
    let stashed = pipeline.stashed.iter().map(|tensor| {
        let line = fill(
            "    stashed: {} {}",
            [Amount(tensor.bytes), name(&*tensor.name)],
        );
        match tensor.layers.as_slice() {
            [] => line,
            [one] => line.and(fill(" ({})", [name(pseudo_layers.named(one))])),
            _ => line.and(fill(" (layers {})", [layers(&tensor.layers)])),
        }
    });
    [head.and_if(late)].into_iter().chain(stashed).collect()
}

/// Says how many bytes are added for accumulators, which recording with gradient accumulation would
/// make exact.
fn accumulation(report: &Report) -> Option<Sentence> {
    let stages = report.split.iter().flat_map(|split| &split.stages);
    let accumulators = stages.map(|stage| (stage.fullest_tile.parts.accumulators, stage.stage));
    let (bytes, stage) = accumulators.max().filter(|&(bytes, _)| bytes > 0)?;
    Some(fill(
        "the profile has no gradient accumulators: {} are added for them on the fullest tile of \
         stage {}; record with gradient accumulation for the exact bytes",
        [Amount(bytes), text(stage)],
    ))
}

/// Names the parts that take memory.
fn parts(parts: &Parts) -> Sentence {
    let named = parts.named().into_iter();
    let some = named.filter(|&(_, bytes)| bytes > 0);
    let some = some.map(|(part, bytes)| fill("{} {}", [text(part), Bytes(bytes)]));
    Sentence::join(some, ", ")
}

fn variables(live: &PeakVariables, pseudo_layers: PseudoLayers) -> Vec<Sentence> {
    let mut lines = Vec::new();
    if !live.categories.is_empty() {
        let categories = live.categories.iter();
        let categories =
            categories.map(|category| fill("{} {}", [name(&category.name), Bytes(category.bytes)]));
        lines.push(say("  live then by category: ").and(Sentence::join(categories, ", ")));
    }
    let variable = |variable: &LiveVariable| {
        let of = match variable.layers.as_slice() {
            [] => say("no layer"),
            [one] => name(pseudo_layers.named(one)).into(),
            _ => fill("layers {}", [layers(&variable.layers)]),
        };
        let own = [
            Amount(variable.bytes),
            name(&variable.name),
            name(&variable.category),
        ];
        fill("    {} {} ({}, ", own).and(of).text(")")
    };
    lines.extend(live.largest.iter().take(VARIABLES).map(variable));
    lines
}

fn of_cut(cut: &Cut) -> Sentence {
    let doubled = (cut.duplicated > 0).then(|| {
        let line = ", {} that are always live are needed on both sides";
        fill(line, [Amount(cut.duplicated)])
    });
    let flows = [text(cut.after_stage), Amount(cut.bytes)];
    fill("cut after stage {}: {} flow over it", flows).and_if(doubled)
}

fn of_move(layer_move: &Move, cut: &Cut, pseudo_layers: PseudoLayers) -> Sentence {
    let side = |number: usize| {
        let change = layer_move.change[number];
        let bytes = layer_move.fullest_tile_bytes[number];
        let stage = text(cut.after_stage as usize + number);
        fill("stage {} {} ", [stage, Amount(bytes)]).and(in_parentheses(change))
    };
    let moved = match layer_move.layers.as_slice() {
        [one] => name(pseudo_layers.named(one)),
        _ => layers(&layer_move.layers),
    };
    let moved = fill(
        "  with {} in stage {}: ",
        [moved, text(layer_move.to_stage)],
    );
    moved.and(Sentence::join([side(0), side(1)], ", "))
}

fn shared(groups: &[SharedVariables]) -> Vec<Sentence> {
    if groups.is_empty() {
        return Vec::new();
    }
    let share = match groups.len() {
        1 => "group of layers shares",
        _ => "groups of layers share",
    };
    let head = fill(
        "{} {} variables that are always live; a cut between them doubles these:",
        [Count(groups.len() as u64), text(share)],
    );
    let group = |group: &SharedVariables| {
        fill(
            "  {} of layers {}",
            [Amount(group.bytes), layers(&group.layers)],
        )
    };
    let groups = groups.iter().take(GROUPS).map(group);
    [head].into_iter().chain(groups).collect()
}

/// Upper bound on tied weights with names.
const MAX_TIED: usize = 5;

/// Lists the weights that several layers use, most bytes first.
pub(in crate::report) fn tied_weights(report: &Report) -> Vec<Sentence> {
    let all = &report.tied_weights;
    let named = all.iter().take(MAX_TIED);
    let mut lines: Vec<_> = named
        .map(|weight| tied_weight(weight, report.pseudo_layers))
        .collect();
    if let Some(more @ 1..) = all.len().checked_sub(MAX_TIED) {
        lines.push(say(format!("and {} more", counted(more, "tied weight"))));
    }
    lines
}

/// Says which layers use a tied weight, and which IPUs have it.
fn tied_weight(tied: &TiedWeightFacts, pseudo_layers: PseudoLayers) -> Sentence {
    let names = pseudo_layers.names_of(&tied.layers);
    let names: Vec<String> = names.into_iter().map(displayed).collect();
    let of = match tied.layers.iter().all(Option::is_some) {
        true => "of layers",
        false => "of",
    };
    let stages: Vec<String> = tied.stages.iter().map(u32::to_string).collect();
    let stages = stages.join(", ");
    let place = match (tied.stages.as_slice(), tied.untied) {
        ([], false) => "on one IPU in every split".to_string(),
        ([], true) => "untied".to_string(),
        ([one], _) => format!("on IPU {one}"),
        (_, true) => {
            format!("untied, with a copy on each of IPUs {stages}; untie it in the model too")
        }
        (_, false) => format!("on IPUs {stages}, which no framework runs"),
    };
    let names = Phrase::List(listed(&names));
    let weight = [
        name(&tied.weight),
        Amount(tied.bytes),
        text(of),
        names,
        text(place),
    ];
    fill("tied weight {} ({}) {} {}: {}", weight)
}
