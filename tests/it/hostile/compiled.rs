//! Profiles of several IPUs for `--fit`, damaged or contradictory, and wrong predictions.

use std::fs;

use crate::hostile::cases::{Case, of_profile};
use crate::support::each;
use crate::support::models::pairs;
use crate::support::{Run, mutations};

const FIXTURE: &str = "training-pipelined";

pub fn case() -> Case {
    Case::of(FIXTURE)
}

/// Returns the compiled fixture without keys and constraints.
fn loose() -> Case {
    let case = case();
    mutations::loosen(&case.profile);
    case
}

fn fit(case: &Case) -> Run {
    case.run(&["--fit"])
}

/// Checks that `--fit` refuses the file with one line that has all these parts.
fn refused(what: &str, case: &Case, parts: &[&str]) {
    let run = fit(case);
    assert_eq!((run.code, &*run.out), (3, ""), "{what}: {run:?}");
    let line = run.err.lines().last().expect("a message");
    assert!(line.starts_with("error: "), "{what}: {line}");
    for part in parts {
        assert!(line.contains(part), "{what}: {part:?} in {line}");
    }
}

/// Checks that the verdict is the same as for the fixture, with a warning that has all these parts.
fn warned(what: &str, case: &Case, parts: &[&str]) {
    let run = fit(case);
    assert_eq!(run.code, 0, "{what}: {run:?}");
    let mut lines = run.err.lines();
    let line = lines.find(|line| line.starts_with("warning: ") && line.contains(parts[0]));
    let line = line.unwrap_or_else(|| panic!("{what}: {run:?}"));
    for part in parts {
        assert!(line.contains(part), "{what}: {part:?} in {line}");
    }
}

#[test]
fn ipus_that_do_not_add_up() {
    let cases: [(&str, &str, &[&str]); 12] = [
        (
            "tiles that do not divide",
            "UPDATE target_info SET num_tiles = 33",
            &[
                "`target_info`",
                "`num_tiles`",
                "33 tiles are not a whole number of IPUs of 8",
            ],
        ),
        (
            "an IPU that is not there",
            "DELETE FROM memory_by_tile WHERE tile >= 24",
            &[
                "`memory_by_tile` lists 24 tiles",
                "`target_info` has 32",
                "record it again",
            ],
        ),
        (
            "half an IPU",
            "DELETE FROM memory_by_tile WHERE tile >= 28",
            &["`memory_by_tile` lists 28 tiles"],
        ),
        (
            "a tile that is not there",
            "DELETE FROM memory_by_tile WHERE tile = 9",
            &["`memory_by_tile`, column `tile`, row 9: there is no such row"],
        ),
        (
            "a tile too many",
            "UPDATE memory_by_tile SET tile = 99 WHERE tile = 3",
            &["`memory_by_tile` lists 100 tiles"],
        ),
        (
            "a tile of no number",
            "UPDATE memory_by_tile SET tile = 9223372036854775807 WHERE tile = 3",
            &["`memory_by_tile` lists 9223372036854775808 tiles"],
        ),
        (
            "no tiles",
            "DELETE FROM memory_by_tile",
            &["`memory_by_tile` has no row"],
        ),
        (
            "no table of tiles",
            "DROP TABLE memory_by_tile",
            &["`memory_by_tile` is missing"],
        ),
        (
            "another number of IPUs",
            "UPDATE target_info SET num_ipus = 3",
            &[
                "`num_ipus`",
                "32 tiles at 8 for each IPU do not make 3 IPUs",
            ],
        ),
        (
            "replicas that do not divide",
            "UPDATE target_info SET num_replicas = 2, ipus_per_replica = 3",
            &["`ipus_per_replica`", "4 IPUs are listed, of 2 replicas"],
        ),
        (
            "no tiles of an IPU",
            "UPDATE target_info SET tiles_per_ipu = 0",
            &["`tiles_per_ipu`"],
        ),
        (
            "IPUs larger than any",
            "UPDATE target_info SET tiles_per_ipu = 100000, num_tiles = 400000",
            &["`tiles_per_ipu`"],
        ),
    ];
    each(&cases, |(what, sql, parts)| {
        refused(what, &loose().sql(sql), parts)
    });
}

