//! The fields that the layers of software write into their contexts.

use ciborium::Value;

use super::contexts::{Body, Context, NONE};
use super::model::{Op, Phase};
use super::plan::Plan;
use super::settings::Framework;
use super::templates;
use super::tensors::{State, TensorOf};

pub type Fields = Vec<(&'static str, Value)>;

/// A map whose keys stand in alphabetical order, as the writer of real files has them.
pub fn map(mut fields: Fields) -> Value {
    fields.sort_unstable_by_key(|field| field.0);
    let fields = fields.into_iter().map(|(key, value)| (key.into(), value));
    Value::Map(fields.collect())
}

pub fn fields(plan: &Plan, context: &Context, id: u32) -> Fields {
    let (layer, category, mut fields) = of_body(plan, context);
    if let Some((outlined, replaced)) = plan.contexts.pairs.get(&id) {
        fields.push(("outlinedDebugContextIds", id_list(outlined)));
        fields.push(("replacedDebugContextIds", id_list(replaced)));
    }
    fields.push(("id", id.into()));
    fields.push(("layer", layer.into()));
    fields.push(("name", context.name.into()));
    if context.parent > 0 {
        fields.push(("parentId", context.parent.into()));
    }
    if !category.is_empty() {
        fields.push(("category", category.into()));
    }
    fields
}

/// The layer of software that writes a context, the category that it gives it (empty for none),
/// and the fields that it adds.
fn of_body(plan: &Plan, context: &Context) -> (&'static str, &'static str, Fields) {
    let op = || &plan.model.ops[context.op as usize];
    let op_type = || op().op_type.as_str().into();
    let name = || name_in(plan, context, op());
    match context.body {
        Body::Poptorch => {
            let schema = "(Tensor a, Tensor b) -> Tensor".into();
            let fields = vec![
                ("op_name", name().into()),
                ("op_type", op_type()),
                ("torch_schema", schema),
            ];
            ("poptorch", "", fields)
        }
        Body::Builder => {
            let fields = vec![
                ("api", op_type()),
                ("inputs", texts(&op().inputs)),
                ("outputs", texts(&op().outputs)),
                ("attributes", map(Vec::new())),
            ];
            ("popartbuilder", "api", fields)
        }
        Body::BareBuilder => ("popartbuilder", "", Vec::new()),
        Body::Onnx => {
            // The name of an operation of PopTorch stands in PopTorch's own context.
            let name = match plan.settings.framework {
                Framework::Poptorch => String::new(),
                _ => name(),
            };
            let fields = vec![
                ("opName", name.into()),
                ("opType", op_type()),
                ("domain", "ai.onnx".into()),
                ("input", texts(&op().inputs)),
                ("output", texts(&op().outputs)),
            ];
            ("onnx", "op", fields)
        }
        Body::Popart => ("popart", "op", popart_op(plan, context, op())),
        Body::Tensor(of) => ("popart", "tensor", tensor(plan, of)),
        Body::Xla => {
            let fields = vec![("op_name", name().into()), ("op_type", op_type())];
            ("xla_op", "op", fields)
        }
        Body::Hlo => {
            let fields = vec![
                ("hlo_name", format!("fusion.{}", context.op).into()),
                ("hlo_id", context.op.into()),
                ("opcode", "custom-call".into()),
                ("operands", map(Vec::new())),
            ];
            ("hloinstruction", "op", fields)
        }
        Body::Driver => ("poplar_driver", "op", vec![("class", "ConvOp".into())]),
        Body::Poplibs => ("poplibs", "", vec![("api", "convolution".into())]),
        Body::PoplibsCall => ("poplibs", "", library_call(context)),
        Body::Var(element) => {
            let fields = vec![
                ("mappingMethod", 0.into()),
                ("shape", shape(context)),
                ("type", element.into()),
            ];
            ("poplar", "var", fields)
        }
        Body::VarConst => {
            let fields = vec![
                ("broadcast", 1.into()),
                ("shape", shape(context)),
                ("traits", traits()),
            ];
            ("poplar", "varConst", fields)
        }
        Body::ComputeSet => ("poplar", "computeSet", Vec::new()),
        Body::Program(kind) => ("poplar", "program", vec![("type", kind.into())]),
        Body::Compilation => ("poplar", "compilation", Vec::new()),
    }
}

fn texts(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| text.as_str().into()).collect())
}

fn shape(context: &Context) -> Value {
    let rows = 1 << (context.name % 10);
    Value::Array(vec![rows.into(), 64.into()])
}

