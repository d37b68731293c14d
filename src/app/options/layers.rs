//! Defines the options that choose the model's layers and the operations that belong to them.

use super::values::ShortHelp;
use crate::{
    message::BadValue,
    model::{
        DEFAULT_INPUTS_REGEX, LayerOptions, LayerOrder, LayerRegexes, LayerSource, OutOn,
        PlacementOptions, Rules,
    },
};
use clap::Args;
use regex::Regex;

/// Options that choose the layers of the model and the operations that belong to them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Layers")]
pub struct LayerArgs {
    /// Print a row for each layer: its operations, bytes, first and last step and names; then the
    /// modules of the model, and the largest operations without a layer
    #[arg(long, short_help = "The layers that were found, and the modules")]
    pub list_layers: bool,

    /// Regex that finds the layer in the names and inputs of operations; its capture groups make
    /// the layer's name. auto takes the model's modules as layers. By default, the regex of the
    /// original tool, (?:^|\/)(?:[L|l]ayer|blocks|encoder)[\/_\.]?(\d+), if it describes the
    /// model as well as its modules do, otherwise the modules
    #[arg(long, value_name = "REGEX", value_parser = regex_or_auto,
          short_help = "A regex for layers, or auto for modules")]
    pub layer_name_regex: Option<LayerSource>,

    /// Regex for the inputs of operations that belong to the first layer
    #[arg(long, value_name = "REGEX", default_value = DEFAULT_INPUTS_REGEX,
          value_parser = parse_regex)]
    pub inputs_regex_layer_0: Regex,

    /// Order of the layers: by their first step, or by name with numbers compared as numbers
    #[arg(long, value_name = "ORDER", default_value = "steps")]
    pub layer_order: LayerOrder,

    /// The IPU that runs Out, the operations after the layers (head and loss). auto is the last
    /// IPU, or the first if Out shares a weight with In, the operations before the layers
    #[arg(
        long,
        value_name = "IPU",
        default_value = "auto",
        conflicts_with = "fit"
    )]
    pub out_on: OutOn,

    /// Let the layers that share this weight run on several IPUs, each with its own copy; 'all'
    /// stands for every shared weight. This shows what you would gain by untying the weight in
    /// the model: no framework runs such a split while it is tied. May be given several times
    #[arg(long, value_name = "WEIGHT")]
    pub untie: Vec<String>,
}

impl LayerArgs {
    /// Returns the regexes that the user gave, to be saved with the model.
    pub fn regexes(&self) -> LayerRegexes {
        LayerRegexes {
            names: self.layer_name_regex.as_ref().map(|source| match source {
                LayerSource::Regex(regex) => regex.to_string(),
                _ => AUTO.to_owned(),
            }),
            inputs: Some(self.inputs_regex_layer_0.to_string())
                .filter(|regex| regex != DEFAULT_INPUTS_REGEX),
        }
    }

    /// Sets the layer regexes to the regexes that were saved with a model. A regex that the user
    /// gave is kept.
    ///
    /// # Errors
    /// If a saved regex cannot be read.
    pub fn take_saved(&mut self, saved: &LayerRegexes) -> Result<(), BadValue> {
        let own = self.regexes();
        if let (None, Some(names)) = (own.names, &saved.names) {
            self.layer_name_regex = Some(regex_or_auto(names)?);
        }
        if let (None, Some(inputs)) = (own.inputs, &saved.inputs) {
            self.inputs_regex_layer_0 = parse_regex(inputs)?;
        }
        Ok(())
    }

    /// Returns the options on where operations and variables may go: the IPU of the operations
    /// after the last layer, and the names of weights that several IPUs may have copies of.
    pub fn placement(&self) -> PlacementOptions {
        PlacementOptions {
            out_on: self.out_on,
            untie: self.untie.clone(),
            unties_all: self.untie.iter().any(|name| name == "all"),
        }
    }

    /// Returns the options for finding layers. With the rules of the original tool
    /// (`Rules::Classic`), the layer regex of that tool is the default.
    pub fn options(&self, rules: Rules) -> LayerOptions {
        LayerOptions {
            source: self.layer_name_regex.clone().unwrap_or(match rules {
                Rules::Classic => LayerSource::Original,
                Rules::Full => LayerSource::Best,
            }),
            inputs_regex: self.inputs_regex_layer_0.clone(),
            order: self.layer_order,
            separator: match rules {
                Rules::Classic => "",
                Rules::Full => ".",
            },
        }
    }
}

/// The value of `--layer-name-regex` that takes the model's modules as layers.
const AUTO: &str = "auto";

/// Parses the value of `--layer-name-regex`: `auto` or a regex.
fn regex_or_auto(value: &str) -> Result<LayerSource, BadValue> {
    match value {
        AUTO => Ok(LayerSource::Modules),
        pattern => parse_regex(pattern).map(LayerSource::Regex),
    }
}

fn parse_regex(pattern: &str) -> Result<Regex, BadValue> {
    Regex::new(pattern).map_err(|error| {
        // In an error of the regex library, a later line begins with `error: `. These words are
        // removed, since only the first line of a message may begin with them.
        let error = error.to_string().replace("\nerror: ", "\n");
        BadValue(format!(
            "popliner cannot read it; write it in the dialect of https://docs.rs/regex, without \
             look-around and backreferences:\n{error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regexes_of_another_dialect_are_refused_by_name() {
        let error = |pattern| parse_regex(pattern).unwrap_err().to_string();
        assert!(
            error(r"layer(?=\d)").contains("look-around"),
            "{}",
            error(r"a(?=b)")
        );
        assert!(error(r"(a)\1").contains("backreferences are not supported"));
        assert!(error("layer(").contains("unclosed group"));
    }
}
