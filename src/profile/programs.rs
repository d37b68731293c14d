//! The program tree and the code that programs run.

use super::database::{Cells, Database, TWICE};
use super::encoding::decode_list;
use super::ids::{Ids, insert_once};
use super::program_types::Details;
use super::tile_bytes::TileBytes;
use super::vertices;
use super::{ProfileError, Target};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The program tree, with compute sets and vertex types.
#[derive(Debug, Clone)]
pub struct Programs {
    ids: Ids,
    /// Every program, in the order of the file.
    pub all: Vec<Program>,
    /// The roots of the tree (`control_programs`, by id), as positions in `all`.
    pub roots: Vec<u32>,
    /// Every compute set, in the order of the file.
    pub compute_sets: Vec<ComputeSet>,
    /// Every vertex type, in the order of the file.
    pub vertex_types: Vec<VertexType>,
}

/// One program.
#[derive(Debug, Clone)]
pub struct Program {
    /// `programs.id`.
    pub id: u64,
    /// Its name; mostly empty.
    pub name: Box<str>,
    /// What it does.
    pub kind: ProgramKind,
    /// The row of the table of its type that belongs to it.
    pub(super) variant_index: Option<u64>,
    /// Its children in order, as positions in [`Programs::all`].
    pub children: Box<[u32]>,
    /// Its debug context; 0 for none.
    pub debug_id: u64,
    /// Bytes of control code by tile. Those of a program with children
    /// include the children's, so they are kept for programs without only.
    pub control_code: TileBytes,
    /// The ids of the region sets that it moves, for
    /// [`Profile::region_variables`](super::Profile::region_variables): source
    /// and destination of exchanges, the regions of a host exchange, the
    /// destination of a code copy. A region set without a row is empty.
    pub regions: Arc<[u64]>,
}

/// What a program does, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramKind {
    /// Runs a compute set; its position in [`Programs::compute_sets`].
    OnTileExecute(u32),
    /// Moves data between tiles, with so much code by tile.
    DoExchange(TileBytes),
    /// Runs the body of a function; its position in [`Programs::all`].
    Call(u32),
    /// Anything else, by its name in `program_types`.
    Other(Box<str>),
}

/// One compute set.
#[derive(Debug, Clone)]
pub struct ComputeSet {
    /// `compute_sets.compute_set`.
    pub id: u64,
    /// Its name.
    pub name: Box<str>,
    /// The vertices it holds: position in [`Programs::vertex_types`], and how
    /// many instances each tile has.
    pub vertices: Vec<(u32, TileBytes)>,
    /// Exact bytes of its vertices by tile: data, edge and copy pointers,
    /// descriptors and padding (`memory_by_compute_set`); `None` when the
    /// profile does not say.
    pub memory: Option<TileBytes>,
}

/// One vertex type.
#[derive(Debug, Clone)]
pub struct VertexType {
    /// Its name.
    pub name: Box<str>,
    /// Bytes of state of one instance.
    pub state_bytes: u32,
    /// Bytes of code by tile.
    pub code: TileBytes,
}

impl Programs {
    /// Reads the tree and everything that hangs on it.
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

    /// The position in `all` of the program with this id.
    pub fn position(&self, id: u64) -> Option<u32> {
        self.ids.position(id)
    }
}

/// A row of `programs`, with ids where [`Program`] has positions.
pub(super) struct ProgramRow {
    pub(super) id: u64,
    pub(super) name: Box<str>,
    pub(super) kind: Box<str>,
    pub(super) variant_index: Option<u64>,
    pub(super) children: Vec<u64>,
    pub(super) debug_id: u64,
    pub(super) control_code: TileBytes,
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
            return Err(ProfileError::Unsupported(
                "the profile holds several compilation steps, whose programs share their ids; \
                 only profiles of one compilation can be read"
                    .to_string(),
            ));
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

/// The name of each program type that the file uses; the numbers differ from
/// file to file.
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
            TWICE,
        ));
    }
    Ok(roots.into_iter().map(|(_, program)| program).collect())
}

/// The position of the row that a cell points to.
pub(super) fn position(
    ids: &Ids,
    row: &Cells<'_>,
    column: usize,
    table: &str,
) -> Result<u32, ProfileError> {
    let id = row.unsigned(column)?;
    let unknown = || row.problem(column, format!("`{table}` has no row with the id {id}"));
    ids.position(id).ok_or_else(unknown)
}