#[test]
fn rows_of_ipus_and_tiles_that_are_not_there() {
    let live = "memory_not_always_live_by_step_and_ipu";
    let insert = |ipu: &str, step: &str, bytes: &str| {
        format!("INSERT INTO {live} (ipu, step_id, delta_bytes) VALUES ({ipu}, {step}, {bytes})")
    };
    let cases: [(&str, String, &[&str]); 7] = [
        (
            "an IPU beyond the last",
            insert("4", "1", "8"),
            &[live, "`ipu`", "there is no IPU 4"],
        ),
        (
            "an IPU below 0",
            insert("-1", "1", "8"),
            &[live, "`ipu`", "-1 is negative"],
        ),
        (
            "a step that is not there",
            insert("0", "99999999", "8"),
            &[live, "there is no step"],
        ),
        (
            "more than any machine",
            insert("0", "1", "9223372036854775807"),
            &["`delta_bytes`"],
        ),
        (
            "a variable on no tile",
            "UPDATE vars_info SET tile = 32 WHERE var_id = 7".into(),
            &["`vars_info`", "`tile`", "there is no tile 32"],
        ),
        (
            "a category that is not there",
            "UPDATE vars_info SET category = 99 WHERE var_id = 7".into(),
            &["`vars_info`", "`category`"],
        ),
        (
            "a range that is reversed",
            "UPDATE eq_class_step SET step_id_from = step_id_to + 1".into(),
            &["`eq_class_step`", "is reversed"],
        ),
    ];
    each(&cases, |(what, sql, parts)| {
        refused(what, &loose().sql(sql), parts)
    });
}

#[test]
fn sums_that_disagree() {
    let live = "memory_not_always_live_by_step_and_ipu";
    let cases: [(&str, String, &[&str]); 7] = [
        (
            "rows without an IPU that are not the sums",
            format!(
                "UPDATE {live} SET delta_bytes = delta_bytes + 4 WHERE rowid = (SELECT min(rowid) FROM {live} WHERE ipu IS NULL)"
            ),
            &[
                "liveness by IPU is left out",
                live,
                "are not the sums over all IPUs",
            ],
        ),
        (
            "a row without an IPU too few",
            format!(
                "DELETE FROM {live} WHERE rowid = (SELECT max(rowid) FROM {live} WHERE ipu IS NULL)"
            ),
            &["liveness by IPU is left out", "first at step"],
        ),
        (
            "less than nothing",
            format!(
                "INSERT INTO {live} SELECT ipu, 0, -1000000000 FROM (SELECT 1 AS ipu UNION SELECT NULL)"
            ),
            &[
                "liveness by IPU is left out",
                "below 0 bytes are live at step",
            ],
        ),
        (
            "more than the tiles have",
            format!(
                "INSERT INTO {live} SELECT ipu, 0, 1000000000 FROM (SELECT 1 AS ipu UNION SELECT NULL)"
            ),
            &[
                "liveness by IPU is left out",
                "its tiles have no more than",
                "`memory_by_tile`",
            ],
        ),
        (
            "variables that are larger than recorded",
            "UPDATE vars_info SET size_bytes = size_bytes + 4 WHERE tile = 11".into(),
            &[
                "the profile contradicts itself slightly",
                "table `memory_by_tile`, tile 11: the total is",
            ],
        ),
        (
            "cycles of an IPU that is not there",
            "UPDATE steps_by_ipu SET ipu = 9 WHERE ipu = 3".into(),
            &["executed cycles are left out", "there is no IPU 9"],
        ),
        (
            "a table of programs that cannot be read",
            "UPDATE programs SET variant = 99 WHERE id = 5".into(),
            &["layers on IPUs are left out", "`programs`"],
        ),
    ];
    each(&cases, |(what, sql, parts)| {
        warned(what, &loose().sql(sql), parts)
    });
}

