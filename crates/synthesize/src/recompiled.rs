//! Further compilations of a model: with another available memory proportion, another size of a
//! micro-batch, or tensors on other tiles. All compilations of a model have the same operations,
//! names and weights; ids of variables and their order differ.

use super::groups::{Group, Role};
use super::model::Model;
use super::random::topic;
use super::settings::{DEFAULT_PROPORTION, Settings};
use super::templates::Kind;

impl Settings {
    /// Returns whether a tensor of this kind is at the other end of the tiles.
    pub fn is_mirrored(&self, kind: Role, number: u64) -> bool {
        let about = [topic::COMPILATION, kind as u64, number, self.compilation()];
        self.moved && self.random.chance(500, about)
    }
}

fn is_product(model: &Model, op: usize) -> bool {
    matches!(model.ops[op].kind, Kind::MatMul | Kind::Conv)
}

/// Returns the temporaries of an operation, in thousandths of those by default. A product or
/// convolution takes memory up to the proportion, or up to what its fastest plan needs; that of one
/// in four fits in any proportion.
pub fn share_of_temporaries(settings: &Settings, model: &Model, op: usize) -> u64 {
    let hash = settings.random.hash([topic::COMPILATION, op as u64, 0, 0]);
    let fastest = match is_product(model, op) && !hash.is_multiple_of(4) {
        true => 0.15 + ((hash >> 8) % 850) as f64 / 1000.0,
        false => 0.001,
    };
    let taken = settings.proportion.min(fastest) / DEFAULT_PROPORTION.min(fastest);
    (1000.0 * taken).round().max(1.0) as u64
}

/// Returns the bytes of the temporaries of an operation, from those of other operations with the
/// same outputs.
pub fn temporaries(settings: &Settings, model: &Model, op: usize, bytes: u64) -> u64 {
    let times = if is_product(model, op) {
        settings.temporaries
    } else {
        1
    };
    times * bytes * share_of_temporaries(settings, model, op) / 1000
}

/// Returns the cycles that a program of an operation takes for all samples, from those of one by
/// default. Products are the slower the smaller their temporaries are, each to its own degree.
pub fn cycles((settings, model): (&Settings, &Model), op: Option<usize>, sample: u64) -> u64 {
    let Some(op) = op else { return sample };
    let degree = 100
        + settings
            .random
            .below(300, [topic::COMPILATION, op as u64, 0, 1]);
    let per_mille = 1000 - degree + degree * 1000 / share_of_temporaries(settings, model, op);
    sample * batch_of(settings, model, op) * per_mille / 1000
}

/// Returns the number of samples for which an operation works at once; 1 if it works for none, as
/// an update of weights does.
pub fn batch_of(settings: &Settings, model: &Model, op: usize) -> u64 {
    match model.ops[op].phase.pass() {
        Some(0 | 1) => settings.batch,
        _ => 1,
    }
}

/// Gives the groups the order that they have in this compilation: temporaries in any order, then
/// all others.
pub fn reorder(settings: &Settings, groups: Vec<Group>) -> Vec<Group> {
    let place = |&group: &usize| match groups[group].role {
        _ if settings.compilation() == 0 => (0, group as u64),
        Role::Work | Role::Message | Role::Rearrangement | Role::OutputEdge => {
            let about = [topic::COMPILATION, group as u64, 1, settings.compilation()];
            (0, settings.random.hash(about))
        }
        _ => (1, group as u64),
    };
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(place);
    let mut places = vec![0; groups.len()];
    order
        .iter()
        .enumerate()
        .for_each(|(place, &group)| places[group] = place);
    let groups = order.iter().map(|&group| Group {
        like: groups[group]
            .like
            .map(|(other, times)| (places[other], times)),
        ..groups[group].clone()
    });
    groups.collect()
}
