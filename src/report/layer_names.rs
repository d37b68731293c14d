//! Names of the positions of the layer order in results.
//!
//! Programs read `null` for the first position, as the original tool wrote
//! it, and `"Out"` for the last. Where In and Out are one position, a list that
//! has it begins with `null` and ends with `"Out"`: both run on the first IPU.
//! People read `In`, `Out` or `None`; which, [`PseudoLayers`] says.

use super::LayerNames;
use super::text::printable;
use crate::model::{Positions, PseudoLayers};

/// The end of a list of layers that has Out.
const OUT: &str = "Out";

/// The name of a position: `None` for the first.
pub(super) fn layer_name(positions: &Positions, position: usize) -> Option<String> {
    (position > 0).then(|| positions.name(position).to_string())
}

/// The names of positions, ascending, with Out at the end where it is one
/// position with In.
pub(super) fn layer_names(
    positions: &Positions,
    wanted: impl IntoIterator<Item = usize>,
) -> LayerNames {
    let wanted = wanted.into_iter();
    let mut names: Vec<_> = wanted.map(|at| layer_name(positions, at)).collect();
    if positions.out_is_first() && matches!(names.first(), Some(None)) {
        names.push(Some(OUT.to_string()));
    }
    names
}

impl PseudoLayers {
    /// The name of one position for people.
    pub(super) fn name_of(self, layer: &Option<String>) -> &str {
        match (layer, self) {
            (Some(name), _) => name,
            (None, PseudoLayers::NoneFirst) => "None",
            (None, PseudoLayers::InAndOut) => "In",
            (None, PseudoLayers::OutWithIn) => "In Out",
        }
    }

    /// The names of a list for people, one by one: `In` and `Out` are separate
    /// where the list has both.
    pub(super) fn names_of(self, layers: &[Option<String>]) -> Vec<&str> {
        let name = |layer| match (layer, self) {
            (&None, PseudoLayers::OutWithIn) => "In",
            (layer, _) => self.name_of(layer),
        };
        layers.iter().map(name).collect()
    }

    /// One position in the middle of a sentence: `layer 3` or `In`.
    pub(super) fn named(self, layer: &Option<String>) -> String {
        match self.meaning(layer) {
            None => format!("layer {}", self.name_of(layer)),
            Some(_) => self.name_of(layer).to_string(),
        }
    }

