//! Finds the layers that options name (`--pin 3=0`, `--splits`), and reads constraints from
//! options.

use crate::{
    escape::printable,
    message::{BadValue, usage},
    model::{Named, Positions, PseudoLayers},
    solve::{Constraint, Rule},
    wording::join,
};
use anyhow::Result;
use std::{cmp::Reverse, fmt};

/// A constraint on a split, from an option that names layers. The name may also be `In` or `Out`
/// (the operations before or after the layers) or, in the classic memory model, `None` (all
/// operations without a layer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerConstraint {
    /// The layer with this name runs on the IPU with this index, counted from 0 (`--pin`).
    Pin(String, usize),
    /// The two layers with these names, and all layers between them, are in one stage
    /// (`--together`).
    Together(String, String),
    /// A stage begins with the layer with this name (`--cut-before`).
    CutBefore(String),
}

impl LayerConstraint {
    /// Reads the value of `--pin`: the name of a layer and the index of its IPU, such as `3=0`.
    ///
    /// # Errors
    /// If no number follows the last `=`.
    pub fn pin(text: &str) -> Result<Self, BadValue> {
        let wrong = || BadValue(format!("'{text}' is not LAYER=IPU; write it like 3=0"));
        let (layer, ipu) = text.rsplit_once('=').ok_or_else(wrong)?;
        let ipu = ipu.trim().parse().map_err(|_| wrong())?;
        Ok(Self::Pin(layer.trim().to_owned(), ipu))
    }

    /// Reads the value of `--together`: the first and the last of the layers to keep in one stage,
    /// such as `3,5`.
    ///
    /// # Errors
    /// If the text is not two names.
    pub fn together(text: &str) -> Result<Self, BadValue> {
        match <[String; 2]>::try_from(layer_names(text)?) {
            Ok([first, last]) => Ok(Self::Together(first, last)),
            Err(_) => Err(BadValue(format!(
                "'{text}' is not LAYER,LAYER; write it like 3,5"
            ))),
        }
    }

    /// Reads the constraint that an option such as `--pin` with the value `value` gives; `None` if
    /// the option gives no constraint, or if the value is wrong.
    pub(crate) fn parse(option: &str, value: &str) -> Option<Self> {
        match option {
            "--pin" => Self::pin(value).ok(),
            "--together" => Self::together(value).ok(),
            "--cut-before" => Some(Self::CutBefore(value.to_owned())),
            _ => None,
        }
    }

    pub(super) fn layers(&self) -> Vec<&String> {
        match self {
            Self::Together(first, last) => vec![first, last],
            Self::Pin(layer, _) | Self::CutBefore(layer) => vec![layer],
        }
    }

    /// Returns the constraint with the positions of its layers (indices in the order In, layers,
    /// Out) in place of their names. An error, which names the option, if the model lacks a layer.
    pub(super) fn at(&self, positions: &Positions) -> Result<Constraint> {
        let option = self.to_string();
        let at = |layer: &str| position(positions, layer, &option);
        let rule = match self {
            Self::Pin(layer, ipu) => Rule::Pin {
                position: at(layer)?,
                ipu: *ipu,
            },
            Self::Together(first, last) => Rule::Together {
                first: at(first)?,
                last: at(last)?,
            },
            Self::CutBefore(layer) => Rule::CutBefore {
                position: at(layer)?,
            },
        };
        Ok(Constraint::option(rule, option))
    }
}

impl fmt::Display for LayerConstraint {
    /// Writes the constraint as an option of the command line, such as `--pin 3=0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(layer, ipu) => write!(f, "--pin {layer}={ipu}"),
            Self::Together(first, last) => write!(f, "--together {first},{last}"),
            Self::CutBefore(layer) => write!(f, "--cut-before {layer}"),
        }
    }
}

/// Splits a list of layer names at commas. In the list, a comma or backslash that is part of a name
/// has a backslash before it.
pub fn layer_names(list: &str) -> Result<Vec<String>, BadValue> {
    let mut names = vec![String::new()];
    let mut characters = list.chars();
    while let Some(character) = characters.next() {
        let name = names.last_mut().expect("there is always one");
        match character {
            '\\' => name.extend(characters.next()),
            ',' => names.push(String::new()),
            other => name.push(other),
        }
    }
    if list.trim().is_empty() {
        return Ok(Vec::new());
    }
    names
        .iter()
        .map(|name| match name.trim() {
            "" => Err(BadValue(format!(
                "'{list}' has a layer without a name; leave out the extra comma"
            ))),
            name => Ok(name.to_owned()),
        })
        .collect()
}

const NAMES_SHOWN: usize = 8;

