//! Finds constraints that no split can obey together, whatever the memory.
//!
//! The index of the stage of a position is the number of cuts before the position. So constraints
//! can be obeyed if and only if three conditions are met:
//!
//! - No cut is both required and forbidden.
//! - Between one pin (a layer fixed to an IPU) and the next, the IPU index rises by at least the
//!   number of required cuts, and by at most the number of cuts that are not forbidden.
//! - After the last pin, there are enough IPUs for the required cuts.

use std::{fmt, ops::Range};

use super::constraints::{Constraint, CutRule, Rule, cuts_before, forbidding};
use crate::wording::counted;

/// Constraints that no split obeys together, with the reason, for an error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The constraints that contradict each other. The first constraint contradicts the second or,
    /// if there is only one, the number of IPUs or of positions. All further constraints, such as
    /// more required cuts, are part of the contradiction too.
    pub constraints: Vec<Constraint>,
    /// A sentence for the user that says why the constraints contradict each other.
    pub reason: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origins = self.constraints.iter().map(|own| own.origin.to_string());
        match &origins.collect::<Vec<_>>()[..] {
            [first, second, with @ ..] => {
                write!(f, "{first} clashes with {second}")?;
                if !with.is_empty() {
                    write!(f, " (with {})", with.join(", "))?;
                }
            }
            one => write!(f, "{} cannot be obeyed", one.concat())?,
        }
        write!(f, ": {}", self.reason)?;
        for weight in self.constraints.iter().filter_map(Constraint::weight) {
            write!(f, "; {}", weight.one_ipu())?;
        }
        Ok(())
    }
}

/// Returns a contradiction among `constraints`; `None` if some split of `layers` positions into at
/// most `ipus` stages obeys all constraints. All positions in `constraints` must exist.
pub fn find(constraints: &[Constraint], layers: usize, ipus: usize) -> Option<Conflict> {
    let mut pins: Vec<_> = constraints
        .iter()
        .filter_map(|own| Some((own.pin()?, own)))
        .collect();
    if let Some(&(_, pin)) = pins.iter().find(|((_, ipu), _)| *ipu >= ipus) {
        return conflict(
            format!("IPUs are counted from 0, and there are {ipus}"),
            [pin],
        );
    }
    for cut in constraints {
        if let Rule::CutBefore { position } = cut.rule
            && let Some(no_cut) = forbidding(constraints, position..position + 1).first()
        {
            return conflict("one cut is both required and forbidden", [cut, no_cut]);
        }
    }
    pins.sort_by_key(|&(place, _)| place);
    let cuts = cuts_before(constraints, layers);
    let mut before = None;
    for (_, pin) in pins {
        if let Some(conflict) = between(constraints, &cuts, before, pin) {
            return Some(conflict);
        }
        before = Some(pin);
    }
    let (position, ipu) = pinned_to(before);
    let left = ipus.saturating_sub(1 + ipu);
    too_many(constraints, &cuts, position + 1..layers, left, before)
}

/// Returns the position that `pin` fixes to an IPU, and the index of this IPU. Without a pin,
/// returns position 0 and IPU 0, since the first position is always on IPU 0.
fn pinned_to(pin: Option<&Constraint>) -> (usize, usize) {
    pin.and_then(Constraint::pin).unwrap_or_default()
}

/// Returns a contradiction between `pin` (a position fixed to an IPU), the pin `before` it, and the
/// cuts that are required or forbidden between them; `None` if there is none. If `pin` is the first
/// pin, `before` is `None`, and stands for position 0 on IPU 0. `cuts` states for each position
/// whether a cut before it is required, forbidden or free.
fn between(
    constraints: &[Constraint],
    cuts: &[CutRule],
    before: Option<&Constraint>,
    pin: &Constraint,
) -> Option<Conflict> {
    let both = [pin].into_iter().chain(before);
    let (start, start_ipu) = pinned_to(before);
    let (position, ipu) = pinned_to(Some(pin));
    let is_same_place = before.is_some() && start == position;
    if ipu < start_ipu || (is_same_place && ipu > start_ipu) {
        return conflict(
            "stages follow the layers, so a layer is on one IPU and a later one never on an \
             earlier IPU",
            both,
        );
    }
    let needed = ipu - start_ipu;
    let boundaries = start + 1..position + 1;
    let possible = cuts[boundaries.clone()]
        .iter()
        .filter(|&&cut| cut != CutRule::Forbidden)
        .count();
    if needed > possible {
        let cuts = counted(needed, "cut");
        let reason = format!("{cuts} needed before it, but {possible} possible");
        // Too few cuts are possible between two pins (positions fixed to IPUs). If this is only
        // because constraints forbid some cuts, the error message also names these constraints.
        let forbidding = if needed <= boundaries.len() {
            forbidding(constraints, boundaries)
        } else {
            Vec::new()
        };
        return conflict(reason, [pin].into_iter().chain(forbidding).chain(before));
    }
    too_many(constraints, cuts, boundaries, needed, both)
}

