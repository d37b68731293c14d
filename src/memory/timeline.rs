//! Sums of live bytes of several stages on one tile, step by step.

use super::step_set::{self, StepSet};
use crate::model::VariableGroup;
use crate::profile::LiveClasses;

/// The steps of one tile at which a sum can reach its highest value for the
/// first time: those at which something begins to be live, and the first of
/// each window. Sums only grow there, so no others need a place.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The steps that have a place.
    begins: StepSet,
    /// The steps behind live ranges and windows.
    ends: StepSet,
    /// By step that is marked: how many places lie before it.
    rank: Vec<u32>,
    /// By place: its step.
    steps: Vec<u32>,
    /// By stage, then by place and one more: what the sum changes by.
    changes: Vec<i64>,
}

impl Timeline {
    /// Makes places for the classes of `items` and the first steps of
    /// `windows`, one for each stage, with nothing live anywhere.
    pub(super) fn restart<'a>(
        &mut self,
        classes: &LiveClasses,
        items: impl Iterator<Item = &'a VariableGroup>,
        windows: &[Option<(u32, u32)>],
    ) {
        let count = classes.steps() as usize + 1;
        self.begins.restart(count);
        self.ends.restart(count);
        for &(first, last) in windows.iter().flatten() {
            self.begins.add(first);
            self.ends.add(last + 1);
        }
        let mut class = u32::MAX;
        for item in items.filter(|item| std::mem::replace(&mut class, item.class) != item.class) {
            for &(from, to) in classes.ranges(item.class) {
                self.begins.add(from);
                self.ends.add(to);
            }
        }
        self.rank.resize(count, 0);
        self.steps.clear();
        step_set::visit([&self.begins, &self.ends], |step, [is_place, _]| {
            self.rank[step as usize] = self.steps.len() as u32;
            if is_place {
                self.steps.push(step);
            }
        });
        self.changes.clear();
        self.changes
            .resize(windows.len() * (self.steps.len() + 1), 0);
    }

    /// Adds `bytes` that are live on the half-open step ranges to a stage.
    pub(super) fn add(&mut self, stage: usize, bytes: u32, ranges: &[(u32, u32)]) {
        let width = self.steps.len() + 1;
        let changes = &mut self.changes[stage * width..][..width];
        for &(from, to) in ranges {
            changes[self.rank[from as usize] as usize] += i64::from(bytes);
            changes[self.rank[to as usize] as usize] -= i64::from(bytes);
        }
    }

    /// The highest sum of a stage within its window (both ends inclusive), and
    /// the first step that has it.
    pub(super) fn peak(&self, stage: usize, window: (u32, u32)) -> (u64, u32) {
        let width = self.steps.len() + 1;
        let changes = &self.changes[stage * width..][..width];
        let first = self.rank[window.0 as usize] as usize;
        let end = self.rank[window.1 as usize + 1] as usize;
        let mut live: i64 = changes[..first].iter().sum();
        let mut peak = (0, window.0);
        for (&change, &step) in changes[first..end].iter().zip(&self.steps[first..end]) {
            live += change;
            if live > peak.0 {
                peak = (live, step);
            }
        }
        (peak.0 as u64, peak.1)
    }
}
