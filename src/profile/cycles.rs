//! Reads the cycles of programs: the measured cycles of executed steps, and the compiler's
//! estimates.
//!
//! No other data depends on cycles, so cycles that cannot be read are left out with a warning.
//!
//! Only one real profile was available (report format 3.8.0, `profiler.includeCycleEstimates`
//! false). In this profile, exchanges and stream copies have estimates and compute sets have none;
//! the tables `runs`, `steps` and `steps_by_ipu` have no rows. What their rows mean is assumed from
//! the schema.

use super::{
    Database, Program, ProgramKind, Programs,
    encoding::{BlobError, value_runs},
    or_warn,
};
use crate::{
    limits,
    message::{Result, Warning},
};
use rustc_hash::FxHashMap;

/// The cycles of programs in a profile. Sums of cycles saturate at `u64::MAX`. If all programs
/// together take more than [`limits::CYCLES`], the analysis later drops the cycles with a warning.
#[derive(Debug)]
pub struct Cycles {
    /// Cycles that were measured while the model ran; `None` if the model was not executed.
    pub executed: Option<Executed>,
    /// One entry per program, in the order of [`Programs::all`]: the compiler's estimate of the
    /// cycles of one execution, 0 for a program without an estimate. `None` if no compute set has
    /// an estimate: exchanges have estimates even without `profiler.includeCycleEstimates`, but
    /// estimates of exchanges alone do not show the time of a layer.
    pub estimated: Option<Vec<u64>>,
    /// Maps a loop (a Repeat program, as an index into [`Programs::all`]) to the number of times
    /// that the loop runs its body. Loops without a fixed number of times are absent.
    pub repeats: FxHashMap<u32, u64>,
}

/// The cycles that were measured while the model ran, summed over all calls of `Engine::run`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Executed {
    /// Number of recorded calls of `Engine::run` (rows of `runs`); 0 if the profile lacks them.
    pub runs: u64,
    /// One entry per program, in the order of [`Programs::all`]: the sum of the cycles of all
    /// executed steps of the program. The cycles of a step are the cycles of its slowest tile.
    pub by_program: Vec<u64>,
    /// Sum of the cycles of those executed steps that belong to no program, such as implicit syncs.
    pub without_program: u64,
}

impl Cycles {
    /// Reads the measured and the estimated cycles in the profile. A table that cannot be
    /// understood is left out, and a warning is added to `warnings`.
    pub(super) fn read(
        database: &Database,
        programs: &Programs,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        Self {
            executed: or_warn(
                read_executed(database, programs),
                "executed cycles",
                warnings,
            ),
            estimated: or_warn(
                read_estimates(database, programs),
                "cycle estimates",
                warnings,
            ),
            repeats: or_warn(
                read_repeats(database, programs),
                "counts of loops",
                warnings,
            ),
        }
    }
}

/// Reads the executed cycles of each program; returns `None` if the profile has no rows with
/// executed cycles.
fn read_executed(database: &Database, programs: &Programs) -> Result<Option<Executed>> {
    if !database.has_table("steps") || !database.has_table("steps_by_ipu") {
        return Ok(None);
    }
    // The column `program` may be NULL, since an executed step, such as an implicit sync, may
    // belong to no program.
    let (ids, program_of) = database.indexed("steps", &["id", "program"], |row| {
        row.optional(1)?
            .map(|_| row.position(1, &programs.ids, "programs"))
            .transpose()
    })?;
    let none = || Executed {
        by_program: vec![0; programs.all.len()],
        ..Executed::default()
    };
    // By the schema, a row of executed cycles may lack an IPU. It is taken as a sum over all IPUs,
    // as in the table of live bytes by step. To count no cycles twice, such rows are only used if
    // no row has an IPU.
    let (mut of_ipu, mut of_device) = (None, None);
    database.rows("steps_by_ipu", &["step_id", "ipu", "cycles"], |row| {
        let step = row.position(0, &ids, "steps")?;
        let sums = match row.signed(1)? {
            Some(0..) => &mut of_ipu,
            _ => &mut of_device,
        };
        let sums: &mut Executed = sums.get_or_insert_with(none);
        let sum = match program_of[step as usize] {
            None => &mut sums.without_program,
            Some(program) => &mut sums.by_program[program as usize],
        };
        *sum = sum.saturating_add(row.unsigned(2)?);
        Ok(())
    })?;
    let mut executed = of_ipu.or(of_device);
    if let Some(executed) = &mut executed
        && database.has_table("runs")
    {
        executed.runs = database.rows("runs", &["id"], |_| Ok(()))?.len() as u64;
    }
    Ok(executed)
}

