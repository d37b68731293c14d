//! Names of the positions of the layer order for people. In [`LayerNames`], which programs read,
//! the first position is `null` and Out is `"Out"`; people read `In`, `Out` or `None` instead,
//! depending on [`PseudoLayers`].

use super::join;
use crate::escape::printable;
use crate::model::{LayerNames, PseudoLayers};
use crate::wording::displayed;

/// The name of Out, the operations after the last layer.
const OUT: &str = "Out";

impl PseudoLayers {
    /// Returns the name of one position of the layer order for people. `layer` is `None` for the
    /// first position, whose name is `None`, `In` or, if In and Out are one position, `In Out`.
    pub(super) fn name_of(self, layer: &Option<String>) -> &str {
        match (layer, self) {
            (Some(name), _) => name,
            (None, PseudoLayers::NoneFirst) => "None",
            (None, PseudoLayers::InAndOut) => "In",
            (None, PseudoLayers::OutWithIn) => "In Out",
        }
    }

    /// Returns one name per entry of `layers` for people. The entry `None` is the first position,
    /// whose name is `In` or `None`. If In and Out are one position, Out has an entry of its own in
    /// `layers`.
    pub(super) fn names_of(self, layers: &[Option<String>]) -> Vec<&str> {
        layers
            .iter()
            .map(|layer| match (layer, self) {
                (&None, PseudoLayers::OutWithIn) => "In",
                (layer, _) => self.name_of(layer),
            })
            .collect()
    }

    /// Returns the name of one position as it is written inside a sentence: `layer 3` for a layer,
    /// `In` for In.
    pub(super) fn in_sentence(self, layer: &Option<String>) -> String {
        match self.meaning(layer) {
            None => format!("layer {}", self.name_of(layer)),
            Some(_) => self.name_of(layer).to_string(),
        }
    }

    /// Returns a short explanation of a pseudo-layer (In, Out or None); `None` if `layer` is not a
    /// pseudo-layer.
    pub(super) fn meaning(self, layer: &Option<String>) -> Option<&'static str> {
        match (layer.as_deref(), self) {
            (None, PseudoLayers::NoneFirst) => Some("the operations without a layer"),
            (None, PseudoLayers::InAndOut) => Some("what runs before the layers"),
            (None, PseudoLayers::OutWithIn) => Some("what runs before the layers and after them"),
            (Some(OUT), PseudoLayers::InAndOut) => Some("what runs after the layers"),
            _ => None,
        }
    }

    /// Returns the names of the layers of one stage for a document. Long names are cut, and a list
    /// of more than 8 names is shortened.
    pub(super) fn displayed_list(self, layers: &[Option<String>]) -> String {
        shortened(self.names_of(layers), displayed, "\u{2026}")
    }

    /// Returns the names of the layers of each stage for a document, such as `[ In 0 1 | 2 3 Out
    /// ]`.
    pub(super) fn displayed_stages(self, stages: &[LayerNames]) -> String {
        in_brackets(stages, |layers| self.displayed_list(layers))
    }

    /// Returns the names of the layers of one stage for a terminal. Long names stay whole, but a
    /// list of more than 8 names is shortened.
    pub(super) fn plain_list(self, layers: &[Option<String>]) -> String {
        shortened(self.names_of(layers), printable, "...")
    }

    /// Returns the names of the layers of each stage for a terminal, such as `[ In 0 1 | 2 3 Out
    /// ]`.
    pub(super) fn plain_stages(self, stages: &[LayerNames]) -> String {
        in_brackets(stages, |layers| self.plain_list(layers))
    }
}

/// Joins the texts that `list` returns for the layers of each stage of a split into one text, such
/// as `[ In 0 | 1 Out ]`.
fn in_brackets(stages: &[LayerNames], list: impl Fn(&LayerNames) -> String) -> String {
    format!("[ {} ]", join(stages.iter().map(list), " | "))
}

