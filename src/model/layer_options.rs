//! How layers are found.

use clap::ValueEnum;
use regex::Regex;

/// The regex for layer names of the original tool.
pub const DEFAULT_LAYER_REGEX: &str = r"(?:^|\/)(?:[L|l]ayer|blocks|encoder)[\/_\.]?(\d+)";

/// The regex for inputs of the first layer of the original tool.
pub const DEFAULT_INPUTS_REGEX: &str = r"(word_embeddings|Embedding_Dict)";

/// The order of the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LayerOrder {
    /// By name, with numbers compared as numbers.
    Natural,
    /// By the first appearance in the program.
    #[default]
    Steps,
}

/// The source of layers: a regex or the modules of the model.
#[derive(Debug, Clone, Default)]
pub enum LayerSource {
    /// The default regex where it describes the model as well as its modules, else the modules.
    #[default]
    Best,
    /// The modules of the model.
    Modules,
    /// The default regex.
    Original,
    /// A regex that matches the layer in names and inputs of operations.
    Regex(Regex),
}

/// How layers are found.
#[derive(Debug, Clone)]
pub struct LayerOptions {
    /// The source of the layers.
    pub source: LayerSource,
    /// Matches inputs of operations that belong to the first layer.
    pub inputs_regex: Regex,
    /// The order of the layers.
    pub order: LayerOrder,
    /// The separator between the texts of several capture groups in the name of a layer: a dot, or
    /// nothing as in the original tool.
    pub separator: &'static str,
}

impl Default for LayerOptions {
    /// The layers that describe the model best, in the order of their first step.
    fn default() -> Self {
        Self {
            source: LayerSource::default(),
            inputs_regex: own_regex(DEFAULT_INPUTS_REGEX),
            order: LayerOrder::Steps,
            separator: ".",
        }
    }
}

impl LayerOptions {
    /// The layers are the modules of the model.
    pub fn modules() -> Self {
        Self {
            source: LayerSource::Modules,
            ..Self::default()
        }
    }
}

/// Compiles a regex constant of this program.
pub(super) fn own_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a regex of this program")
}
