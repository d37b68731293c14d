//! Reads the liveness: the steps of the compiled program, and the steps on which the variables of
//! each equivalence class are live. Also finds the classes that are live at all but a few steps,
//! and these few steps.

use super::{Database, Ids, Programs, cells::cell};
use crate::{message::Result, parallel::starts};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{cmp::Ordering, iter::once};

/// One liveness step: the execution of one program. Steps are indexed from 0 in ascending order of
/// their ids.
#[derive(Debug)]
pub struct Step {
    /// Id of the liveness step in the profile (`depth_first_steps.id`).
    pub id: u64,
    /// The program that the step executes, as an index into [`Programs::all`].
    pub program: u32,
    /// Index of the liveness step that calls this step, such as the step of a loop around it;
    /// `None` for a step without a parent.
    pub parent: Option<u32>,
}

pub const STEPS: &str = "depth_first_steps";
const CLASSES: &str = "eq_classes";

pub fn read_steps(database: &Database, programs: &Programs) -> Result<Vec<Step>> {
    let mut rows = database.rows(STEPS, &["id", "program_id", "parent_step_id"], |row| {
        let program = row.position(1, &programs.ids, "programs")?;
        Ok((row.unsigned(0)?, program, row.optional(2)?))
    })?;
    rows.sort_unstable_by_key(|&(id, ..)| id);
    let ids = Ids::of(STEPS, "id", rows.iter().map(|&(id, ..)| id))?;
    let steps = rows.into_iter().map(|(id, program, parent)| {
        let index = |parent| {
            let problem = || format!("there is no step {parent}");
            ids.position(parent)
                .ok_or_else(|| cell(STEPS, "parent_step_id", id, problem()))
        };
        Ok(Step {
            id,
            program,
            parent: parent.map(index).transpose()?,
        })
    });
    steps.collect()
}

/// The liveness steps on which the variables of each equivalence class are live. Poplar puts
/// variables that are live on the same steps into one equivalence class. A class is identified by
/// its position, an index into the lists of this struct; its id in the profile is only used while
/// reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveClasses {
    /// One entry per equivalence class: whether the class is live on every liveness step.
    always_live: Vec<bool>,
    /// The ranges of step indices on which each equivalence class is live (ends exclusive), class
    /// after class. The ranges of a class are disjoint and ascending.
    ranges: Vec<(u32, u32)>,
    /// One entry per equivalence class: the index in `ranges` of its first range. One more entry
    /// has the length of `ranges`.
    starts: Vec<usize>,
    steps: u32,
}

impl LiveClasses {
    /// Reads the equivalence classes of variables. Also returns a map from the id of a class to its
    /// position, which is its index among all classes. `steps` holds the ids of all liveness steps,
    /// ascending.
    pub(super) fn read(database: &Database, steps: &[u64]) -> Result<(Self, Ids)> {
        let (ids, always_live) = database.indexed(CLASSES, &["id", "is_always_live"], |row| {
            Ok(row.unsigned(1)? != 0)
        })?;
        let ranges = read_ranges(database, &ids, steps)?;
        Ok((Self::new(always_live, ranges, steps.len() as u32), ids))
    }

    /// Builds the equivalence classes of variables. The variables of a class are live at the same
    /// liveness steps.
    /// - `always_live` has one entry per class: whether the class is live at all `steps` steps.
    /// - `ranges` has the live ranges of all classes, in any order. An entry is the index of the
    ///   class in `always_live`, the index of the first step, and the end (exclusive).
    ///
    /// Ranges of one class that touch or overlap are merged, so that no step counts twice. An
    /// always-live class gets one range with all steps instead of its entries in `ranges`.
    pub fn new(always_live: Vec<bool>, mut ranges: Vec<(u32, u32, u32)>, steps: u32) -> Self {
        ranges.retain(|&(class, ..)| always_live.get(class as usize) == Some(&false));
        let always = (0..).zip(&always_live).filter(|own| *own.1 && steps > 0);
        ranges.extend(always.map(|(class, _)| (class, 0, steps)));
        // `ranges` mostly consists of two sorted sequences: the ranges that were read, and those of
        // always-live classes. A stable sort merges such sequences faster than an unstable sort.
        ranges.sort();
        ranges.dedup_by(|next, last| {
            let is_one = next.0 == last.0 && next.1 <= last.2;
            if is_one {
                last.2 = last.2.max(next.2);
            }
            is_one
        });
        let mut counts = vec![0; always_live.len()];
        for &(class, ..) in &ranges {
            counts[class as usize] += 1;
        }
        Self {
            starts: starts(&counts),
            ranges: ranges.iter().map(|&(_, from, to)| (from, to)).collect(),
            always_live,
            steps,
        }
    }

    /// Returns the number of equivalence classes. The variables of a class are live at the same
    /// steps.
    pub fn len(&self) -> usize {
        self.always_live.len()
    }

