//! Finds layers, and describes whether they make sense.

use super::messages::Messages;
use super::{Options, usage};
use crate::analysis::Layers;
use crate::escape::printable;
use crate::limits;
use crate::model::{LayerOptions, LayerSource, Layering, Model, ModuleLayers, Rules};
use crate::search::{SearchResult, Solver};
use crate::wording::counted;
use anyhow::Result;
use std::collections::BTreeSet;

/// Finds the layers as the options request.
pub(super) fn find(model: &Model, options: &Options, messages: Messages) -> Layering {
    let chosen = options.layers.options(options.limits.memory_model);
    let names = options.named_layers();
    let with_parts = |layering: Layering| layering.with_parts(&model.operations, &names);
    let mut layering = with_parts(Layering::new(model, &chosen));
    let is_best = matches!(chosen.source, LayerSource::Best);
    // Commands that were printed for layers of modules name such layers.
    if is_best && layering.modules().is_none() && !has_all(&layering, &names) {
        let modules = with_parts(Layering::new(model, &LayerOptions::modules()));
        if has_all(&modules, &names) {
            layering = modules;
        }
    }
    if let (Some(modules), LayerSource::Best) = (layering.modules(), &chosen.source) {
        messages.summary(format_args!("layers: {}", described(&layering, modules)));
    }
    layering
}

/// Is each name a layer, In or Out?
fn has_all(layering: &Layering, names: &[&str]) -> bool {
    let is_layer = |name: &&str| layering.names[1..].iter().any(|layer| layer == name);
    names
        .iter()
        .all(|name| ["In", "Out"].contains(name) || is_layer(name))
}

/// Replaces layers that are over the limit by finer ones: by their parts, or by modules if the
/// default regex found the layers. `None` if no layer is over the limit, or there are no finer
/// modules.
///
/// # Errors
/// When the finer layers share variables in more ways than the memory model holds.
pub(super) fn finer<'a>(
    layers: &Layers<'a>,
    found: &SearchResult,
    options: &Options,
    messages: Messages,
) -> Result<Option<Layers<'a>>> {
    let is_original = options.limits.memory_model == Rules::Classic
        || options.search.solver == Solver::Greedy
        || found.costed.request.given.is_some();
    if is_original {
        return Ok(None);
    }
    let (model, layering) = (layers.model(), &layers.layering);
    let positions = &layers.placement.positions;
    // Layers that options name stay unchanged.
    let named = options.named_layers().into_iter();
    let named: Vec<usize> = named.filter_map(|name| positions.find(name)).collect();
    let mut too_large = found.positions_over_limit();
    too_large.retain(|position| !named.contains(position));
    if too_large.is_empty() {
        return Ok(None);
    }
    let finer = layering
        .refined(&model.operations, &too_large)
        .or_else(|| finer_modules(layers, &too_large, options));
    let Some(finer) = finer else {
        return Ok(None);
    };
    let names = too_large.iter().map(|&at| positions.name(at).to_string());
    messages.summary(format_args!(
        "Layers: {} by the modules of the model, since {} {} over the limit",
        counted(finer.len() - 1, "layer"),
        sample(&names.collect::<Vec<_>>()),
        match too_large.len() {
            1 => "by itself is",
            _ => "by themselves are",
        }
    ));
    layers
        .with(
            finer,
            options.limits.memory_model,
            &options.layers.placement(),
        )
        .map(Some)
}

/// Returns modules in place of the layers of the default regex, as `--layer-name-regex auto` finds
/// them. `None` if they are not finer, and the modules with operations of the layers at `too_large`
/// have no parts.
fn finer_modules(layers: &Layers<'_>, too_large: &[usize], options: &Options) -> Option<Layering> {
    let chosen = options.layers.options(options.limits.memory_model);
    let (model, layering) = (layers.model(), &layers.layering);
    let is_default = matches!(chosen.source, LayerSource::Best) && layering.modules().is_none();
    // A template for module names is written for the layers of the regex.
    if !is_default || options.modules.module.is_some() {
        return None;
    }
    let modules = Layering::new(model, &LayerOptions::modules());
    if !has_all(&modules, &options.named_layers()) {
        return None;
    }
    let pairs = layering.layers.iter().zip(&modules.layers);
    let holding: BTreeSet<usize> = pairs
        .filter(|&(&layer, _)| layer > 0 && too_large.contains(&(layer as usize)))
        .map(|(_, &module)| module as usize)
        .collect();
    let is_finer = modules.len() > layering.len();
    let have_parts = || {
        let holding: Vec<usize> = holding.into_iter().collect();
        modules.refined(&model.operations, &holding).is_some()
    };
    (is_finer || have_parts()).then_some(modules)
}

/// Describes layers from modules in a message.
fn described(layering: &Layering, modules: &ModuleLayers) -> String {
    let layers = counted(layering.len() - 1, "layer");
    if modules.are_by_flow() {
        return format!(
            "{layers}, runs of steps between which little data flows, since the profile names no \
             modules; set --layer-name-regex if other names give the layers"
        );
    }
    format!(
        "{layers} by the modules of the model ({}), which describe it better than the default \
         --layer-name-regex",
        sample(&layering.names[1..])
    )
}

/// Describes the layers, and warns if they fit badly.
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
    if !layering.is_empty() || !options.wants_search() {
        for warning in &layers.warnings {
            messages.warning(None, warning);
        }
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

/// Upper bound on characters of a name in a message.
const SHOWN: usize = 100;

/// Shortens a name for a message.
fn shortened(name: &str) -> String {
    let mut shown: String = name.chars().take(SHOWN).collect();
    if shown.len() < name.len() {
        shown.push_str("...");
    }
    printable(&shown)
}

/// Lists the first and the last names of layers for a message.
fn sample(names: &[String]) -> String {
    let shown = names.iter().map(|name| shortened(name));
    let shown: Vec<String> = shown.collect();
    match shown.as_slice() {
        [first, second, third, .., last] if shown.len() > 5 => {
            format!("{first}, {second}, {third}, ..., {last}")
        }
        all => all.join(", "),
    }
}

/// Explains that there is no split because no operation matches the layer regex.
pub(super) fn none(model: &Model, layering: &Layering) -> anyhow::Error {
    let regex = regex(layering);
    let modules = Layering::new(model, &LayerOptions::modules());
    if modules.is_empty() {
        return usage(format!(
            "no operation matched the layer regex {regex}, and the modules of the model are \
             unknown, so there are no layers to split between; set --layer-name-regex to a regex \
             whose capture group is the layer, such as 'layer(\\d+)'{}",
            names(model)
        ));
    }
    usage(format!(
        "no operation matched the layer regex {regex}, so there are no layers to split between; set \
         --layer-name-regex to auto, which finds {} by the modules of the model ({})",
        counted(modules.len() - 1, "layer"),
        sample(&modules.names[1..])
    ))
}

/// Upper bound on operation names in a message about missing layers.
const NAMES_SHOWN: usize = 10;

/// Lists some operation names, each on a line.
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
