//! Sentences about tied weights, and about what stands in the way of a split.

use super::document::{RelaxationFacts, TiedWeightFacts};
use super::text::{grouped, shown};
use crate::model::PseudoLayers;
use crate::wording::listed;

/// A weight that several layers use, and which IPUs have it.
pub(super) fn sentence(tied: &TiedWeightFacts, pseudo_layers: PseudoLayers) -> String {
    let weight = format!(
        "{} ({} bytes) of {}",
        shown(&tied.weight),
        grouped(tied.bytes),
        users(&tied.layers, pseudo_layers)
    );
    match (tied.stages.as_slice(), tied.untied) {
        ([], false) => format!("{weight}: on one IPU in every split"),
        ([], true) => format!("{weight}: untied"),
        ([one], _) => format!("{weight}: on IPU {one}"),
        (several, true) => format!(
            "{weight}: untied, a weight of its own on each of IPUs {}; untie it in the model too",
            numbers(several)
        ),
        (several, false) => format!(
            "{weight}: on IPUs {}, which no framework runs",
            numbers(several)
        ),
    }
}

/// The constraints that stand in the way: `without --pin 1=0 and with wte
/// untied`.
pub(super) fn without(relaxation: &RelaxationFacts) -> String {
    let names = |names: &[String]| {
        let names = names.iter().map(|name| shown(name));
        names.collect::<Vec<_>>().join(", ")
    };
    let orders = format!("without {}", names(&relaxation.orders));
    let weights = format!("with {} untied (--untie)", names(&relaxation.weights));
    match (relaxation.orders.is_empty(), relaxation.weights.is_empty()) {
        (_, true) => orders,
        (true, false) => weights,
        (false, false) => format!("{orders} and {weights}"),
    }
}

/// The layers that use a weight: `layers 1, 2 and 5`, or `In and Out`.
fn users(layers: &[Option<String>], pseudo_layers: PseudoLayers) -> String {
    let names = pseudo_layers.names_of(layers);
    let are_layers = layers.iter().all(|layer| layer.is_some());
    let what = if are_layers { "layers " } else { "" };
    let names: Vec<String> = names.iter().map(|name| shown(name)).collect();
    format!("{what}{}", listed(&names))
}

fn numbers(stages: &[u32]) -> String {
    let stages: Vec<String> = stages.iter().map(u32::to_string).collect();
    stages.join(", ")
}

/// The same with a capital letter, to begin a sentence.
pub(super) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tied(layers: &[&str], stages: &[u32], untied: bool) -> String {
        let name = |name: &&str| (*name != "In").then(|| name.to_string());
        let tied = TiedWeightFacts {
            weight: "wte".into(),
            bytes: 12_000,
            layers: layers.iter().map(name).collect(),
            untied,
            stages: stages.to_vec(),
        };
        sentence(&tied, PseudoLayers::InAndOut)
    }

    #[test]
    fn a_weight_says_where_it_is() {
        let begin = "wte (12,000 bytes) of";
        let one = tied(&["In", "Out"], &[0], false);
        assert_eq!(one, format!("{begin} In and Out: on IPU 0"));
        let none = tied(&["1", "2", "5"], &[], false);
        let expected = format!("{begin} layers 1, 2 and 5: on one IPU in every split");
        assert_eq!(none, expected);
        let untied = tied(&["1", "5"], &[0, 2], true);
        assert!(untied.contains("on each of IPUs 0, 2;"), "{untied}");
        let broken = tied(&["1", "5"], &[0, 2], false);
        assert!(broken.contains("on IPUs 0, 2, which no"), "{broken}");
        let many: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(tied(&many, &[1], false).contains("6, 7 and 4 more: on IPU 1"));
    }

    #[test]
    fn what_stands_in_the_way_is_named() {
        let said = |orders: &[&str], weights: &[&str]| {
            without(&RelaxationFacts {
                orders: orders.iter().map(|name| name.to_string()).collect(),
                weights: weights.iter().map(|name| name.to_string()).collect(),
                stages: Vec::new(),
            })
        };
        assert_eq!(said(&["--pin 1=0"], &[]), "without --pin 1=0");
        assert_eq!(said(&[], &["a", "b"]), "with a, b untied (--untie)");
        let both = said(&["--pin 1=0"], &["a"]);
        assert_eq!(both, "without --pin 1=0 and with a untied (--untie)");
        assert_eq!(capital(&both), format!("W{}", &both[1..]));
    }
}
