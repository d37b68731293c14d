//! Orders: what a plan must do besides fitting.

use std::ops::RangeInclusive;

/// One order, with the words of whoever gave it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Order {
    /// What is ordered.
    pub rule: Rule,
    /// How whoever gave the order would recognise it, such as the option and
    /// its value. Only ever shown.
    pub source: String,
}

/// What can be ordered. Positions are those of the range costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The position stands on this IPU, both counted from 0.
    Pin {
        /// The position.
        position: usize,
        /// The IPU, which is also the number of the stage.
        ipu: usize,
    },
    /// Both positions and all between them stand in one stage.
    Together {
        /// A position.
        first: usize,
        /// Another; the two may come in any order.
        last: usize,
    },
    /// A stage ends with this position.
    CutAfter(usize),
    /// No stage ends with this position.
    NoCutAfter(usize),
}

impl Order {
    /// An order and where it comes from.
    pub fn new(rule: Rule, source: impl Into<String>) -> Self {
        let source = source.into();
        Self { rule, source }
    }

    /// Whether a plan with these stages does as ordered. `stage_of` is the
    /// stage of each position.
    pub(super) fn is_obeyed(&self, stage_of: &[usize]) -> bool {
        let stage = |position: usize| stage_of.get(position);
        match self.rule {
            Rule::Pin { position, ipu } => stage(position) == Some(&ipu),
            Rule::Together { first, last } => stage(first) == stage(last),
            Rule::CutAfter(position) => stage(position) != stage(position + 1),
            Rule::NoCutAfter(position) => stage(position) == stage(position + 1),
        }
    }

    /// The last position that the order speaks of.
    pub(super) fn last_position(&self) -> usize {
        match self.rule {
            Rule::Pin { position, .. } => position,
            Rule::Together { first, last } => first.max(last),
            // There must be a position behind the cut.
            Rule::CutAfter(position) | Rule::NoCutAfter(position) => position.saturating_add(1),
        }
    }

    /// The positions after which this order forbids a cut.
    pub(super) fn forbidden(&self) -> Option<RangeInclusive<usize>> {
        match self.rule {
            Rule::Together { first, last } if first != last => {
                Some(first.min(last)..=first.max(last) - 1)
            }
            Rule::NoCutAfter(position) => Some(position..=position),
            _ => None,
        }
    }
}

/// What orders say of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Cut {
    /// Nothing.
    #[default]
    Free,
    Forbidden,
    Required,
}

/// For each position what is ordered of a cut after it. Where orders clash,
/// the cut is required.
pub(super) fn cuts_after(orders: &[Order], layers: usize) -> Vec<Cut> {
    let mut cuts = vec![Cut::Free; layers];
    for position in orders.iter().filter_map(Order::forbidden).flatten() {
        cuts[position] = Cut::Forbidden;
    }
    for order in orders {
        if let Rule::CutAfter(position) = order.rule {
            cuts[position] = Cut::Required;
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_judged_by_the_stages_of_its_positions() {
        let stage_of = [0, 0, 1, 1, 2];
        let obeyed = |rule| Order::new(rule, "").is_obeyed(&stage_of);
        let pin = |position, ipu| Rule::Pin { position, ipu };
        assert!(obeyed(pin(2, 1)) && !obeyed(pin(2, 0)));
        let together = |first, last| Rule::Together { first, last };
        assert!(obeyed(together(2, 3)) && obeyed(together(3, 2)));
        assert!(!obeyed(together(1, 3)));
        assert!(obeyed(Rule::CutAfter(1)) && !obeyed(Rule::CutAfter(0)));
        assert!(obeyed(Rule::NoCutAfter(0)) && !obeyed(Rule::NoCutAfter(1)));
    }

    #[test]
    fn positions_that_stay_together_have_no_cut_between_them() {
        let rules = [
            Rule::Together { first: 3, last: 1 },
            Rule::Together { first: 4, last: 4 },
            Rule::CutAfter(0),
        ];
        let orders = rules.map(|rule| Order::new(rule, ""));
        let expected = [
            Cut::Required,
            Cut::Forbidden,
            Cut::Forbidden,
            Cut::Free,
            Cut::Free,
        ];
        assert_eq!(cuts_after(&orders, 5), expected);
    }
}
