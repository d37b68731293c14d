//! Writes `debug.cbor`, one context after the other.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use ciborium_io::Write as _;
use ciborium_ll::{Encoder, Header, simple};

use super::contexts::{Body, Context, NONE};
use super::model::Op;
use super::options::Framework;
use super::plan::Plan;
use super::templates;

/// A value of a context.
enum Value {
    Uint(u64),
    Bool(bool),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(&'static str, Value)>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

type Fields = Vec<(&'static str, Value)>;

/// Writes the contexts of `plan` as Poplar does: children before parents, the
/// string table last.
pub fn write(plan: &Plan, path: &Path) -> io::Result<()> {
    let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut writer = Writer {
        plan,
        encoder: Encoder::from(file),
        places: Places::new(plan),
    };
    writer.encoder.push(Header::Map(Some(2)))?;
    writer.encoder.text("contexts", None)?;
    writer.encoder.push(Header::Array(None))?;
    writer.contexts()?;
    writer.encoder.push(Header::Break)?;
    writer.string_table()?;
    writer.encoder.flush()
}

/// Indices of source locations, behind the names in the string table.
struct Places {
    strings: Vec<&'static str>,
    first: u64,
}

impl Places {
    fn new(plan: &Plan) -> Self {
        Self {
            strings: vec![
                "/opt/src/poplibs/lib/poplin/MatMul.cpp",
                "matMulGrouped",
                "/opt/src/poplibs/lib/popops/ElementWise.cpp",
                "generateMappedOperations",
                "/opt/src/model/build.cpp",
                "growOp",
            ],
            first: plan.contexts.strings.len() as u64,
        }
    }

    fn location(&self, context: &Context) -> Value {
        let pair = u64::from(context.op.wrapping_add(context.name) % 3);
        Value::Map(vec![
            ("fileName", Value::Uint(self.first + 2 * pair)),
            ("functionName", Value::Uint(self.first + 2 * pair + 1)),
            (
                "lineNumber",
                Value::Uint(20 + u64::from(context.name % 900)),
            ),
        ])
    }
}

struct Writer<'a> {
    plan: &'a Plan,
    encoder: Encoder<BufWriter<File>>,
    places: Places,
}

impl Writer<'_> {
    /// Block after block: the leaves as they were made, then the rest from the
    /// innermost outwards. The framework's own contexts live longest.
    fn contexts(&mut self) -> io::Result<()> {
        let contexts = &self.plan.contexts;
        let mut first = 0;
        let mut blocks: Vec<_> = contexts
            .blocks
            .iter()
            .map(|&end| std::mem::replace(&mut first, end)..end)
            .collect();
        blocks.rotate_left(1);
        for block in blocks {
            let leaf = |id: &usize| contexts.list[*id].body.is_leaf();
            for id in block.clone().filter(leaf) {
                self.context(id)?;
            }
            for id in block.rev().filter(|id| !leaf(id)) {
                self.context(id)?;
            }
        }
        Ok(())
    }

    fn context(&mut self, index: usize) -> io::Result<()> {
        let plan = self.plan;
        let context = &plan.contexts.list[index];
        let op = plan.model.ops.get(context.op as usize);
        let mut fields = content(plan, context, op);
        fields.push(("id", Value::Uint(index as u64 + 1)));
        fields.push(("layer", layer(context.body).into()));
        fields.push(("name", Value::Uint(context.name.into())));
        fields.push(("location", self.places.location(context)));
        if context.parent > 0 {
            fields.push(("parentId", Value::Uint(context.parent.into())));
        }
        if let Some(category) = category(context.body) {
            fields.push(("category", category.into()));
        }
        self.value(&Value::Map(fields))
    }

    /// Keys stand in alphabetical order, as the writer of real files has them.
    fn value(&mut self, value: &Value) -> io::Result<()> {
        match value {
            Value::Uint(number) => self.encoder.push(Header::Positive(*number)),
            Value::Bool(flag) => self.encoder.push(Header::Simple(if *flag {
                simple::TRUE
            } else {
                simple::FALSE
            })),
            Value::Text(text) => self.encoder.text(text, None),
            Value::List(items) => {
                self.encoder.push(Header::Array(Some(items.len())))?;
                items.iter().try_for_each(|item| self.value(item))
            }
            Value::Map(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_unstable_by_key(|field| field.0);
                self.encoder.push(Header::Map(Some(sorted.len())))?;
                sorted.into_iter().try_for_each(|(key, value)| {
                    self.encoder.text(key, None)?;
                    self.value(value)
                })
            }
        }
    }

    fn string_table(&mut self) -> io::Result<()> {
        let names = &self.plan.contexts.strings;
        let count = names.len() + self.places.strings.len();
        self.encoder.text("stringTable", None)?;
        self.encoder.push(Header::Array(Some(count)))?;
        for name in names {
            self.encoder.text(name, None)?;
        }
        for place in &self.places.strings {
            self.encoder.text(place, None)?;
        }
        Ok(())
    }
}

fn layer(body: Body) -> &'static str {
    match body {
        Body::Poptorch => "poptorch",
        Body::Builder | Body::BareBuilder => "popartbuilder",
        Body::Onnx => "onnx",
        Body::Popart | Body::Tensor => "popart",
        Body::Xla => "xla_op",
        Body::Hlo => "hloinstruction",
        Body::Driver => "poplar_driver",
        Body::Poplibs | Body::PoplibsCall => "poplibs",
        _ => "poplar",
    }
}

