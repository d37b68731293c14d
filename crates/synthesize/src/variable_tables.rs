//! Lowered variables and liveness.

use crate::encoding::{encode_list, push_varint};
use rusqlite::{Connection, params};

use super::groups::Role;
use super::liveness::{Fixed, UNALLOCATED};
use super::overhead::{self, CATEGORIES, Extra};
use super::plan::{Plan, category_of};
use super::random::topic;
use super::truth::{Truth, Variable};

/// Writes the tables of variables; gives what they add up to.
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
    let mut insert = connection.prepare("INSERT INTO var_categories VALUES (?1, ?2, ?3)")?;
    for (position, name) in CATEGORIES.iter().enumerate() {
        insert.execute(params![id(position), name, format!("synthetic {name}")])?;
    }
    Ok(())
}

/// One row of `vars_info`.
struct Row<'a> {
    tile: u32,
    name: usize,
    suffix: &'a str,
    variable: Variable,
    offset: u64,
    unlowered: Option<usize>,
    alignment: u32,
    bits: u32,
}

struct Rows<'a> {
    plan: &'a Plan,
    insert: rusqlite::Statement<'a>,
    next: u32,
    constraints: Vec<u8>,
}

impl Rows<'_> {
    fn write(&mut self, row: &Row) -> rusqlite::Result<()> {
        let id = self.next;
        self.next += 1;
        self.constraints.clear();
        let constrained = !id.is_multiple_of(3) && row.variable.bytes > 0;
        if constrained {
            push_varint(&mut self.constraints, u64::from(id % 97));
            push_varint(&mut self.constraints, u64::from(id % 31));
        }
        self.insert.execute(params![
            id,
            row.tile,
            row.name,
            row.suffix,
            row.variable.bytes,
            row.alignment,
            row.offset,
            self.plan.category_id(row.variable.category),
            row.variable.class,
            constrained.then_some(&self.constraints),
            row.unlowered,
            row.bits,
        ])?;
        Ok(())
    }
}

/// Tile by tile: the groups, then the rest. Offsets of what is always live do
/// not overlap; those of the rest are nominal.
fn vars_info(plan: &Plan, connection: &Connection) -> rusqlite::Result<Truth> {
    let mut rows = Rows {
        plan,
        insert: connection.prepare(
            "INSERT INTO vars_info (var_id, tile, name_base_id, name_suffix, size_bytes,
             alignment, offset, category, equivalence_class, element_constraints,
             unlowered_var_id, bitset)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?,
        next: 0,
        constraints: Vec::new(),
    };
    let bytes = plan.settings.bytes_per_tile;
    let mut truth = Truth::new(plan.tree.steps.len(), plan.settings.plain_bytes(), bytes);
    let mut variables = Vec::new();
    for tile in 0..plan.settings.tiles {
        variables.clear();
        let mut offset = 0;
        for group in plan.groups_on(tile) {
            let variable = group_row(plan, &mut rows, group, tile, &mut offset)?;
            variables.push(variable);
        }
        let extras = overhead::on_tile(&plan.settings, &plan.tree, &plan.code, tile);
        for extra in extras {
            variables.push(extra_row(plan, &mut rows, extra, tile, &mut offset)?);
        }
        truth.add(&plan.classes, &variables, |explained| {
            plan.gap(tile, explained)
        });
    }
    Ok(truth)
}

fn group_row(
    plan: &Plan,
    rows: &mut Rows,
    index: usize,
    tile: u32,
    offset: &mut u64,
) -> rusqlite::Result<Variable> {
    let group = &plan.groups[index];
    let variable = Variable {
        category: category_of(group.role),
        class: plan.classes.on_tile(&plan.settings, index, tile),
        bytes: plan.bytes(index, tile),
    };
    let always = plan.classes.always[variable.class as usize];
    let anonymous = matches!(group.role, Role::Work | Role::OutputEdge) && index.is_multiple_of(2);
    rows.write(&Row {
        tile,
        name: index,
        suffix: &(tile - group.window.first).to_string(),
        variable,
        offset: *offset,
        unlowered: (!anonymous).then_some(index),
        alignment: 8,
        bits: if always { 259 } else { 257 },
    })?;
    *offset += if always { variable.bytes } else { 0 };
    Ok(variable)
}

fn extra_row(
    plan: &Plan,
    rows: &mut Rows,
    extra: Extra,
    tile: u32,
    offset: &mut u64,
) -> rusqlite::Result<Variable> {
    let variable = Variable {
        category: extra.category,
        class: extra.class,
        bytes: extra.bytes,
    };
    let always = plan.classes.always[extra.class as usize];
    let suffix = extra.suffix.map(|suffix| suffix.to_string());
    rows.write(&Row {
        tile,
        name: plan.groups.len() + extra.name,
        suffix: suffix.as_deref().unwrap_or(""),
        variable,
        offset: *offset,
        unlowered: None,
        alignment: 4,
        bits: extra_bits(extra.category, extra.class, always),
    })?;
    *offset += if always { extra.bytes } else { 0 };
    Ok(variable)
}

/// Flags as they stand on such variables in a real file; bit 0 is clear for
/// what is not allocated.
pub fn extra_bits(category: usize, class: u32, always: bool) -> u32 {
    use overhead::category::{
        CONTROL_CODE, GLOBAL_EXCHANGE_CODE, HOST_EXCHANGE_CODE, INTERNAL_EXCHANGE_CODE, VERTEX_CODE,
    };
    match category {
        _ if class == UNALLOCATED => 2,
        VERTEX_CODE => 29,
        CONTROL_CODE | HOST_EXCHANGE_CODE | INTERNAL_EXCHANGE_CODE | GLOBAL_EXCHANGE_CODE => 13,
        _ if always => 5,
        _ => 1,
    }
}

