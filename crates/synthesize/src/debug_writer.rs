//! Writes `debug.cbor`, one context after the other. `contexts.json` has the fields that the layers of
//! software write into their contexts: texts in braces stand for the values of [`Fields::fill`].

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::LazyLock;

use ciborium::{Value, into_writer};

use super::contexts::{Context, NONE};
use super::model::{Op, Phase};
use super::plan::Plan;
use super::settings::{Framework, Marks};
use super::templates;
use super::tensors::{State, TensorOf};

/// Headers of CBOR: a map of two entries, an array without a length, and its end.
const MAP_OF_TWO: u8 = 0xa2;
const ARRAY: u8 = 0x9f;
const BREAK: u8 = 0xff;

/// Writes the contexts of `plan` as Poplar does: children before parents, the
/// string table last.
pub fn write(plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    file.write_all(&[MAP_OF_TWO])?;
    into_writer("contexts", &mut file)?;
    file.write_all(&[ARRAY])?;
    for (index, context) in plan.contexts.list.iter().enumerate().rev() {
        into_writer(&fields(plan, context, index as u32 + 1), &mut file)?;
    }
    file.write_all(&[BREAK])?;
    into_writer("stringTable", &mut file)?;
    into_writer(&plan.contexts.strings, &mut file)?;
    Ok(file.flush()?)
}

/// Returns a map whose keys are in alphabetical order, as in real files.
fn map<K: Into<Value>>(fields: impl IntoIterator<Item = (K, Value)>) -> Value {
    let fields = fields.into_iter().map(|(key, value)| (key.into(), value));
    let mut fields: Vec<(Value, Value)> = fields.collect();
    fields.sort_unstable_by(|a, b| a.0.as_text().cmp(&b.0.as_text()));
    Value::Map(fields)
}

fn texts(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| text.as_str().into()).collect())
}

/// Returns the fields of the context with this id.
fn fields(plan: &Plan, context: &Context, id: u32) -> Value {
    static BODIES: LazyLock<HashMap<String, Value>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("contexts.json")).expect("the file has a map of each")
    });
    let all = Fields { plan, context, id };
    let body = all.fill(&BODIES[context.body]);
    let mut fields = body.into_map().expect("each body is a map");
    let mut push = |key: &str, value| fields.push((key.into(), value));
    if let Some((outlined, replaced)) = plan.contexts.pairs.get(&id) {
        push("outlinedDebugContextIds", id_list(outlined));
        push("replacedDebugContextIds", id_list(replaced));
    }
    push("id", id.into());
    push("name", context.name.into());
    if context.parent > 0 {
        push("parentId", context.parent.into());
    }
    // As wide as in real files, which measurements need: nothing reads locations.
    let keys = ["fileName", "functionName", "lineNumber"];
    let location = keys.map(|key| (key, context.name.into()));
    push("location", map(location));
    map(fields)
}

fn id_list(ids: &[u32]) -> Value {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    Value::Text(format!("[{}]", ids.join(",")))
}

struct Fields<'a> {
    plan: &'a Plan,
    context: &'a Context,
    id: u32,
}

