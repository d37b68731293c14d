//! The profile of a pipelined compilation: tiles of all IPUs numbered through.
//!
//! Its steps are the moments of a period, those of all IPUs from their own first
//! one on, then what runs before and after all micro-batches. No operation has
//! programs or contexts of its own: only variables, their liveness, and what these
//! add up to are there.

use std::path::Path;

use anyhow::Context as _;
use rusqlite::{Connection, params};

use super::super::liveness::Classes;
use super::super::overhead::CATEGORIES;
use super::super::truth::{Truth, Variable};
use super::super::variable_tables::extra_bits;
use super::super::{memory_tables, profile_writer, schema};
use super::options::PipelineOptions;
use super::variables::{self, Variables};
use super::{PipelineModel, PipelineTruth};
use popliner::profile::encoding::{encode_list, encode_rle};

/// Types of programs, as real files number them.
const SEQUENCE: u32 = 1;
const WRITE_UNDEF: u32 = 20;

impl PipelineModel {
    /// Writes the profile of the pipelined compilation with these cuts, and gives
    /// what it needs. Nothing may have this name yet.
    pub fn write_profile(
        &self,
        path: &Path,
        cuts: &[u32],
        options: &PipelineOptions,
    ) -> anyhow::Result<PipelineTruth> {
        let variables = variables::of(self, cuts, options);
        let mut connection =
            Connection::open(path).with_context(|| format!("cannot create {}", path.display()))?;
        connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
        let transaction = connection.transaction()?;
        schema::create(&transaction)?;
        profile_writer::target(&self.settings, variables.ipus.len() as u32, &transaction)?;
        profile_writer::software(&transaction)?;
        graph_info(&variables, &transaction)?;
        programs(&variables, self.graph.tiles, &transaction)?;
        self.memory(&variables, &transaction)?;
        transaction.commit()?;
        Ok(self.simulate(cuts, options))
    }

    /// All variables, and what they add up to.
    fn memory(&self, variables: &Variables, connection: &Connection) -> rusqlite::Result<()> {
        names(variables, connection)?;
        let classes = classes(variables, connection)?;
        rows(variables, connection)?;
        let steps = variables.steps as usize;
        let (plain, bytes) = (self.settings.plain_bytes(), self.settings.bytes_per_tile);
        let mut all = Truth::new(steps, plain, bytes);
        let mut by_ipu = Vec::new();
        for own in &variables.ipus {
            let mut truth = Truth::new(steps, plain, bytes);
            for (tile, rows) in own.tiles.iter().enumerate() {
                let rows: Vec<Variable> = rows.iter().map(|row| row.variable).collect();
                let gap = self.places.gap(tile, own.places);
                truth.add(&classes, &rows, |_| gap);
                all.add(&classes, &rows, |_| gap);
            }
            by_ipu.push(truth);
        }
        memory_tables::by_tile(&all, connection)?;
        memory_tables::by_category(&all, connection)?;
        let ipus = by_ipu.iter().zip(0..);
        let mut deltas: Vec<(Option<u32>, &[i64])> = ipus
            .map(|(truth, ipu)| (Some(ipu), &truth.deltas[..steps]))
            .collect();
        deltas.push((None, &all.deltas[..steps]));
        memory_tables::by_step(&deltas, connection)
    }
}

fn graph_info(variables: &Variables, connection: &Connection) -> rusqlite::Result<()> {
    let tiles = variables.ipus.iter().flat_map(|own| &own.tiles);
    let count: usize = tiles.map(Vec::len).sum();
    connection.execute(
        "INSERT INTO graph_info VALUES (0, 0, ?1, 0)",
        params![count],
    )?;
    Ok(())
}