    /// Returns `true` if the model has no equivalence class of variables.
    pub fn is_empty(&self) -> bool {
        self.always_live.is_empty()
    }

    /// Returns the number of liveness steps.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns whether the profile (`eq_classes`) says that the variables of the equivalence class
    /// at `position` are live on every liveness step.
    pub fn is_always_live(&self, position: u32) -> bool {
        self.always_live[position as usize]
    }

    /// Returns whether the variables of the equivalence class at `position` are live on both the
    /// first and the last liveness step, as parameters and other state that outlives a run are.
    pub fn lasts(&self, position: u32) -> bool {
        self.is_live(position, 0) && self.is_live(position, self.steps.saturating_sub(1))
    }

    /// Returns whether the variables of the equivalence class at `position` are live on the
    /// liveness step with index `step`.
    pub fn is_live(&self, position: u32, step: u32) -> bool {
        let ranges = self.ranges(position);
        let before = ranges.partition_point(|&(from, _)| from <= step);
        before > 0 && step < ranges[before - 1].1
    }

    /// Returns the liveness steps on which the variables of the equivalence class at `position` are
    /// live: disjoint ranges of step indices (end exclusive) in ascending order.
    pub fn ranges(&self, position: u32) -> &[(u32, u32)] {
        let position = position as usize;
        &self.ranges[self.starts[position]..self.starts[position + 1]]
    }

    /// Returns the largest number of bytes in `all` that are live on the same liveness step, and
    /// the index of the first such step. `all` has one entry per variable or group of variables:
    /// the index of their equivalence class (variables that are live on the same steps), and their
    /// bytes.
    pub(crate) fn peak(&self, all: impl Iterator<Item = (u32, u32)>) -> (u64, u32) {
        let all = all.map(|(class, bytes)| (class, i64::from(bytes)));
        let mut live = 0;
        let mut peak = (0, 0);
        for (step, change) in (0u32..).zip(self.changes(all)) {
            live += change;
            if live > peak.0 {
                peak = (live, step);
            }
        }
        (peak.0 as u64, peak.1)
    }

    /// Returns by how many bytes the live bytes change at each liveness step from the step before,
    /// and in one more entry after the last step. Each entry of `all` has the bytes of some
    /// variables, and before them the index of their equivalence class, which says when they are
    /// live.
    pub(crate) fn changes(&self, all: impl Iterator<Item = (u32, i64)>) -> Vec<i64> {
        let mut changes = vec![0; self.steps as usize + 1];
        for (class, bytes) in all {
            for &(from, to) in self.ranges(class) {
                changes[from as usize] += bytes;
                changes[to as usize] -= bytes;
            }
        }
        changes
    }
}

/// Serializes the equivalence classes of variables as the three arguments of [`LiveClasses::new`]:
/// which classes are always live, the live ranges of all classes, and the number of steps.
impl Serialize for LiveClasses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of_class = |class| {
            self.ranges(class)
                .iter()
                .map(move |own| (class, own.0, own.1))
        };
        let ranges: Vec<_> = (0..self.len() as u32).flat_map(of_class).collect();
        (&self.always_live, ranges, self.steps).serialize(serializer)
    }
}

/// Reads which equivalence classes of variables are always live, the live ranges of all classes,
/// and the number of liveness steps; builds the classes with [`LiveClasses::new`]. Callers must
/// check that no live range ends after the last step.
impl<'de> Deserialize<'de> for LiveClasses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (always_live, ranges, steps) = Deserialize::deserialize(deserializer)?;
        Ok(Self::new(always_live, ranges, steps))
    }
}

/// Reads the live ranges of equivalence classes of variables (`eq_class_step`). Returns one entry
/// per range: the position of the class, the index of the first step, and the end (exclusive).
/// `ids` maps the id of a class to its position. `steps` holds the ids of all steps, ascending: the
/// table has step ids, which are turned into indices.
fn read_ranges(database: &Database, ids: &Ids, steps: &[u64]) -> Result<Vec<(u32, u32, u32)>> {
    let index = |id: u64| steps.partition_point(|&step| step < id) as u32;
    // Returns whether the live range `from..to` of step ids reaches beyond the last step. The end
    // (exclusive) may be the id after the last step. If ids have gaps, this id is unknown, so only
    // `from` is checked.
    let is_behind = |from: u64, to: u64| {
        steps
            .first()
            .zip(steps.last())
            .is_some_and(|(first, last)| {
                let is_dense = last - first == steps.len() as u64 - 1;
                from > *last || (is_dense && to - 1 > *last)
            })
    };
    let mut ranges = database.rows(
        "eq_class_step",
        &["eq_class_id", "step_id_from", "step_id_to"],
        |row| {
            let class = row.position(0, ids, CLASSES)?;
            let (from, to) = (row.unsigned(1)?, row.unsigned(2)?);
            let problem = match from.cmp(&to) {
                Ordering::Greater => "is reversed",
                Ordering::Less if is_behind(from, to) => "lies behind the last step",
                _ => return Ok((class, index(from), index(to))),
            };
            Err(row.problem(2, format!("the range {from}..{to} {problem}")))
        },
    )?;
    ranges.retain(|&(_, from, to)| from < to);
    Ok(ranges)
}