/// Reads the executed cycles of each IPU, summed over all steps of all runs. The cycles of a step
/// on an IPU are the cycles of the slowest tile of that IPU. Rows without an IPU are taken for sums
/// over all IPUs and skipped. Returns `None` if no row has an IPU.
pub fn read_cycles_by_ipu(database: &Database, ipus: u32) -> Result<Option<Vec<u64>>> {
    let table = "steps_by_ipu";
    if !database.has_table(table) {
        return Ok(None);
    }
    let mut cycles = vec![0u64; ipus as usize];
    let mut rows = 0;
    database.rows(table, &["step_id", "ipu", "cycles"], |row| {
        let Some(ipu @ 0..) = row.signed(1)? else {
            return Ok(());
        };
        row.check_ipu(1, ipu as u64, ipus.into())?;
        let sum = &mut cycles[ipu as usize];
        *sum = sum.saturating_add(row.unsigned(2)?);
        let most = limits::CYCLES;
        if *sum > most {
            let problem = format!("all steps of an IPU take more than {most} cycles");
            return Err(row.problem(2, problem));
        }
        rows += 1;
        Ok(())
    })?;
    Ok((rows > 0).then_some(cycles))
}

/// Reads the compiler's estimate of the cycles of each program, and returns one entry per program,
/// 0 for a program without an estimate. Returns `None` if no compute set has an estimate.
fn read_estimates(database: &Database, programs: &Programs) -> Result<Option<Vec<u64>>> {
    // Maps the id of a row of `compilation_cycles_by_tile` to the cycles of the slowest tile in the
    // row. Tiles wait for each other between two steps, so a step takes as long as its slowest
    // tile.
    let mut slowest = FxHashMap::default();
    if database.has_table(SLOWEST) {
        slowest = database.by_id(SLOWEST, &["id", "cycles_by_tile_rle"], |row| {
            slowest_tile(row.blob(1)?, row.tiles).map_err(row.bad_blob(1))
        })?;
    }
    // In a real profile, the column `cycles_by_tile_ids` of exchanges is a plain list (without run
    // lengths). It is assumed that this column is a plain list for compute sets too, and that the
    // older columns `cycles_by_tile` and `cycles_by_tile_rle` hold run-length lists.
    let places = [
        &["compute_set", "cycles_by_tile_ids"],
        &["compute_set", "cycles_by_tile"],
    ];
    let estimates = |table, places| estimates_in(database, table, places, &slowest);
    let sets = estimates("compute_sets", places)?;
    if sets.is_empty() {
        return Ok(None);
    }
    let places = [&["id", "cycles_by_tile_ids"], &["id", "cycles_by_tile_rle"]];
    let exchanges = estimates("program_type_do_exchange", places)?;
    let estimate = |program: &Program| match &program.kind {
        ProgramKind::OnTileExecute(set) => sets.get(&programs.compute_sets[*set as usize].id),
        ProgramKind::DoExchange(_) => exchanges.get(&program.variant_index?),
        _ => None,
    };
    let estimates = programs
        .all
        .iter()
        .map(|own| estimate(own).copied().unwrap_or(0));
    Ok(Some(estimates.collect()))
}

const SLOWEST: &str = "compilation_cycles_by_tile";

