//! Writes compute sets, vertices and their memory.

use crate::encoding::{encode_diff_rle, encode_list, encode_rle};
use rusqlite::{Connection, Result};

use super::code::{SetBytes, VertexType, Vertices};
use super::groups::Access;
use super::places::Places;
use super::plan::Plan;
use super::schema::insert;
use super::tree::ComputeSet;

pub fn write(plan: &Plan, connection: &Connection) -> Result<()> {
    compute_sets(plan, connection)?;
    vertex_types(&plan.code.types, connection)?;
    memory_by_compute_set(plan, connection)?;
    memory_by_vertex_type(plan, connection)
}

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

/// Returns the variable ids of a compute set, ascending: ids go tile by tile, and on a tile in the
/// order of the groups.
fn var_ids(plan: &Plan, groups: &[usize]) -> Vec<u64> {
    let tiles = 0..plan.settings.tiles;
    let ids = tiles.flat_map(|tile| {
        let here = groups.iter();
        let here = here.filter(move |&&group| plan.groups[group].window.holds(tile));
        here.map(move |&group| plan.var_id(group, tile))
    });
    ids.collect()
}

fn compute_sets(plan: &Plan, connection: &Connection) -> Result<()> {
    for (row, groups) in groups_of_sets(plan).iter().enumerate() {
        let set = &plan.tree.compute_sets[row];
        let vertices = plan.code.vertices(row, plan.settings.tiles, Places::EVERY);
        let ids = encode_diff_rle(&var_ids(plan, groups));
        // Exchanges have estimates even then, as in the real file.
        let has_estimates = !plan.settings.no_cycle_estimates;
        let cycles = has_estimates.then(|| encode_list(&[row as u64]));
        compute_set((row, set), &vertices, (cycles, Some(ids)), connection)?;
    }
    Ok(())
}

/// Writes the compute set of a row with its vertices, its estimates of cycles and its variables.
pub fn compute_set(
    (row, set): (usize, &ComputeSet),
    vertices: &[Vertices],
    (cycles, variables): (Option<Vec<u8>>, Option<Vec<u8>>),
    connection: &Connection,
) -> Result<()> {
    let counts = vertices.iter().map(|(_, by_tile)| by_tile.iter().sum());
    let counts = encode_list(&counts.collect::<Vec<u64>>());
    let table = "compute_sets (compute_set, name, vertex_counts, debug_id, cycles_by_tile_ids,
                 var_ids_diff_rle)";
    let columns = (row, &set.name, counts, set.debug_id, cycles, variables);
    insert(connection, table, [columns])?;
    let instances = vertices.iter();
    let instances = instances.map(|(kind, by_tile)| (row, kind, encode_rle(by_tile)));
    insert(connection, "vertex_instances", instances)
}

pub fn vertex_types(types: &[VertexType], connection: &Connection) -> Result<()> {
    let types = types.iter().enumerate();
    let rows = types.map(|(id, kind)| (id, &kind.name, kind.size()));
    insert(connection, "vertex_types (id, name, size)", rows)
}

fn memory_by_compute_set(plan: &Plan, connection: &Connection) -> Result<()> {
    let rows = (0..plan.code.sets.len()).map(|set| {
        let tiles = 0..plan.settings.tiles;
        let bytes: Vec<SetBytes> = tiles.map(|tile| plan.code.set_bytes(set, tile)).collect();
        let column =
            |get: fn(&SetBytes) -> u64| encode_rle(&bytes.iter().map(get).collect::<Vec<u64>>());
        (
            set,
            column(|b| b.copy),
            column(|b| b.descriptor),
            column(|b| b.edge),
            column(|_| 0),
            column(|b| b.data),
        )
    });
    insert(connection, "memory_by_compute_set", rows)
}

/// Writes the bytes of code by vertex type.
fn memory_by_vertex_type(plan: &Plan, connection: &Connection) -> Result<()> {
    let tiles = 0..plan.settings.tiles;
    let types: Vec<_> = tiles.map(|tile| plan.code.types_on(tile)).collect();
    let rows = plan.code.types.iter().enumerate().map(|(id, kind)| {
        let code = types.iter();
        let code = code.map(|here| if here.contains(&id) { kind.code } else { 0 });
        (id, encode_list(&code.collect::<Vec<_>>()))
    });
    let table = "memory_by_vertex_type (vertex_type, code_bytes)";
    insert(connection, table, rows)
}
