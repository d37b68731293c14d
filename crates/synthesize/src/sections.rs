//! Which part of the model gets how many variables and bytes.

use super::model::{Model, Phase};
use super::settings::{Framework, Settings};
use super::sizes::layer_scale;

/// A part of the model that gets its own share of variables.
pub struct Section {
    /// Its layer; none for embedding and head.
    pub layer: Option<u32>,
    /// Name for variables of nameless operations.
    pub name: String,
    /// Its forward operations, without those of functions.
    pub forward: Vec<usize>,
    /// Its backward operations.
    pub backward: Vec<usize>,
    /// What updates its weights.
    pub update: Option<usize>,
    /// Groups without messages.
    pub count: u64,
    /// Bytes of weights, bytes of everything else, on an average tile.
    pub bytes: (u64, u64),
}

/// Embedding, layers, head. Layers have two parts of weights to three of the
/// rest, before their own scale.
pub fn sections(settings: &Settings, model: &Model, per_layer: u64) -> Vec<Section> {
    let bytes = settings.bytes_per_layer_tile;
    let table = match settings.framework {
        Framework::Tensorflow => 150,
        Framework::Poplar => 600,
        _ => 700,
    };
    let outside = |name: &str, phase, weights, rest| Section {
        name: name.to_owned(),
        count: per_layer,
        bytes: (bytes * weights / 1000, bytes * rest / 1000),
        ..ops_of(model, None, phase)
    };
    let mut sections = vec![outside("embedding", Phase::Embedding, table, 300)];
    for layer in 0..settings.layers {
        let (weights, rest) = layer_scale(settings, layer);
        sections.push(Section {
            name: format!("Layer{layer}"),
            count: per_layer * (weights + rest) / 2000,
            bytes: (bytes * 2 / 5 * weights / 1000, bytes * 3 / 5 * rest / 1000),
            ..ops_of(model, Some(layer), Phase::Forward)
        });
    }
    sections.push(outside("head", Phase::Head, 200, 250));
    sections
}

/// A section with its operations alone.
fn ops_of(model: &Model, layer: Option<u32>, forward: Phase) -> Section {
    let of = |phase: Phase| -> Vec<usize> {
        let wanted = |index: &&usize| {
            let op = &model.ops[**index];
            op.made_for == layer && op.function.is_none() && op.phase == phase
        };
        model.order.iter().filter(wanted).copied().collect()
    };
    Section {
        layer,
        name: String::new(),
        forward: of(forward),
        backward: of(Phase::Backward),
        update: of(Phase::Optimiser).first().copied(),
        count: 0,
        bytes: (0, 0),
    }
}