/// A sequence of one program for each step after its own.
fn programs(variables: &Variables, tiles: u32, connection: &Connection) -> rusqlite::Result<()> {
    let mut types = connection.prepare("INSERT INTO program_types VALUES (?1, ?2, NULL)")?;
    types.execute(params![SEQUENCE, "Sequence"])?;
    types.execute(params![WRITE_UNDEF, "WriteUndef"])?;
    let none = encode_rle(&vec![0; tiles as usize * variables.ipus.len()]);
    let mut program = connection.prepare(
        "INSERT INTO programs (id, variant, children, debug_id, control_code_bytes_by_tile)
         VALUES (?1, ?2, ?3, 0, ?4)",
    )?;
    let mut step = connection.prepare("INSERT INTO depth_first_steps VALUES (?1, ?1, ?2)")?;
    for id in 0..u64::from(variables.steps) {
        let (kind, children): (_, Vec<u64>) = match id {
            0 => (SEQUENCE, (1..u64::from(variables.steps)).collect()),
            _ => (WRITE_UNDEF, Vec::new()),
        };
        program.execute(params![id, kind, encode_list(&children), none])?;
        step.execute(params![id, (id > 0).then_some(0)])?;
    }
    connection.execute_batch("INSERT INTO control_programs (id, program) VALUES (0, 0)")
}

fn names(variables: &Variables, connection: &Connection) -> rusqlite::Result<()> {
    let mut category = connection.prepare("INSERT INTO var_categories VALUES (?1, ?2, ?3)")?;
    for (id, name) in CATEGORIES.iter().enumerate() {
        category.execute(params![id, name, format!("synthetic {name}")])?;
    }
    let mut string = connection.prepare("INSERT INTO vars_string_table VALUES (?1, ?2)")?;
    let mut unlowered = connection.prepare("INSERT INTO unlowered_vars VALUES (?1, ?2)")?;
    for (id, name) in variables.names.iter().enumerate() {
        let text = &name.text;
        match name.is_user {
            true => {
                string.execute(params![id, format!("{text}#")])?;
                unlowered.execute(params![id, text])?
            }
            false => string.execute(params![id, text])?,
        };
    }
    Ok(())
}

fn classes(variables: &Variables, connection: &Connection) -> rusqlite::Result<Classes> {
    let mut class = connection.prepare("INSERT INTO eq_classes VALUES (?1, ?2)")?;
    let mut range = connection.prepare("INSERT INTO eq_class_step VALUES (?1, ?2, ?3)")?;
    let mut classes = Classes::default();
    for (id, ranges) in variables.classes.iter().enumerate() {
        let is_always = id == variables::ALWAYS as usize;
        let all = [(0, variables.steps)];
        let ranges = if is_always { &all[..] } else { ranges };
        if id > 0 {
            class.execute(params![id, is_always])?;
        }
        for (from, to) in ranges {
            range.execute(params![id, from, to])?;
        }
        classes.ranges.push(ranges.to_vec());
        classes.always.push(is_always);
    }
    Ok(classes)
}

/// One row for each variable; tiles are numbered through.
fn rows(variables: &Variables, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT INTO vars_info (var_id, tile, name_base_id, name_suffix, size_bytes,
         alignment, offset, category, equivalence_class, unlowered_var_id, bitset)
         VALUES (?1, ?2, ?3, ?9, ?4, ?10, ?5, ?6, ?7, ?11, ?8)",
    )?;
    let mut id = 0u64;
    let tiles = variables.ipus.iter().flat_map(|own| &own.tiles);
    for (tile, rows) in tiles.enumerate() {
        let mut offset = 0;
        for row in rows {
            let Variable {
                category,
                class,
                bytes,
            } = row.variable;
            let is_always = class == variables::ALWAYS;
            let (suffix, alignment, bits) = match variables.names[row.name].is_user {
                true => ("0", 8, if is_always { 259 } else { 257 }),
                false => ("", 4, extra_bits(category, class, is_always)),
            };
            let unlowered = (alignment == 8).then_some(row.name);
            insert.execute(params![
                id, tile, row.name, bytes, offset, category, class, bits, suffix, alignment,
                unlowered
            ])?;
            id += 1;
            offset += if is_always { bytes } else { 0 };
        }
    }
    Ok(())
}