/// Returns a contradiction if constraints require more than `allowed` cuts before positions in the
/// range `boundaries`, otherwise `None`. `cuts` states for each position whether a cut before it is
/// required, forbidden or free. The error message names `pins`, the pins (positions fixed to IPUs)
/// that leave room for only `allowed` cuts there.
fn too_many<'a>(
    constraints: &'a [Constraint],
    cuts: &[CutRule],
    boundaries: Range<usize>,
    allowed: usize,
    pins: impl IntoIterator<Item = &'a Constraint>,
) -> Option<Conflict> {
    let required: Vec<usize> = boundaries
        .filter(|&position| cuts[position] == CutRule::Required)
        .collect();
    if required.len() <= allowed {
        return None;
    }
    let cuts = counted(required.len(), "cut");
    let reason = format!("{cuts} asked for where the IPUs leave room for {allowed}");
    let requiring = |&position: &usize| {
        let rule = Rule::CutBefore { position };
        constraints.iter().find(|own| own.rule == rule)
    };
    // The error message first names the pins (positions fixed to IPUs), which leave room for too
    // few cuts, then the constraints that require cuts, from the last position to the first.
    let cuts = required.iter().rev().filter_map(requiring);
    conflict(reason, pins.into_iter().chain(cuts))
}

/// Makes a [`Conflict`] of the constraints `all`, which no split obeys together because of
/// `reason`. The result is always `Some`, so that callers can return it as it is.
fn conflict<'a>(
    reason: impl Into<String>,
    all: impl IntoIterator<Item = &'a Constraint>,
) -> Option<Conflict> {
    Some(Conflict {
        constraints: all.into_iter().cloned().collect(),
        reason: reason.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(position: usize, ipu: usize) -> Constraint {
        Constraint::option(
            Rule::Pin { position, ipu },
            format!("--pin {position}={ipu}"),
        )
    }

    fn cut(position: usize) -> Constraint {
        Constraint::option(
            Rule::CutBefore { position },
            format!("--cut-before {position}"),
        )
    }

    fn together(first: usize, last: usize) -> Constraint {
        let source = format!("--together {first},{last}");
        Constraint::option(Rule::Together { first, last }, source)
    }

    fn message(constraints: &[Constraint]) -> Option<String> {
        find(constraints, 8, 4).map(|conflict| conflict.to_string())
    }

    fn assert_message(constraints: &[Constraint], begin: &str) {
        let message = message(constraints).unwrap();
        assert!(message.starts_with(begin), "{message}");
    }

    #[test]
    fn orders_that_some_split_obeys_do_not_clash() {
        assert_eq!(message(&[]), None);
        let obeyed = [pin(0, 0), pin(3, 3), pin(7, 3), together(4, 6)];
        assert_eq!(message(&obeyed), None);
        let obeyed = [pin(2, 1), pin(2, 1), cut(1), cut(1), together(1, 2)];
        assert_eq!(message(&obeyed), None);
        assert_eq!(message(&[cut(1), cut(4), cut(7)]), None);
    }

    #[test]
    fn one_order_alone_may_be_too_much() {
        assert_message(&[pin(7, 4)], "--pin 7=4 cannot be obeyed: IPUs are");
        assert_message(
            &[pin(2, 3)],
            "--pin 2=3 cannot be obeyed: 3 cuts needed before it, but 2",
        );
        assert_message(&[pin(0, 1)], "--pin 0=1 cannot be obeyed");
    }

    #[test]
    fn a_cut_is_not_both_required_and_forbidden() {
        let expected = "--cut-before 4 clashes with --together 4,2:";
        assert_message(&[together(4, 2), cut(4)], expected);
    }

    #[test]
    fn pins_rise_with_the_layers() {
        let expected = "--pin 5=1 clashes with --pin 3=2:";
        assert_message(&[pin(5, 1), pin(3, 2)], expected);
        let expected = "--pin 3=2 clashes with --pin 3=1:";
        assert_message(&[pin(3, 2), pin(3, 1)], expected);
    }

    #[test]
    fn pins_leave_room_for_the_cuts_between_them() {
        let expected = "--pin 4=3 clashes with --pin 3=1: 2 cuts needed";
        assert_message(&[pin(3, 1), pin(4, 3)], expected);
        let expected = "--pin 4=2 clashes with --together 3,4 (with --pin 2=0):";
        assert_message(&[pin(2, 0), together(3, 4), pin(4, 2)], expected);
        let expected = "--pin 3=0 clashes with --cut-before 3:";
        assert_message(&[cut(3), pin(3, 0)], expected);
        let expected = "--pin 6=2 clashes with --pin 4=2 (with --cut-before 6):";
        assert_message(&[pin(4, 2), cut(6), pin(6, 2)], expected);
    }

    #[test]
    fn there_are_ipus_for_all_cuts() {
        let expected = "--cut-before 7 clashes with --cut-before 5 (with --cut-before 3, --cut-before 1): 4 cuts asked for where the IPUs leave room for 3";
        assert_message(&[cut(1), cut(3), cut(5), cut(7)], expected);
        let expected = "--pin 5=3 clashes with --cut-before 7:";
        assert_message(&[pin(5, 3), cut(7)], expected);
        assert_eq!(
            find(&[cut(2)], 8, 1).map(|conflict| conflict.constraints),
            Some(vec![cut(2)])
        );
    }
}
