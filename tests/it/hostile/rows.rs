//! Damaged rows: an error that names the table, the column and the row.

use popliner::profile::encoding::push_varint;

use crate::hostile::cases::{Case, set};
use crate::support::each;
use crate::support::models::share;

/// Tables that every analysis needs, each with its required columns.
const NEEDED: [(&str, &str); 16] = [
    ("version_info", "major minor point"),
    ("target_info", TARGET),
    (
        "programs",
        "id variant variant_index children debug_id name",
    ),
    ("program_types", "id name"),
    ("control_programs", "id program"),
    ("program_type_on_tile_execute", "id compute_set"),
    ("program_type_do_exchange", EXCHANGE),
    ("compute_sets", "compute_set name var_ids_diff_rle"),
    ("vertex_types", "id name size"),
    (
        "vertex_instances",
        "compute_set vertex_type instances_by_tile",
    ),
    ("memory_by_vertex_type", "vertex_type code_bytes"),
    ("depth_first_steps", "id program_id parent_step_id"),
    ("eq_classes", "id is_always_live"),
    ("eq_class_step", "eq_class_id step_id_from step_id_to"),
    ("var_categories", "id name"),
    ("exchange_regions", "id var_id"),
];
const TARGET: &str = "tiles_per_ipu num_tiles bytes_per_tile num_ipus num_replicas";
const EXCHANGE: &str = "id code_bytes_by_tile_rle source_regions_id";

/// The largest integer that a cell can hold.
const MOST: &str = "9223372036854775807";

/// Returns SQL that sets a column of the last row.
fn in_last_row(table: &str, column: &str, value: &str) -> String {
    format!("UPDATE {table} SET {column} = {value} WHERE rowid = (SELECT max(rowid) FROM {table})")
}

#[test]
fn missing_tables_and_columns() {
    each(&NEEDED, |&(table, columns)| {
        let case = Case::loose().sql(&format!("DROP TABLE {table}"));
        case.refused(table, &["profile.pop: ", &format!("`{table}`")]);
        for column in columns.split(' ') {
            let sql = format!("ALTER TABLE {table} RENAME COLUMN {column} TO other");
            let case = Case::loose().sql(&sql);
            case.refused(column, &[&format!("`{table}`"), &format!("`{column}`")]);
        }
    });
}

#[test]
fn cells_of_another_type() {
    let values = ["NULL", "'text'", "1.5", "x'00'", "-1"];
    // These columns may be NULL or have other values than numbers.
    let tolerated = |table: &str, column: &str, value: &str| match (column, value) {
        // SQLite converts numbers in a column of text to text.
        ("name", "NULL") => table != "program_types",
        ("name", value) => value != "x'00'",
        ("debug_id" | "parent_step_id" | "source_regions_id", "NULL") => true,
        ("children" | "var_ids_diff_rle" | "instances_by_tile", "NULL") => true,
        ("code_bytes" | "code_bytes_by_tile_rle", "NULL") => true,
        _ => false,
    };
    each(&NEEDED, |&(table, columns)| {
        // By default each column has some of the values.
        for (number, column) in columns.split(' ').enumerate() {
            for value in values.iter().skip(number % share(3)).step_by(share(3)) {
                // Some programs have no row in the table of their type.
                let sql = match column {
                    "variant_index" => format!(
                        "UPDATE programs SET variant_index = {value} WHERE rowid =
                         (SELECT max(p.rowid) FROM programs p JOIN program_types t
                          ON t.id = p.variant WHERE t.name = 'OnTileExecute')"
                    ),
                    _ => in_last_row(table, column, value),
                };
                let case = Case::loose().sql(&sql);
                let what = format!("{table}.{column} = {value}");
                if tolerated(table, column, value) {
                    let run = case.run(&["--operation-breakdown"]);
                    assert!([0, 3].contains(&run.code), "{what}: {run:?}");
                    continue;
                }
                let run = case.run(&["--operation-breakdown"]);
                assert_eq!((run.code, &*run.out), (3, ""), "{what}: {run:?}");
                // A number that no row has is noticed where it is looked up.
                assert!(
                    run.err.contains("table `") || run.err.contains("IPUs"),
                    "{what}: {run:?}"
                );
            }
        }
    });
}

