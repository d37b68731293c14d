//! Cycles of operations and layers: against the second analyser on generated models, and on
//! profiles with fewer tables or impossible numbers.

use crate::oracle::layers::Rules;
use crate::oracle::{self, Oracle};
use crate::support::models::{Random, generate, options};
use crate::support::vary;
use crate::support::{copy, model, model_in, run_sql};
use popliner::message::Warning;
use popliner::model::{CycleSource, OperationCycles};
use popliner::profile::Profile;
use tempfile::TempDir;

/// Returns two sums over the whole program: all cycles, and the cycles of exchanges.
fn sums(cycles: &OperationCycles) -> [u64; 2] {
    let all = || cycles.by_operation.iter().chain([&cycles.unexplained]);
    let exchange = all().map(|cycles| cycles.exchange).sum();
    [all().map(|cycles| cycles.all).sum(), exchange]
}

fn total(cycles: &OperationCycles) -> u64 {
    sums(cycles)[0]
}

/// Copies a fixture and changes its profile.
fn changed(fixture: &str, sql: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let [profile, _] = copy(fixture, folder.path());
    run_sql(&profile, sql);
    folder
}

/// Returns the cycles and all warnings of a fixture after changes to its profile.
fn after(fixture: &str, sql: &str) -> (Option<OperationCycles>, Vec<Warning>) {
    let model = model_in(changed(fixture, sql).path());
    (model.cycles, model.warnings)
}

/// Returns the sum of the cycles of a fixture after changes to its profile.
fn total_after(fixture: &str, sql: &str) -> u64 {
    total(&after(fixture, sql).0.expect(sql))
}

const ESTIMATED: &str = "popart-bert-inference";
const EXECUTED: &str = "poplar-mlp";

/// Compares cycles of operations with exact ones. Each share of a program is rounded once.
fn check_operations(found: &[u64], expected: &[f64], roundings: impl Fn(usize) -> usize) {
    assert_eq!(found.len(), expected.len());
    for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let is_near = (found as f64 - expected).abs() <= roundings(index) as f64;
        assert!(is_near, "{index}: {found} of {expected}");
    }
}

/// Compares a generated model with the oracle. Returns its cycles, and the oracle's sums over all
/// programs and over all exchanges.
fn against_the_oracle(seed: u64, more: &[&str]) -> (OperationCycles, [u64; 2]) {
    let mut all = options(seed);
    all.extend(more.iter().map(|option| option.to_string()));
    let folder = TempDir::new().unwrap();
    let [profile, debug] = generate(folder.path(), &all);
    vary::profile(&profile, &mut Random(seed));
    let oracle = Oracle::new(&profile, &debug, &Rules::default());
    let expected = oracle::cycles::cycles(&profile, &oracle).unwrap();
    let found = model(&profile, &debug).cycles.unwrap();
    let is_executed = matches!(found.source, CycleSource::Executed { .. });
    assert_eq!(is_executed, expected.is_executed);
    let visits = |operation: usize| oracle.operations[operation].visits.len();
    let roundings = |operation: usize| usize::from(is_executed) * visits(operation);
    let of_all = found.by_operation.iter();
    let (all, exchanges): (Vec<u64>, Vec<u64>) =
        of_all.map(|cycles| (cycles.all, cycles.exchange)).unzip();
    check_operations(&all, &expected.by_operation, roundings);
    check_operations(&exchanges, &expected.exchange_by_operation, roundings);
    assert!(exchanges.iter().any(|&cycles| cycles > 0), "{all:?}");
    let [total, exchange] = sums(&found);
    assert!(exchange < total, "{all:?}");
    (found, [expected.all, expected.exchange])
}

#[test]
fn estimates_are_those_of_every_visit_in_the_walk() {
    for seed in 0..16 {
        let (found, _) = against_the_oracle(seed, &[]);
        assert_eq!(found.other, 0, "estimates say nothing of anything else");
    }
}

#[test]
fn what_was_executed_is_shared_out_without_rest() {
    for seed in 0..16 {
        let (found, all) = against_the_oracle(seed, &["--execution"]);
        assert_eq!(found.source, CycleSource::Executed { runs: 4 });
        assert_eq!(sums(&found), all, "seed {seed}");
        assert!(found.other > 0, "copies and syncs take their time");
    }
}