fn names(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO vars_string_table VALUES (?1, ?2)")?;
    let groups = plan.groups.iter().map(|group| format!("{}#", group.name));
    for (id, name) in groups.chain(overhead::names(&plan.code)).enumerate() {
        insert.execute(params![id, name])?;
    }
    Ok(())
}

/// Unlowered variables: the groups, then one for each category of the rest.
fn unlowered(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO unlowered_vars VALUES (?1, ?2)")?;
    let groups = plan.groups.iter().map(|group| group.name.as_str());
    for (id, name) in groups.chain(CATEGORIES).enumerate() {
        insert.execute(params![id, name])?;
    }
    let mut ids = connection.prepare("INSERT INTO debug_ids VALUES (?1, ?2)")?;
    for (id, group) in plan.groups.iter().enumerate() {
        let context = plan.context_of_group(group, id);
        ids.execute(params![id, encode_list(&[context.into()])])?;
    }
    bytes_by_class(plan, connection)
}

/// Bytes by unlowered variable and class: over all tiles for all of them, by
/// tile for half of them and for each category of the rest.
fn bytes_by_class(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert =
        connection.prepare("INSERT INTO var_bytes_by_eq_class VALUES (?1, ?2, ?3, ?4)")?;
    for group in 0..plan.groups.len() {
        for (class, bytes) in class_sums(plan, group) {
            insert.execute(params![group, class, bytes, None::<u32>])?;
        }
    }
    for tile in 0..plan.settings.tiles {
        for group in plan.groups_on(tile).filter(|group| group % 2 == 0) {
            let class = plan.classes.on_tile(&plan.settings, group, tile);
            insert.execute(params![group, class, plan.bytes(group, tile), tile])?;
        }
        let sums = always_live_extras(plan, tile);
        for (category, bytes) in sums.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            let id = plan.groups.len() + category;
            insert.execute(params![id, Fixed::Code as u32, bytes, tile])?;
        }
    }
    Ok(())
}

/// Bytes of a group over all tiles, by class.
fn class_sums(plan: &Plan, group: usize) -> Vec<(u32, u64)> {
    let window = plan.groups[group].window;
    let mut sums: Vec<(u32, u64)> = Vec::new();
    for tile in window.first..window.first + window.count {
        let class = plan.classes.on_tile(&plan.settings, group, tile);
        let bytes = plan.bytes(group, tile);
        match sums.iter_mut().find(|sum| sum.0 == class) {
            Some(sum) => sum.1 += bytes,
            None => sums.push((class, bytes)),
        }
    }
    sums
}

fn always_live_extras(plan: &Plan, tile: u32) -> [u64; CATEGORIES.len()] {
    let mut sums = [0; CATEGORIES.len()];
    for extra in overhead::on_tile(&plan.settings, &plan.tree, &plan.code, tile) {
        if plan.classes.always[extra.class as usize] {
            sums[extra.category] += extra.bytes;
        }
    }
    sums
}

/// Rows of ranges stand in no order, as in real files.
fn classes(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut class = connection.prepare("INSERT INTO eq_classes VALUES (?1, ?2)")?;
    let mut range = connection.prepare("INSERT INTO eq_class_step VALUES (?1, ?2, ?3)")?;
    let count = plan.classes.ranges.len();
    for id in 1..count {
        class.execute(params![id, plan.classes.always[id]])?;
    }
    let mut order: Vec<usize> = (1..count).collect();
    order.sort_unstable_by_key(|&id| plan.settings.random.hash([topic::CLASS, id as u64, 0, 2]));
    for id in order {
        for (from, to) in &plan.classes.ranges[id] {
            range.execute(params![id, from, to])?;
        }
    }
    Ok(())
}

/// Classes that are live together; of the many in a large model only a range of
/// neighbours is listed.
fn interference(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    const NEIGHBOURS: usize = 4000;
    let mut insert =
        connection.prepare("INSERT INTO equivalence_class_interference VALUES (?1, ?2)")?;
    let ranges = &plan.classes.ranges;
    let mut ids = Vec::new();
    for (id, range) in ranges.iter().enumerate() {
        ids.clear();
        let end = ranges.len().min(id + 1 + NEIGHBOURS);
        for (other, theirs) in ranges[..end].iter().enumerate().skip(id + 1) {
            let meets = |a: &(u32, u32)| theirs.iter().any(|b| a.0 < b.1 && b.0 < a.1);
            if range.iter().any(meets) {
                ids.push(other as u64);
            }
        }
        insert.execute(params![id, encode_list(&ids)])?;
    }
    Ok(())
}

/// Large variables are placed first.
fn allocation_order(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO allocation_order_by_tile VALUES (?1, ?2)")?;
    for tile in 0..plan.settings.tiles {
        let mut order: Vec<(u64, u64)> = plan
            .groups_on(tile)
            .map(|group| (plan.bytes(group, tile), plan.var_id(group, tile)))
            .collect();
        order.sort_unstable_by_key(|&(bytes, id)| (std::cmp::Reverse(bytes), id));
        let ids: Vec<u64> = order.iter().map(|&(_, id)| id).collect();
        insert.execute(params![tile, encode_list(&ids)])?;
    }
    Ok(())
}