#[test]
fn rows_that_lead_nowhere() {
    let cases = [
        ("programs", "variant", "99999"),
        ("programs", "children", "x'7fff'"),
        ("control_programs", "program", "99999"),
        ("program_type_on_tile_execute", "compute_set", "99999"),
        ("compute_sets", "var_ids_diff_rle", "x'83007f7fff'"),
        ("vertex_instances", "compute_set", "99999"),
        ("vertex_instances", "vertex_type", "99999"),
        ("memory_by_vertex_type", "vertex_type", "99999"),
        ("depth_first_steps", "program_id", "99999"),
        ("depth_first_steps", "parent_step_id", "99999"),
        ("eq_class_step", "eq_class_id", "99999"),
        ("vars_info", "category", "99999"),
        ("exchange_regions", "var_id", "99999"),
        ("memory_by_compute_set", "compute_set", "99999"),
    ];
    for (table, column, value) in cases {
        let sql = in_last_row(table, column, value);
        let case = Case::loose().sql(&sql);
        case.refused(
            &sql,
            &[&format!("table `{table}`"), &format!("`{column}`"), "row "],
        );
    }
    let sql = "UPDATE programs SET variant_index = 99999 WHERE id =
               (SELECT max(p.id) FROM programs p JOIN program_types t ON t.id = p.variant
                WHERE t.name = 'OnTileExecute')";
    let parts = [
        "`variant_index`",
        "`program_type_on_tile_execute` has no such row",
    ];
    Case::new().sql(sql).refused("no variant", &parts);
}

#[test]
fn ids_that_stand_twice() {
    let tables = [
        "programs",
        "program_types",
        "control_programs",
        "program_type_on_tile_execute",
        "program_type_do_exchange",
        "compute_sets",
        "vertex_types",
        "vertex_instances",
        "memory_by_vertex_type",
        "memory_by_compute_set",
        "memory_by_category",
        "memory_by_tile",
        "depth_first_steps",
        "eq_classes",
        "var_categories",
        "vars_info",
    ];
    for table in tables {
        let sql = format!("INSERT INTO {table} SELECT * FROM {table} LIMIT 1");
        let parts = [&*format!("table `{table}`"), "duplicate id"];
        Case::loose().sql(&sql).refused(table, &parts);
    }
    for table in ["target_info", "version_info"] {
        let sql = format!("INSERT INTO {table} SELECT * FROM {table}");
        let parts = [&*format!("`{table}`"), "several rows"];
        Case::new().sql(&sql).refused(table, &parts);
    }
    // The first of several contexts with one id counts.
    let case = Case::new().cbor(|contexts, _| {
        let mut again = contexts.clone();
        again
            .iter_mut()
            .for_each(|context| set(context, "name", 0.into()));
        contexts.append(&mut again);
    });
    assert!(
        case.same("contexts")
            .contains("contexts with the id of an earlier one")
    );
}