#[test]
fn tables_that_are_not_there_take_only_what_they_show() {
    let tables = [
        "vars_info",
        "vars_string_table",
        "memory_not_always_live_by_step_and_ipu",
        "steps_by_ipu",
        "compilation_parameters",
    ];
    each(&tables, |table| {
        let run = fit(&loose().sql(&format!("DROP TABLE {table}")));
        assert_eq!(run.code, 0, "{table}: {run:?}");
        let says = run.err.contains("The profile has no lowered variables");
        assert_eq!(says, *table == "vars_info", "{table}: {run:?}");
    });
}

#[test]
fn overflowed_bytes_count_as_over() {
    let sql = "UPDATE memory_by_tile SET overflowed_including_gaps = 8 WHERE tile = 20";
    let run = fit(&case().sql(sql));
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.err.contains("IPU 2 does not fit"), "{run:?}");
    assert!(
        run.err
            .contains("1 tile is over, with 8 bytes beyond the memory"),
        "{run:?}"
    );
    // If the limit exceeds the target's memory, overflowed bytes do not count.
    let case = case().sql(sql);
    assert_eq!(case.run(&["--fit", "--mem-per-tile=300000"]).code, 0);
}

#[test]
fn cells_of_another_type() {
    let columns: [(&str, &[&str]); 8] = [
        (
            "memory_by_tile",
            &["tile", "total", "always_live_bytes", "overflowed"],
        ),
        (
            "memory_by_category",
            &["category_id", "non_interleaved_non_overlapped"],
        ),
        (
            "memory_not_always_live_by_step_and_ipu",
            &["ipu", "step_id", "delta_bytes"],
        ),
        (
            "vars_info",
            &[
                "tile",
                "size_bytes",
                "category",
                "equivalence_class",
                "name_base_id",
            ],
        ),
        ("vars_string_table", &["id", "string"]),
        ("eq_classes", &["id", "is_always_live"]),
        (
            "eq_class_step",
            &["eq_class_id", "step_id_from", "step_id_to"],
        ),
        ("steps_by_ipu", &["step_id", "ipu", "cycles"]),
    ];
    let values = [
        "NULL",
        "'text'",
        "1.5",
        "x'00'",
        "-1",
        "9223372036854775807",
    ];
    let columns = columns.iter();
    let columns = columns.flat_map(|(table, all)| all.iter().map(move |column| (table, column)));
    let columns: Vec<_> = columns.collect();
    let cells: Vec<_> = pairs(&columns, &values, 11).collect();
    each(&cells, |((table, column), value)| {
        let sql = format!(
            "UPDATE {table} SET {column} = {value}
             WHERE rowid = (SELECT max(rowid) FROM {table})"
        );
        let run = fit(&loose().sql(&sql));
        let what = format!("{table}.{column} = {value}: {run:?}");
        assert!([0, 1, 3].contains(&run.code), "{what}");
        let is_said = run.code != 3 || run.err.contains(&format!("`{table}`"));
        assert!(is_said, "{what}");
    });
}

#[test]
fn files_that_are_cut_off() {
    let length = fs::metadata(case().profile).expect("a file").len();
    let parts: Vec<u64> = (0..20).map(|part| length * part / 20).collect();
    each(&parts, |&part| {
        let case = case().bytes(of_profile, |bytes| bytes.truncate(part as usize));
        let run = fit(&case);
        assert_eq!((run.code, &*run.out), (3, ""), "{part}: {run:?}");
    });
}

#[test]
fn solving_names_the_way_out() {
    let run = case().run(&["--solve"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(
        run.err
            .contains("compiled for 4 IPUs (32 tiles, 8 on each, replicas: 1)"),
        "{run:?}"
    );
    assert!(
        run.err.contains("or judge it as it is with --fit\n"),
        "{run:?}"
    );
}
