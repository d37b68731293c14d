//! Lowered variables, their sums, and liveness.

use crate::encoding::encode_list;
use rusqlite::{Connection, Result};

use super::groups::Role;
use super::liveness::{Classes, Variable};
use super::memory_tables::{self, TileRow, Truth};
use super::overhead;
use super::plan::Plan;
use super::random::topic;
use super::schema::insert;
use super::settings::Settings;

pub fn write(plan: &Plan, connection: &Connection) -> Result<()> {
    categories(plan, connection)?;
    let classes_and_steps = (&plan.classes, plan.tree.steps.len());
    let mut tiles = Tiles::new(plan, classes_and_steps, Some(connection));
    for tile in 0..plan.settings.tiles {
        let groups = plan.groups_on(tile);
        let groups = groups.map(|index| group_row(plan, index, tile));
        let extras = plan.extras_on(tile).into_iter().map(|extra| Row {
            name: plan.groups.len() + extra.name,
            suffix: extra.suffix.as_ref().map_or(String::new(), u32::to_string),
            unlowered: None,
            variable: extra.variable,
        });
        let rows: Vec<Row> = groups.chain(extras).collect();
        tiles.add(&rows, |explained| plan.gap(tile, explained))?;
    }
    memory_tables::write(&tiles.sums, connection)?;
    let all_names = plan.names();
    let named = all_names.iter().enumerate().map(|(id, name)| {
        let group = plan.groups.get(id);
        let context = group.map(|group| plan.context_of_group(group, id));
        (name.as_str(), group.is_some(), context)
    });
    names(named, connection)?;
    classes(&plan.classes, &plan.settings, connection)
}

/// Writes the categories, each with the id that the file has for it.
pub fn categories(plan: &Plan, connection: &Connection) -> Result<()> {
    let categories = overhead::categories().iter().enumerate();
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

/// Variables that are written tile by tile, and summed up.
pub struct Tiles<'a> {
    plan: &'a Plan,
    classes: &'a Classes,
    /// Where the rows are written; `None` if only the sums are wanted.
    rows: Option<&'a Connection>,
    pub sums: Truth<'a>,
    next_id: u32,
}

impl<'a> Tiles<'a> {
    pub fn new(
        plan: &'a Plan,
        (classes, steps): (&'a Classes, usize),
        rows: Option<&'a Connection>,
    ) -> Self {
        Self {
            plan,
            classes,
            rows,
            sums: Truth::new(&plan.settings, steps),
            next_id: 0,
        }
    }

    /// Adds the variables of the next tile. The rows are as wide as in real files, which
    /// measurements need: nothing reads offsets, constraints and flags.
    pub fn add(&mut self, rows: &[Row], gap: impl FnOnce(u64) -> u64) -> Result<TileRow> {
        let tile = self.sums.tiles.len();
        let table = "vars_info (var_id, tile, name_base_id, name_suffix, size_bytes, offset,
                     category, equivalence_class, element_constraints, unlowered_var_id, bitset)";
        let columns = rows.iter().zip(self.next_id..).map(|(row, id)| {
            let Variable {
                category, class, ..
            } = row.variable;
            let constraints = [u64::from(id % 97), u64::from(id % 31)];
            (
                id,
                tile,
                row.name,
                &row.suffix,
                row.variable.bytes,
                id % 4096 * 128,
                self.plan.category_id(category),
                class,
                (!id.is_multiple_of(3)).then(|| encode_list(&constraints)),
                row.unlowered,
                257,
            )
        });
        if let Some(connection) = self.rows {
            insert(connection, table, columns)?;
        }
        self.next_id += rows.len() as u32;
        let variables: Vec<Variable> = rows.iter().map(|row| row.variable).collect();
        Ok(self.sums.add(self.classes, &variables, gap))
    }
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

/// Writes names of variables: the text, whether the model has such a variable and not only the
/// compiled program, and the context of the variable.
pub fn names<'a>(
    names: impl Iterator<Item = (&'a str, bool, Option<u32>)>,
    connection: &Connection,
) -> Result<()> {
    for (id, (text, is_user, context)) in names.enumerate() {
        let end = if is_user { "#" } else { "" };
        let name = (id, format!("{text}{end}"));
        insert(connection, "vars_string_table", [name])?;
        let unlowered = is_user.then_some((id, text));
        insert(connection, "unlowered_vars", unlowered)?;
        let ids = context.map(|context| (id, encode_list(&[context.into()])));
        insert(connection, "debug_ids", ids)?;
    }
    Ok(())
}

/// Rows of ranges stand in no order, as in real files.
pub fn classes(classes: &Classes, settings: &Settings, connection: &Connection) -> Result<()> {
    let count = classes.ranges.len();
    let rows = (1..count).map(|id| (id, classes.always[id]));
    insert(connection, "eq_classes", rows)?;
    let mut order: Vec<usize> = (1..count).collect();
    order.sort_unstable_by_key(|&id| settings.random.hash([topic::CLASS, id as u64, 0, 2]));
    let ranges = order.into_iter().flat_map(|id| {
        let ranges = classes.ranges[id].iter();
        ranges.map(move |&(from, to)| (id, from, to))
    });
    insert(connection, "eq_class_step", ranges)
}
