//! Orders that no split can obey, whatever the memory.
//!
//! The stage number of a position is the number of cuts before it. So orders
//! can be obeyed exactly when no cut is both required and forbidden, and when
//! between one pin and the next (the first position counts as pinned to IPU
//! 0) the stages to pass are at least the required cuts and at most those that
//! are not forbidden, and when enough IPUs are left for the cuts required
//! after the last pin.

use std::fmt;
use std::ops::Range;

use super::orders::{Cut, Order, Rule, cuts_after};

/// Orders that cannot all be obeyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// One of the pair that clashes.
    pub first: Order,
    /// The other; `None` when the first clashes with the number of IPUs or
    /// of layers alone.
    pub second: Option<Order>,
    /// Further orders that take part.
    pub with: Vec<Order>,
    /// What cannot be.
    pub kind: ClashKind,
}

/// Why orders cannot all be obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClashKind {
    /// A pin to an IPU that is not there.
    NoSuchIpu {
        /// How many IPUs there are.
        ipus: usize,
    },
    /// A cut is both required and forbidden.
    CutForbidden,
    /// A later layer (or the same) is pinned to an earlier (or another) IPU.
    Backwards,
    /// A pin needs more cuts before it than there can be.
    TooFewCuts {
        /// Cuts between the previous pin, or the first layer, and this one.
        needed: usize,
        /// Boundaries there that may be cut.
        possible: usize,
    },
    /// More cuts are required than the pins or the number of IPUs allow.
    TooManyCuts {
        /// Cuts that are required there.
        required: usize,
        /// Cuts that may be there.
        allowed: usize,
    },
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.source)?;
        match &self.second {
            Some(second) => write!(f, " clashes with {}", second.source)?,
            None => f.write_str(" cannot be obeyed")?,
        }
        for (n, order) in self.with.iter().enumerate() {
            let join = if n == 0 { " (with " } else { ", " };
            write!(f, "{join}{}", order.source)?;
        }
        let end = if self.with.is_empty() { "" } else { ")" };
        write!(f, "{end}: {}", self.kind)
    }
}

impl fmt::Display for ClashKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchIpu { ipus } => {
                write!(f, "IPUs are counted from 0, and there are {ipus}")
            }
            Self::CutForbidden => f.write_str("the same cut is asked for and forbidden"),
            Self::Backwards => {
                f.write_str("stages follow the layers, so a layer stands on one IPU and a later one never on an earlier IPU")
            }
            Self::TooFewCuts { needed, possible } => {
                let cuts = if *needed == 1 { "cut" } else { "cuts" };
                write!(f, "{needed} {cuts} needed before it, but {possible} possible")
            }
            Self::TooManyCuts { required, allowed } => {
                let cuts = if *required == 1 { "cut" } else { "cuts" };
                write!(f, "{required} {cuts} asked for where the IPUs leave room for {allowed}")
            }
        }
    }
}

/// A pin on the way through the positions; the first has no order.
#[derive(Clone, Copy)]
struct Pinned<'a> {
    position: usize,
    ipu: usize,
    order: Option<&'a Order>,
}

/// The first clash among `orders`, whose positions are all below `layers`;
/// `None` when some split into at most `ipus` stages obeys them all.
pub(super) fn find(orders: &[Order], layers: usize, ipus: usize) -> Option<Clash> {
    let mut pins: Vec<Pinned<'_>> = orders.iter().filter_map(pinned).collect();
    let beyond = pins.iter().find(|pin| pin.ipu >= ipus);
    if let Some(order) = beyond.and_then(|pin| pin.order) {
        return Some(clash(ClashKind::NoSuchIpu { ipus }, order, None, vec![]));
    }
    if let Some((cut, no_cut)) = contradicted_cut(orders) {
        return Some(clash(ClashKind::CutForbidden, cut, Some(no_cut), vec![]));
    }
    pins.sort_by_key(|pin| (pin.position, pin.ipu));
    let cuts = cuts_after(orders, layers);
    let mut before = Pinned {
        position: 0,
        ipu: 0,
        order: None,
    };
    for pin in pins {
        if let Some(clash) = between(orders, &cuts, before, pin) {
            return Some(clash);
        }
        before = pin;
    }
    let left = ipus.saturating_sub(1 + before.ipu);
    let behind = before.position..layers.saturating_sub(1);
    too_many(orders, &cuts, behind, left, [before.order, None])
}

