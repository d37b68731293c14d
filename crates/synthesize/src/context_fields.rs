//! The fields that the layers of software write into their contexts.

use ciborium::Value;

use super::contexts::{Body, Context, NONE, Tensor};
use super::model::{Op, Phase};
use super::plan::Plan;
use super::settings::Framework;
use super::templates;

/// Keys and values of a map.
pub type Fields = Vec<(&'static str, Value)>;

/// A map whose keys stand in alphabetical order, as the writer of real files has them.
pub fn map(mut fields: Fields) -> Value {
    fields.sort_unstable_by_key(|field| field.0);
    let fields = fields.into_iter().map(|(key, value)| (key.into(), value));
    Value::Map(fields.collect())
}

/// All fields of the context `id`, but for its location.
pub fn fields(plan: &Plan, context: &Context, id: u32) -> Fields {
    let op = plan.model.ops.get(context.op as usize);
    let mut fields = match plan.contexts.tensors.get(&id) {
        Some(tensor) => planted_tensor(tensor),
        None if plan.contexts.floats.contains(&id) => variable(context, "float"),
        None => content(plan, context, op),
    };
    if let Some((outlined, replaced)) = plan.contexts.pairs.get(&id) {
        fields.push(("outlinedDebugContextIds", id_list(outlined)));
        fields.push(("replacedDebugContextIds", id_list(replaced)));
    }
    fields.push(("id", Value::from(id)));
    let (layer, category) = origin(context.body);
    fields.push(("layer", layer.into()));
    fields.push(("name", Value::from(context.name)));
    if context.parent > 0 {
        fields.push(("parentId", Value::from(context.parent)));
    }
    if let Some(category) = category {
        fields.push(("category", category.into()));
    }
    fields
}

/// The layer of software that writes a context, and the category that it gives it.
fn origin(body: Body) -> (&'static str, Option<&'static str>) {
    match body {
        Body::Poptorch => ("poptorch", None),
        Body::Builder => ("popartbuilder", Some("api")),
        Body::BareBuilder => ("popartbuilder", None),
        Body::Onnx => ("onnx", Some("op")),
        Body::Popart => ("popart", Some("op")),
        Body::Tensor => ("popart", Some("tensor")),
        Body::Xla => ("xla_op", Some("op")),
        Body::Hlo => ("hloinstruction", Some("op")),
        Body::Driver => ("poplar_driver", Some("op")),
        Body::Poplibs | Body::PoplibsCall => ("poplibs", None),
        Body::Var => ("poplar", Some("var")),
        Body::VarConst => ("poplar", Some("varConst")),
        Body::ComputeSet => ("poplar", Some("computeSet")),
        Body::Program(_) => ("poplar", Some("program")),
        Body::Compilation => ("poplar", Some("compilation")),
    }
}

/// Texts as a list of values.
fn texts(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| text.as_str().into()).collect())
}

/// The fields that the layer of a context adds.
fn content(plan: &Plan, context: &Context, op: Option<&Op>) -> Fields {
    match (context.body, op) {
        (Body::Program(kind), _) => vec![("type", kind.into())],
        (Body::Var, _) => variable(context, "half"),
        (Body::VarConst, _) => vec![
            ("broadcast", Value::from(1)),
            ("shape", shape(context)),
            ("traits", traits()),
        ],
        (Body::Poplibs, _) => vec![("api", "convolution".into())],
        (Body::PoplibsCall, _) => library_call(context),
        (_, Some(op)) => framework_content(plan, context, op),
        _ => Vec::new(),
    }
}

fn variable(context: &Context, element: &str) -> Fields {
    vec![
        ("mappingMethod", Value::from(0)),
        ("shape", shape(context)),
        ("type", element.into()),
    ]
}

fn shape(context: &Context) -> Value {
    let rows = 1 << (context.name % 10);
    Value::Array(vec![Value::from(rows), Value::from(64)])
}