#[test]
fn a_body_of_a_loop_counts_as_often_as_it_runs() {
    let with = |count: &str| {
        let sql = format!("UPDATE program_type_repeat SET repeat_count = {count}");
        total_after(ESTIMATED, &sql)
    };
    let (whole, once, never) = (total_after(ESTIMATED, ""), with("NULL"), with("0"));
    assert!(whole > 16 * (once - never) && whole < 64 * once);
    let without = total_after(ESTIMATED, "DROP TABLE program_type_repeat");
    assert_eq!(without, once);
    // Nested loops of the largest length: no sum wraps around.
    let long = "UPDATE program_type_repeat SET repeat_count = 9223372036854775807";
    let long = after(ESTIMATED, long).0.unwrap();
    assert!(long.by_operation.iter().any(|cycles| cycles.all > whole));
}

#[test]
fn estimates_stand_in_for_an_execution_that_is_not_there() {
    let executed = total_after(EXECUTED, "");
    let unknown = after(EXECUTED, "DROP TABLE runs").0.unwrap();
    assert_eq!(unknown.source, CycleSource::Executed { runs: 0 });
    assert_eq!(total(&unknown), executed);
    for sql in [
        "DELETE FROM steps_by_ipu",
        "DROP TABLE steps",
        "DROP TABLE steps_by_ipu",
        "UPDATE steps_by_ipu SET cycles = 0",
        // Steps without a program.
        "UPDATE steps SET program = NULL",
        "UPDATE steps_by_ipu SET cycles = -1 WHERE step_id = 7",
    ] {
        let (cycles, warnings) = after(EXECUTED, sql);
        let cycles = cycles.expect(sql);
        assert_eq!(cycles.source, CycleSource::Estimated, "{sql}");
        assert_ne!(total(&cycles), executed);
        let damages = usize::from(sql.contains("= -1"));
        assert_eq!(warnings.len(), damages, "{sql}: {warnings:?}");
    }
}

#[test]
fn rows_for_the_whole_device_are_not_added_to_those_of_the_ipu() {
    let (plain, _) = after(EXECUTED, "");
    let device = "INSERT INTO steps_by_ipu SELECT step_id, -1, cycles_base, 0, 0, 0, 0, 0, 0, 0, 0,
                  0, cycles, 1, 1.0, 1.0, 1.0, NULL FROM steps_by_ipu;";
    assert_eq!(after(EXECUTED, device).0, plain);
    let alone = format!("{device} DELETE FROM steps_by_ipu WHERE ipu = 0");
    assert_eq!(after(EXECUTED, &alone).0, plain);
}

#[test]
fn estimates_of_exchanges_alone_are_none() {
    let (cycles, warnings) = after("impossible", "");
    assert_eq!((cycles, warnings.len()), (None, 0));
}

/// Before format 3.2, cycles were stored in the tables themselves.
#[test]
fn estimates_in_place_are_the_same() {
    let (by_id, _) = after(ESTIMATED, "");
    let move_them = |table: &str, column: &str| {
        format!(
            "UPDATE {table} SET {column} = (SELECT c.cycles_by_tile_rle
               FROM compilation_cycles_by_tile c WHERE c.id = {table}.cycle_row);
             ALTER TABLE {table} DROP COLUMN cycles_by_tile_ids;"
        )
    };
    // The fixture numbers estimates of compute sets first, then of exchanges.
    let sql = format!(
        "ALTER TABLE compute_sets ADD COLUMN cycle_row INTEGER;
         ALTER TABLE program_type_do_exchange ADD COLUMN cycle_row INTEGER;
         UPDATE compute_sets SET cycle_row = compute_set;
         UPDATE program_type_do_exchange SET cycle_row =
             id + (SELECT count(*) FROM compute_sets);
         {} {} DROP TABLE compilation_cycles_by_tile",
        move_them("compute_sets", "cycles_by_tile"),
        move_them("program_type_do_exchange", "cycles_by_tile_rle"),
    );
    let (in_place, warnings) = after(ESTIMATED, &sql);
    assert_eq!(in_place, by_id);
    assert!(in_place.is_some() && warnings.is_empty(), "{warnings:?}");
}

#[test]
fn a_profile_need_not_say_how_it_was_made() {
    let folder = changed(
        EXECUTED,
        "DROP TABLE poplar_version; DELETE FROM date_time;
         DROP TABLE compilation_parameters; DROP TABLE target_parameters;
         ALTER TABLE target_info DROP COLUMN clock_frequency",
    );
    let profile = Profile::read(&folder.path().join("profile.pop")).unwrap();
    assert_eq!(profile.made, Default::default());
    assert!(profile.warnings.is_empty(), "{:?}", profile.warnings);
}
