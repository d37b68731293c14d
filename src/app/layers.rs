//! Do the layers that the regexes found make sense?

use super::messages::Messages;
use super::{Options, usage};
use crate::limits;
use crate::model::{Layering, Model};
use crate::report::printable;
use anyhow::Result;

/// Says how well the regexes fit.
pub(super) fn describe(model: &Model, layering: &Layering, messages: Messages) {
    let layered = layering.layers.iter().filter(|&&layer| layer > 0).count();
    messages.info(format_args!(
        "{} operations, {layered} of them in {} layers, {} steps, {} tiles",
        model.operations.len(),
        layering.len() - 1,
        model.steps(),
        model.target.num_tiles
    ));
    for warning in &layering.warnings {
        messages.warning(printable(warning));
    }
}

pub(super) fn check(layering: &Layering, options: &Options) -> Result<()> {
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
        options.layer_name_regex,
        names.join(", "),
        limits::LAYERS
    )))
}

/// The maximum number of characters of a name that an error shows.
const SHOWN: usize = 100;

/// A name in an error.
fn shortened(name: &str) -> String {
    let mut shown: String = name.chars().take(SHOWN).collect();
    if shown.len() < name.len() {
        shown.push_str("...");
    }
    printable(&shown)
}

/// How many names are shown to a user whose regex matched none.
const NAMES_SHOWN: usize = 10;

pub(super) fn none(model: &Model, options: &Options) -> anyhow::Error {
    let mut names: Vec<String> = Vec::new();
    for operation in &model.operations {
        let name = format!("  {}", shortened(&operation.name));
        let is_named = !operation.is_tensor && !operation.name.starts_with("Anonymous");
        if is_named && !names.contains(&name) && names.len() < NAMES_SHOWN {
            names.push(name);
        }
    }
    let seen = if names.is_empty() {
        "the model has no operations with a name".to_string()
    } else {
        format!("some names in this model:\n{}", names.join("\n"))
    };
    usage(format!(
        "no operation matched the layer regex {}, so there are no layers to split between; \
         {seen}\nset --layer-name-regex to a regex whose capture group is the layer, such as \
         'layer(\\d+)'",
        options.layer_name_regex
    ))
}
