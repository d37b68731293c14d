//! Compute sets, vertices and their memory.

use crate::encoding::{encode_diff_rle, encode_list, encode_rle};
use rusqlite::{Connection, params};

use super::code::{SetBytes, VertexType};
use super::cycles;
use super::groups::Access;
use super::plan::Plan;

/// Writes the tables of compute sets and vertex types.
pub fn write(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    compute_sets(plan, connection)?;
    vertex_types(&plan.code.types, connection)?;
    instances(plan, connection)?;
    memory_by_compute_set(plan, connection)?;
    memory_by_vertex_type(plan, connection)
}

/// Per compute set: the groups that it uses, ascending.
fn groups_of_sets(plan: &Plan) -> Vec<Vec<usize>> {
    let mut sets = vec![Vec::new(); plan.tree.compute_sets.len()];
    for (index, group) in plan.groups.iter().enumerate() {
        for &(stage, access) in &group.uses {
            if let (Access::Compute, Some(set)) = (access, plan.tree.stages[stage].compute_set) {
                sets[set].push(index);
            }
        }
    }
    sets.iter_mut().for_each(Vec::dedup);
    sets
}

/// Var ids of a compute set, ascending: ids go tile by tile, and on a tile in
/// the order of the groups.
fn var_ids(plan: &Plan, groups: &[usize]) -> Vec<u64> {
    let mut ids = Vec::new();
    for tile in 0..plan.settings.tiles {
        let here = groups
            .iter()
            .filter(|&&group| plan.groups[group].window.holds(tile));
        ids.extend(here.map(|&group| plan.var_id(group, tile)));
    }
    ids
}

fn compute_sets(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT INTO compute_sets (compute_set, name, vertex_types, vertex_counts, edge_count,
         debug_id, cycles_by_tile_ids, var_ids_diff_rle) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for (index, groups) in groups_of_sets(plan).iter().enumerate() {
        let set = &plan.tree.compute_sets[index];
        let types: Vec<u64> = plan.code.sets[index].iter().map(|&t| t as u64).collect();
        let counts: Vec<u64> = (0..types.len())
            .map(|slot| by_tile(plan, |tile| plan.code.instances(index, slot, tile)))
            .map(|instances| instances.iter().sum())
            .collect();
        insert.execute(params![
            index,
            set.name,
            encode_list(&types),
            encode_list(&counts),
            counts.iter().sum::<u64>() * 3,
            set.debug_id,
            cycles::of_set(plan, index),
            encode_diff_rle(&var_ids(plan, groups)),
        ])?;
    }
    Ok(())
}

fn by_tile(plan: &Plan, value: impl Fn(u32) -> u64) -> Vec<u64> {
    (0..plan.settings.tiles).map(value).collect()
}

/// Writes the vertex types.
pub fn vertex_types(types: &[VertexType], connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO vertex_types VALUES (?1, ?2, ?3, ?4)")?;
    for (id, kind) in types.iter().enumerate() {
        insert.execute(params![id, kind.name, kind.size(), kind.source])?;
    }
    Ok(())
}

fn instances(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO vertex_instances VALUES (?1, ?2, ?3)")?;
    for (set, types) in plan.code.sets.iter().enumerate() {
        for (slot, &kind) in types.iter().enumerate() {
            let instances = by_tile(plan, |tile| plan.code.instances(set, slot, tile));
            insert.execute(params![set, kind, encode_rle(&instances)])?;
        }
    }
    Ok(())
}

fn memory_by_compute_set(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert =
        connection.prepare("INSERT INTO memory_by_compute_set VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for set in 0..plan.code.sets.len() {
        let bytes: Vec<SetBytes> = (0..plan.settings.tiles)
            .map(|tile| plan.code.set_bytes(set, tile))
            .collect();
        let column =
            |get: fn(&SetBytes) -> u64| encode_rle(&bytes.iter().map(get).collect::<Vec<u64>>());
        insert.execute(params![
            set,
            column(|b| b.copy),
            column(|b| b.descriptor),
            column(|b| b.edge),
            column(|_| 0),
            column(|b| b.data),
        ])?;
    }
    Ok(())
}

/// Bytes by vertex type. The variable-sized field data of a compute set goes to
/// the first of its types.
fn memory_by_vertex_type(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let tiles = plan.settings.tiles as usize;
    let code = &plan.code;
    // Columns: code, copy pointers, descriptors, edge pointers, vertex data.
    let mut sums = vec![vec![[0u64; 5]; tiles]; code.types.len()];
    for (set, types) in code.sets.iter().enumerate() {
        for tile in 0..plan.settings.tiles {
            for (slot, &kind) in types.iter().enumerate() {
                let count = code.instances(set, slot, tile);
                if count == 0 {
                    continue;
                }
                let [data, edge, copy] = code.types[kind].state.map(|state| state * count);
                let sum = &mut sums[kind][tile as usize];
                sum[0] = code.types[kind].code;
                sum[1] += copy;
                sum[2] += if code.types[kind].copies() { 7 } else { 0 };
                sum[3] += edge;
                sum[4] += data;
            }
            sums[types[0]][tile as usize][3] += code.set_bytes(set, tile).field;
        }
    }
    let mut insert = connection
        .prepare("INSERT INTO memory_by_vertex_type VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (kind, sum) in sums.iter().enumerate() {
        let column = |at: usize| encode_list(&sum.iter().map(|b| b[at]).collect::<Vec<u64>>());
        let padding = encode_list(&vec![0; tiles]);
        let [code, copy, descriptor, edge, data] = [0, 1, 2, 3, 4].map(column);
        insert.execute(params![kind, code, copy, descriptor, edge, padding, data])?;
    }
    Ok(())
}
