//! The operations of one layer, by framework.

use super::settings::Framework;

/// The computation of an operation; decides on its vertices and program stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Matrix multiplication: rearrange, multiply, reduce.
    MatMul,
    /// Convolution.
    Conv,
    /// Layer or batch normalisation.
    Norm,
    /// Softmax or loss.
    Softmax,
    /// One value at a time.
    Elementwise,
    /// Embedding look-up.
    Gather,
    /// Optimiser update of weights.
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

/// One operation of a layer.
#[derive(Debug, Clone, Copy)]
pub struct Template {
    /// Name below the layer's.
    pub path: &'static str,
    /// The framework's operator.
    pub op_type: &'static str,
    /// Its computation.
    pub kind: Kind,
    /// Its share of the layer's weights; 0 = it has none.
    pub weight: u32,
    /// Its share of the layer's activations and work memory.
    pub activation: u32,
    /// Whether it belongs to the part that is outlined when outlining is on.
    pub outlined: bool,
}

const fn op(
    path: &'static str,
    op_type: &'static str,
    kind: Kind,
    [weight, activation]: [u32; 2],
) -> Template {
    Template {
        path,
        op_type,
        kind,
        weight,
        activation,
        outlined: false,
    }
}

const fn outlined(template: Template) -> Template {
    Template {
        outlined: true,
        ..template
    }
}

use Kind::{Conv, Elementwise, MatMul, Norm, Softmax};

const POPART: &[Template] = &[
    op("Attention/Query/MatMul", "MatMul", MatMul, [8, 6]),
    op("Attention/Key/MatMul", "MatMul", MatMul, [8, 6]),
    op("Attention/Value/MatMul", "MatMul", MatMul, [8, 6]),
    op("Attention/Scores/MatMul", "MatMul", MatMul, [0, 14]),
    op("Attention/Softmax", "Softmax", Softmax, [0, 14]),
    op("Attention/Context/MatMul", "MatMul", MatMul, [0, 8]),
    op("Attention/Output/MatMul", "MatMul", MatMul, [8, 6]),
    op("Attention/Add", "Add", Elementwise, [0, 3]),
    op("Attention/Norm", "GroupNormalization", Norm, [1, 4]),
    outlined(op("FF/1/MatMul", "MatMul", MatMul, [32, 12])),
    outlined(op("FF/Gelu", "Gelu", Elementwise, [0, 10])),
    outlined(op("FF/2/MatMul", "MatMul", MatMul, [32, 8])),
    op("FF/Add", "Add", Elementwise, [0, 3]),
    op("FF/Norm", "GroupNormalization", Norm, [1, 4]),
];

const POPTORCH: &[Template] = &[
    op("attention/self/query/MatMul", "MatMul", MatMul, [8, 6]),
    op("attention/self/key/MatMul", "MatMul", MatMul, [8, 6]),
    op("attention/self/value/MatMul", "MatMul", MatMul, [8, 6]),
    op("attention/self/MatMul", "MatMul", MatMul, [0, 14]),
    op("attention/self/Softmax", "Softmax", Softmax, [0, 14]),
    op("attention/self/MatMul_1", "MatMul", MatMul, [0, 8]),
    op("attention/output/dense/MatMul", "MatMul", MatMul, [8, 6]),
    op("attention/output/Add", "Add", Elementwise, [0, 3]),
    op(
        "attention/output/LayerNorm/GroupNormalization",
        "GroupNormalization",
        Norm,
        [1, 4],
    ),
    outlined(op("intermediate/dense/MatMul", "MatMul", MatMul, [32, 12])),
    outlined(op("intermediate/Gelu", "Gelu", Elementwise, [0, 10])),
    outlined(op("output/dense/MatMul", "MatMul", MatMul, [32, 8])),
    op("output/Add", "Add", Elementwise, [0, 3]),
    op(
        "output/LayerNorm/GroupNormalization",
        "GroupNormalization",
        Norm,
        [1, 4],
    ),
];

const TENSORFLOW: &[Template] = &[
    op("conv1/Conv2D", "Conv2D", Conv, [6, 12]),
    op("bn1/FusedBatchNormV3", "FusedBatchNormV3", Norm, [1, 8]),
    op("relu1/Relu", "Relu", Elementwise, [0, 6]),
    outlined(op("conv2/Conv2D", "Conv2D", Conv, [18, 16])),
    outlined(op("bn2/FusedBatchNormV3", "FusedBatchNormV3", Norm, [1, 8])),
    op("relu2/Relu", "Relu", Elementwise, [0, 6]),
    op("conv3/Conv2D", "Conv2D", Conv, [12, 12]),
    op("bn3/FusedBatchNormV3", "FusedBatchNormV3", Norm, [1, 8]),
    op("add/AddV2", "AddV2", Elementwise, [0, 4]),
    op("relu3/Relu", "Relu", Elementwise, [0, 4]),
];

const POPLAR: &[Template] = &[
    op("matmul", "matMul", MatMul, [12, 10]),
    op("bias", "addInPlace", Elementwise, [1, 4]),
    op("relu", "nonLinearityInPlace", Elementwise, [0, 6]),
    outlined(op("project", "matMul", MatMul, [12, 8])),
    op("softmax", "nonLinearity", Softmax, [0, 6]),
];

/// The operations of a layer, in execution order.
pub fn of(framework: Framework) -> &'static [Template] {
    match framework {
        Framework::Popart => POPART,
        Framework::Poptorch => POPTORCH,
        Framework::Tensorflow => TENSORFLOW,
        Framework::Poplar => POPLAR,
    }
}

/// The operation of a layer that adds its input to what it made of it.
pub fn addition(framework: Framework) -> Option<usize> {
    let mut templates = of(framework).iter();
    templates.position(|template| template.kind == Kind::Elementwise && !template.outlined)
}

/// The operation of a layer that uses masks and constants.
pub fn shared_slot(framework: Framework) -> usize {
    let mut templates = of(framework).iter();
    let fits = |template: &Template| {
        matches!(template.kind, Kind::Softmax | Kind::Norm) && !template.outlined
    };
    templates.position(fits).expect("every layer has one")
}

/// The name of a layer's operation.
pub fn name(framework: Framework, layer: u32, path: &str) -> String {
    match framework {
        Framework::Popart | Framework::Poplar => format!("Layer{layer}/{path}"),
        Framework::Poptorch => format!("bert/encoder/layer/{layer}/{path}"),
        Framework::Tensorflow => format!("model/blocks/{layer}/{path}"),
    }
}

/// The name of the weights of a layer's operation, without its last part
/// (`MatMul`), as the framework's users see it.
pub fn weight_name(framework: Framework, layer: u32, path: &str) -> String {
    let owner = path.rsplit_once('/').map_or(path, |(owner, _)| owner);
    match framework {
        Framework::Poptorch => {
            format!(
                "bert.encoder.layer.{layer}.{}.weight",
                owner.replace('/', ".")
            )
        }
        other => format!("{}/weight", name(other, layer, owner)),
    }
}
