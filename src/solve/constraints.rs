//! Constraints: conditions on a split other than memory limits, each with its cause: an option, a
//! weight that several layers share, or layers that run several times.

use crate::wording::{grouped, listed};
use serde::{Deserialize, Serialize};
use std::{fmt, ops::Range};

/// A condition on a split, such as that two layers are in one stage, with its cause for messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Constraint {
    /// The condition that a split must obey, such as that two layers are in one stage.
    pub rule: Rule,
    /// The option, shared weight or repeated layers that cause the constraint. Only messages use
    /// this field.
    pub origin: Origin,
}

/// The cause of a constraint: either an option of the user, or the fact that layers share a weight
/// or that each micro-batch runs through layers several times, so that these layers must be in one
/// stage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The option that causes the constraint, with its value, as the user wrote it.
    Option(String),
    /// A weight that several positions use and that can only be on one IPU, so these positions must
    /// be in one stage.
    Weight(TiedWeight),
    /// Positions that each micro-batch runs through several times; the field is the number of runs.
    /// They must be in one stage, unless stages work one after the other (`--schedule sequential`).
    Repeat(usize),
}

/// A weight that several positions use, so that these positions must be in one stage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TiedWeight {
    /// The name of the shared weight, for messages.
    pub name: String,
    /// The bytes of the shared weight, summed over all tiles, for messages.
    pub bytes: u64,
    /// The names of the positions (In, layers, Out) that use the shared weight, for messages.
    pub users: Vec<String>,
    /// Options of the command, such as `--untie` with the name of the weight. Any one of them lifts
    /// the constraint that the shared weight causes. Empty if there is no such option.
    pub ways_out: Vec<String>,
}

/// A condition on a split. Positions are indices in the layer order: In, the layers, Out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "CheckedRule"))]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum Rule {
    /// The stage that has a given position (In, a layer or Out) runs on a given IPU (`--pin`).
    Pin {
        /// Index of the pinned position in the layer order.
        #[cfg_attr(test, schemars(with = "u32"))]
        position: usize,
        /// Number of the IPU that must run the stage with the pinned position, from 0.
        #[cfg_attr(test, schemars(with = "u32"))]
        ipu: usize,
    },
    /// Two positions and all positions between them are in one stage (`--together`).
    Together {
        /// Index in the layer order of one of two positions that must be in one stage, together
        /// with all positions between them.
        #[cfg_attr(test, schemars(with = "u32"))]
        first: usize,
        /// Index in the layer order of the second of two positions that must be in one stage,
        /// together with all positions between them; it may be lower than `first`.
        #[cfg_attr(test, schemars(with = "u32"))]
        last: usize,
    },
    /// A stage other than the first must begin with a given position (`--cut-before`).
    CutBefore {
        /// Index in the layer order of the position after the required cut; at least 1.
        #[cfg_attr(test, schemars(with = "u32"))]
        position: usize,
    },
}

impl Constraint {
    /// Makes a constraint that an option of the user causes. `rule` is the condition that a split
    /// must obey, and `option` the option with its value, as the user wrote it.
    pub fn option(rule: Rule, option: impl Into<String>) -> Self {
        Self {
            rule,
            origin: Origin::Option(option.into()),
        }
    }

    /// Returns the shared weight that causes the constraint; `None` for any other cause.
    pub fn weight(&self) -> Option<&TiedWeight> {
        match &self.origin {
            Origin::Weight(weight) => Some(weight),
            _ => None,
        }
    }

    /// For a pin (a position fixed to an IPU), returns the position (In, a layer or Out) and the
    /// index of the IPU. Returns `None` for any other constraint.
    pub(super) fn pin(&self) -> Option<(usize, usize)> {
        match self.rule {
            Rule::Pin { position, ipu } => Some((position, ipu)),
            _ => None,
        }
    }

    /// Returns whether a split obeys the constraint. `stage_of` has the index of the stage of each
    /// position (In, layers, Out).
    pub(super) fn is_obeyed(&self, stage_of: &[usize]) -> bool {
        let stage = |position: usize| stage_of.get(position);
        match self.rule {
            Rule::Pin { position, ipu } => stage(position) == Some(&ipu),
            Rule::Together { first, last } => stage(first) == stage(last),
            Rule::CutBefore { position } => stage(position - 1) != stage(position),
        }
    }

    /// Returns whether the positions of the constraint exist in a layer order of `layers`
    /// positions. A required cut must also have a position before it.
    pub(super) fn is_within(&self, layers: usize) -> bool {
        match self.rule {
            Rule::Pin { position, .. } => position < layers,
            Rule::Together { first, last } => first.max(last) < layers,
            Rule::CutBefore { position } => (1..layers).contains(&position),
        }
    }

    /// Returns the positions before which the constraint forbids a cut; empty if it forbids no cut.
    pub(super) fn forbidden(&self) -> Range<usize> {
        match self.rule {
            Rule::Together { first, last } => first.min(last) + 1..first.max(last) + 1,
            _ => 0..0,
        }
    }

    fn forbids(&self, position: usize) -> bool {
        self.forbidden().contains(&position)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(option) => f.write_str(option),
            Self::Weight(weight) => weight.fmt(f),
            Self::Repeat(runs) => write!(
                f,
                "layers that run {runs} times, whose IPUs could only take turns (--schedule sequential)"
            ),
        }
    }
}

impl TiedWeight {
    /// Returns the end of an error message about contradictory constraints: a weight can only be on
    /// one IPU, unless the user sets one of the options that lift this restriction.
    pub fn one_ipu(&self) -> String {
        match self.ways_out.join(" or ").as_str() {
            "" => "a weight is on one IPU".to_string(),
            ways_out => format!("a weight is on one IPU, unless {ways_out} says otherwise"),
        }
    }
}

