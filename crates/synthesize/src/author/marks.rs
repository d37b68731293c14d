//! Takes the framework's marks of the backward pass and of updates away from a model.

use crate::model::{Model, Op, Phase};
use crate::settings::{Marks, Settings};

/// What TensorFlow writes before the names of gradients and of their sums.
const PREFIXES: [&str; 2] = ["gradient_tape/", "gradients/"];

pub(super) fn take_away(model: &mut Model, settings: &Settings) {
    if settings.features.marks == Marks::Framework {
        return;
    }
    for op in &mut model.ops {
        if !op.name.is_empty() {
            op.name = renamed(op, settings.features.marks);
        }
        for tensor in op.inputs.iter_mut().chain(&mut op.outputs) {
            *tensor = tensor.replace("Gradient___", "d_");
        }
        op.op_type = op.op_type.replace("VarUpdate", "Step");
    }
}

fn renamed(op: &Op, marks: Marks) -> String {
    let mut prefixes = PREFIXES.iter();
    let plain = prefixes.find_map(|&prefix| op.name.strip_prefix(prefix));
    let plain = plain.unwrap_or(&op.name);
    match (op.phase, marks) {
        (Phase::Compiler, _) => op.name.clone(),
        (Phase::Optimiser, Marks::Jax) => format!("jit(step)/{}", of_optimiser(plain)),
        (Phase::Optimiser, _) => of_optimiser(plain),
        (Phase::Backward, Marks::Jax) => format!("transpose(jvp(Net))/{plain}"),
        (_, Marks::Jax) => format!("jvp(Net)/{plain}"),
        _ => plain.to_owned(),
    }
}

fn of_optimiser(name: &str) -> String {
    let name = name.replace("/update_", "/of_");
    name.replace("ResourceApplyAdam", "mul")
}
