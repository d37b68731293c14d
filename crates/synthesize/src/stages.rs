//! The program stages of an operation, and how many it has.

use super::model::{Model, Op, Shape};
use super::random::topic;
use super::settings::{Outlined, Settings};
use super::templates::Kind;

/// The shape of a stage; `index` is the operation's.
pub fn shape(settings: &Settings, op: &Op, index: usize, stage: u32) -> Shape {
    if let Some(&shape) = op.shapes.get(stage as usize) {
        return shape;
    }
    let about = [topic::STAGE, index as u64, stage.into(), 0];
    match (stage, op.kind, settings.random.below(100, about)) {
        (0, Kind::Elementwise | Kind::Update, _) => Shape::Compute,
        (0, ..) | (_, _, 0..32) => Shape::Exchanged,
        (_, _, 32..44) => Shape::Copy,
        _ => Shape::Compute,
    }
}

/// Gives the operations more stages until there are about `wanted` steps.
pub fn lengthen(settings: &Settings, model: &mut Model, wanted: usize) {
    let calls = match settings.outlined {
        Outlined::PerCall => model.calls.len(),
        _ => 1,
    };
    let times = |op: &Op| if op.function.is_some() { calls } else { 1 };
    let mut steps = 40;
    for (index, op) in model.ops.iter().enumerate() {
        let stages = 0..op.stages;
        let positions: usize = stages
            .map(|s| shape(settings, op, index, s).programs())
            .sum();
        steps += (positions + 1) * times(op);
    }
    steps += 3 * model.weights.len();
    while steps < wanted {
        let real = model
            .ops
            .iter_mut()
            .enumerate()
            .filter(|(_, op)| op.stages > 0 && op.shapes.is_empty());
        for (index, op) in real {
            let more = op.kind.stages().min(3);
            for _ in 0..more {
                steps += shape(settings, op, index, op.stages).programs() * times(op);
                op.stages += 1;
            }
            if steps >= wanted {
                return;
            }
        }
    }
}
