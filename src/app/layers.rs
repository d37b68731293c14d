//! Finding layers, and whether what was found makes sense.

use super::messages::Messages;
use super::{Options, usage};
use crate::analysis::Layers;
use crate::escape::{printable, shell};
use crate::limits;
use crate::model::{LayerCandidate, LayerOptions, Layering, Model, Operation};
use crate::wording::counted;
use anyhow::Result;

/// The layers by the regex that was given, or by the best candidate.
pub(super) fn find(model: &Model, options: &Options, messages: Messages) -> Result<Layering> {
    let mut chosen = options.layers.options();
    if options.layers.finds_regex() {
        let best = model.layer_candidates(&chosen).into_iter().next();
        let best = best.ok_or_else(|| {
            usage(format!(
                "no numbers in the names of operations look like those of layers, so auto finds \
                 none; set --layer-name-regex to a regex whose capture group is the layer, such \
                 as 'layer(\\d+)'{}",
                names(model)
            ))
        })?;
        messages.summary(format_args!("layers: {}", described(&best)));
        chosen.layer_regex = best.regex;
    }
    Ok(Layering::new(&model.operations, &chosen))
}

/// How the layers of a compilation are found: by the regex that was given, or by
/// the best candidate among the names alone.
pub(super) fn of_names(operations: &[Operation], options: &Options) -> LayerOptions {
    let mut chosen = options.layers.options();
    if options.layers.finds_regex() {
        let best = LayerCandidate::find(operations, &[], &chosen)
            .into_iter()
            .next();
        chosen.layer_regex = best.map_or(chosen.layer_regex, |best| best.regex);
    }
    chosen
}

/// Says how well the regexes fit.
pub(super) fn describe(layers: &Layers<'_>, options: &Options, messages: Messages) {
    let model = layers.model();
    let layering = &layers.layering;
    let layered = layering.layers.iter().filter(|&&layer| layer > 0).count();
    messages.info(format_args!(
        "{}, {layered} of them in {}, {}, {}",
        counted(model.operations.len(), "operation"),
        counted(layering.len() - 1, "layer"),
        counted(model.steps(), "step"),
        counted(model.target.num_tiles, "tile")
    ));
    // Without layers a search ends with an error that says more.
    if layering.is_empty() && options.wants_search() {
        return;
    }
    for warning in &layers.warnings {
        messages.warning(None, warning);
    }
    if !layering.is_empty() {
        return;
    }
    let all = model.layer_candidates(&LayerOptions::default());
    if !all.is_empty() {
        let head = "possible layers, the most likely first:";
        messages.summary(format_args!("{head}{}", listed(&all)));
    }
}

pub(super) fn check(layering: &Layering) -> Result<()> {
    let layers = layering.len() - 1;
    if layers <= limits::LAYERS {
        return Ok(());
    }
    let names = layering.names[1..].iter().take(3);
    let names: Vec<String> = names.map(|name| shortened(name)).collect();
    Err(usage(format!(
        "the layer regex {} finds {layers} layers ({}, ...), and {} are the maximum; set \
         --layer-name-regex to a regex whose capture group is the same for all operations of a \
         layer",
        regex(layering),
        names.join(", "),
        limits::LAYERS
    )))
}

fn regex(layering: &Layering) -> &str {
    layering.regex().map_or("", |regex| regex.as_str())
}

/// The maximum number of characters of a name that a message shows.
const SHOWN: usize = 100;

/// A name in a message.
fn shortened(name: &str) -> String {
    let mut shown: String = name.chars().take(SHOWN).collect();
    if shown.len() < name.len() {
        shown.push_str("...");
    }
    printable(&shown)
}

/// Why there is no split where the regex matched no operation.
pub(super) fn none(model: &Model, layering: &Layering) -> anyhow::Error {
    let regex = regex(layering);
    let candidates = model.layer_candidates(&LayerOptions::default());
    if candidates.is_empty() {
        return usage(format!(
            "no operation matched the layer regex {regex}, so there are no layers to split \
             between; set --layer-name-regex to a regex whose capture group is the layer, such as \
             'layer(\\d+)'{}",
            names(model)
        ));
    }
    usage(format!(
        "no operation matched the layer regex {regex}, so there are no layers to split between; \
         choose one of these, the most likely first, or auto for the first{}",
        listed(&candidates)
    ))
}

/// One line for each candidate.
fn listed(candidates: &[LayerCandidate]) -> String {
    let lines = candidates
        .iter()
        .map(|candidate| format!("\n  {}", described(candidate)));
    lines.collect()
}

/// A candidate with what it finds.
fn described(candidate: &LayerCandidate) -> String {
    let [operations, bytes] = candidate.per_cent();
    let [first, last] = candidate.samples.each_ref().map(|name| shortened(name));
    format!(
        "--layer-name-regex {} finds {}, {operations:.1} % of operations and {bytes:.1} % of \
         bytes, such as {first} and {last}",
        shell(candidate.regex.as_str()),
        counted(candidate.layers, "layer"),
    )
}

/// How many names are shown to a user whose model has no candidate.
const NAMES_SHOWN: usize = 10;

/// Some names, one in a line.
fn names(model: &Model) -> String {
    let mut names: Vec<String> = Vec::new();
    for operation in &model.operations {
        let name = format!("\n  {}", shortened(&operation.name));
        let is_named = !operation.is_tensor && !operation.is_anonymous;
        if is_named && !names.contains(&name) && names.len() < NAMES_SHOWN {
            names.push(name);
        }
    }
    match names.as_slice() {
        [] => "\nthe model has no operations with a name".to_string(),
        names => format!("\nsome names in this model:{}", names.concat()),
    }
}
