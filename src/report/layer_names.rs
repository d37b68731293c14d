//! Names the positions of the layer order for people. In [`LayerNames`], which programs read, the
//! first position is `null`. People read `In` (the operations before the layers), `In Out` if the
//! operations after the layers have this position too, or `None` (all operations without a layer,
//! in the classic memory model); [`PseudoLayers`] decides which.

use crate::{
    escape::printable,
    model::{LayerNames, PseudoLayers},
    wording::{displayed, join},
};

impl PseudoLayers {
    /// Returns the name of one position of the layer order for people: the name of a layer, or
    /// `Out` (the operations after the layers). For the first position, `layer` is `None`, and the
    /// name is one of:
    /// - `In` (the operations before the layers)
    /// - `In Out`, if Out has the same position
    /// - `None` (all operations without a layer), in the classic memory model
    pub(super) fn name_of(self, layer: &Option<String>) -> &str {
        layer.as_deref().unwrap_or(self.first())
    }

    /// Returns the names of positions of the layer order (In, layers, Out) for people. Only the
    /// first position needs a new name, since `layers` has `None` for it: people read `In` or, in
    /// the classic memory model, `None`. Out keeps its name `Out`, also if it has the same position
    /// as In.
    pub(super) fn names_of(self, layers: &[Option<String>]) -> Vec<&str> {
        layers
            .iter()
            .map(|layer| match (layer, self) {
                (&None, Self::OutWithIn) => "In",
                (layer, _) => self.name_of(layer),
            })
            .collect()
    }

    /// Returns the name of a position as a sentence writes it: `layer 3` for a layer, `In` for In.
    pub(super) fn in_sentence(self, layer: &Option<String>) -> String {
        let name = self.name_of(layer);
        match self.meaning(layer) {
            None => format!("layer {name}"),
            Some(_) => name.to_string(),
        }
    }

    /// Explains a pseudo-layer, that is, a position for operations outside all layers (In, Out or
    /// None). Returns `None` if `layer` is a layer of the model.
    pub(super) fn meaning(self, layer: &Option<String>) -> Option<&'static str> {
        match (layer.as_deref(), self) {
            (None, Self::NoneFirst) => Some("the operations without a layer"),
            (None, Self::InAndOut) => Some("what runs before the layers"),
            (None, Self::OutWithIn) => Some("what runs before the layers and after them"),
            (Some("Out"), Self::InAndOut) => Some("what runs after the layers"),
            _ => None,
        }
    }

    /// Returns the layers of one stage as Markdown and the HTML page show them. Long names are cut,
    /// and a list of more than 8 names is shortened.
    pub(super) fn displayed_list(self, layers: &[Option<String>]) -> String {
        shortened(self.names_of(layers), displayed, "\u{2026}")
    }

    /// Returns the layers of each stage as Markdown and the HTML page show them, such as `[ In 0 1
    /// | 2 3 Out ]`.
    pub(super) fn displayed_stages(self, stages: &[LayerNames]) -> String {
        in_brackets(stages.iter().map(|layers| self.displayed_list(layers)))
    }

    /// Returns the layers of one stage as a terminal shows them. Long names stay whole, so that
    /// users can copy them, but a list of more than 8 names is shortened.
    pub(super) fn plain_list(self, layers: &[Option<String>]) -> String {
        shortened(self.names_of(layers), printable, "...")
    }

    /// Returns the layers of each stage as a terminal shows them, such as `[ In 0 1 | 2 3 Out ]`.
    pub(super) fn plain_stages(self, stages: &[LayerNames]) -> String {
        in_brackets(stages.iter().map(|layers| self.plain_list(layers)))
    }
}

/// Joins the lists of layers of all stages into one text, such as `[ In 0 | 1 Out ]`.
fn in_brackets(lists: impl Iterator<Item = String>) -> String {
    format!("[ {} ]", join(lists, " | "))
}

/// Joins the names of the layers of a stage with spaces; `shown` makes each name printable. If
/// there are more than 8 names, consecutive numbers become one name (`encoder.0-11`). If more than
/// 8 names still remain, only the first name, `ellipsis`, the last name and the number of layers
/// are shown.
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
    let run = |(first, last)| match last {
        Some(last) => format!("{}-{last}", shown(first)),
        None => shown(first),
    };
    join(runs.into_iter().map(run), " ")
}

/// Joins three or more names that end in consecutive numbers and are otherwise equal: `encoder.0`
/// to `encoder.11` become `("encoder.0", Some(11))`. Every other name becomes a pair of the name
/// and `None`.
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

/// Splits the name of a layer into the text before its final number, and this number. Returns
/// `None` without a final number, or if the number has leading zeros, which a range such as `0-11`
/// would lose.
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

    /// Returns the names of all positions (In, layers, Out), in order: as JSON, and as people see
    /// them.
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
