//! Cycles of operations, program by program in the order of the walk.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::Oracle;
use super::codec::{list, runs};
use super::read::{Database, blob, number, size};

/// The cycles of each operation.
pub struct Cycles {
    pub is_executed: bool,
    /// Cycles by operation. Shares of executed cycles of several operations may be fractions.
    pub by_operation: Vec<f64>,
    /// The part of the cycles that exchanges take.
    pub exchange_by_operation: Vec<f64>,
    /// Sum over all programs that run compute sets or exchanges.
    pub all: u64,
    /// Sum over all exchanges.
    pub exchange: u64,
}

/// Returns executed cycles, or else estimates, or else `None`.
pub fn cycles(profile: &Path, oracle: &Oracle) -> Option<Cycles> {
    let database = Database::open(profile);
    let exchanges = format!("SELECT id FROM ({COUNTED}) WHERE name = 'DoExchange'");
    let exchanges = database.rows(&exchanges, |row| number(row, 0));
    let exchanges: HashSet<i64> = exchanges.into_iter().collect();
    let executed = executed(&database);
    if !executed.is_empty() {
        return Some(shared(oracle, &executed, &exchanges));
    }
    let estimated = estimated(&database)?;
    Some(summed(oracle, &estimated, &exchanges))
}

const COUNTED: &str = "SELECT p.id, p.variant_index, t.name FROM programs p
    JOIN program_types t ON t.id = p.variant WHERE t.name IN ('OnTileExecute', 'DoExchange')";

/// Returns executed cycles by program, summed over its steps.
fn executed(database: &Database) -> HashMap<i64, u64> {
    let sql = format!(
        "SELECT s.program, sum(i.cycles) FROM steps s JOIN steps_by_ipu i ON i.step_id = s.id
         WHERE s.program IN (SELECT id FROM ({COUNTED})) GROUP BY s.program"
    );
    let rows = database.rows(&sql, |row| (number(row, 0), size(row, 1)));
    rows.into_iter().collect()
}

/// Returns estimated cycles of one execution by program; `None` without estimates of compute sets.
fn estimated(database: &Database) -> Option<HashMap<i64, u64>> {
    let by_tile = "SELECT id, cycles_by_tile_rle FROM compilation_cycles_by_tile";
    let by_tile = database.rows(by_tile, |row| (number(row, 0), runs(&blob(row, 1))));
    let slowest = |(id, cycles): (i64, Vec<u64>)| (id, cycles.into_iter().max().unwrap_or(0));
    let slowest: HashMap<i64, u64> = by_tile.into_iter().map(slowest).collect();
    let of = |kind: &str, ids: &str| -> HashMap<i64, u64> {
        let sql = format!(
            "SELECT c.id, x.ids FROM ({COUNTED}) c JOIN ({ids}) x
            ON x.row = c.variant_index WHERE c.name = '{kind}' AND length(x.ids) > 0"
        );
        let rows = database.rows(&sql, |row| (number(row, 0), list(&blob(row, 1))));
        let cycles = rows.into_iter().map(|(program, ids)| {
            let cycles = ids.iter().map(|&id| slowest[&(id as i64)]).max();
            (program, cycles.expect("an id"))
        });
        cycles.collect()
    };
    let mut sets = of(
        "OnTileExecute",
        "SELECT e.id AS row, s.cycles_by_tile_ids AS ids FROM program_type_on_tile_execute e
         JOIN compute_sets s ON s.compute_set = e.compute_set",
    );
    if sets.is_empty() {
        return None;
    }
    let exchanges = "SELECT id AS row, cycles_by_tile_ids AS ids FROM program_type_do_exchange";
    sets.extend(of("DoExchange", exchanges));
    Some(sets)
}

/// Returns, for each operation, its programs and how often each runs.
fn visits(oracle: &Oracle) -> Vec<(usize, i64, u64)> {
    let operations = oracle.operations.iter().enumerate();
    let visits = operations.flat_map(|(index, operation)| {
        let visits = operation.visits.iter();
        visits.map(move |&(program, times)| (index, program, times))
    });
    visits.collect()
}

/// Returns estimated cycles of all executions.
fn summed(oracle: &Oracle, estimated: &HashMap<i64, u64>, exchanges: &HashSet<i64>) -> Cycles {
    let cycles = |program, times| estimated.get(&program).unwrap_or(&0) * times;
    let mut sums = Cycles::new(oracle, exchanges, |program, times| {
        cycles(program, times) as f64
    });
    for (_, program, times) in visits(oracle) {
        sums.all += cycles(program, times);
        if exchanges.contains(&program) {
            sums.exchange += cycles(program, times);
        }
    }
    sums
}

/// Divides executed cycles of a program in proportion to how often each operation runs it.
fn shared(oracle: &Oracle, executed: &HashMap<i64, u64>, exchanges: &HashSet<i64>) -> Cycles {
    let mut times_of: HashMap<i64, u64> = HashMap::new();
    for visit in super::operations::walk(&oracle.profile) {
        *times_of.entry(visit.program).or_default() += visit.times;
    }
    let of_exchanges = executed.iter().filter(|step| exchanges.contains(step.0));
    Cycles {
        is_executed: true,
        all: executed.values().sum(),
        exchange: of_exchanges.map(|step| step.1).sum(),
        ..Cycles::new(oracle, exchanges, |program, times| {
            let cycles = executed.get(&program).copied().unwrap_or(0) as f64;
            cycles * times as f64 / times_of[&program] as f64
        })
    }
}

impl Cycles {
    /// Adds up the cycles of all visits.
    fn new(oracle: &Oracle, exchanges: &HashSet<i64>, of: impl Fn(i64, u64) -> f64) -> Self {
        let mut by_operation = vec![0.0; oracle.operations.len()];
        let mut exchange_by_operation = by_operation.clone();
        for (operation, program, times) in visits(oracle) {
            by_operation[operation] += of(program, times);
            if exchanges.contains(&program) {
                exchange_by_operation[operation] += of(program, times);
            }
        }
        Self {
            is_executed: false,
            by_operation,
            exchange_by_operation,
            all: 0,
            exchange: 0,
        }
    }
}
