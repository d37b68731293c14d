//! The diagnosis as tables: what the operations explain of what the compiler
//! recorded, with all operations and with layered ones only.

use super::Table;
use crate::memory::{Explaining, MemoryModel};
use crate::model::{MemoryPeak, Model, OwnedKind, OwnedProgram};

/// How many programs are named of those that are missing.
const MISSING_SHOWN: usize = 10;
/// How many variables are named of those that nothing explains.
const VARIABLES_SHOWN: usize = 20;

const BOTH: [(Explaining, &str); 2] = [(Explaining::All, "all"), (Explaining::Layered, "layered")];

/// All tables of the diagnosis, in order.
pub fn tables(model: &Model, memory: &MemoryModel<'_>, bottleneck: &MemoryPeak) -> Vec<Table> {
    vec![
        programs(model, memory),
        missing_programs(model, memory),
        code(memory),
        at_bottleneck(memory, bottleneck),
        variables(memory, bottleneck),
        coverage(memory, bottleneck),
    ]
}

const KINDS: [(OwnedKind, &str); 2] = [
    (OwnedKind::OnTileExecute, "OnTileExecute"),
    (OwnedKind::DoExchange, "DoExchange"),
];

fn programs(model: &Model, memory: &MemoryModel<'_>) -> Table {
    let header = ["Operations", "Kind", "In an operation", "In none"];
    let mut table = Table::new("diagnose-programs", &header);
    for (explaining, operations) in BOTH {
        for (kind, name) in KINDS {
            let of_kind = || model.programs.iter().filter(|program| program.kind == kind);
            let explained = of_kind().filter(|p| memory.explains_program(explaining, p));
            let (all, explained) = (of_kind().count(), explained.count());
            table.rows.push(vec![
                operations.to_string(),
                name.to_string(),
                explained.to_string(),
                (all - explained).to_string(),
            ]);
        }
    }
    table
}

fn missing_programs(model: &Model, memory: &MemoryModel<'_>) -> Table {
    let header = ["Operations", "Kind", "Program", "Name", "Bytes"];
    let mut table = Table::new("diagnose-missing-programs", &header);
    for (explaining, operations) in BOTH {
        for (kind, kind_name) in KINDS {
            let is_missing = |program: &&OwnedProgram| {
                program.kind == kind && !memory.explains_program(explaining, program)
            };
            let mut missing: Vec<&OwnedProgram> =
                model.programs.iter().filter(is_missing).collect();
            missing.sort_by_key(|program| std::cmp::Reverse(program.bytes));
            for program in missing.into_iter().take(MISSING_SHOWN) {
                table.rows.push(vec![
                    operations.to_string(),
                    kind_name.to_string(),
                    program.id.to_string(),
                    program.name.to_string(),
                    program.bytes.to_string(),
                ]);
            }
        }
    }
    table
}

fn code(memory: &MemoryModel<'_>) -> Table {
    let header = [
        "Operations",
        "Category",
        "Predicted",
        "Recorded",
        "Difference",
        "Difference (%)",
        "Worst tile",
        "Difference there",
    ];
    let mut table = Table::new("diagnose-code", &header);
    for (explaining, operations) in BOTH {
        for category in memory.code_categories(explaining) {
            table.rows.push(vec![
                operations.to_string(),
                category.name.to_string(),
                category.predicted.to_string(),
                category.recorded.to_string(),
                difference(category.predicted, category.recorded).to_string(),
                percentage(category.predicted, category.recorded),
                category.worst_tile.to_string(),
                category.worst_difference.to_string(),
            ]);
        }
    }
    table
}

fn at_bottleneck(memory: &MemoryModel<'_>, bottleneck: &MemoryPeak) -> Table {
    let header = [
        "Operations",
        "Tile",
        "Step",
        "Predicted",
        "Recorded",
        "Difference",
        "Difference (%)",
    ];
    let mut table = Table::new("diagnose-bottleneck", &header);
    for (explaining, operations) in BOTH {
        let predicted = memory.predicted_at(explaining, bottleneck);
        table.rows.push(vec![
            operations.to_string(),
            bottleneck.tile.to_string(),
            bottleneck.step.to_string(),
            predicted.to_string(),
            bottleneck.bytes.to_string(),
            difference(predicted, bottleneck.bytes).to_string(),
            percentage(predicted, bottleneck.bytes),
        ]);
    }
    table
}

fn variables(memory: &MemoryModel<'_>, bottleneck: &MemoryPeak) -> Table {
    let header = ["Operations", "Variable", "Category", "Bytes"];
    let mut table = Table::new("diagnose-variables", &header);
    for (explaining, operations) in BOTH {
        let variables = bottleneck.variables.iter();
        let unexplained = variables.filter(|v| !memory.explains_variable(explaining, v));
        for variable in unexplained.take(VARIABLES_SHOWN) {
            table.rows.push(vec![
                operations.to_string(),
                variable.name.to_string(),
                variable.category.to_string(),
                variable.bytes.to_string(),
            ]);
        }
    }
    table
}

/// Who explains each category at the bottleneck, in the chosen memory model.
fn coverage(memory: &MemoryModel<'_>, bottleneck: &MemoryPeak) -> Table {
    let header = [
        "Category", "Recorded", "Layers", "Assigned", "Overhead", "Rest",
    ];
    let mut table = Table::new("diagnose-coverage", &header);
    for (category, coverage) in memory.coverage_by_category(bottleneck) {
        table.rows.push(vec![
            category,
            coverage.recorded.to_string(),
            coverage.layers.to_string(),
            coverage.assigned.to_string(),
            coverage.overhead.to_string(),
            coverage.rest().to_string(),
        ]);
    }
    table
}

fn difference(predicted: u64, recorded: u64) -> i128 {
    i128::from(predicted) - i128::from(recorded)
}

/// The difference in per cent of what was recorded, with two decimals; empty
/// where nothing was recorded.
fn percentage(predicted: u64, recorded: u64) -> String {
    match recorded {
        0 => String::new(),
        _ => format!(
            "{:.2}",
            difference(predicted, recorded) as f64 * 100.0 / recorded as f64
        ),
    }
}
