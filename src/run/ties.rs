//! Weights that several layers use: what they ask of a split, and the options
//! that lift that.

use super::usage;
use crate::cli::Options;
use crate::model::{
    Layerless, OutOn, Placement, PositionName, Positions, Rules, Untied, WeightTie,
};
use crate::report::document::TiedWeightFacts;
use crate::report::{Split, printable};
use crate::solve::{Constraint, TiedWeight};
use anyhow::Result;
use std::ops::Range;

/// How many weights a message names.
const NAMES_SHOWN: usize = 20;

/// Refuses options about weights that the model does not have, or whose rules
/// know no ties.
///
/// # Errors
/// Wrong usage, with the names of the weights that there are.
pub(super) fn check(options: &Options, placement: &Placement) -> Result<()> {
    let is_assigned = options.placement().layerless == Layerless::Assign;
    if options.out_on != OutOn::Auto && (placement.rules == Rules::Classic || !is_assigned) {
        return Err(usage(
            "--out-on needs --memory-model full and --layerless assign: no others know Out",
        ));
    }
    let Untied::Weights(wanted) = options.placement().untie else {
        return Ok(());
    };
    let is_known = |name: &String| placement.ties.iter().any(|tie| tie.weight == *name);
    let Some(unknown) = wanted.iter().find(|name| !is_known(name)) else {
        return Ok(());
    };
    let names = placement.ties.iter().map(|tie| printable(&tie.weight));
    let shown: Vec<String> = names.take(NAMES_SHOWN).collect();
    let there_are = match placement.ties.len() {
        0 => "no weight of this model is tied".to_string(),
        all if all > NAMES_SHOWN => {
            format!("the tied weights are {} ...", shown.join(", "))
        }
        _ => format!("the tied weights are {}", shown.join(", ")),
    };
    Err(usage(format!(
        "--untie: there is no tied weight {}; {there_are}",
        printable(unknown)
    )))
}

/// What the weights that bind several positions ask of a split.
pub(super) fn constraints(placement: &Placement) -> impl Iterator<Item = Constraint> + '_ {
    let positions = &placement.positions;
    placement.ties.iter().filter_map(|tie| {
        let (first, last) = tie.binds(positions)?;
        Some(Constraint::tie(first, last, weight(tie, positions)))
    })
}

/// The weights that several layers use, and where `split` has them.
pub(super) fn facts(placement: &Placement, split: Option<&Split>) -> Vec<TiedWeightFacts> {
    let positions = &placement.positions;
    let ranges = split.map_or(Vec::new(), Split::ranges);
    let facts = |tie: &WeightTie| {
        let places = || tie.places.iter();
        let mut layers = Vec::new();
        for &place in places() {
            layers.push(match positions.name_of_place(place) {
                PositionName::In => None,
                name => Some(name.to_string()),
            });
        }
        let uses = |range: &Range<usize>| {
            places().any(|&place| range.contains(&positions.of_place(place)))
        };
        let stages = (0u32..).zip(&ranges).filter(|(_, range)| uses(range));
        TiedWeightFacts {
            weight: tie.weight.clone(),
            bytes: tie.bytes,
            layers,
            untied: tie.is_untied,
            stages: stages.map(|(stage, _)| stage).collect(),
        }
    };
    placement.ties.iter().map(facts).collect()
}

fn weight(tie: &WeightTie, positions: &Positions) -> TiedWeight {
    let users = tie.places.iter();
    let untie = format!("--untie {}", quoted(&tie.weight));
    let binds_in_and_out = tie.places.first() == Some(&0)
        && positions
            .out()
            .is_some_and(|out| tie.places.last() == Some(&(out as u32)));
    TiedWeight {
        name: tie.weight.clone(),
        bytes: tie.bytes,
        users: users
            .map(|&place| positions.name_of_place(place).to_string())
            .collect(),
        ways_out: if binds_in_and_out {
            vec!["--out-on first".to_string(), untie]
        } else {
            vec![untie]
        },
    }
}

/// A value as a shell takes it.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@%+=,".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        value.to_string()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Layering;

    fn positions(out_is_first: bool) -> Positions {
        let names = ["", "a", "b", "c"].map(String::from);
        let layering = Layering::of(names.to_vec(), Vec::new());
        Positions::full(&layering, out_is_first)
    }

    fn tie(places: &[u32]) -> WeightTie {
        WeightTie {
            weight: "wte".into(),
            bytes: 8,
            places: places.to_vec(),
            is_untied: false,
        }
    }

    #[test]
    fn a_tie_of_in_and_out_has_two_ways_out() {
        let [apart, together] = [positions(false), positions(true)];
        let both = tie(&[0, 4]);
        assert_eq!(both.binds(&apart), Some((0, 4)));
        assert_eq!(
            weight(&both, &apart).ways_out,
            ["--out-on first", "--untie wte"]
        );
        assert_eq!(both.binds(&together), None);
        assert_eq!(weight(&both, &together).users, ["In", "Out"]);
        let head = tie(&[2, 4]);
        assert_eq!(head.binds(&apart), Some((2, 4)));
        assert_eq!(head.binds(&together), Some((0, 2)));
        assert_eq!(weight(&head, &together).users, ["b", "Out"]);
        assert_eq!(weight(&head, &together).ways_out, ["--untie wte"]);
        let untied = WeightTie {
            is_untied: true,
            ..head
        };
        assert_eq!(untied.binds(&apart), None);
    }

    #[test]
    fn names_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("model/wte:0"), "model/wte:0");
        assert_eq!(quoted("my weight"), "'my weight'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