    /// The meaning of a pseudo-layer; `None` for a layer.
    pub(super) fn meaning(self, layer: &Option<String>) -> Option<&'static str> {
        match (layer.as_deref(), self) {
            (None, PseudoLayers::NoneFirst) => Some("the operations without a layer"),
            (None, PseudoLayers::InAndOut) => Some("what runs before the layers"),
            (None, PseudoLayers::OutWithIn) => Some("what runs before the layers and after them"),
            (Some(OUT), PseudoLayers::InAndOut) => Some("what runs after the layers"),
            _ => None,
        }
    }

    /// The names of all stages for a terminal: `In 0 1 | 2 3 Out`.
    pub(super) fn all(self, stages: &[LayerNames]) -> String {
        let stages = stages.iter();
        let stages = stages.map(|layers| printable(&self.names_of(layers).join(" ")));
        stages.collect::<Vec<_>>().join(" | ")
    }

    /// The layers of a stage for a terminal, many of them by the first and the
    /// last.
    pub(super) fn few(self, layers: &[Option<String>]) -> String {
        const MAX: usize = 8;
        let names = self.names_of(layers);
        match names.as_slice() {
            [first, .., last] if names.len() > MAX => {
                let (first, last) = (printable(first), printable(last));
                format!("{first} ... {last} ({})", names.len())
            }
            few => printable(&few.join(" ")),
        }
    }

    /// How many layers each of all stages has, without pseudo-layers.
    pub(super) fn counts(self, stages: &[LayerNames]) -> Vec<usize> {
        let last = stages.len().saturating_sub(1);
        let count = |(number, stage): (usize, &LayerNames)| {
            let ends_with_out = match self {
                PseudoLayers::NoneFirst => false,
                PseudoLayers::InAndOut => number == last,
                PseudoLayers::OutWithIn => matches!(stage.first(), Some(None)),
            };
            let out = match stage.last() {
                Some(Some(name)) => ends_with_out && name == OUT,
                _ => false,
            };
            stage.iter().flatten().count() - usize::from(out)
        };
        stages.iter().enumerate().map(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Layering;

    fn order(pseudo_layers: PseudoLayers) -> Positions {
        let names = ["", "0", "1"].map(String::from);
        let layering = Layering::of(names.to_vec(), Vec::new());
        match pseudo_layers {
            PseudoLayers::NoneFirst => Positions::classic(&layering),
            PseudoLayers::InAndOut => Positions::full(&layering, false),
            PseudoLayers::OutWithIn => Positions::full(&layering, true),
        }
    }

    /// The names of the whole order for programs and for people.
    fn whole(pseudo_layers: PseudoLayers) -> (String, String) {
        let positions = order(pseudo_layers);
        let names = layer_names(&positions, 0..positions.len());
        let json = serde_json::to_string(&names).unwrap();
        (json, pseudo_layers.names_of(&names).join(" "))
    }

    #[test]
    fn each_order_by_its_names() {
        let pair = |json: &str, text: &str| (json.to_string(), text.to_string());
        let cases = [
            (PseudoLayers::NoneFirst, r#"[null,"0","1"]"#, "None 0 1"),
            (
                PseudoLayers::InAndOut,
                r#"[null,"0","1","Out"]"#,
                "In 0 1 Out",
            ),
            (
                PseudoLayers::OutWithIn,
                r#"[null,"0","1","Out"]"#,
                "In 0 1 Out",
            ),
        ];
        for (pseudo_layers, json, text) in cases {
            assert_eq!(whole(pseudo_layers), pair(json, text), "{pseudo_layers:?}");
        }
    }

    #[test]
    fn out_stands_with_in_wherever_they_are_one() {
        let positions = order(PseudoLayers::OutWithIn);
        let names = |wanted: &[usize]| {
            let names = layer_names(&positions, wanted.iter().copied());
            PseudoLayers::OutWithIn.names_of(&names).join(" ")
        };
        assert_eq!(names(&[0]), "In Out");
        assert_eq!(names(&[0, 2]), "In 1 Out");
        assert_eq!(names(&[1, 2]), "0 1");
        assert_eq!(PseudoLayers::OutWithIn.name_of(&None), "In Out");
    }

    #[test]
    fn sentences_tell_layers_from_pseudo_layers() {
        let order = PseudoLayers::InAndOut;
        let out = Some("Out".to_string());
        assert_eq!(order.named(&Some("7".into())), "layer 7");
        assert_eq!(order.named(&None), "In");
        assert_eq!(order.meaning(&out), Some("what runs after the layers"));
        assert_eq!(order.meaning(&Some("7".into())), None);
        assert_eq!(PseudoLayers::NoneFirst.named(&out), "layer Out");
    }

    #[test]
    fn pseudo_layers_are_not_counted() {
        let stages = |pseudo_layers, cuts: &[usize]| {
            let positions = order(pseudo_layers);
            let ends = cuts.iter().copied().chain([positions.len()]);
            let mut start = 0;
            let stage = |end| layer_names(&positions, std::mem::replace(&mut start, end)..end);
            let stages: Vec<_> = ends.map(stage).collect();
            pseudo_layers.counts(&stages)
        };
        assert_eq!(stages(PseudoLayers::NoneFirst, &[2]), [1, 1]);
        assert_eq!(stages(PseudoLayers::InAndOut, &[1, 3]), [0, 2, 0]);
        assert_eq!(stages(PseudoLayers::InAndOut, &[2]), [1, 1]);
        assert_eq!(stages(PseudoLayers::OutWithIn, &[1]), [0, 2]);
        assert_eq!(stages(PseudoLayers::OutWithIn, &[2]), [1, 1]);
    }
}
