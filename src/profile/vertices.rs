//! Reads compute sets, vertex types, and the memory of vertices.

use super::database::Database;
use super::encoding::decode_list;
use super::ids::{Ids, position};
use super::tile_bytes::TileBytes;
use super::{ComputeSet, ProfileError, VertexType};
use rustc_hash::FxHashSet;

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
        row.check_first(seen.insert(position))
    })?;
    Ok((ids, types))
}

pub(super) fn read_compute_sets(
    database: &Database,
) -> Result<(Ids, Vec<ComputeSet>), ProfileError> {
    let table = "compute_sets";
    let all = &["compute_set", "name", "debug_id", "vertex_counts"];
    let has_all = database.require(table, all).is_ok();
    let columns = if has_all { &all[..] } else { &all[..2] };
    let mut sets = Vec::new();
    database.scan(table, columns, |row| {
        let (mut debug_id, mut counted) = (None, None);
        if has_all {
            debug_id = row.optional(2)?;
            let counts = decode_list(row.blob(3)?, usize::MAX).map_err(row.bad_blob(3))?;
            counted = Some(counts.into_iter().fold(0, u64::saturating_add));
        }
        sets.push(ComputeSet {
            id: row.unsigned(0)?,
            name: row.text(1)?.into(),
            debug_id: debug_id.unwrap_or(0),
            vertices: Vec::new(),
            counted,
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
        row.check_first(seen.insert((set, vertex_type)))
    })
}

/// Table of the memory of vertices.
pub(super) const MEMORY: &str = "memory_by_compute_set";

pub(super) fn read_memory(
    database: &Database,
    tiles: u32,
    compute_sets: &Ids,
    sets: &mut [ComputeSet],
) -> Result<(), ProfileError> {
    let table = MEMORY;
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
        let part =
            |column| TileBytes::from_rle(row.blob(column)?, tiles).map_err(row.bad_blob(column));
        let parts: Vec<TileBytes> = (1..columns.len()).map(part).collect::<Result<_, _>>()?;
        let memory = &mut sets[set as usize].memory;
        row.check_first(memory.replace(row.sum(&parts, tiles)?).is_none())
    })
}