fn category(body: Body) -> Option<&'static str> {
    match body {
        Body::Poptorch | Body::BareBuilder | Body::Poplibs | Body::PoplibsCall => None,
        Body::Builder => Some("api"),
        Body::Onnx | Body::Popart | Body::Xla | Body::Hlo | Body::Driver => Some("op"),
        Body::Tensor => Some("tensor"),
        Body::Var => Some("var"),
        Body::VarConst => Some("varConst"),
        Body::ComputeSet => Some("computeSet"),
        Body::Program(_) => Some("program"),
        Body::Compilation => Some("compilation"),
    }
}

/// Texts as a list of values.
fn texts(texts: &[String]) -> Value {
    Value::List(texts.iter().map(|text| text.as_str().into()).collect())
}

/// What the layer of a context adds to it.
fn content(plan: &Plan, context: &Context, op: Option<&Op>) -> Fields {
    match (context.body, op) {
        (Body::Program(kind), _) => vec![("type", kind.into())],
        (Body::Var, _) => vec![
            ("mappingMethod", Value::Uint(0)),
            ("shape", shape(context)),
            ("type", "half".into()),
        ],
        (Body::VarConst, _) => vec![
            ("broadcast", Value::Uint(1)),
            ("shape", shape(context)),
            ("traits", traits()),
        ],
        (Body::Poplibs, _) => vec![("api", "convolution".into())],
        (Body::PoplibsCall, _) => library_call(context),
        (_, Some(op)) => framework_content(plan, context, op),
        _ => Vec::new(),
    }
}

fn shape(context: &Context) -> Value {
    let rows = 1 << (context.name % 10);
    Value::List(vec![Value::Uint(rows), Value::Uint(64)])
}

