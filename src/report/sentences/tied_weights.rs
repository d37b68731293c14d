//! Sentences about weights that several layers share.

use super::{Phrase, Sentence, say};
use crate::model::PseudoLayers;
use crate::report::text::{self, counted};
use crate::report::{Report, TiedWeightFacts};
use crate::wording::listed;

/// Upper bound on tied weights with names.
const MAX_TIED: usize = 5;

/// Lists the weights that several layers use, most bytes first.
pub(in crate::report) fn tied_weights(report: &Report) -> Vec<Sentence> {
    let all = &report.tied_weights;
    let named = all.iter().take(MAX_TIED);
    let mut lines: Vec<_> = named
        .map(|weight| tied_weight(weight, report.pseudo_layers))
        .collect();
    if let Some(more @ 1..) = all.len().checked_sub(MAX_TIED) {
        lines.push(say(format!("and {} more", counted(more, "tied weight"))));
    }
    lines
}

/// Says which layers use a tied weight, and which IPUs have it.
fn tied_weight(tied: &TiedWeightFacts, pseudo_layers: PseudoLayers) -> Sentence {
    let names = pseudo_layers.names_of(&tied.layers);
    let names: Vec<String> = names.into_iter().map(text::displayed).collect();
    let are_layers = tied.layers.iter().all(Option::is_some);
    let stages: Vec<String> = tied.stages.iter().map(u32::to_string).collect();
    let stages = stages.join(", ");
    let place = match (tied.stages.as_slice(), tied.untied) {
        ([], false) => "on one IPU in every split".to_string(),
        ([], true) => "untied".to_string(),
        ([one], _) => format!("on IPU {one}"),
        (_, true) => {
            format!("untied, with a copy on each of IPUs {stages}; untie it in the model too")
        }
        (_, false) => format!("on IPUs {stages}, which no framework runs"),
    };
    say("tied weight ")
        .name(&tied.weight)
        .text(" (")
        .amount(tied.bytes)
        .text(if are_layers { ") of layers " } else { ") of " })
        .phrase(Phrase::List(listed(&names)))
        .text(format!(": {place}"))
}