impl fmt::Display for TiedWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users = listed(&self.users);
        write!(
            f,
            "weight {} ({} bytes) of {users}",
            self.name,
            grouped(self.bytes)
        )
    }
}

/// Whether constraints require a cut before a position, forbid it, or leave it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutRule {
    /// No constraint requires or forbids a cut before this position, so the solver may choose.
    Free,
    /// Constraints forbid a cut before this position, since it would separate positions that must
    /// be in one stage.
    Forbidden,
    /// A constraint such as `--cut-before` requires a cut before this position.
    Required,
}

/// Returns one entry for each of `layers` positions (In, layers, Out): whether a cut before the
/// position is required, forbidden or free. A cut that is both required and forbidden counts as
/// required. One more entry is for the end of the layer order, where a cut is always free.
pub fn cuts_before(constraints: &[Constraint], layers: usize) -> Vec<CutRule> {
    let mut cuts = vec![CutRule::Free; layers + 1];
    for position in constraints.iter().flat_map(Constraint::forbidden) {
        cuts[position] = CutRule::Forbidden;
    }
    for constraint in constraints {
        if let Rule::CutBefore { position } = constraint.rule {
            cuts[position] = CutRule::Required;
        }
    }
    cuts
}

/// Returns, for a message, constraints that forbid cuts before `positions`. Every forbidden cut
/// there is forbidden by at least one of them, and each of them forbids a cut that the others do
/// not. Options are preferred to shared weights, since users can change options.
pub fn forbidding(constraints: &[Constraint], positions: Range<usize>) -> Vec<&Constraint> {
    let mut found: Vec<&Constraint> = Vec::new();
    for position in positions.clone() {
        if !found.iter().any(|constraint| constraint.forbids(position)) {
            let forbids = constraints.iter().filter(|own| own.forbids(position));
            let reach = |own: &&Constraint| (own.weight().is_none(), own.forbidden().end);
            // Of the constraints that forbid a cut before `position`, prefer one that is not caused
            // by a shared weight, since users can change options; of these, the one that forbids
            // cuts up to the latest position; of equal ones, the first. `max_by_key` returns the
            // last maximum, so search backwards.
            found.extend(forbids.rev().max_by_key(reach));
        }
    }
    // A constraint is not needed if the others in `found` together forbid every cut that it
    // forbids. Remove it, so that each remaining constraint forbids a cut that no other one
    // forbids.
    for place in (0..found.len()).rev() {
        let constraint = found.remove(place);
        let is_needed = |at| constraint.forbids(at) && !found.iter().any(|other| other.forbids(at));
        if positions.clone().any(is_needed) {
            found.insert(place, constraint);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_judged_by_the_stages_of_its_positions() {
        let stage_of = [0, 0, 1, 1, 2];
        let obeyed = |rule| Constraint::option(rule, "").is_obeyed(&stage_of);
        let pin = |position, ipu| Rule::Pin { position, ipu };
        assert!(obeyed(pin(2, 1)) && !obeyed(pin(2, 0)));
        let together = |first, last| Rule::Together { first, last };
        assert!(obeyed(together(2, 3)) && obeyed(together(3, 2)));
        assert!(!obeyed(together(1, 3)));
        let cut = |position| Rule::CutBefore { position };
        assert!(obeyed(cut(2)) && !obeyed(cut(1)));
    }

    #[test]
    fn positions_that_stay_together_have_no_cut_between_them() {
        let rules = [
            Rule::Together { first: 3, last: 1 },
            Rule::Together { first: 4, last: 4 },
            Rule::CutBefore { position: 1 },
        ];
        let constraints = rules.map(|rule| Constraint::option(rule, ""));
        let expected = [
            CutRule::Free,
            CutRule::Required,
            CutRule::Forbidden,
            CutRule::Forbidden,
            CutRule::Free,
            CutRule::Free,
        ];
        assert_eq!(cuts_before(&constraints, 5), expected);
    }

    #[test]
    fn a_weight_says_who_uses_it() {
        let weight = |users: usize| TiedWeight {
            name: "w".into(),
            bytes: 12,
            users: (0..users).map(|user| user.to_string()).collect(),
            ways_out: Vec::new(),
        };
        let text = |users| weight(users).to_string();
        assert_eq!(text(2), "weight w (12 bytes) of 0 and 1");
        assert_eq!(text(3), "weight w (12 bytes) of 0, 1 and 2");
        assert!(text(10).ends_with("of 0, 1, 2, 3, 4, 5, 6, 7 and 2 more"));
    }

    #[test]
    fn few_constraints_are_named_for_the_cuts_that_they_forbid() {
        let weight = TiedWeight {
            name: "w".into(),
            bytes: 1,
            users: Vec::new(),
            ways_out: Vec::new(),
        };
        let order = |first, last| Constraint::option(Rule::Together { first, last }, "");
        let tied = Constraint {
            origin: Origin::Weight(weight),
            ..order(1, 6)
        };
        let all = [
            tied,
            order(1, 2),
            order(1, 3),
            Constraint::option(Rule::CutBefore { position: 8 }, ""),
        ];
        let named = |positions| forbidding(&all, positions);
        assert_eq!(named(1..9), [&all[0]]);
        assert_eq!(named(2..4), [&all[2]]);
        assert_eq!(named(5..10), [&all[0]]);
        assert!(named(7..10).is_empty());
    }
}