#[test]
fn blobs() {
    let run = |count: u64| {
        let mut blob = Vec::new();
        push_varint(&mut blob, count << 1);
        push_varint(&mut blob, 3);
        blob
    };
    let list = |count: usize| vec![0x81u8; count];
    let by_run = [
        ("programs", "control_code_bytes_by_tile"),
        ("program_type_do_exchange", "code_bytes_by_tile_rle"),
        ("vertex_instances", "instances_by_tile"),
        ("memory_by_compute_set", "vertex_data_bytes"),
        ("compute_sets", "var_ids_diff_rle"),
    ];
    let by_list = [
        ("memory_by_vertex_type", "code_bytes"),
        ("memory_by_category", "interleaved_overlapped"),
    ];
    let hex = |blob: &[u8]| {
        blob.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let mut cases: Vec<(&str, &str, Vec<u8>)> = Vec::new();
    for (table, column) in by_run {
        for blob in [
            run(15),
            run(17),
            run(1 << 60),
            vec![0x86],
            vec![0x05],
            vec![0x7f; 12],
        ] {
            // Any list of existing variables is valid.
            if column != "var_ids_diff_rle" || blob.len() > 3 || blob.len() == 1 {
                cases.push((table, column, blob));
            }
        }
    }
    for (table, column) in by_list {
        for blob in [list(15), list(17), vec![0x05], vec![0x7f; 12]] {
            cases.push((table, column, blob));
        }
    }
    cases.push(("programs", "children", vec![0x05]));
    cases.push(("programs", "children", vec![0x7f; 12]));
    each(&cases, |(table, column, blob)| {
        let sql = in_last_row(table, column, &format!("x'{}'", hex(blob)));
        let parts = [
            &*format!("table `{table}`"),
            &format!("column `{column}`"),
            "row ",
        ];
        Case::loose().sql(&sql).refused(&sql, &parts);
    });
}

#[test]
fn numbers_that_cannot_be() {
    let behind = "(SELECT max(id) FROM depth_first_steps) + 2";
    let tiles = "no machine has that many tiles";
    let cases = [
        (
            "eq_class_step",
            "step_id_from",
            "step_id_to + 1",
            "is reversed",
        ),
        (
            "eq_class_step",
            "step_id_to",
            behind,
            "behind the last step",
        ),
        ("vars_info", "tile", "16", "there is no tile 16"),
        ("vars_info", "tile", "65552", "there is no tile 65552"),
        ("vars_info", "tile", "-1", "is negative"),
        ("vars_info", "size_bytes", "-1", "is negative"),
        ("vars_info", "size_bytes", "4294967296", "is too large"),
        ("vars_info", "size_bytes", MOST, "is too large"),
        ("memory_by_tile", "tile", "16", "there is no tile 16"),
        ("memory_by_tile", "total", MOST, "is too large"),
        ("memory_by_tile", "always_live_bytes", "-5", "is negative"),
        ("vertex_types", "size", "-5", "is negative"),
        ("target_info", "tiles_per_ipu", "0", tiles),
        ("target_info", "num_tiles", MOST, tiles),
        ("target_info", "bytes_per_tile", "0", "tiles of that size"),
        ("target_info", "bytes_per_tile", MOST, "tiles of that size"),
    ];
    for (table, column, value, part) in cases {
        let sql = in_last_row(table, column, value);
        let case = Case::loose().sql(&sql);
        case.refused(&sql, &[&format!("table `{table}`"), part]);
    }
    let large = "UPDATE vars_info SET size_bytes = 4294967295";
    let cases: [(&str, &[&str]); 4] = [
        (
            "UPDATE target_info SET num_tiles = 5000, tiles_per_ipu = 5000",
            &["IPUs of that many tiles"],
        ),
        (
            "DELETE FROM memory_by_tile WHERE tile = 7",
            &["`memory_by_tile`", "row 7", "no such row"],
        ),
        (
            "UPDATE vertex_types SET size = 4294967295",
            &["vertex state", "more than 4 GiB"],
        ),
        (
            large,
            &["table `vars_info`", "Code", "more than 4 GiB on tile"],
        ),
    ];
    for (sql, parts) in cases {
        Case::new().sql(sql).refused(sql, parts);
    }
    // All other variables have the largest size: sums beyond 32 bits are valid.
    let code = "'vertexCode', 'vertexInstanceState', 'vertexFieldData', 'copyDescriptor', \
                'vectorListDescriptor', 'internalExchangeCode', 'controlCode'";
    let code = format!("(SELECT id FROM var_categories WHERE name IN ({code}))");
    let case = Case::new().sql(&format!("{large} WHERE category NOT IN {code}"));
    for options in [
        &["--memory-totals", "--layer-breakdown", "--memory-affinity"][..],
        &["--solve", "--solver=greedy"],
    ] {
        let run = case.run(&[options, &["--allow-incomplete"]].concat());
        assert_eq!((run.code, run.out.is_empty()), (3, false), "{run:?}");
        assert!(run.err.contains("contradicts itself"), "{run:?}");
    }
}

/// Damage that leaves every row well formed is noticed if the compiler recorded the same facts
/// elsewhere.
#[test]
fn rows_that_are_lost() {
    let fullest = "(SELECT tile FROM memory_by_tile ORDER BY total DESC, tile LIMIT 1)";
    let always = "equivalence_class IN (SELECT id FROM eq_classes WHERE is_always_live)";
    let cases = [
        format!("UPDATE vars_info SET size_bytes = 4 WHERE {always}"),
        format!("UPDATE vars_info SET size_bytes = 4 WHERE tile = {fullest} AND NOT {always}"),
        format!("UPDATE memory_by_tile SET always_live_bytes = 1 WHERE tile = {fullest}"),
    ];
    for sql in cases {
        let parts = [
            "the profile contradicts itself: ",
            "table `memory_by_tile`, tile ",
            "its variables and code take",
        ];
        Case::loose().sql(&sql).refused(&sql, &parts);
    }
}

#[test]
fn variables_without_names_say_so() {
    let case = Case::new().sql("DELETE FROM vars_string_table");
    let run = case.run(&["--explain", "--num-ipus=4"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.err.contains(" (no name in the profile) "), "{run:?}");
}
