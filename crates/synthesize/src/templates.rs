//! The templates of models: operations before, in and after the layers, and names, as each
//! framework's users see them. `templates.json` has them.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::LazyLock;

use serde::Deserialize;

use super::settings::Framework;

/// The computation of an operation; decides on its vertices and program stages.
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
    /// Program stages (an exchange, a compute set, or both) at least.
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
    /// Its name; in a layer, below that of the layer.
    pub path: String,
    pub op_type: String,
    pub kind: Kind,
    /// Its share of the weights of its part of the model; 0 = it has none.
    #[serde(default)]
    pub weight: u32,
    /// Its share of the activations and work memory of its part.
    pub activation: u32,
    /// Whether it belongs to the part that is outlined when outlining is on.
    #[serde(default)]
    pub outlined: bool,
    /// Its inputs, where they do not bear the name of the output before it.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// The name of its weight, where that does not follow from its own.
    #[serde(default)]
    pub weight_name: Option<String>,
    /// Whether it may have the weight of the first operation.
    #[serde(default)]
    pub may_be_tied: bool,
}

/// The names that a framework gives to contexts and tensors. `{}` stands for the layer, operation
/// or weight in the name.
#[derive(Debug, Deserialize)]
pub struct Names {
    layer: String,
    pub mask: String,
    pub random_state: String,
    pub gradient: String,
    pub sum: String,
    pub norm: String,
    pub update: String,
    pub update_of_all: String,
    pub loss: String,
    pub learning_rate: String,
    pub first: String,
    pub second: String,
    pub accumulator: String,
}

pub fn named(pattern: &str, of: impl Display) -> String {
    pattern.replace("{}", &of.to_string())
}

#[derive(Debug, Deserialize)]
pub struct Templates {
    pub names: Names,
    /// Operations before the layers, in execution order.
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
    /// The operation of a layer that adds its input to what it made of it.
    pub fn addition(&self) -> Option<usize> {
        let mut templates = self.layer.iter();
        templates.position(|template| template.kind == Kind::Elementwise && !template.outlined)
    }

    /// The operation of a layer that uses masks and constants.
    pub fn shared_slot(&self) -> usize {
        let mut templates = self.layer.iter();
        let fits = |template: &Template| {
            matches!(template.kind, Kind::Softmax | Kind::Norm) && !template.outlined
        };
        templates.position(fits).expect("every layer has one")
    }

    pub fn name(&self, layer: u32, path: &str) -> String {
        named(&self.names.layer, layer) + path
    }
}