/// Returns the position of the layer named `layer` (or `In`, `Out`, `None`) in the layer order. If
/// the model has no such layer, the error begins with `option`, in which the user gave the name.
pub fn position(positions: &Positions, layer: &str, option: &str) -> Result<usize> {
    let name = |position| printable(positions.name(position));
    let (option, text) = (printable(option), printable(layer));
    Err(usage(match positions.find(layer) {
        Named::Layer(position) => return Ok(position),
        // The name of a module inside a layer stands for the whole layer, except where a stage is
        // to begin: a stage cannot begin inside a layer.
        Named::Inside(position) if !begins_stage(&option) => return Ok(position),
        Named::Ambiguous(all) => {
            let names = join(all.into_iter().take(NAMES_SHOWN).map(name), ", ");
            format!("{option}: {text} may be any of the layers {names}; name one of them")
        }
        Named::Inside(place) => format!(
            "{option}: no stage can begin at {text}, which runs inside {}; name another layer",
            name(place)
        ),
        Named::Unknown => format!(
            "{option}: there is no {}; name one of {}, or another that --list-layers lists",
            unknown(layer, positions.pseudo_layers()),
            nearest(positions, layer, begins_stage(&option)).join(", ")
        ),
    }))
}

/// Returns whether `option` names layers that begin a stage other than stage 0. Such an option
/// cannot name In (the operations before the first layer), which always begins stage 0.
fn begins_stage(option: &str) -> bool {
    option.starts_with("--splits") || option.starts_with("--cut-before")
}

/// Returns the names of up to three layers (or `In`, `Out`) that resemble `text`, the most similar
/// first, as suggestions for an error. With `begins_stage`, suggests only layers with which a stage
/// other than stage 0 can begin.
fn nearest(positions: &Positions, text: &str, begins_stage: bool) -> Vec<String> {
    let likeness = |name: &str| (strsim::normalized_levenshtein(name, text) * 1e6) as u64;
    let mut all = Vec::new();
    for position in usize::from(begins_stage)..positions.len() {
        let name = positions.name(position).to_string();
        let of_module = positions.module(position).map_or(0, likeness);
        // If the first IPU runs both In and Out (the operations before and after the layers), the
        // first position is named `In Out`. Users write `In` or `Out`, so `text` is compared with
        // each word.
        let names = if position == 0 {
            name.split(' ').collect()
        } else {
            vec![&*name]
        };
        all.extend(
            names
                .iter()
                .map(|name| (Reverse(likeness(name).max(of_module)), printable(name))),
        );
    }
    all.sort_by_key(|&(likeness, _)| likeness);
    all.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Describes the unknown layer name `layer` in an error. If `layer` is `In`, `Out` or `None`, says
/// why the memory model has no position with this name. `pseudo_layers` says whether the model has
/// In and Out, or None.
fn unknown(layer: &str, pseudo_layers: PseudoLayers) -> String {
    match (layer, pseudo_layers) {
        ("In" | "Out", PseudoLayers::NoneFirst) => format!(
            "{layer}, since all operations without a layer are one place, None, in the \
             classic memory model"
        ),
        ("None", _) => "None, since operations without a layer are in In, in Out or in \
                        the layers that they belong to; only the classic memory model has None"
            .to_string(),
        _ if layer.parse::<i64>().is_ok() => {
            format!("layer {layer} (a name, since sources count layers in different ways)")
        }
        _ => format!("layer {}", printable(layer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::orders;

    #[test]
    fn names_that_the_model_does_not_have() {
        let error = |positions: &Positions, name: &str| {
            position(positions, name, "--pin x=0")
                .unwrap_err()
                .to_string()
        };
        let [apart, together, classic] = orders();
        assert_eq!(position(&apart, "In", "").unwrap(), 0);
        assert_eq!(position(&apart, "Out", "").unwrap(), 5);
        assert_eq!(position(&together, "Out", "").unwrap(), 0);
        assert_eq!(position(&classic, "None", "").unwrap(), 0);
        let text = error(&classic, "Out");
        assert!(
            text.starts_with("--pin x=0: there is no Out, since "),
            "{text}"
        );
        assert!(
            text.ends_with("; name one of None, 0, 1, or another that --list-layers lists"),
            "{text}"
        );
        let text = error(&apart, "None");
        assert!(text.contains("there is no None, since "), "{text}");
        let text = position(&together, "Ou", "--splits")
            .unwrap_err()
            .to_string();
        assert!(text.contains("name one of 0, 1, 2, or another"), "{text}");
        let text = error(&apart, "7\u{1b}");
        assert_eq!(
            text,
            "--pin x=0: there is no layer 7\\u{1b}; name one of In, 0, 1, or another that \
             --list-layers lists"
        );
    }

    #[test]
    fn names_may_hold_commas_and_pins_equal_signs() {
        assert_eq!(layer_names("0, 3"), Ok(vec!["0".into(), "3".into()]));
        assert_eq!(
            layer_names(r"a\,b,c\\"),
            Ok(vec!["a,b".into(), r"c\".into()])
        );
        assert_eq!(layer_names(""), Ok(vec![]));
        assert!(layer_names("1,,2").is_err());
        let pin = LayerConstraint::pin("a=b=2");
        assert_eq!(pin, Ok(LayerConstraint::Pin("a=b".into(), 2)));
        for wrong in ["3", "3=", "=x", "3=-1"] {
            assert!(LayerConstraint::pin(wrong).is_err(), "{wrong}");
        }
        assert!(LayerConstraint::together("1,2,3").is_err());
    }
}