fn traits() -> Value {
    map(vec![
        ("align", 4.into()),
        ("isFloat", true.into()),
        ("isIntegral", false.into()),
        ("isSigned", true.into()),
        ("size", 4.into()),
    ])
}

/// Arguments of library calls are the bulk of a real file.
fn library_call(context: &Context) -> Fields {
    let tensor = |name: &str| {
        let rows = 1 << (context.name % 10);
        Value::Text(format!(
            "{name}: half[{rows},1024] in 64 regions, layout [{rows},16,64], offset {}",
            context.parent
        ))
    };
    let options = "availableMemoryProportion: 0.6, partialsType: half, \
                   fullyConnectedPass: INFERENCE_FWD, use128BitConvUnitLoad: true, \
                   enableConvDithering: false, planConstraints: none, \
                   remapOutputTensor: true, multiPlanConvs: false, \
                   insertTransformsCycleCountProxy: 10";
    let args = vec![
        ("a", tensor("A")),
        ("b", tensor("B")),
        ("options", options.into()),
        ("outputType", "half".into()),
        ("cache", "matmul::PlanningCache".into()),
    ];
    vec![
        ("api", "matMulGrouped".into()),
        ("args", map(args)),
        ("output", tensor("C")),
    ]
}

fn tensor(plan: &Plan, of: TensorOf) -> Fields {
    let (kind, element) = match of {
        TensorOf::Weight(_, State::Value | State::Accumulator) => ("Variable", "FLOAT16"),
        TensorOf::Weight(..) => ("Variable", "FLOAT"),
        TensorOf::Constant(_) => ("Const", "FLOAT16"),
        TensorOf::Seed => ("Stream", "UINT32"),
        _ => ("Stream", "FLOAT"),
    };
    let name = plan.contexts.of_tensor[&of].name.as_str();
    vec![
        ("tensorId", name.into()),
        ("shape", "[64 1024]".into()),
        ("elementType", element.into()),
        ("type", kind.into()),
    ]
}

fn name_in(plan: &Plan, context: &Context, op: &Op) -> String {
    let templates = templates::of(plan.settings.framework);
    let forward_name = templates.name(op.made_for.unwrap_or(0), "");
    match op.name.strip_prefix(&forward_name) {
        Some(path) if context.layer != NONE => templates.name(context.layer, path),
        _ => op.name.clone(),
    }
}

fn in_layer(plan: &Plan, context: &Context, op: &Op, names: &[String]) -> Vec<String> {
    if context.layer == NONE {
        return names.to_vec();
    }
    let prefix = |layer| templates::of(plan.settings.framework).name(layer, "");
    let [own, other] = [op.made_for.unwrap_or(0), context.layer].map(prefix);
    let dotted = |name: &str| name.replace('/', ".");
    let names = names.iter().map(|name| name.replace(&own, &other));
    names
        .map(|name| name.replace(&dotted(&own), &dotted(&other)))
        .collect()
}

/// Names of the inputs of an operation. Inside a function the gradients, which
/// have no names of their own, have inputs of the function's.
fn inputs(plan: &Plan, context: &Context, op: &Op) -> Vec<String> {
    let is_body = op.function.is_some() && op.name.is_empty() && op.call.is_none();
    if !is_body || context.layer != NONE {
        return in_layer(plan, context, op, &op.inputs);
    }
    let numbers = 0..op.inputs.len();
    numbers
        .map(|number| format!("call_subgraph(1)/in{number}"))
        .collect()
}

fn popart_op(plan: &Plan, context: &Context, op: &Op) -> Fields {
    let instance = match context.layer {
        NONE => context.op.to_string(),
        layer => format!("{}{layer:03}", context.op),
    };
    let domain = match op.op_type.as_str() {
        "Call" | "AdamVarUpdate" | "SGD0VarUpdate" => "ai.graphcore",
        _ => "ai.onnx",
    };
    let mut attributes: Fields = vec![
        ("__execution_phase", "0".into()),
        ("__ipu_number", "0".into()),
        ("__pipeline_stage", "0".into()),
    ];
    if plan.settings.features.accumulation && op.phase == Phase::Optimiser {
        attributes.push(("__execution_context", "AccumulateOuterFragment".into()));
    }
    vec![
        ("opid", format!("{domain}.{}:1", op.op_type).into()),
        ("instanceId", instance.into()),
        ("inputs", texts(&inputs(plan, context, op))),
        ("outputs", texts(&in_layer(plan, context, op, &op.outputs))),
        ("attributes", map(attributes)),
        ("graphId", "".into()),
        ("discard", 0.into()),
    ]
}

fn id_list(ids: &[u32]) -> Value {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    Value::Text(format!("[{}]", ids.join(",")))
}
