//! Damaged tables of cycles. The split does not depend on these tables, so it stays the same, and a
//! warning names the place.

use super::cases::{Case, FIXTURE, each_sql, hex, run_of};
use crate::support::each;

/// Checks that the split is the same as for the fixture, and that a warning has these parts.
fn left_out(case: &Case, parts: &[&str]) {
    case.same().warns(parts);
    // The report is written even if no cycles could be read.
    let run = case.run("--solve --export-markdown=- --objective=cycles");
    assert!([0, 1, 2].contains(&run.code), "{run:?}");
}

#[test]
fn blobs_of_cycles() {
    let blobs = [
        (run_of(15, 3), "15"),
        (run_of(17, 3), "expands to more"),
        (run_of(1 << 60, 3), "expands to more"),
        (vec![0x86], "cut off"),
        (vec![0x7f; 12], "beyond 64 bits"),
    ];
    let estimates = "cycle estimates are left out";
    let with = |blob: &[u8], rows: &str| {
        let sql = "UPDATE compilation_cycles_by_tile SET cycles_by_tile_rle";
        Case::loose().sql(&format!("{sql} = {} {rows}", hex(blob)))
    };
    each(&blobs, |(blob, part)| {
        let last = "WHERE id = (SELECT max(id) FROM compilation_cycles_by_tile)";
        let parts = [estimates, "`compilation_cycles_by_tile`", part];
        left_out(&with(blob, last), &parts);
    });
    let nowhere = Case::loose().sql("UPDATE compute_sets SET cycles_by_tile_ids = x'7fff'");
    let parts = [estimates, "`compilation_cycles_by_tile` has no row"];
    left_out(&nowhere, &parts);
    // The largest number of cycles: their sums would need more than 64 bits.
    let case = with(&run_of(16, u64::MAX), "");
    case.same();
    case.sql("DELETE FROM steps_by_ipu")
        .run("--solve")
        .says("cycle estimates are left out: table `compilation_cycles_by_tile`")
        .says("more than any real model");
}

/// Very many rows of nonsense are read once, and a warning names them.
#[test]
fn cycles_that_never_were() {
    let list = "
        INSERT INTO steps (id, type, program) SELECT n, 'x', 999999 FROM
        (WITH RECURSIVE n(n) AS (SELECT 1000000 UNION ALL SELECT n + 1 FROM n LIMIT 200000)
        SELECT n FROM n)
            executed cycles are left out ... `steps` ... `programs` has no row with the id 999999
        INSERT INTO steps_by_ipu (step_id, ipu, cycles) SELECT n, 0, 9223372036854775807 FROM
        (WITH RECURSIVE n(n) AS (SELECT 1000000 UNION ALL SELECT n + 1 FROM n LIMIT 200000)
        SELECT n FROM n) => executed cycles are left out ... `steps_by_ipu` ... `steps` has no row
        INSERT INTO steps (id, type, program) VALUES (1000000, 'x', 0), (1000001, 'x', 0);
        INSERT INTO steps_by_ipu (step_id, ipu, cycles)
        VALUES (1000000, 0, 9223372036854775807), (1000001, 0, 9223372036854775807)
            executed cycles are left out ... more than any real model
        UPDATE steps_by_ipu SET cycles = -1 WHERE step_id = 7
            executed cycles are left out ... column `cycles`, row 7: -1 is negative
        UPDATE compute_sets SET cycles_by_tile_ids = 'text'
            cycle estimates are left out ... a value of type Text instead of a blob
        UPDATE compilation_parameters SET is_default = 'no'
            options of the compilation are left out
    ";
    each_sql(FIXTURE, list, left_out);
}

#[test]
fn counts_of_loops() {
    for value in ["-1", "'text'", "9223372036854775807", "x'00'"] {
        let sql = format!(
            "INSERT INTO program_type_repeat SELECT coalesce(max(id), 0) + 1, {value}
             FROM program_type_repeat"
        );
        let run = Case::loose().sql(&sql).same();
        if !value.starts_with('9') {
            run.says("counts of loops are left out");
        }
    }
}