fn pinned(order: &Order) -> Option<Pinned<'_>> {
    let Rule::Pin { position, ipu } = order.rule else {
        return None;
    };
    let order = Some(order);
    Some(Pinned {
        position,
        ipu,
        order,
    })
}

/// A required cut and the order that forbids it.
fn contradicted_cut(orders: &[Order]) -> Option<(&Order, &Order)> {
    orders.iter().find_map(|cut| {
        let Rule::CutAfter(position) = cut.rule else {
            return None;
        };
        Some((cut, forbids(orders, position).next()?))
    })
}

/// The orders that forbid a cut after `position`.
fn forbids(orders: &[Order], position: usize) -> impl Iterator<Item = &Order> {
    orders.iter().filter(move |order| {
        let forbidden = order.forbidden();
        forbidden.is_some_and(|forbidden| forbidden.contains(&position))
    })
}

/// What is wrong between two pins that follow each other.
fn between(orders: &[Order], cuts: &[Cut], before: Pinned<'_>, pin: Pinned<'_>) -> Option<Clash> {
    let own = pin.order?;
    let same_place = before.order.is_some() && before.position == pin.position;
    if pin.ipu < before.ipu || (same_place && pin.ipu > before.ipu) {
        return Some(clash(ClashKind::Backwards, own, before.order, vec![]));
    }
    let needed = pin.ipu - before.ipu;
    let behind = before.position..pin.position;
    let may = |position: &usize| cuts[*position] != Cut::Forbidden;
    let possible = behind.clone().filter(may).count();
    if needed > possible {
        let kind = ClashKind::TooFewCuts { needed, possible };
        let mut others: Vec<&Order> = before.order.into_iter().collect();
        if needed <= behind.len() {
            // There would be positions enough: those who forbid come first.
            for order in behind.flat_map(|position| forbids(orders, position)) {
                if !others.contains(&order) {
                    others.insert(0, order);
                }
            }
        }
        let mut others = others.into_iter();
        return Some(clash(kind, own, others.next(), others.collect()));
    }
    too_many(orders, cuts, behind, needed, [Some(own), before.order])
}

/// More required cuts after the positions `behind` than are `allowed`.
fn too_many(
    orders: &[Order],
    cuts: &[Cut],
    behind: Range<usize>,
    allowed: usize,
    pins: [Option<&Order>; 2],
) -> Option<Clash> {
    let required: Vec<usize> = behind
        .filter(|&position| cuts[position] == Cut::Required)
        .collect();
    if required.len() <= allowed {
        return None;
    }
    let asks = |&position: &usize| {
        let mut orders = orders.iter();
        orders.find(|order| order.rule == Rule::CutAfter(position))
    };
    let kind = ClashKind::TooManyCuts {
        required: required.len(),
        allowed,
    };
    // The last cut is the one too many; pins come before other cuts.
    let pins = pins.into_iter().flatten();
    let mut all = pins.chain(required.iter().rev().filter_map(asks));
    let (first, second) = (all.next()?, all.next());
    Some(clash(kind, first, second, all.collect()))
}

fn clash(kind: ClashKind, first: &Order, second: Option<&Order>, with: Vec<&Order>) -> Clash {
    Clash {
        first: first.clone(),
        second: second.cloned(),
        with: with.into_iter().cloned().collect(),
        kind,
    }
}

#[cfg(test)]
mod tests;