/// Reads the compiler's estimates of the cycles of the compute sets or exchanges in `table`.
/// Returns a map from the id of each row with an estimate to the cycles of its slowest tile.
///
/// The report format decides which column has the estimates, so there are two pairs of columns.
/// The first column of a pair has the id of the row, and the second one has the estimate:
/// - `ids`, from format 3.2 on: the estimate is a list with the id of one row of
///   `compilation_cycles_by_tile` per IPU. `slowest` maps such an id to the cycles of the slowest
///   tile of the IPU.
/// - `in_place`, in older formats: the estimate is the cycles of each tile.
fn estimates_in(
    database: &Database,
    table: &'static str,
    [ids, in_place]: [&'static [&'static str; 2]; 2],
    slowest: &FxHashMap<u64, u64>,
) -> Result<FxHashMap<u64, u64>> {
    let mut cycles = FxHashMap::default();
    // A table may have two columns of estimated cycles, one for older report formats and one for
    // newer ones. Both are read, since the one that is not in use holds NULL.
    database.rows_if_any(table, in_place, |row| {
        let blob = row.blob(1)?;
        if !blob.is_empty() {
            let slowest = slowest_tile(blob, row.tiles).map_err(row.bad_blob(1));
            cycles.insert(row.unsigned(0)?, slowest?);
        }
        Ok(())
    })?;
    database.rows_if_any(table, ids, |row| {
        let mut maximum = None;
        for id in row.list(1, usize::MAX)? {
            let missing = || row.problem(1, format!("`{SLOWEST}` has no row with the id {id}"));
            maximum = maximum.max(Some(*slowest.get(&id).ok_or_else(missing)?));
        }
        if let Some(maximum) = maximum {
            cycles.insert(row.unsigned(0)?, maximum);
        }
        Ok(())
    })?;
    Ok(cycles)
}

/// Returns the cycles of the slowest tile in `blob`, a run-length list of cycles by tile (see
/// `encoding.rs`); 0 if `blob` is empty. Otherwise `blob` must have one value for each of `tiles`
/// tiles, as all 21 blobs of a real profile do.
fn slowest_tile(blob: &[u8], tiles: u32) -> Result<u64, BlobError> {
    let (mut maximum, mut found) = (0, 0u64);
    for run in value_runs(blob) {
        let run = run?;
        maximum = maximum.max(run.value);
        found = found.saturating_add(run.count);
    }
    let expected = tiles as usize;
    match found as usize {
        _ if found > u64::from(tiles) => Err(BlobError::TooLong(expected)),
        found if found < expected && !blob.is_empty() => {
            Err(BlobError::WrongLength(found, expected))
        }
        _ => Ok(maximum),
    }
}

/// Reads how often each loop (Repeat) runs its body. Returns a map from the index of the loop in
/// [`Programs::all`] to the number of times. Loops without a fixed number of times are left out.
fn read_repeats(database: &Database, programs: &Programs) -> Result<FxHashMap<u32, u64>> {
    let columns = &["id", "repeat_count"];
    let counts: FxHashMap<u64, Option<u64>> = database
        .rows_if_any("program_type_repeat", columns, |row| {
            Ok((row.unsigned(0)?, row.optional(1)?))
        })?
        .into_iter()
        .collect();
    let count = |(position, program): (u32, &Program)| match &program.kind {
        ProgramKind::Other(kind) if &**kind == "Repeat" => {
            Some((position, (*counts.get(&program.variant_index?)?)?))
        }
        _ => None,
    };
    Ok((0..).zip(&programs.all).filter_map(count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::encoding::push_varint;
    use synthesize::encoding::encode_rle;

    #[test]
    fn the_slowest_tile_counts_and_every_tile_must_be_there() {
        let blob = encode_rle(&[7, 7, 7, 7, 90, 3]);
        assert_eq!(slowest_tile(&blob, 6), Ok(90));
        assert_eq!(slowest_tile(&[], 6), Ok(0));
        let too_long = BlobError::TooLong(5);
        assert_eq!(slowest_tile(&blob, 5), Err(too_long));
        let (expected, found) = (7, 6);
        let short = BlobError::WrongLength(found, expected);
        assert_eq!(slowest_tile(&blob, 7), Err(short));
        assert_eq!(slowest_tile(&blob[..4], 6), Err(BlobError::Truncated));
    }

    #[test]
    fn a_few_bytes_that_claim_many_values_are_refused() {
        let mut blob = Vec::new();
        for _ in 0..4 {
            push_varint(&mut blob, u64::MAX - 1);
            push_varint(&mut blob, 9);
        }
        assert_eq!(slowest_tile(&blob, 6), Err(BlobError::TooLong(6)));
    }
}
