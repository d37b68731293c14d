//! Lowered variables and liveness.

use crate::encoding::encode_list;
use rusqlite::Connection;

use super::groups::Role;
use super::liveness::Variable;
use super::memory_tables::Truth;
use super::overhead::{self, CATEGORIES};
use super::plan::Plan;
use super::random::topic;
use super::schema::insert;

pub fn write(plan: &Plan, connection: &Connection) -> rusqlite::Result<Truth> {
    categories(plan, connection)?;
    let truth = vars_info(plan, connection)?;
    names(plan, connection)?;
    unlowered(plan, connection)?;
    classes(plan, connection)?;
    Ok(truth)
}

/// Writes the categories, each with the id that the file has for it.
pub fn categories(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let categories = CATEGORIES.iter().enumerate();
    let rows = categories.map(|(position, name)| (plan.category_id(position), name));
    insert(connection, "var_categories (id, name)", rows)
}

/// A lowered variable as it is listed.
pub struct Row {
    /// The number of its name.
    pub name: usize,
    /// The text that follows the shared name in the variable's own name.
    pub suffix: String,
    pub unlowered: Option<usize>,
    pub variable: Variable,
}

/// Writes the variables of `tile`, with ids from `first` on. The rows are as wide as in real files,
/// which measurements need: nothing reads offsets, constraints and flags.
pub fn variables_of_tile(
    (tile, first): (u32, u32),
    rows: &[Row],
    plan: &Plan,
    connection: &Connection,
) -> rusqlite::Result<()> {
    let rows = rows.iter().zip(first..).map(|(row, id)| {
        let Variable {
            category,
            class,
            bytes,
        } = row.variable;
        let constraints = [u64::from(id % 97), u64::from(id % 31)];
        (
            id,
            tile,
            row.name,
            &row.suffix,
            bytes,
            id % 4096 * 128,
            plan.category_id(category),
            class,
            (!id.is_multiple_of(3)).then(|| encode_list(&constraints)),
            row.unlowered,
            257,
        )
    });
    let table = "vars_info (var_id, tile, name_base_id, name_suffix, size_bytes, offset, category,
                 equivalence_class, element_constraints, unlowered_var_id, bitset)";
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
            unlowered: None,
            variable: extra.variable,
        });
        let rows: Vec<Row> = groups.chain(extras).collect();
        variables_of_tile((tile, first), &rows, plan, connection)?;
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
        unlowered: (!anonymous).then_some(index),
        variable: plan.variable(index, tile),
    }
}

fn names(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let groups = plan.groups.iter().map(|group| format!("{}#", group.name));
    let names = groups.chain(overhead::names(&plan.code)).enumerate();
    insert(connection, "vars_string_table", names)
}

fn unlowered(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let groups = plan.groups.iter().map(|group| group.name.as_str());
    insert(connection, "unlowered_vars", groups.enumerate())?;
    let ids = plan.groups.iter().enumerate().map(|(id, group)| {
        let context = plan.context_of_group(group, id);
        (id, encode_list(&[context.into()]))
    });
    insert(connection, "debug_ids", ids)
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
