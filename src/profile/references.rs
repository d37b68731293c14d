//! Tables without rows that rows of others refer to: what is lost with them is silent,
//! since each single reference may be absent.

use super::ProfileError;
use super::cells::Cells;
use super::database::Database;
use crate::witnesses::{Contradiction, Witness};

/// A table, and the rows of another that cannot be without its rows.
struct Reference {
    to: &'static str,
    from: &'static str,
    columns: &'static [&'static str],
    /// Does a row need one of the table?
    needs: Needs,
}

/// Each row does.
fn always(_: &Cells<'_>) -> Result<bool, ProfileError> {
    Ok(true)
}

/// Those do whose first column holds anything.
fn is_set(row: &Cells<'_>) -> Result<bool, ProfileError> {
    Ok(row.is_set(0))
}

/// A class that is not always live has steps; the one with the id 0 is for variables
/// without a place.
fn is_not_always_live(row: &Cells<'_>) -> Result<bool, ProfileError> {
    Ok(row.unsigned(1)? == 0 && row.is_set(0))
}

type Needs = fn(&Cells<'_>) -> Result<bool, ProfileError>;

const fn needs(
    to: &'static str,
    from: &'static str,
    columns: &'static [&'static str],
    needs: Needs,
) -> Reference {
    Reference {
        to,
        from,
        columns,
        needs,
    }
}

/// When variables are live.
const LIVENESS: [Reference; 3] = [
    needs("depth_first_steps", "programs", &["id"], always),
    needs("eq_classes", "vars_info", &["equivalence_class"], is_set),
    needs(
        "eq_class_step",
        "eq_classes",
        &["id", "is_always_live"],
        is_not_always_live,
    ),
];

/// References from programs to the things that they run and use, and to their
/// names.
const PROGRAMS: [Reference; 6] = [
    needs("control_programs", "programs", &["id"], always),
    needs(
        "memory_by_vertex_type",
        "vertex_instances",
        &["vertex_type"],
        always,
    ),
    needs(
        "memory_by_compute_set",
        "vertex_instances",
        &["compute_set"],
        always,
    ),
    needs(
        "exchange_regions",
        "program_type_do_exchange",
        &["source_regions_id"],
        is_set,
    ),
    needs("unlowered_vars", "vars_info", &["unlowered_var_id"], is_set),
    needs("debug_ids", "unlowered_vars", &["id"], always),
];

/// The tables without rows that others need, to tell when variables are live and, `with_programs`,
/// what uses them.
pub(super) fn missing(
    database: &Database,
    with_programs: bool,
) -> Result<Vec<Contradiction>, ProfileError> {
    let of_programs = PROGRAMS.iter().filter(|_| with_programs);
    let mut found = Vec::new();
    for reference in LIVENESS.iter().chain(of_programs) {
        found.extend(reference.find(database)?);
    }
    Ok(found)
}

impl Reference {
    /// Rows are counted only where the table has none. Tables that are not there have
    /// their own errors, or belong to options that were off.
    fn find(&self, database: &Database) -> Result<Option<Contradiction>, ProfileError> {
        if !database.has_table(self.to)
            || database.has_rows(self.to)?
            || database.require(self.from, self.columns).is_err()
        {
            return Ok(None);
        }
        let mut rows = 0;
        database.scan(self.from, self.columns, |row| {
            rows += u64::from((self.needs)(&row)?);
            Ok(())
        })?;
        Ok(Contradiction::of_all(Witness::Rows, self.to, [0, rows]))
    }
}
