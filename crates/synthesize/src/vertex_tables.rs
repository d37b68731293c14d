//! Compute sets, vertices and their memory.

use crate::encoding::{encode_diff_rle, encode_list, encode_rle};
use rusqlite::Connection;

use super::code::{SetBytes, VertexType};
use super::groups::Access;
use super::places::Places;
use super::plan::Plan;
use super::schema::insert;

pub fn write(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    compute_sets(plan, connection)?;
    vertex_types(&plan.code.types, connection)?;
    instances(plan, connection)?;
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

/// Var ids of a compute set, ascending: ids go tile by tile, and on a tile in
/// the order of the groups.
fn var_ids(plan: &Plan, groups: &[usize]) -> Vec<u64> {
    let tiles = 0..plan.settings.tiles;
    let ids = tiles.flat_map(|tile| {
        let here = groups.iter();
        let here = here.filter(move |&&group| plan.groups[group].window.holds(tile));
        here.map(move |&group| plan.var_id(group, tile))
    });
    ids.collect()
}

fn compute_sets(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    for (row, groups) in groups_of_sets(plan).iter().enumerate() {
        let set = &plan.tree.compute_sets[row];
        let kinds = plan.code.sets[row].iter().enumerate();
        let kinds = kinds.map(|(slot, &kind)| {
            let instances = instances_by_tile(plan, row, slot);
            (kind, instances.iter().sum())
        });
        let ids = encode_diff_rle(&var_ids(plan, groups));
        // Exchanges have estimates all the same, as in the real file.
        let has_estimates = !plan.settings.no_cycle_estimates;
        let cycles = has_estimates.then(|| encode_list(&[row as u64]));
        let more = (cycles, Some(ids));
        let named = (row, set.name.as_str(), set.debug_id);
        compute_set(named, &kinds.collect::<Vec<_>>(), more, connection)?;
    }
    Ok(())
}

/// Writes a compute set: row, name and context; types of vertices with their number; its
/// estimates of cycles and its variables.
pub fn compute_set(
    (row, name, context): (usize, &str, u32),
    kinds: &[(usize, u64)],
    (cycles, variables): (Option<Vec<u8>>, Option<Vec<u8>>),
    connection: &Connection,
) -> rusqlite::Result<()> {
    let (types, counts): (Vec<u64>, Vec<u64>) = kinds
        .iter()
        .map(|&(kind, count)| (kind as u64, count))
        .unzip();
    let edges = counts.iter().sum::<u64>() * 3;
    let (types, counts) = (encode_list(&types), encode_list(&counts));
    let table = "compute_sets (compute_set, name, vertex_types, vertex_counts, edge_count,
                 debug_id, cycles_by_tile_ids, var_ids_diff_rle)";
    let set = (row, name, types, counts, edges, context, cycles, variables);
    insert(connection, table, [set])
}

fn instances_by_tile(plan: &Plan, set: usize, slot: usize) -> Vec<u64> {
    let instances = |tile| plan.code.instances(set, slot, tile, Places::EVERY);
    (0..plan.settings.tiles).map(instances).collect()
}

pub fn vertex_types(types: &[VertexType], connection: &Connection) -> rusqlite::Result<()> {
    let types = types.iter().enumerate();
    let rows = types.map(|(id, kind)| (id, &kind.name, kind.size(), kind.source));
    insert(connection, "vertex_types", rows)
}

fn instances(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let sets = plan.code.sets.iter().enumerate();
    let rows = sets.flat_map(|(set, types)| {
        types.iter().enumerate().map(move |(slot, &kind)| {
            let instances = instances_by_tile(plan, set, slot);
            (set, kind, encode_rle(&instances))
        })
    });
    insert(connection, "vertex_instances", rows)
}

fn memory_by_compute_set(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
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
                let count = code.instances(set, slot, tile, Places::EVERY);
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
    let rows = sums.iter().enumerate().map(|(kind, sum)| {
        let column = |at: usize| encode_list(&sum.iter().map(|b| b[at]).collect::<Vec<u64>>());
        let padding = encode_list(&vec![0; tiles]);
        let [code, copy, descriptor, edge, data] = [0, 1, 2, 3, 4].map(column);
        (kind, code, copy, descriptor, edge, padding, data)
    });
    insert(connection, "memory_by_vertex_type", rows)
}
