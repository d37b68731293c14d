//! docs/model.md, "Contexts and names": the names of operations.

use std::collections::HashMap;

use super::contexts::{Context, Contexts};
use super::operations::FoundOperation;
use super::read::Profile;

pub struct Name {
    pub text: String,
    /// Does the name contain the id of a tensor?
    pub is_tensor: bool,
}

pub struct Namer<'a> {
    profile: &'a Profile,
    contexts: &'a Contexts,
    layer: Option<&'a str>,
}

impl<'a> Namer<'a> {
    pub fn new(profile: &'a Profile, contexts: &'a Contexts, layer: Option<&'a str>) -> Self {
        Self {
            profile,
            contexts,
            layer,
        }
    }

    pub fn name(&self, found: &FoundOperation) -> Name {
        let name = match found.is_anonymous {
            true => String::new(),
            false => self.of_layer(found),
        };
        if name.is_empty() || name == "Call" {
            let context = self.contexts.get(found.uid).expect("a context");
            return completed(name, context);
        }
        Name {
            text: name,
            is_tensor: false,
        }
    }

    /// Returns the name that contexts of the file's operation layer give.
    fn of_layer(&self, found: &FoundOperation) -> String {
        let chain = self.chain(found);
        let field = |layer: &str, key: &str| {
            let of_layer = chain.iter().filter(|context| context.layer == layer);
            let mut texts = of_layer.filter_map(|context| context.text(key));
            texts.next().map(str::to_string)
        };
        match self.layer {
            Some("popart") => {
                let name = field("poptorch", "op_name").or_else(|| field("onnx", "opName"));
                let name = name.or_else(|| popxl(&chain));
                name.or_else(|| call(&chain)).unwrap_or_default()
            }
            Some("xla_op") => field("xla_op", "op_name").unwrap_or_default(),
            Some(_) => field("hloinstruction", "hlo_name").unwrap_or_default(),
            None => self.of_poplar(found),
        }
    }

    fn of_poplar(&self, found: &FoundOperation) -> String {
        let context = self.contexts.get(found.uid).expect("a context");
        if !context.name.is_empty() {
            return context.name.clone();
        }
        if let Some(api) = context.text("api") {
            return api.to_string();
        }
        let programs = found.programs().map(|id| &self.profile.programs[&id]);
        let sets = programs.filter_map(|program| program.compute_set);
        let mut names = sets.map(|set| &self.profile.compute_sets[&set].name);
        let first = names.find(|name| !name.is_empty());
        first.cloned().unwrap_or_default()
    }

    /// Returns the chain of contexts that gives an operation its name.
    fn chain(&self, found: &FoundOperation) -> Vec<&'a Context> {
        let pairs = self.pairs(&found.call_path);
        let replaced = innermost(&pairs, found.uid);
        self.contexts.chain(replaced.unwrap_or(found.uid))
    }

    /// Returns the pairs of each Call, the outermost Call first.
    fn pairs(&self, call_path: &[i64]) -> Vec<HashMap<u64, u64>> {
        let mut all: Vec<HashMap<u64, u64>> = Vec::new();
        for call in call_path {
            let chain = self.contexts.chain(self.profile.programs[call].debug_id);
            let with_pairs = chain.iter().copied().find(|c| c.pairs().is_some());
            // A Call in outlined code may have replaced others: its context with pairs or, without
            // one, any context of its chain.
            let copies = match with_pairs {
                Some(context) => vec![context],
                None => chain,
            };
            let replaces = |pairs: &HashMap<u64, u64>| {
                copies.iter().find_map(|copy| pairs.get(&copy.id)).copied()
            };
            let context = match all.iter().rev().find_map(replaces) {
                Some(replaced) => self.contexts.get(replaced),
                None => with_pairs,
            };
            let pairs = context.and_then(Context::pairs);
            all.push(pairs.unwrap_or_default());
        }
        all
    }
}

/// Returns the context that replaces `id`, from the innermost Call that has a pair for it.
fn innermost(pairs: &[HashMap<u64, u64>], id: u64) -> Option<u64> {
    pairs.iter().rev().find_map(|pairs| pairs.get(&id)).copied()
}

fn popxl(chain: &[&Context]) -> Option<String> {
    let mut contexts = chain.iter().filter(|context| context.layer == "popxl");
    let named = contexts.find(|context| !context.name.is_empty())?;
    Some(named.name.clone())
}

/// Returns `Call` if the first context's `opid` is one, such as `ai.graphcore.Call:1`.
fn call(chain: &[&Context]) -> Option<String> {
    let opid = chain.first()?.text("opid")?;
    let (name, _version) = opid.rsplit_once(':')?;
    let kind = name.rsplit('.').next()?;
    (kind == "Call").then(|| kind.to_string())
}

/// Gives names to calls, tensors, and operations without a name.
fn completed(name: String, context: &Context) -> Name {
    let tensor = context.text("tensorId");
    let mut text = match (name.is_empty(), tensor) {
        (false, _) => name,
        (true, Some(_)) => "Tensor".to_string(),
        (true, None) => "Anonymous".to_string(),
    };
    if let Some(instance) = context.text("instanceId") {
        text += &format!("({instance})");
    }
    if let Some(tensor) = tensor {
        text += &format!("/{tensor}");
    }
    Name {
        text,
        is_tensor: tensor.is_some(),
    }
}
