//! Which units of a stage are kept, by trying.

use crate::memory::LayerChoice;

/// The bytes of a stage that are freed on one tile by units that are recomputed and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// By unit, at most.
    pub(super) freed: Vec<u64>,
    /// The bytes that must be freed for the stage to fit.
    pub(super) needed: u64,
}

/// The best choice for one stage, by unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Best {
    /// The units to keep, and the bytes with them; `None` if nothing that was tried fits.
    pub(super) kept: Option<(Vec<bool>, u64)>,
    /// The maximum weight of choices that were not tried and may fit; 0 without any.
    pub(super) untried: u128,
    /// Is there nothing else that may fit?
    pub(super) is_complete: bool,
}

/// The units to keep with the highest sum of `weights` so that `bytes` are at most `limit`.
/// `bytes` of what has open units are at most those of each way to close them. `bytes` are
/// asked for `max_tried` times at most.
pub(super) fn best<E>(
    weights: &[u128],
    (limit, rows): (u64, &[Row]),
    max_tried: usize,
    bytes: impl FnMut(&[LayerChoice]) -> Result<u64, E>,
) -> Result<Best, E> {
    let mut search = Branches {
        weights,
        rows: rows
            .iter()
            .map(|row| SortedRow::new(row, weights))
            .collect(),
        limit,
        bytes,
        states: vec![LayerChoice::Open; weights.len()],
        best: None,
        untried: 0,
        is_complete: true,
        left: max_tried,
    };
    search.go_on(0, 0)?;
    Ok(Best {
        kept: search.best.map(|(_, kept, bytes)| (kept, bytes)),
        untried: search.untried,
        is_complete: search.is_complete,
    })
}

/// All ways to decide on the units, one after the other, without those that cannot be better
/// than the best or do not fit.
struct Branches<'a, F> {
    weights: &'a [u128],
    rows: Vec<SortedRow<'a>>,
    limit: u64,
    bytes: F,
    /// Those that are decided come first.
    states: Vec<LayerChoice>,
    /// With what they weigh, and the bytes.
    best: Option<(u128, Vec<bool>, u64)>,
    untried: u128,
    is_complete: bool,
    left: usize,
}

impl<E, F: FnMut(&[LayerChoice]) -> Result<u64, E>> Branches<'_, F> {
    /// Goes on from the first `decided` units, of which those kept weigh `kept`.
    fn go_on(&mut self, decided: usize, kept: u128) -> Result<(), E> {
        let rest: u128 = self.weights[decided..].iter().sum();
        let mut rows = self.rows.iter();
        let rest = rows.try_fold(rest, |rest, row| {
            Some(rest.min(row.room(&self.states, decided)?))
        });
        let highest = self.best.as_ref().map(|(highest, ..)| *highest);
        let Some(rest) = rest.filter(|rest| Some(kept + rest) > highest) else {
            return Ok(());
        };
        let Some(left) = self.left.checked_sub(1) else {
            self.untried = self.untried.max(kept + rest);
            self.is_complete = false;
            return Ok(());
        };
        self.left = left;
        let bytes = (self.bytes)(&self.states)?;
        if bytes > self.limit {
            return Ok(());
        }
        if decided == self.weights.len() {
            let states = self.states.iter();
            let is_kept = states.map(|&state| state == LayerChoice::Kept).collect();
            self.best = Some((kept, is_kept, bytes));
            return Ok(());
        }
        for state in [LayerChoice::Kept, LayerChoice::Recomputed] {
            let more = match state {
                LayerChoice::Kept => self.weights[decided],
                LayerChoice::Recomputed | LayerChoice::Open => 0,
            };
            self.states[decided] = state;
            self.go_on(decided + 1, kept + more)?;
        }
        self.states[decided] = LayerChoice::Open;
        Ok(())
    }
}

/// A row with its units in the order in which keeping them brings the most for its bytes.
pub(super) struct SortedRow<'a> {
    row: &'a Row,
    weights: &'a [u128],
    order: Vec<usize>,
}

impl<'a> SortedRow<'a> {
    pub(super) fn new(row: &'a Row, weights: &'a [u128]) -> Self {
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|&a, &b| {
            let of = |one: usize, other: usize| {
                weights[one].saturating_mul(u128::from(row.freed[other]))
            };
            of(b, a).cmp(&of(a, b))
        });
        Self {
            row,
            weights,
            order,
        }
    }

    /// The maximum weight of the units from `decided` on that are kept, so that enough is freed;
    /// `None` where it never is.
    pub(super) fn room(&self, states: &[LayerChoice], decided: usize) -> Option<u128> {
        let freed = states.iter().zip(&self.row.freed);
        let freed = freed.filter(|(state, _)| **state != LayerChoice::Kept);
        let freed: u128 = freed.map(|(_, &bytes)| u128::from(bytes)).sum();
        let mut left = freed.checked_sub(self.row.needed.into())?;
        let mut weight = 0u128;
        for &unit in self.order.iter().filter(|&&unit| unit >= decided) {
            let bytes = u128::from(self.row.freed[unit]);
            if bytes > left {
                // A part of it.
                let part = self.weights[unit].checked_mul(left);
                return Some(weight + part.map_or(self.weights[unit], |part| part / bytes));
            }
            left -= bytes;
            weight += self.weights[unit];
        }
        Some(weight)
    }
}
