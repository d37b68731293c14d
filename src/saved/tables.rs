//! What is one frame as a whole: classes, sets of bodies, and the variables and
//! bytes of code.

use super::SavedError;
use super::columns::{Input, Output};
use super::shape::Shape;
use crate::model::{UserSets, VariableGroup, VariableGroups};
use crate::profile::{LiveClasses, TileBytes};

/// By class: twice the number of its ranges, and for each the steps between it
/// and the range before it and how many steps it covers. For an always-live
/// class 1, and nothing else.
pub(super) fn write_classes(classes: &LiveClasses, output: &mut Output) {
    for class in 0..classes.len() as u32 {
        if classes.is_always_live(class) {
            output.number(1u32);
            continue;
        }
        let ranges = classes.ranges(class);
        output.number(ranges.len() as u64 * 2);
        let mut end = 0;
        for &(from, to) in ranges {
            output.number(from.wrapping_sub(end));
            output.number(to.wrapping_sub(from));
            end = to;
        }
    }
}

pub(super) fn read_classes(mut input: Input<'_>, shape: &Shape) -> Result<LiveClasses, SavedError> {
    if shape.classes as usize > input.left() {
        return Err(input.problem("it ends too early"));
    }
    let mut always_live = Vec::with_capacity(shape.classes as usize);
    let mut ranges = Vec::new();
    for class in 0..shape.classes {
        let ranges_twice = input.number()?;
        always_live.push(ranges_twice == 1);
        if ranges_twice % 2 == 1 && ranges_twice != 1 {
            return Err(input.problem("an always-live class has ranges of its own"));
        }
        let mut end = None;
        for _ in 0..ranges_twice / 2 {
            let range = read_range(&mut input, end, shape.steps)?;
            ranges.push((class, range.0, range.1));
            end = Some(range.1);
        }
    }
    input.finish()?;
    Ok(LiveClasses::new(always_live, ranges, shape.steps))
}

/// A range that begins behind `end`, where the one before it ends: ranges of a
/// class never touch.
fn read_range(
    input: &mut Input<'_>,
    end: Option<u32>,
    steps: u32,
) -> Result<(u32, u32), SavedError> {
    let (gap, length) = (input.number()?, input.number()?);
    let from = u64::from(end.unwrap_or(0)).checked_add(gap);
    let to = from.and_then(|from| from.checked_add(length));
    match (from, to) {
        (Some(from), Some(to)) if from < to && to <= u64::from(steps) => {
            if end.is_none() || gap > 0 {
                return Ok((from as u32, to as u32));
            }
            Err(input.problem("two ranges of a class touch"))
        }
        _ => Err(input.problem("a range is empty or beyond the last step")),
    }
}

/// By set, but for the empty one: how far before it the smaller set stands,
/// and its last body as the difference to that of the set before it, twice,
/// negative ones as the odd numbers between; then its label and companion.
pub(super) fn write_sets(sets: &UserSets, output: &mut Output) {
    let mut last = 0;
    for (set, smaller, body) in sets.iter() {
        output.number(set - smaller);
        let difference = i64::from(body) - last;
        output.number(((difference << 1) ^ (difference >> 63)) as u64);
        last = i64::from(body);
        output.number(sets.label(set));
        output.number(sets.companion(set).unwrap_or(0));
    }
}

pub(super) fn read_sets(mut input: Input<'_>, shape: &Shape) -> Result<UserSets, SavedError> {
    let nodes = shape.sets.saturating_sub(1) as usize;
    if nodes > input.left() / 4 {
        return Err(input.problem("it ends too early"));
    }
    let mut sets = Vec::with_capacity(nodes);
    let mut marks = Vec::with_capacity(nodes);
    let mut last = 0i64;
    for set in 1..=nodes as u32 {
        let smaller = set.checked_sub(input.small()?);
        let smaller = smaller.ok_or_else(|| input.problem("a smaller set is not there"))?;
        let difference = input.number()?;
        let difference = (difference >> 1) as i64 ^ -((difference & 1) as i64);
        last = last.wrapping_add(difference);
        let body = u32::try_from(last).map_err(|_| input.problem("a body is not there"))?;
        sets.push((smaller, body));
        let label = input.position(shape.labels, "label")?;
        marks.push((label, input.position(shape.sets, "companion")?));
    }
    let sets = UserSets::from_nodes(sets, shape.bodies, marks, shape.labels)
        .ok_or_else(|| input.problem("a set does not consist of a smaller one and a later body"))?;
    if sets.len() != shape.sets as usize {
        return Err(input.problem("the empty set is missing"));
    }
    input.finish()?;
    Ok(sets)
}

/// By kind of code: the recorded bytes by tile.
pub(super) fn write_recorded_code(recorded: &[TileBytes; 4], output: &mut Output) {
    for bytes in recorded {
        output.tile_bytes(bytes);
    }
}

pub(super) fn read_recorded_code(
    mut input: Input<'_>,
    shape: &Shape,
) -> Result<[TileBytes; 4], SavedError> {
    let mut recorded = <[TileBytes; 4]>::default();
    for bytes in &mut recorded {
        *bytes = input.tile_bytes(shape.target.num_tiles)?;
    }
    input.finish()?;
    Ok(recorded)
}

/// By tile: the number of its items, and of each the class, set and bytes.
/// There are few of them, if any.
pub(super) fn write_code_variables(variables: &VariableGroups, output: &mut Output) {
    for tile in 0..variables.tiles() {
        let items = variables.on_tile(tile);
        output.length(items.len());
        for item in items {
            output.number(item.class);
            output.number(item.set);
            output.number(item.bytes);
        }
    }
}

pub(super) fn read_code_variables(
    mut input: Input<'_>,
    shape: &Shape,
) -> Result<VariableGroups, SavedError> {
    let (mut counts, mut items) = (Vec::new(), Vec::new());
    for _ in 0..shape.target.num_tiles {
        let count = input.count(3)?;
        counts.push(count as u32);
        for _ in 0..count {
            items.push(VariableGroup {
                class: input.position(shape.classes, "class")?,
                set: input.position(shape.sets, "set")?,
                bytes: input.small()?,
            });
        }
    }
    let found = VariableGroups::from_sorted(&counts, items);
    let found = found.ok_or_else(|| input.problem("the items of a tile are not in order"))?;
    input.finish()?;
    Ok(found)
}
