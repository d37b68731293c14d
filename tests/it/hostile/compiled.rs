//! Profiles of several IPUs for `--fit`, damaged or contradictory.

use super::cases::{Case, cells, each_sql, in_last_row};
use crate::support::each;

pub const COMPILED: &str = "training-pipelined";

/// SQL after which numbers of IPUs or tiles contradict each other, with parts of the messages.
const REFUSED: &str = "
    UPDATE target_info SET num_tiles = 33
        `target_info` ... `num_tiles` ... 33 tiles are not a whole number of IPUs of 8
    DELETE FROM memory_by_tile WHERE tile >= 24
        `memory_by_tile` lists 24 tiles ... `target_info` has 32 ... record it again
    DELETE FROM memory_by_tile WHERE tile >= 28 => `memory_by_tile` lists 28 tiles
    DELETE FROM memory_by_tile WHERE tile = 9
        `memory_by_tile`, column `tile`, row 9: there is no such row
    UPDATE memory_by_tile SET tile = 99 WHERE tile = 3 => `memory_by_tile` lists 100 tiles
    UPDATE memory_by_tile SET tile = 9223372036854775807 WHERE tile = 3
        `memory_by_tile` lists 9223372036854775808 tiles
    DELETE FROM memory_by_tile => `memory_by_tile` has no row
    DROP TABLE memory_by_tile => `memory_by_tile` is missing
    UPDATE target_info SET num_ipus = 3
        `num_ipus` ... 32 tiles at 8 for each IPU do not make 3 IPUs
    UPDATE target_info SET num_replicas = 2, ipus_per_replica = 3
        `ipus_per_replica` ... 4 IPUs are listed, of 2 replicas
    UPDATE target_info SET tiles_per_ipu = 0 => `tiles_per_ipu`
    UPDATE target_info SET tiles_per_ipu = 100000, num_tiles = 400000 => `tiles_per_ipu`
    INSERT INTO memory_not_always_live_by_step_and_ipu (ipu, step_id, delta_bytes) VALUES (4, 1, 8)
        memory_not_always_live_by_step_and_ipu ... `ipu` ... there is no IPU 4
    INSERT INTO memory_not_always_live_by_step_and_ipu (ipu, step_id, delta_bytes) VALUES (-1, 1, 8)
        `ipu` ... -1 is negative
    INSERT INTO memory_not_always_live_by_step_and_ipu (ipu, step_id, delta_bytes)
    VALUES (0, 99999999, 8) => there is no step
    INSERT INTO memory_not_always_live_by_step_and_ipu (ipu, step_id, delta_bytes)
    VALUES (0, 1, 9223372036854775807) => `delta_bytes`
    UPDATE vars_info SET tile = 32 WHERE var_id = 7
        `vars_info` ... `tile` ... there is no tile 32
    UPDATE vars_info SET category = 99 WHERE var_id = 7 => `vars_info` ... `category`
    UPDATE eq_class_step SET step_id_from = step_id_to + 1 => `eq_class_step` ... is reversed
";

#[test]
fn ipus_and_rows_that_do_not_add_up() {
    each_sql(COMPILED, REFUSED, |case, parts| {
        case.run("--fit").refuses(3, parts);
    });
}

const DISAGREE: &str = "
    UPDATE memory_not_always_live_by_step_and_ipu SET delta_bytes = delta_bytes + 4 WHERE rowid =
    (SELECT min(rowid) FROM memory_not_always_live_by_step_and_ipu WHERE ipu IS NULL)
        liveness by IPU is left out ... memory_not_always_live_by_step_and_ipu
        are not the sums over all IPUs
    DELETE FROM memory_not_always_live_by_step_and_ipu WHERE rowid =
    (SELECT max(rowid) FROM memory_not_always_live_by_step_and_ipu WHERE ipu IS NULL)
        liveness by IPU is left out ... first at step
    INSERT INTO memory_not_always_live_by_step_and_ipu
    SELECT ipu, 0, -1000000000 FROM (SELECT 1 AS ipu UNION SELECT NULL)
        liveness by IPU is left out ... below 0 bytes are live at step
    INSERT INTO memory_not_always_live_by_step_and_ipu
    SELECT ipu, 0, 1000000000 FROM (SELECT 1 AS ipu UNION SELECT NULL)
        liveness by IPU is left out ... its tiles have no more than ... `memory_by_tile`
    UPDATE vars_info SET size_bytes = size_bytes + 4 WHERE tile = 11
        the profile contradicts itself: ... but the verdict is the same
        table `memory_by_tile`, tile 11: the total is
    UPDATE steps_by_ipu SET ipu = 9 WHERE ipu = 3
        executed cycles are left out ... there is no IPU 9
    UPDATE programs SET variant = 99 WHERE id = 5 => layers on IPUs are left out ... `programs`
";

#[test]
fn sums_that_disagree() {
    each_sql(COMPILED, DISAGREE, |case, parts| {
        case.run("--fit").exits(0).warns(parts);
    });
}

#[test]
fn tables_that_are_not_there_take_only_what_they_show() {
    let tables = "vars_info vars_string_table memory_not_always_live_by_step_and_ipu steps_by_ipu \
                  compilation_parameters";
    each(&tables.split(' ').collect::<Vec<_>>(), |table| {
        let case = Case::loose_of(COMPILED).sql(&format!("DROP TABLE {table}"));
        let run = case.run("--fit");
        let message = "The profile has no lowered variables";
        let is_said = run.exits(0).err.contains(message);
        assert_eq!(is_said, *table == "vars_info", "{table}: {run:?}");
    });
}

#[test]
fn overflowed_bytes_count_as_over() {
    let sql = "UPDATE memory_by_tile SET overflowed_including_gaps = 8 WHERE tile = 20";
    let case = Case::of(COMPILED).sql(sql);
    let run = case.run("--fit");
    run.exits(1).says("IPU 2 does not fit");
    run.says("1 tile is over, with 8 bytes beyond the memory");
    // If the limit exceeds the target's memory, overflowed bytes do not count.
    case.run("--fit --mem-per-tile=300000").exits(0);
}

#[test]
fn cells_of_another_type() {
    let columns = "
        memory_by_tile tile total always_live_bytes overflowed
        memory_by_category category_id non_interleaved_non_overlapped
        memory_not_always_live_by_step_and_ipu ipu step_id delta_bytes
        vars_info tile size_bytes category equivalence_class name_base_id
        vars_string_table id string
        eq_classes id is_always_live
        eq_class_step eq_class_id step_id_from step_id_to
        steps_by_ipu step_id ipu cycles
    ";
    let values = "NULL 'text' 1.5 x'00' -1 9223372036854775807";
    each(&cells(columns, values, 11), |(table, column, value)| {
        let sql = in_last_row(&format!("{table} {column} = {value}"));
        let run = Case::loose_of(COMPILED).sql(&sql).run("--fit");
        assert!([0, 1, 3].contains(&run.code), "{sql}: {run:?}");
        let is_said = run.code != 3 || run.err.contains(&format!("`{table}`"));
        assert!(is_said, "{sql}: {run:?}");
    });
}
