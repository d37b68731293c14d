//! Compute sets, vertex types and what their instances take.

use super::database::{Cells, Database};
use super::ids::Ids;
use super::programs::position;
use super::tile_bytes::TileBytes;
use super::{ComputeSet, ProfileError, VertexType};
use rustc_hash::FxHashSet;
use std::hash::Hash;

pub(super) fn read_types(
    database: &Database,
    tiles: u32,
) -> Result<(Ids, Vec<VertexType>), ProfileError> {
    let table = "vertex_types";
    let (mut ids, mut types) = (Vec::new(), Vec::new());
    database.scan(table, &["id", "name", "size"], |row| {
        ids.push(row.unsigned(0)?);
        types.push(VertexType {
            name: row.text(1)?.into(),
            state_bytes: row.small(2)?,
            code: TileBytes::default(),
        });
        Ok(())
    })?;
    let ids = Ids::of(table, "id", &ids)?;
    let columns = &["vertex_type", "code_bytes"];
    let mut seen = FxHashSet::default();
    database.scan("memory_by_vertex_type", columns, |row| {
        let position = position(&ids, &row, 0, table)?;
        let code = TileBytes::from_list(row.blob(1)?, tiles).map_err(row.bad_blob(1))?;
        types[position as usize].code = code;
        once(&mut seen, &row, position)
    })?;
    Ok((ids, types))
}

pub(super) fn read_compute_sets(
    database: &Database,
) -> Result<(Ids, Vec<ComputeSet>), ProfileError> {
    let table = "compute_sets";
    let mut sets = Vec::new();
    database.scan(table, &["compute_set", "name"], |row| {
        sets.push(ComputeSet {
            id: row.unsigned(0)?,
            name: row.text(1)?.into(),
            vertices: Vec::new(),
            memory: None,
        });
        Ok(())
    })?;
    let ids: Vec<u64> = sets.iter().map(|set| set.id).collect();
    let ids = Ids::of(table, "compute_set", &ids)?;
    Ok((ids, sets))
}

pub(super) fn read_instances(
    database: &Database,
    tiles: u32,
    vertex_types: &Ids,
    compute_sets: &Ids,
    sets: &mut [ComputeSet],
) -> Result<(), ProfileError> {
    let columns = &["compute_set", "vertex_type", "instances_by_tile"];
    let mut seen = FxHashSet::default();
    database.scan("vertex_instances", columns, |row| {
        let set = position(compute_sets, &row, 0, "compute_sets")?;
        let vertex_type = position(vertex_types, &row, 1, "vertex_types")?;
        let instances = TileBytes::from_rle(row.blob(2)?, tiles).map_err(row.bad_blob(2))?;
        sets[set as usize].vertices.push((vertex_type, instances));
        once(&mut seen, &row, (set, vertex_type))
    })
}

pub(super) fn read_memory(
    database: &Database,
    tiles: u32,
    compute_sets: &Ids,
    sets: &mut [ComputeSet],
) -> Result<(), ProfileError> {
    let table = "memory_by_compute_set";
    if !database.has_table(table) {
        return Ok(());
    }
    let columns = &[
        "compute_set",
        "copy_ptr_bytes",
        "descriptor_bytes",
        "edge_ptr_bytes",
        "padding_bytes",
        "vertex_data_bytes",
    ];
    database.scan(table, columns, |row| {
        let set = position(compute_sets, &row, 0, "compute_sets")?;
        let mut parts = Vec::with_capacity(columns.len() - 1);
        for column in 1..columns.len() {
            parts
                .push(TileBytes::from_rle(row.blob(column)?, tiles).map_err(row.bad_blob(column))?);
        }
        let sum = TileBytes::sum(parts.iter().map(|part| (part, 1)), tiles);
        let too_much = |tile| row.problem(1, format!("more than 4 GiB on tile {tile}"));
        match sets[set as usize].memory.replace(sum.map_err(too_much)?) {
            None => Ok(()),
            Some(_) => Err(row.problem(0, "it stands there twice")),
        }
    })
}

/// Notes what a row is about, which no other row may be about.
fn once<T: Eq + Hash>(
    seen: &mut FxHashSet<T>,
    row: &Cells<'_>,
    key: T,
) -> Result<(), ProfileError> {
    if seen.insert(key) {
        Ok(())
    } else {
        Err(row.problem(0, "it stands there twice"))
    }
}