fn traits() -> Value {
    Value::Map(vec![
        ("align", Value::Uint(4)),
        ("isFloat", Value::Bool(true)),
        ("isIntegral", Value::Bool(false)),
        ("isSigned", Value::Bool(true)),
        ("size", Value::Uint(4)),
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
        ("args", Value::Map(args)),
        ("output", tensor("C")),
    ]
}

fn framework_content(plan: &Plan, context: &Context, op: &Op) -> Fields {
    let name = name_in(plan, context, op);
    match context.body {
        Body::Poptorch => vec![
            ("op_name", name.as_str().into()),
            ("op_type", op.op_type.into()),
            ("torch_schema", "(Tensor a, Tensor b) -> Tensor".into()),
        ],
        Body::Builder => vec![
            ("api", op.op_type.into()),
            ("inputs", texts(&op.inputs)),
            ("outputs", texts(&op.outputs)),
            ("attributes", Value::Map(Vec::new())),
        ],
        Body::Onnx => vec![
            ("opName", onnx_name(plan, &name).into()),
            ("opType", op.op_type.into()),
            ("domain", "ai.onnx".into()),
            ("input", texts(&op.inputs)),
            ("output", texts(&op.outputs)),
        ],
        Body::Popart => popart_op(plan, context, op),
        Body::Tensor => vec![
            ("tensorId", tensor_id(op).into()),
            ("shape", "[64 1024]".into()),
            ("elementType", "FLOAT16".into()),
            ("type", "Variable".into()),
        ],
        Body::Xla => vec![
            ("op_name", name.as_str().into()),
            ("op_type", op.op_type.into()),
        ],
        Body::Hlo => vec![
            ("hlo_name", format!("fusion.{}", context.op).as_str().into()),
            ("hlo_id", Value::Uint(context.op.into())),
            ("opcode", "custom-call".into()),
            ("operands", Value::Map(Vec::new())),
        ],
        Body::Driver => vec![("class", "ConvOp".into())],
        _ => Vec::new(),
    }
}

/// The name that the operation has in the layer of the context.
fn name_in(plan: &Plan, context: &Context, op: &Op) -> String {
    let framework = plan.settings.framework;
    let own = templates::name(framework, op.made_for.unwrap_or(0), "");
    match op.name.strip_prefix(&own) {
        Some(path) if context.layer != NONE => templates::name(framework, context.layer, path),
        _ => op.name.clone(),
    }
}

/// Tensor names as they are in the layer of the context.
fn in_layer(plan: &Plan, context: &Context, op: &Op, names: &[String]) -> Vec<String> {
    if context.layer == NONE {
        return names.to_vec();
    }
    let prefix = |layer| templates::name(plan.settings.framework, layer, "");
    let own = prefix(op.made_for.unwrap_or(0));
    let other = prefix(context.layer);
    names
        .iter()
        .map(|name| name.replace(&own, &other))
        .collect()
}

/// PopTorch gives its own name to the operation; that of the ONNX node is a
/// counter.
fn onnx_name<'a>(plan: &Plan, name: &'a str) -> &'a str {
    match plan.settings.framework {
        Framework::Poptorch => "",
        _ => name,
    }
}

fn tensor_id(op: &Op) -> &str {
    op.inputs.last().map_or("weight", String::as_str)
}

fn popart_op(plan: &Plan, context: &Context, op: &Op) -> Fields {
    let instance = match context.layer {
        NONE => format!("{}", context.op),
        layer => format!("{}{layer:03}", context.op),
    };
    let domain = match op.op_type {
        "Call" | "AdamVarUpdate" => "ai.graphcore",
        _ => "ai.onnx",
    };
    let mut fields = vec![
        ("opid", format!("{domain}.{}:1", op.op_type).as_str().into()),
        ("instanceId", instance.as_str().into()),
        ("inputs", texts(&in_layer(plan, context, op, &op.inputs))),
        ("outputs", texts(&in_layer(plan, context, op, &op.outputs))),
        ("attributes", attributes()),
        ("graphId", "".into()),
        ("discard", Value::Uint(0)),
    ];
    if let Some(site) = op.call {
        let call = plan.model.calls[site];
        let body = plan.model.functions[call.function].ops.iter();
        let outlined: Vec<u32> = body.map(|&op| plan.contexts.ops[op].op).collect();
        fields.push(("outlinedDebugContextIds", id_list(&outlined)));
        fields.push((
            "replacedDebugContextIds",
            id_list(&plan.contexts.replaced[site]),
        ));
    }
    fields
}

fn attributes() -> Value {
    Value::Map(vec![
        ("__execution_phase", "0".into()),
        ("__ipu_number", "0".into()),
        ("__pipeline_stage", "0".into()),
    ])
}

/// A list as text, such as `[12,13]`.
fn id_list(ids: &[u32]) -> Value {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    Value::Text(format!("[{}]", ids.join(",")))
}