/// Joins the names of the layers of a stage, each converted by `shown`, with spaces between. If
/// there are more than 8 names, names with consecutive numbers become one name (`encoder.0-11`). If
/// more than 8 names remain, only the first name, `ellipsis`, the last name and the number of
/// layers are written.
fn shortened(names: Vec<&str>, shown: impl Fn(&str) -> String, ellipsis: &str) -> String {
    const MAX: usize = 8;
    if names.len() <= MAX {
        return join(names.into_iter().map(shown), " ");
    }
    let runs = runs(&names);
    if runs.len() > MAX {
        let (first, last) = (shown(names[0]), shown(names[names.len() - 1]));
        return format!("{first} {ellipsis} {last} ({})", names.len());
    }
    let runs = runs.into_iter().map(|(first, last)| match last {
        Some(last) => format!("{}-{last}", shown(first)),
        None => shown(first),
    });
    join(runs, " ")
}

/// Finds runs of at least three names that have consecutive numbers at the end and the same text
/// before the numbers. Returns one entry per run, with the first name and the last number of the
/// run, and one entry with `None` for each other name.
fn runs<'a>(names: &[&'a str]) -> Vec<(&'a str, Option<u64>)> {
    names
        .chunk_by(|first, second| match (numbered(first), numbered(second)) {
            (Some((prefix, number)), Some((other, next))) => {
                prefix == other && number.checked_add(1) == Some(next)
            }
            _ => false,
        })
        .flat_map(|run| match run {
            [first, _, .., last] => vec![(*first, numbered(last).map(|(_, number)| number))],
            few => few.iter().map(|name| (*name, None)).collect(),
        })
        .collect()
}

/// Splits a name into the text before the number at its end, and this number. Returns `None` if the
/// name does not end with a number, or if the number has a leading zero.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let prefix = name.trim_end_matches(|end: char| end.is_ascii_digit());
    let digits = &name[prefix.len()..];
    let number = digits.parse().ok()?;
    (digits == "0" || !digits.starts_with('0')).then_some((prefix, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Layering, Positions};

    #[test]
    fn many_layers_are_runs_of_numbers() {
        let show = |names: &[&str]| shortened(names.to_vec(), str::to_string, "...");
        let encoder = (0..12).map(|number| format!("encoder.{number}"));
        let both: Vec<String> = encoder
            .chain((0..2).map(|n| format!("decoder.{n}")))
            .collect();
        let names: Vec<&str> = ["In"]
            .into_iter()
            .chain(both.iter().map(|name| &**name))
            .collect();
        assert_eq!(show(&names), "In encoder.0-11 decoder.0 decoder.1");
        assert_eq!(show(&names[..8]).split(' ').count(), 8, "few stay names");
        let apart: Vec<String> = (0..9).map(|number| format!("{number}.mlp")).collect();
        let apart: Vec<&str> = apart.iter().map(|name| &**name).collect();
        assert_eq!(show(&apart), "0.mlp ... 8.mlp (9)");
        assert_eq!(runs(&["9", "10", "11"]), [("9", Some(11))]);
        assert_eq!(runs(&["08", "09", "10"]).len(), 3);
    }

    #[test]
    fn long_lists_in_documents_are_shortened_too() {
        let many: Vec<_> = (0..9).map(|n| Some(n.to_string())).collect();
        let order = PseudoLayers::InAndOut;
        assert_eq!(order.displayed_list(&many), "0-8");
        assert_eq!(order.displayed_list(&[None, Some("0".into())]), "In 0");
        let stages: Vec<_> = (0..7).map(|n| vec![Some(n.to_string())]).collect();
        let all = "[ 0 | 1 | 2 | 3 | 4 | 5 | 6 ]";
        assert_eq!(order.displayed_stages(&stages), all);
    }

    fn order(pseudo_layers: PseudoLayers) -> Positions {
        let names = ["", "0", "1"].map(String::from);
        let layering = Layering::of(names.to_vec(), Vec::new());
        Positions::new(&layering, pseudo_layers)
    }

    /// Returns the names of all positions, in order: as JSON, and as the text that people see.
    fn whole(pseudo_layers: PseudoLayers) -> (String, String) {
        let positions = order(pseudo_layers);
        let names = positions.layer_names(0..positions.len());
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
            let names = positions.layer_names(wanted.iter().copied());
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
        assert_eq!(order.in_sentence(&Some("7".into())), "layer 7");
        assert_eq!(order.in_sentence(&None), "In");
        assert_eq!(order.meaning(&out), Some("what runs after the layers"));
        assert_eq!(order.meaning(&Some("7".into())), None);
        assert_eq!(PseudoLayers::NoneFirst.in_sentence(&out), "layer Out");
    }
}
