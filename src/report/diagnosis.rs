//! Tables of the diagnosis: how much of the recorded memory the operations explain, with all
//! operations and with layered operations only.

use super::table::{Column, Kind, Table, cells};
use crate::memory::{Explaining, MemoryModel};
use crate::model::{MemoryPeak, Model, OwnedKind, OwnedProgram};

/// Upper bound on missing programs with names.
const MISSING_SHOWN: usize = 10;
/// Upper bound on unexplained variables with names.
const VARIABLES_SHOWN: usize = 20;

const BOTH: [(Explaining, &str); 2] = [(Explaining::All, "all"), (Explaining::Layered, "layered")];

/// Returns all tables of the diagnosis, in order.
pub fn tables(model: &Model, memory: &MemoryModel<'_>, peak: &MemoryPeak) -> Vec<Table> {
    vec![
        programs(model, memory),
        missing_programs(model, memory),
        code(memory),
        at_peak(memory, peak),
        variables(memory, peak),
        coverage(memory, peak),
    ]
}

const KINDS: [(OwnedKind, &str); 2] = [
    (OwnedKind::OnTileExecute, "OnTileExecute"),
    (OwnedKind::DoExchange, "DoExchange"),
];

fn programs(model: &Model, memory: &MemoryModel<'_>) -> Table {
    let columns = [
        Column::text("Operations"),
        Column::text("Kind"),
        Column::new("In an operation", Kind::Count, ""),
        Column::new("In none", Kind::Count, ""),
    ];
    let mut table = Table::new("diagnose-programs", &columns);
    for (explaining, operations) in BOTH {
        for (kind, name) in KINDS {
            let of_kind = || model.programs.iter().filter(|program| program.kind == kind);
            let explained = of_kind().filter(|p| memory.explains_program(explaining, p));
            let (all, explained) = (of_kind().count(), explained.count());
            table.row("", cells![operations, name, explained, all - explained,]);
        }
    }
    table
}

fn missing_programs(model: &Model, memory: &MemoryModel<'_>) -> Table {
    let columns = [
        Column::text("Operations"),
        Column::text("Kind"),
        Column::new("Program", Kind::Count, ""),
        Column::new("Name", Kind::Name, ""),
        Column::new("Bytes", Kind::Bytes, ""),
    ];
    let mut table = Table::new("diagnose-missing-programs", &columns);
    for (explaining, operations) in BOTH {
        for (kind, kind_name) in KINDS {
            let is_missing = |program: &&OwnedProgram| {
                program.kind == kind && !memory.explains_program(explaining, program)
            };
            let mut missing: Vec<&OwnedProgram> =
                model.programs.iter().filter(is_missing).collect();
            missing.sort_by_key(|program| std::cmp::Reverse(program.bytes));
            for program in missing.into_iter().take(MISSING_SHOWN) {
                table.row(
                    "",
                    cells![
                        operations,
                        kind_name,
                        program.id,
                        &*program.name,
                        program.bytes,
                    ],
                );
            }
        }
    }
    table
}

fn code(memory: &MemoryModel<'_>) -> Table {
    let columns = [
        Column::text("Operations"),
        Column::text("Category"),
        Column::new("Predicted", Kind::Bytes, ""),
        Column::new("Recorded", Kind::Bytes, ""),
        Column::new("Difference", Kind::Change, ""),
        Column::text("Difference (%)"),
        Column::new("Worst tile", Kind::Count, ""),
        Column::new("Difference there", Kind::Change, ""),
    ];
    let mut table = Table::new("diagnose-code", &columns);
    for (explaining, operations) in BOTH {
        for category in memory.code_categories(explaining) {
            table.row(
                "",
                cells![
                    operations,
                    category.name,
                    category.predicted,
                    category.recorded,
                    difference(category.predicted, category.recorded),
                    percentage(category.predicted, category.recorded),
                    category.worst_tile,
                    category.worst_difference,
                ],
            );
        }
    }
    table
}

fn at_peak(memory: &MemoryModel<'_>, peak: &MemoryPeak) -> Table {
    let columns = [
        Column::text("Operations"),
        Column::new("Tile", Kind::Count, ""),
        Column::new("Step", Kind::Count, ""),
        Column::new("Predicted", Kind::Bytes, ""),
        Column::new("Recorded", Kind::Bytes, ""),
        Column::new("Difference", Kind::Change, ""),
        Column::text("Difference (%)"),
    ];
    let mut table = Table::new("diagnose-memory-peak", &columns);
    for (explaining, operations) in BOTH {
        let predicted = memory.predicted_at(explaining, peak);
        table.row(
            "",
            cells![
                operations,
                peak.tile,
                peak.step,
                predicted,
                peak.bytes,
                difference(predicted, peak.bytes),
                percentage(predicted, peak.bytes),
            ],
        );
    }
    table
}

fn variables(memory: &MemoryModel<'_>, peak: &MemoryPeak) -> Table {
    let columns = [
        Column::text("Operations"),
        Column::new("Variable", Kind::Name, ""),
        Column::text("Category"),
        Column::new("Bytes", Kind::Bytes, ""),
    ];
    let mut table = Table::new("diagnose-variables", &columns);
    for (explaining, operations) in BOTH {
        let variables = peak.variables.iter();
        let unexplained = variables.filter(|v| !memory.explains_variable(explaining, v));
        for variable in unexplained.take(VARIABLES_SHOWN) {
            table.row(
                "",
                cells![
                    operations,
                    &*variable.name,
                    &*variable.category,
                    variable.bytes,
                ],
            );
        }
    }
    table
}

/// For each category at the peak, shows the bytes that layers, other operations and every stage
/// explain in the chosen memory model.
fn coverage(memory: &MemoryModel<'_>, peak: &MemoryPeak) -> Table {
    let columns = [
        Column::text("Category"),
        Column::new("Recorded", Kind::Bytes, ""),
        Column::new("Layers", Kind::Bytes, ""),
        Column::new("Assigned", Kind::Bytes, ""),
        Column::new("Overhead", Kind::Bytes, ""),
        Column::new("Rest", Kind::Change, ""),
    ];
    let mut table = Table::new("diagnose-coverage", &columns);
    for (category, coverage) in memory.coverage_by_category(peak) {
        table.row(
            "",
            cells![
                category,
                coverage.recorded,
                coverage.layers,
                coverage.assigned,
                coverage.overhead,
                coverage.rest,
            ],
        );
    }
    table
}

fn difference(predicted: u64, recorded: u64) -> i128 {
    i128::from(predicted) - i128::from(recorded)
}

/// Returns the difference in per cent of the recorded number, with two decimals; empty if the
/// recorded number is 0.
fn percentage(predicted: u64, recorded: u64) -> String {
    if recorded == 0 {
        return String::new();
    }
    let difference = difference(predicted, recorded) as f64;
    format!("{:.2}", difference * 100.0 / recorded as f64)
}
