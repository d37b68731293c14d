//! Damaged tables of cycles. Nothing else depends on them, so a warning names the place, and the
//! split stays the same.

use popliner::profile::encoding::push_varint;

use crate::hostile::cases::Case;
use crate::support::each;

/// Checks that the split is the same as for the fixture, and that a warning has these parts.
fn left_out(case: &Case, what: &str, parts: &[&str]) {
    let message = case.same(what);
    let line = message
        .lines()
        .find(|line| line.starts_with("warning: ") && parts.iter().all(|part| line.contains(part)));
    assert!(line.is_some(), "{what}: {parts:?} in {message}");
    // A report is written without cycles.
    let run = case.run(&["--solve", "--export-markdown=-", "--objective=cycles"]);
    assert!([0, 1, 2].contains(&run.code), "{what}: {run:?}");
}

#[test]
fn blobs_of_cycles() {
    let run = |count: u64| {
        let mut blob = String::new();
        let mut bytes = Vec::new();
        push_varint(&mut bytes, count << 1);
        push_varint(&mut bytes, 3);
        bytes.iter().for_each(|byte| blob += &format!("{byte:02x}"));
        blob
    };
    let blobs = [
        (run(15), "15"),
        (run(17), "expands to more"),
        (run(1 << 60), "expands to more"),
        ("86".into(), "cut off"),
        ("7f".repeat(12), "beyond 64 bits"),
    ];
    each(&blobs, |(blob, part)| {
        let sql = format!(
            "UPDATE compilation_cycles_by_tile SET cycles_by_tile_rle = x'{blob}'
             WHERE id = (SELECT max(id) FROM compilation_cycles_by_tile)"
        );
        let parts = [
            "cycle estimates are left out",
            "`compilation_cycles_by_tile`",
            part,
        ];
        left_out(&Case::loose().sql(&sql), blob, &parts);
    });
    let nowhere = "UPDATE compute_sets SET cycles_by_tile_ids = x'7fff'";
    let parts = [
        "cycle estimates are left out",
        "`compilation_cycles_by_tile` has no row",
    ];
    left_out(&Case::loose().sql(nowhere), nowhere, &parts);
    // The largest number of cycles: their sums would need more than 64 bits.
    let mut blob = Vec::new();
    push_varint(&mut blob, 16 << 1);
    push_varint(&mut blob, u64::MAX);
    let hex: String = blob.iter().map(|byte| format!("{byte:02x}")).collect();
    let sql = format!("UPDATE compilation_cycles_by_tile SET cycles_by_tile_rle = x'{hex}'");
    let case = Case::loose().sql(&sql);
    case.same("the most cycles");
    let run = case.sql("DELETE FROM steps_by_ipu").run(&["--solve"]);
    let line = "cycle estimates are left out: table `compilation_cycles_by_tile`";
    assert!(
        run.err.contains(line) && run.err.contains("more than any real model"),
        "{run:?}"
    );
}

/// A million rows of nonsense are read once, and a warning names them.
#[test]
fn executions_that_never_were() {
    let rows = |select: &str| {
        format!(
            "WITH RECURSIVE n(n) AS (SELECT 1000000 UNION ALL SELECT n + 1 FROM n LIMIT 1000000) {select}"
        )
    };
    let steps = rows("INSERT INTO steps (id, type, program) SELECT n, 'x', 999999 FROM n");
    let parts = [
        "executed cycles are left out",
        "`steps`",
        "no program with the id 999999",
    ];
    left_out(&Case::loose().sql(&steps), "steps", &parts);
    let by_ipu = rows(
        "INSERT INTO steps_by_ipu (step_id, ipu, cycles) SELECT n, 0, 9223372036854775807 FROM n",
    );
    let parts = [
        "executed cycles are left out",
        "`steps_by_ipu`",
        "`steps` has no row",
    ];
    left_out(&Case::loose().sql(&by_ipu), "steps by IPU", &parts);
    // The steps exist, all of one program, with more cycles than 64 bits hold.
    let same = steps.replace("999999 FROM", "0 FROM");
    let case = Case::loose().sql(&same).sql(&by_ipu);
    let parts = ["executed cycles are left out", "more than any real model"];
    left_out(&case, "the most executed cycles", &parts);
}

#[test]
fn counts_of_loops() {
    for value in ["-1", "'text'", "9223372036854775807", "x'00'"] {
        let sql = format!(
            "INSERT INTO program_type_repeat SELECT coalesce(max(id), 0) + 1, {value}
             FROM program_type_repeat"
        );
        let message = Case::loose().sql(&sql).same(value);
        let is_number = value.starts_with('9');
        assert!(
            is_number || message.contains("counts of loops are left out"),
            "{message}"
        );
    }
}
