//! Reads the program tree (`programs`, `program_types`, `control_programs`) with its compute sets
//! and vertices.

use super::database::Database;
use super::encoding::decode_list;
use super::error::DUPLICATE;
use super::ids::{Ids, insert_once, position};
use super::program_types::Details;
use super::programs::{ProgramRow, Programs};
use super::tile_bytes::TileBytes;
use super::vertices;
use super::{ProfileError, Target};
use rustc_hash::FxHashMap;

impl Programs {
    /// Reads the tree with its compute sets, vertices and details.
    pub(super) fn read(database: &Database, target: &Target) -> Result<Self, ProfileError> {
        let tiles = target.num_tiles;
        let (vertex_ids, vertex_types) = vertices::read_types(database, tiles)?;
        let (compute_set_ids, mut compute_sets) = vertices::read_compute_sets(database)?;
        vertices::read_instances(
            database,
            tiles,
            &vertex_ids,
            &compute_set_ids,
            &mut compute_sets,
        )?;
        vertices::read_memory(database, tiles, &compute_set_ids, &mut compute_sets)?;
        let rows = read_rows(database, tiles)?;
        let ids: Vec<u64> = rows.iter().map(|row| row.id).collect();
        let ids = Ids::of("programs", "id", &ids)?;
        let details = Details::read(database, tiles, &compute_set_ids, &ids)?;
        let all = rows
            .into_iter()
            .map(|row| details.program(row, &ids))
            .collect::<Result<_, _>>()?;
        let roots = read_roots(database, &ids)?;
        Ok(Self {
            ids,
            all,
            roots,
            compute_sets,
            vertex_types,
        })
    }
}

fn read_rows(database: &Database, tiles: u32) -> Result<Vec<ProgramRow>, ProfileError> {
    let types = read_types(database)?;
    let columns = &[
        "id",
        "variant",
        "variant_index",
        "children",
        "debug_id",
        "control_code_bytes_by_tile",
        "compilation_step_id",
        "name",
    ];
    let mut compilation_step = None;
    let mut rows = Vec::new();
    database.scan("programs", columns, |row| {
        let step = row.signed(6)?;
        if *compilation_step.get_or_insert(step) != step {
            return Err(ProfileError::SeveralCompilations);
        }
        let variant = row.unsigned(1)?;
        let kind = types
            .get(&variant)
            .ok_or_else(|| row.problem(1, format!("`program_types` has no id {variant}")))?;
        let children = decode_list(row.blob(3)?, usize::MAX).map_err(row.bad_blob(3))?;
        let control_code = if children.is_empty() {
            TileBytes::from_rle(row.blob(5)?, tiles).map_err(row.bad_blob(5))?
        } else {
            TileBytes::default()
        };
        rows.push(ProgramRow {
            id: row.unsigned(0)?,
            name: row.text(7)?.into(),
            kind: kind.clone(),
            variant_index: row.optional(2)?,
            children,
            debug_id: row.optional(4)?.unwrap_or(0),
            control_code,
        });
        Ok(())
    })?;
    Ok(rows)
}

/// Names of the program types by id; the ids differ from file to file.
fn read_types(database: &Database) -> Result<FxHashMap<u64, Box<str>>, ProfileError> {
    let mut types = FxHashMap::default();
    database.scan("program_types", &["id", "name"], |row| {
        let name = row.text(1)?;
        if name.is_empty() {
            return Err(row.problem(1, "a type of programs has no name"));
        }
        insert_once(&mut types, &row, name.into())
    })?;
    Ok(types)
}

fn read_roots(database: &Database, programs: &Ids) -> Result<Vec<u32>, ProfileError> {
    let mut roots = Vec::new();
    database.scan("control_programs", &["id", "program"], |row| {
        let program = position(programs, &row, 1, "programs")?;
        roots.push((row.unsigned(0)?, program));
        Ok(())
    })?;
    roots.sort_unstable();
    if let Some(twice) = roots.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(ProfileError::cell(
            "control_programs",
            "id",
            twice[0].0,
            DUPLICATE,
        ));
    }
    Ok(roots.into_iter().map(|(_, program)| program).collect())
}
