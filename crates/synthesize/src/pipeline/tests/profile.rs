//! The profile of a pipelined compilation, read as tables.

use rusqlite::{Connection, types::FromSql};

use super::super::PipelineTruth;
use super::super::options::{PipelineOptions, Recompute, Schedule};
use super::planted::models;

/// Writes a profile and hands it on with what is true of it.
fn with_profile(
    schedule: Schedule,
    recompute: Recompute,
    check: impl Fn(&PipelineTruth, &Connection),
) {
    let folder = tempfile::tempdir().expect("a folder");
    let options = PipelineOptions::new(schedule, recompute);
    for (number, model) in models("training").iter().enumerate() {
        let path = folder.path().join(format!("{number}.pop"));
        let truth = model.write_profile(&path, &[2, 4], &options);
        let connection = Connection::open(&path).expect("the profile");
        check(&truth.expect("a profile"), &connection);
    }
}

pub(super) fn column<T: FromSql>(connection: &Connection, sql: &str) -> Vec<T> {
    let mut rows = connection.prepare(sql).expect("a query");
    let rows = rows.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("values")
}

#[test]
fn totals_are_what_the_simulation_says() {
    for schedule in super::SCHEDULES {
        for recompute in [Recompute::None, Recompute::Stage, Recompute::Layer] {
            with_profile(schedule, recompute, |truth, connection| {
                let total = "SELECT total FROM memory_by_tile ORDER BY tile";
                let all: Vec<u64> = truth
                    .stages
                    .iter()
                    .flat_map(|stage| stage.tiles.clone())
                    .collect();
                assert_eq!(column::<u64>(connection, total), all);
                let target = "SELECT num_ipus * tiles_per_ipu FROM target_info";
                assert_eq!(column::<u64>(connection, target), [all.len() as u64]);
            });
        }
    }
}

/// With one IPU the profile is one like any other.
#[test]
fn the_profile_of_one_ipu_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = PipelineOptions::new(Schedule::Popart, Recompute::None);
    for (number, model) in models("training").iter().enumerate() {
        let path = folder.path().join(format!("{number}.pop"));
        let truth = model.write_profile(&path, &[], &options);
        let truth = truth.expect("a profile");
        let profile = popliner::profile::Profile::read(&path).expect("a profile");
        let tiles = profile.recorded.tiles.iter().map(|tile| tile.total);
        assert!(tiles.eq(truth.stages[0].tiles.iter().copied()));
    }
}

/// Variables that a pipeline adds have the names that its compiler gives.
#[test]
fn stashes_and_accumulators_are_found_by_their_names() {
    let cases = [
        (Schedule::Popart, "Stashed\\_\\_\\_%", "Accum\\_\\_\\_%"),
        (Schedule::TfGrouped, "%/fifo/buffer/%", "%/Accumulator"),
    ];
    for (schedule, stash, accumulators) in cases {
        with_profile(schedule, Recompute::Stage, |truth, connection| {
            let bytes = |name: &str| {
                let sql = format!(
                    "SELECT coalesce(sum(size_bytes), 0) FROM vars_info JOIN unlowered_vars
                     ON id = unlowered_var_id WHERE name LIKE '{name}' ESCAPE '\\'"
                );
                column::<u64>(connection, &sql)[0]
            };
            let sum = |bytes: &[Vec<u64>]| bytes.iter().flatten().sum::<u64>();
            let stages = truth.stages.iter();
            let stashes: Vec<_> = stages.clone().map(|stage| stage.stash.clone()).collect();
            assert_eq!(bytes(stash), sum(&stashes));
            let expected: Vec<_> = stages.map(|stage| stage.accumulators.clone()).collect();
            assert_eq!(bytes(accumulators), sum(&expected));
        });
    }
}

/// Rows by IPU add up to the rows of all.
#[test]
fn live_bytes_by_ipu_add_up_to_those_of_all() {
    with_profile(Schedule::Popart, Recompute::None, |_, connection| {
        let sum = |filter: &str| {
            let sql = format!(
                "SELECT sum(delta_bytes) FROM memory_not_always_live_by_step_and_ipu
                 WHERE ipu IS {filter} GROUP BY step_id HAVING sum(delta_bytes) <> 0
                 ORDER BY step_id"
            );
            column::<i64>(connection, &sql)
        };
        assert!(!sum("NULL").is_empty());
        assert_eq!(sum("NOT NULL"), sum("NULL"));
    });
}
