//! Lowered variables and liveness.

use std::cmp::Reverse;

use crate::encoding::encode_list;
use rusqlite::Connection;

use super::groups::Role;
use super::liveness::{Classes, Fixed, Ranges, UNALLOCATED, Variable};
use super::memory_tables::Truth;
use super::overhead::{self, CATEGORIES, Extra};
use super::plan::Plan;
use super::random::topic;
use super::schema::insert;

pub fn write(plan: &Plan, connection: &Connection) -> rusqlite::Result<Truth> {
    categories(|category| plan.category_id(category), connection)?;
    let truth = vars_info(plan, connection)?;
    names(plan, connection)?;
    unlowered(plan, connection)?;
    classes(plan, connection)?;
    interference(plan, connection)?;
    allocation_order(plan, connection)?;
    Ok(truth)
}

/// Writes the categories, each with the id that the file has for it.
pub fn categories(id: impl Fn(usize) -> usize, connection: &Connection) -> rusqlite::Result<()> {
    let categories = CATEGORIES.iter().enumerate();
    let rows = categories.map(|(position, name)| (id(position), name, format!("synthetic {name}")));
    insert(connection, "var_categories", rows)
}

/// A lowered variable as it is listed.
pub struct Row {
    /// The number of its name.
    pub name: usize,
    /// The text that follows the shared name in the variable's own name.
    pub suffix: String,
    pub is_user: bool,
    pub unlowered: Option<usize>,
    pub variable: Variable,
}

/// Writes the variables of `tile`, with ids from `first` on. Variables of the compilation for one
/// IPU, which is then given, have its ids of categories, and some have constraints on their
/// addresses. Offsets of always-live variables do not overlap; offsets of the other variables are
/// nominal.
pub fn variables_of_tile(
    (tile, first): (u32, u32),
    rows: &[Row],
    classes: &Classes,
    plan: Option<&Plan>,
    connection: &Connection,
) -> rusqlite::Result<()> {
    let mut offset = 0;
    let rows = rows.iter().zip(first..).map(|(row, id)| {
        let Variable {
            category,
            class,
            bytes,
        } = row.variable;
        let is_always = classes.always[class as usize];
        let (alignment, bits) = match (row.is_user, is_always) {
            (true, true) => (8, 259),
            (true, false) => (8, 257),
            (false, is_always) => (4, extra_bits(&row.variable, is_always)),
        };
        let here = offset;
        offset += if is_always { bytes } else { 0 };
        // Two of three variables with bytes.
        let is_constrained = plan.is_some() && !id.is_multiple_of(3) && bytes > 0;
        let constraints = [u64::from(id % 97), u64::from(id % 31)];
        (
            id,
            tile,
            row.name,
            &row.suffix,
            bytes,
            alignment,
            here,
            plan.map_or(category, |plan| plan.category_id(category)),
            class,
            is_constrained.then(|| encode_list(&constraints)),
            row.unlowered,
            bits,
        )
    });
    let table = "vars_info (var_id, tile, name_base_id, name_suffix, size_bytes, alignment, offset,
                 category, equivalence_class, element_constraints, unlowered_var_id, bitset)";
    insert(connection, table, rows)
}

/// Tile by tile: the groups, then the rest.
fn vars_info(plan: &Plan, connection: &Connection) -> rusqlite::Result<Truth> {
    let (steps, bytes) = (plan.tree.steps.len(), plan.settings.bytes_per_tile);
    let mut truth = Truth::new(steps, plan.settings.plain_bytes(), bytes);
    let mut first = 0;
    for tile in 0..plan.settings.tiles {
        let groups = plan
            .groups_on(tile)
            .map(|index| group_row(plan, index, tile));
        let extras = plan.extras_on(tile).into_iter().map(|extra| Row {
            name: plan.groups.len() + extra.name,
            suffix: extra
                .suffix
                .map_or(String::new(), |suffix| suffix.to_string()),
            is_user: false,
            unlowered: None,
            variable: extra.variable,
        });
        let rows: Vec<Row> = groups.chain(extras).collect();
        variables_of_tile((tile, first), &rows, &plan.classes, Some(plan), connection)?;
        first += rows.len() as u32;
        let variables: Vec<Variable> = rows.iter().map(|row| row.variable).collect();
        let gap = |explained| plan.gap(tile, explained);
        truth.add(&plan.classes, &variables, gap);
    }
    Ok(truth)
}

fn group_row(plan: &Plan, index: usize, tile: u32) -> Row {
    let group = &plan.groups[index];
    let anonymous = matches!(group.role, Role::Work | Role::OutputEdge) && index.is_multiple_of(2);
    Row {
        name: index,
        suffix: (tile - group.window.first).to_string(),
        is_user: true,
        unlowered: (!anonymous).then_some(index),
        variable: plan.variable(index, tile),
    }
}