impl Fields<'_> {
    /// Replaces texts in braces by their values.
    fn fill(&self, pattern: &Value) -> Value {
        match pattern {
            Value::Map(fields) => {
                let fields = fields.iter();
                let fields = fields.map(|(key, value)| (key.clone(), self.fill(value)));
                Value::Map(fields.collect())
            }
            Value::Text(text) => {
                let what = text
                    .strip_prefix('{')
                    .and_then(|text| text.strip_suffix('}'));
                what.map_or_else(|| pattern.clone(), |what| self.value(what))
            }
            _ => pattern.clone(),
        }
    }

    fn value(&self, what: &str) -> Value {
        match what {
            "name" => self.in_layer(&self.op().name).into(),
            "onnx_name" => match self.plan.settings.framework {
                // The context of PopTorch itself has the name.
                Framework::Poptorch => "".into(),
                _ => self.in_layer(&self.op().name).into(),
            },
            "op_type" => self.op().op_type.as_str().into(),
            "inputs" => texts(&self.op().inputs),
            "outputs" => texts(&self.op().outputs),
            "hlo_name" => format!("fusion.{}", self.context.op).into(),
            "tensor" | "element_type" | "tensor_type" => self.of_tensor(what).into(),
            _ => self.of_popart(what),
        }
    }

    fn op(&self) -> &Op {
        &self.plan.model.ops[self.context.op as usize]
    }

    fn of_popart(&self, what: &str) -> Value {
        let (op, layer) = (self.op(), self.context.layer);
        match what {
            "opid" => {
                let domain = match op.op_type.as_str() {
                    "Call" | "AdamVarUpdate" | "SGD0VarUpdate" => "ai.graphcore",
                    _ => "ai.onnx",
                };
                format!("{domain}.{}:1", op.op_type).into()
            }
            "instance" if layer == NONE => self.context.op.to_string().into(),
            "instance" => format!("{}{layer:03}", self.context.op).into(),
            "own_inputs" => self.inputs(),
            "own_outputs" => self.all_in_layer(&op.outputs),
            "attributes" => {
                let keys = ["__execution_phase", "__ipu_number", "__pipeline_stage"];
                let attributes = keys.map(|key| (key, "0".into()));
                let features = &self.plan.settings.features;
                let is_outer = op.phase == Phase::Optimiser
                    && features.accumulation
                    && features.marks == Marks::Framework;
                let outer = ("__execution_context", "AccumulateOuterFragment".into());
                map(attributes.into_iter().chain(is_outer.then_some(outer)))
            }
            _ => panic!("contexts.json has an unknown value {what}"),
        }
    }

    /// Returns the name as it was in the layer of the context.
    fn in_layer(&self, name: &str) -> String {
        if self.context.layer == NONE {
            return name.to_owned();
        }
        let templates = templates::of(self.plan.settings.framework);
        let layers = [self.op().made_for.unwrap_or(0), self.context.layer];
        let [own, other] = layers.map(|layer| templates.name(layer, ""));
        let [own_dotted, other_dotted] = [&own, &other].map(|name| name.replace('/', "."));
        let name = name.replace(&own, &other);
        name.replace(&own_dotted, &other_dotted)
    }

    fn all_in_layer(&self, names: &[String]) -> Value {
        let names = names.iter().map(|name| self.in_layer(name));
        texts(&names.collect::<Vec<_>>())
    }

    /// Returns the names of the inputs of an operation. Inside a function, gradients have no names
    /// of their own, and their inputs are those of the function.
    fn inputs(&self) -> Value {
        let op = self.op();
        let is_body = op.function.is_some() && op.name.is_empty() && op.call.is_none();
        if !is_body || self.context.layer != NONE {
            return self.all_in_layer(&op.inputs);
        }
        let inputs = (0..op.inputs.len()).map(|number| format!("call_subgraph(1)/in{number}"));
        texts(&inputs.collect::<Vec<_>>())
    }

    /// Returns the name, element type or type of the tensor that has this context.
    fn of_tensor(&self, what: &str) -> &str {
        let mut tensors = self.plan.contexts.of_tensor.iter();
        let tensor = tensors.find(|(_, contexts)| contexts.tensor == self.id);
        let (of, contexts) = tensor.expect("it was planted for one");
        let (kind, element) = match of {
            TensorOf::Weight(_, State::Value | State::Accumulator) => ("Variable", "FLOAT16"),
            TensorOf::Weight(..) => ("Variable", "FLOAT"),
            TensorOf::Constant(_) => ("Const", "FLOAT16"),
            TensorOf::Seed => ("Stream", "UINT32"),
            _ => ("Stream", "FLOAT"),
        };
        match what {
            "tensor" => &contexts.name,
            "element_type" => element,
            _ => kind,
        }
    }
}
