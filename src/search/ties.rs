//! Constraints on splits by weights that several layers share.

use crate::escape::shell;
use crate::model::{Placement, Positions, WeightTie};
use crate::solve::{Constraint, TiedWeight};

/// Constraints that keep the positions with a common weight on one IPU.
pub(super) fn constraints(placement: &Placement) -> impl Iterator<Item = Constraint> + '_ {
    let positions = &placement.positions;
    placement.ties.iter().filter_map(|tie| {
        let (first, last) = tie.binds(positions)?;
        Some(Constraint::tie(first, last, weight(tie, positions)))
    })
}

fn weight(tie: &WeightTie, positions: &Positions) -> TiedWeight {
    let users = tie.places.iter();
    let untie = format!("--untie {}", shell(&tie.weight));
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
}