/// The liveness steps at which the variables of one equivalence class are not live: their number,
/// the first and the last of them. Some classes, such as classes of large weights, are live at all
/// but a few steps (docs/model.md, "Variables").
#[derive(Debug)]
pub struct MissedSteps {
    pub count: u32,
    pub first: u32,
    pub last: u32,
}

impl MissedSteps {
    /// Returns one entry per equivalence class: if the class is nearly always live, the steps at
    /// which it is not live, otherwise `None`. A nearly always-live class is live at more than half
    /// of all steps, including all steps that compute or move data on the IPU, but not at every
    /// step.
    pub fn of_classes(
        classes: &LiveClasses,
        steps: &[Step],
        programs: &Programs,
    ) -> Vec<Option<Self>> {
        let mut idle = 0;
        let idle_before = steps.iter().map(|step| {
            idle += u32::from(programs.all[step.program as usize].is_idle());
            idle
        });
        let idle_before: Vec<u32> = once(0).chain(idle_before).collect();
        (0..classes.len() as u32)
            .map(|class| Self::of(classes.ranges(class), &idle_before))
            .collect()
    }

    /// Returns the steps at which an equivalence class is not live, if the class is nearly always
    /// live: it misses fewer than half of all steps, and every missed step is idle (neither
    /// computes nor moves data). Returns `None` for any other class, and for a class that misses no
    /// step.
    /// - `ranges` has the steps at which the class is live ([`LiveClasses::ranges`]).
    /// - `idle_before` has one entry per step, the number of idle steps before it, and a last
    ///   entry, the number of all idle steps.
    fn of(ranges: &[(u32, u32)], idle_before: &[u32]) -> Option<Self> {
        let (first, last) = (ranges.first()?, ranges.last()?);
        let steps = idle_before.len() as u32 - 1;
        let missed = |before: &dyn Fn(u32) -> u32| {
            let live = ranges.iter().map(|&(from, to)| before(to) - before(from));
            before(steps) - live.sum::<u32>()
        };
        let count = missed(&|step| step);
        let are_idle = missed(&|step| idle_before[step as usize]) == count;
        (are_idle && count > 0 && count < steps - count).then(|| Self {
            count,
            first: if first.0 > 0 { 0 } else { first.1 },
            last: if last.1 < steps { steps } else { last.0 } - 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_or_overlap_become_one() {
        let ranges = [(0, 1, 3), (0, 3, 4), (0, 6, 9), (0, 7, 8), (2, 5, 6)];
        let classes = LiveClasses::new(vec![false, false, false, true], ranges.into(), 9);
        assert_eq!(classes.ranges(0), [(1, 4), (6, 9)]);
        assert_eq!(classes.ranges(1), []);
        assert_eq!(classes.ranges(2), [(5, 6)]);
        assert_eq!(classes.ranges(3), [(0, 9)]);
    }

    #[test]
    fn without_steps_nothing_is_live_on_any() {
        let classes = LiveClasses::new(vec![true], Vec::new(), 0);
        assert!(classes.is_always_live(0));
        assert_eq!(classes.ranges(0), []);
    }

    /// Finds the steps that an equivalence class misses if it is live in `ranges`, and returns
    /// their number, the first and the last of them; `None` if the class is not nearly always live.
    /// This test has ten steps, and no data is computed or moved at the steps 0, 1, 4, 8 and 9.
    fn missed(ranges: &[(u32, u32)]) -> Option<(u32, u32, u32)> {
        let spans = ranges.iter().map(|&(from, to)| (0, from, to));
        let classes = LiveClasses::new(vec![false], spans.collect(), 10);
        let idle_before = [0, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5];
        let found = MissedSteps::of(classes.ranges(0), &idle_before)?;
        Some((found.count, found.first, found.last))
    }

    #[test]
    fn only_idle_steps_may_be_missed_and_fewer_than_not() {
        assert_eq!(missed(&[(2, 10)]), Some((2, 0, 1)));
        assert_eq!(missed(&[(0, 4), (5, 9)]), Some((2, 4, 9)));
        assert_eq!(missed(&[(0, 10)]), None, "it misses nothing");
        assert_eq!(missed(&[(3, 10)]), None, "step 2 is not idle");
        assert_eq!(missed(&[(0, 5), (6, 10)]), None, "nor is step 5");
        assert_eq!(missed(&[]), None, "it is never live");
        assert_eq!(missed(&[(2, 4), (5, 8)]), None, "it misses as many as not");
    }
}