/// Flags as they stand on such variables in a real file; bit 0 is clear for
/// what is not allocated.
fn extra_bits(variable: &Variable, always: bool) -> u32 {
    use overhead::category::{
        CONTROL_CODE, GLOBAL_EXCHANGE_CODE, HOST_EXCHANGE_CODE, INTERNAL_EXCHANGE_CODE, VERTEX_CODE,
    };
    match variable.category {
        _ if variable.class == UNALLOCATED => 2,
        VERTEX_CODE => 29,
        CONTROL_CODE | HOST_EXCHANGE_CODE | INTERNAL_EXCHANGE_CODE | GLOBAL_EXCHANGE_CODE => 13,
        _ if always => 5,
        _ => 1,
    }
}

fn names(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let groups = plan.groups.iter().map(|group| format!("{}#", group.name));
    let names = groups.chain(overhead::names(&plan.code)).enumerate();
    insert(connection, "vars_string_table", names)
}

/// Unlowered variables: the groups, then one for each category of the rest.
fn unlowered(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let groups = plan.groups.iter().map(|group| group.name.as_str());
    let names = groups.chain(CATEGORIES).enumerate();
    insert(connection, "unlowered_vars", names)?;
    let ids = plan.groups.iter().enumerate().map(|(id, group)| {
        let context = plan.context_of_group(group, id);
        (id, encode_list(&[context.into()]))
    });
    insert(connection, "debug_ids", ids)?;
    bytes_by_class(plan, connection)
}

/// Bytes by unlowered variable and class: over all tiles for all of them, by
/// tile for half of them and for each category of the rest.
fn bytes_by_class(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let table = "var_bytes_by_eq_class";
    let of_all = (0..plan.groups.len()).flat_map(|group| {
        let sums = class_sums(plan, group).into_iter();
        sums.map(move |(class, bytes)| (group, class, bytes, None::<u32>))
    });
    insert(connection, table, of_all)?;
    for tile in 0..plan.settings.tiles {
        let groups = plan.groups_on(tile).filter(|group| group % 2 == 0);
        let groups = groups.map(|group| {
            let Variable { class, bytes, .. } = plan.variable(group, tile);
            (group, class, bytes, tile)
        });
        insert(connection, table, groups)?;
        let sums = always_live_extras(plan, tile).into_iter().enumerate();
        let sums = sums.filter(|(_, bytes)| *bytes > 0);
        let extras = sums.map(|(category, bytes)| {
            let id = plan.groups.len() + category;
            (id, Fixed::Code as u32, bytes, tile)
        });
        insert(connection, table, extras)?;
    }
    Ok(())
}

fn class_sums(plan: &Plan, group: usize) -> Vec<(u32, u64)> {
    let mut sums: Vec<(u32, u64)> = Vec::new();
    for tile in plan.groups[group].window.tiles() {
        let Variable { class, bytes, .. } = plan.variable(group, tile);
        match sums.iter_mut().find(|sum| sum.0 == class) {
            Some(sum) => sum.1 += bytes,
            None => sums.push((class, bytes)),
        }
    }
    sums
}

fn always_live_extras(plan: &Plan, tile: u32) -> [u64; CATEGORIES.len()] {
    let mut sums = [0; CATEGORIES.len()];
    for Extra { variable, .. } in plan.extras_on(tile) {
        if plan.classes.always[variable.class as usize] {
            sums[variable.category] += variable.bytes;
        }
    }
    sums
}

/// Rows of ranges stand in no order, as in real files.
fn classes(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let count = plan.classes.ranges.len();
    let rows = (1..count).map(|id| (id, plan.classes.always[id]));
    insert(connection, "eq_classes", rows)?;
    let mut order: Vec<usize> = (1..count).collect();
    order.sort_unstable_by_key(|&id| plan.settings.random.hash([topic::CLASS, id as u64, 0, 2]));
    let ranges = order.into_iter().flat_map(|id| {
        let ranges = plan.classes.ranges[id].iter();
        ranges.map(move |&(from, to)| (id, from, to))
    });
    insert(connection, "eq_class_step", ranges)
}

/// Classes that are live together; of the many in a large model only a range of
/// neighbours is listed.
fn interference(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    const NEIGHBOURS: usize = 4000;
    let ranges = &plan.classes.ranges;
    let rows = ranges.iter().enumerate().map(|(id, range)| {
        let end = ranges.len().min(id + 1 + NEIGHBOURS);
        let others = ranges[..end].iter().enumerate().skip(id + 1);
        let interferes = |(_, theirs): &(usize, &Ranges)| {
            let meets = |a: &(u32, u32)| theirs.iter().any(|b| a.0 < b.1 && b.0 < a.1);
            range.iter().any(meets)
        };
        let ids = others.filter(interferes).map(|(other, _)| other as u64);
        (id, encode_list(&ids.collect::<Vec<_>>()))
    });
    insert(connection, "equivalence_class_interference", rows)
}

/// Large variables are placed first.
fn allocation_order(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let rows = (0..plan.settings.tiles).map(|tile| {
        let mut groups: Vec<usize> = plan.groups_on(tile).collect();
        groups.sort_by_key(|&group| Reverse(plan.bytes(group, tile)));
        let ids = groups.iter().map(|&group| plan.var_id(group, tile));
        let ids: Vec<u64> = ids.collect();
        (tile, encode_list(&ids))
    });
    insert(connection, "allocation_order_by_tile", rows)
}
