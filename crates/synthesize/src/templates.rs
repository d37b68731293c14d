//! Defines the templates of models: operations before, in and after the layers, and names, as the
//! users of each framework see them. `templates.json` has them.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::LazyLock;

use serde::Deserialize;

use super::settings::Framework;

/// The computation of an operation, which determines its vertices and program stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Kind {
    /// Matrix multiplication: rearrange, multiply, reduce.
    MatMul,
    Conv,
    Norm,
    Softmax,
    /// One value at a time.
    #[default]
    Elementwise,
    Gather,
    Update,
    /// Copies arguments and calls a function.
    Call,
}

impl Kind {
    /// Returns the minimum number of program stages (an exchange, a compute set, or both).
    pub fn stages(self) -> u32 {
        match self {
            Kind::MatMul | Kind::Conv => 3,
            Kind::Norm | Kind::Softmax | Kind::Gather => 2,
            Kind::Elementwise | Kind::Update | Kind::Call => 1,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub struct Template {
    /// Name of the operation; in a layer, the part of the name below that of the layer.
    pub path: String,
    pub op_type: String,
    pub kind: Kind,
    /// Share of the operation in the weights of its part of the model; 0 if it has no weight.
    #[serde(default)]
    pub weight: u32,
    /// Share of the operation in the activations and work memory of its part.
    pub activation: u32,
    /// Whether the operation belongs to the part that is outlined if outlining is on.
    #[serde(default)]
    pub outlined: bool,
    /// Names of its inputs, unless they follow from the output before it.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Name of its weight, unless it follows from the name of the operation.
    #[serde(default)]
    pub weight_name: Option<String>,
    /// Whether the operation may share the weight of the first operation.
    #[serde(default)]
    pub may_be_tied: bool,
}

#[derive(Debug, Deserialize)]
pub struct Templates {
    /// The names that the framework gives to contexts and tensors. `{}` in a name stands for the
    /// layer, operation or weight.
    pub names: HashMap<String, String>,
    /// The operations before the layers, in execution order.
    pub embedding: Vec<Template>,
    pub layer: Vec<Template>,
    pub head: Vec<Template>,
}

pub fn of(framework: Framework) -> &'static Templates {
    static ALL: LazyLock<HashMap<Framework, Templates>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("templates.json")).expect("the file has all fields")
    });
    &ALL[&framework]
}

impl Templates {
    /// Returns the operation of a layer that adds the input of the layer to the result of the
    /// operations before it.
    pub fn addition(&self) -> Option<usize> {
        let mut templates = self.layer.iter();
        templates.position(|template| template.kind == Kind::Elementwise && !template.outlined)
    }

    /// Returns the operation of a layer that uses masks and constants.
    pub fn shared_slot(&self) -> usize {
        let mut templates = self.layer.iter();
        let fits = |template: &Template| {
            matches!(template.kind, Kind::Softmax | Kind::Norm) && !template.outlined
        };
        templates.position(fits).expect("every layer has one")
    }

    pub fn name(&self, layer: u32, path: &str) -> String {
        self.named("layer", layer) + path
    }

    /// Returns the name of this kind for a layer, operation or weight.
    pub fn named(&self, kind: &str, of: impl Display) -> String {
        self.names[kind].replace("{}", &of.to_string())
    }
}