fn traits() -> Value {
    map(vec![
        ("align", Value::from(4)),
        ("isFloat", Value::Bool(true)),
        ("isIntegral", Value::Bool(false)),
        ("isSigned", Value::Bool(true)),
        ("size", Value::from(4)),
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

fn framework_content(plan: &Plan, context: &Context, op: &Op) -> Fields {
    let name = name_in(plan, context, op);
    let op_type = op.op_type.as_str();
    match context.body {
        Body::Poptorch => vec![
            ("op_name", name.into()),
            ("op_type", op_type.into()),
            ("torch_schema", "(Tensor a, Tensor b) -> Tensor".into()),
        ],
        Body::Builder => vec![
            ("api", op_type.into()),
            ("inputs", texts(&op.inputs)),
            ("outputs", texts(&op.outputs)),
            ("attributes", map(Vec::new())),
        ],
        Body::Onnx => vec![
            ("opName", onnx_name(plan, &name).into()),
            ("opType", op_type.into()),
            ("domain", "ai.onnx".into()),
            ("input", texts(&op.inputs)),
            ("output", texts(&op.outputs)),
        ],
        Body::Popart => popart_op(plan, context, op),
        Body::Xla => vec![("op_name", name.into()), ("op_type", op_type.into())],
        Body::Hlo => vec![
            ("hlo_name", format!("fusion.{}", context.op).into()),
            ("hlo_id", Value::from(context.op)),
            ("opcode", "custom-call".into()),
            ("operands", map(Vec::new())),
        ],
        Body::Driver => vec![("class", "ConvOp".into())],
        _ => Vec::new(),
    }
}

fn planted_tensor(tensor: &Tensor) -> Fields {
    vec![
        ("tensorId", tensor.id.as_str().into()),
        ("shape", "[64 1024]".into()),
        ("elementType", tensor.element.into()),
        ("type", tensor.kind.into()),
    ]
}

/// The name that the operation has in the layer of the context.
fn name_in(plan: &Plan, context: &Context, op: &Op) -> String {
    let templates = templates::of(plan.settings.framework);
    let forward_name = templates.name(op.made_for.unwrap_or(0), "");
    match op.name.strip_prefix(&forward_name) {
        Some(path) if context.layer != NONE => templates.name(context.layer, path),
        _ => op.name.clone(),
    }
}

/// Tensor names as they are in the layer of the context.
fn in_layer(plan: &Plan, context: &Context, op: &Op, names: &[String]) -> Vec<String> {
    if context.layer == NONE {
        return names.to_vec();
    }
    let prefix = |layer| templates::of(plan.settings.framework).name(layer, "");
    let forward_prefix = prefix(op.made_for.unwrap_or(0));
    let other = prefix(context.layer);
    let dotted = |name: &str| name.replace('/', ".");
    names
        .iter()
        .map(|name| name.replace(&forward_prefix, &other))
        .map(|name| name.replace(&dotted(&forward_prefix), &dotted(&other)))
        .collect()
}

/// Names of the inputs of an operation. Inside a function the gradients, which
/// have no names of their own, have inputs of the function's.
fn inputs(plan: &Plan, context: &Context, op: &Op) -> Vec<String> {
    let is_body = op.function.is_some() && op.name.is_empty() && op.call.is_none();
    match is_body && context.layer == NONE {
        true => (0..op.inputs.len())
            .map(|number| format!("call_subgraph(1)/in{number}"))
            .collect(),
        false => in_layer(plan, context, op, &op.inputs),
    }
}

/// The name of an operation of PopTorch stands in PopTorch's own context; its
/// ONNX node has none.
fn onnx_name<'a>(plan: &Plan, name: &'a str) -> &'a str {
    match plan.settings.framework {
        Framework::Poptorch => "",
        _ => name,
    }
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
    vec![
        ("opid", format!("{domain}.{}:1", op.op_type).into()),
        ("instanceId", instance.into()),
        ("inputs", texts(&inputs(plan, context, op))),
        ("outputs", texts(&in_layer(plan, context, op, &op.outputs))),
        ("attributes", attributes(plan, op)),
        ("graphId", "".into()),
        ("discard", Value::from(0)),
    ]
}

fn attributes(plan: &Plan, op: &Op) -> Value {
    let mut attributes: Fields = vec![
        ("__execution_phase", "0".into()),
        ("__ipu_number", "0".into()),
        ("__pipeline_stage", "0".into()),
    ];
    let accumulates = plan.settings.features.accumulation;
    if accumulates && op.phase == Phase::Optimiser {
        attributes.push(("__execution_context", "AccumulateOuterFragment".into()));
    }
    map(attributes)
}

/// A list as text, such as `[12,13]`.
fn id_list(ids: &[u32]) -> Value {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    Value::Text(format!("[{}]", ids.join(",")))
}
