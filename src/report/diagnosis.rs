//! Makes the tables of `--diagnose`, which compare the recorded memory with two predictions: one
//! from all operations, and one from only the operations whose layer is known from names and not
//! just from the flow of data.

use super::{Table, table};
use crate::{
    memory::{Explaining, MemoryModel},
    model::{MemoryPeak, Model, OwnedKind},
};
use std::cmp::Reverse;

/// Highest number of unexplained programs of each kind (execution or exchange) that `--diagnose`
/// lists. A program is unexplained if it belongs to no operation. For a second list, only the
/// operations whose layer is known from names count.
const MISSING_SHOWN: usize = 10;
/// Highest number of unexplained variables that `--diagnose` lists. A variable of data is
/// unexplained if no operation uses it. For a second list, only the operations whose layer is known
/// from names count.
const VARIABLES_SHOWN: usize = 20;

/// Makes the rows of a table of `--diagnose` twice, by calling `of`: from all operations, marked
/// `all`, and from only the operations whose layer is known from names, marked `layered`.
fn both<T>(of: impl Fn(Explaining) -> Vec<T>) -> Vec<(&'static str, T)> {
    [(Explaining::All, "all"), (Explaining::Layered, "layered")]
        .into_iter()
        .flat_map(|(which, name)| of(which).into_iter().map(move |own| (name, own)))
        .collect()
}

const KINDS: [(OwnedKind, &str); 2] = [
    (OwnedKind::OnTileExecute, "OnTileExecute"),
    (OwnedKind::DoExchange, "DoExchange"),
];

/// Returns the tables of `--diagnose`: the recorded memory beside two predictions, one from all
/// operations, and one from only the operations whose layer is known from names. `peak` is the
/// memory peak of the whole model.
pub fn tables(model: &Model, memory: &MemoryModel<'_>, peak: &MemoryPeak) -> Vec<Table> {
    let [programs, missing_programs] = programs(model, memory);
    vec![
        programs,
        missing_programs,
        code(memory),
        at_peak(memory, peak),
        variables(memory, peak),
        coverage(memory, peak),
    ]
}

/// Makes two tables of the recorded programs of each kind (execution and exchange). The first
/// counts the programs with and without an operation, and the second lists the largest ones
/// without. Each table has these rows twice: for all operations, and for only the operations whose
/// layer is known from names.
fn programs(model: &Model, memory: &MemoryModel<'_>) -> [Table; 2] {
    let by_kind = both(|explaining| {
        let of_kind = |(kind, name)| {
            let (explained, missing): (Vec<_>, Vec<_>) = (model.programs.iter())
                .filter(|program| program.kind == kind)
                .partition(|program| memory.explains_program(explaining, program));
            (name, explained.len(), missing)
        };
        KINDS.map(of_kind).into()
    });
    let counts = table!("diagnose-programs", &by_kind, |(operations, (kind, explained, missing))| {
        "Operations" Text (*operations),
        "Kind" Text (*kind),
        "In an operation" Count (explained),
        "In none" Count (missing.len()),
    });
    let largest = by_kind
        .into_iter()
        .flat_map(|(operations, (kind, _, mut missing))| {
            missing.sort_by_key(|program| Reverse(program.bytes));
            missing.truncate(MISSING_SHOWN);
            missing
                .into_iter()
                .map(move |program| (operations, kind, program))
        });
    let missing = table!("diagnose-missing-programs", largest, |(operations, kind, program)| {
        "Operations" Text (operations),
        "Kind" Text (kind),
        "Program" Count (program.id),
        "Name" Name (&*program.name),
        "Bytes" Bytes (program.bytes),
    });
    [counts, missing]
}

fn code(memory: &MemoryModel<'_>) -> Table {
    let categories = both(|explaining| memory.code_categories(explaining));
    table!("diagnose-code", categories, |(operations, category)| {
        "Operations" Text (operations),
        "Category" Text (category.name),
        "Predicted" Bytes (category.predicted),
        "Recorded" Bytes (category.recorded),
        "Difference" Change (difference(category.predicted, category.recorded)),
        "Difference (%)" Text (percentage(category.predicted, category.recorded)),
        "Worst tile" Count (category.worst_tile),
        "Difference there" Change (category.worst_difference),
    })
}

fn at_peak(memory: &MemoryModel<'_>, peak: &MemoryPeak) -> Table {
    let predicted = both(|explaining| vec![memory.predicted_at(explaining, peak)]);
    table!("diagnose-memory-peak", predicted, |(operations, predicted)| {
        "Operations" Text (operations),
        "Tile" Count (peak.tile),
        "Step" Count (peak.step),
        "Predicted" Bytes (predicted),
        "Recorded" Bytes (peak.bytes),
        "Difference" Change (difference(predicted, peak.bytes)),
        "Difference (%)" Text (percentage(predicted, peak.bytes)),
    })
}

fn variables(memory: &MemoryModel<'_>, peak: &MemoryPeak) -> Table {
    let unexplained = both(|explaining| {
        peak.variables
            .iter()
            .filter(|variable| !memory.explains_variable(explaining, variable))
            .take(VARIABLES_SHOWN)
            .collect()
    });
    table!("diagnose-variables", unexplained, |(operations, variable)| {
        "Operations" Text (operations),
        "Variable" Name (&*variable.name),
        "Category" Text (&*variable.category),
        "Bytes" Bytes (variable.bytes),
    })
}

/// Makes a table of the variables that are live at the memory peak `peak`, one row per category. A
/// row has the recorded bytes, and how many of them belong to operations whose layer is known from
/// names, to other operations, and to what every stage needs.
fn coverage(memory: &MemoryModel<'_>, peak: &MemoryPeak) -> Table {
    table!("diagnose-coverage", memory.coverage_by_category(peak), |(category, coverage)| {
        "Category" Text (category),
        "Recorded" Bytes (coverage.recorded),
        "Layers" Bytes (coverage.layers),
        "Assigned" Bytes (coverage.assigned),
        "Overhead" Bytes (coverage.overhead),
        "Rest" Change (coverage.rest),
    })
}

fn difference(predicted: u64, recorded: u64) -> i128 {
    i128::from(predicted) - i128::from(recorded)
}

/// Returns the error of a prediction in per cent of the `recorded` bytes, with two decimals: below
/// 0 if fewer bytes were predicted than recorded. Returns an empty text if `recorded` is 0.
fn percentage(predicted: u64, recorded: u64) -> String {
    if recorded == 0 {
        return String::new();
    }
    format!(
        "{:.2}",
        difference(predicted, recorded) as f64 * 100.0 / recorded as f64
    )
}
