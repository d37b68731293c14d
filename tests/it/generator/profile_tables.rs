//! Schema and ids, and the requested numbers.

use std::collections::HashSet;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::support::{decode_diff_rle, sample};

use super::{generate, number, open, rows, with_each};

#[test]
fn the_schema_is_that_of_the_real_sample() {
    let Some(sample) = sample("firehose.profile.pop") else {
        return;
    };
    let columns = |connection: &Connection| -> Vec<(String, String, String, i64, i64)> {
        rows(
            connection,
            "SELECT t.name, c.name, upper(c.type), c.\"notnull\", c.pk
             FROM sqlite_master t, pragma_table_info(t.name) c
             WHERE t.type = 'table' ORDER BY t.rowid, c.cid",
            |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                ))
            },
        )
    };
    let directory = TempDir::new().unwrap();
    generate(directory.path(), &[]);
    let found = columns(&open(&directory.path().join("profile.pop")));
    let uri = format!("file:{}?immutable=1", sample.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let real = columns(&Connection::open_with_flags(uri, flags).unwrap());
    assert!(real.len() > 300);
    assert_eq!(found, real);
}

#[test]
fn one_seed_gives_the_same_bytes_and_another_seed_others() {
    for case in [["--framework", "popart"], ["--framework", "tensorflow"]] {
        let files = |seed: &str| {
            let directory = TempDir::new().unwrap();
            let mut arguments = case.to_vec();
            arguments.extend(["--mode", "training", "--outlined", "once", "--seed", seed]);
            generate(directory.path(), &arguments);
            ["profile.pop", "debug.cbor"]
                .map(|name| std::fs::read(directory.path().join(name)).unwrap())
        };
        assert!(files("3") == files("3"), "{case:?}");
        assert!(files("3")[0] != files("4")[0], "{case:?}");
    }
}

/// Columns of ids, each with the column that it refers to.
const IDS: [(&str, &str); 25] = [
    ("programs.variant", "program_types.id"),
    ("control_programs.program", "programs.id"),
    ("function_programs.program", "programs.id"),
    ("program_type_call.function_id", "function_programs.id"),
    (
        "program_type_on_tile_execute.compute_set",
        "compute_sets.compute_set",
    ),
    (
        "program_type_do_exchange.source_regions_id",
        "exchange_target.id",
    ),
    (
        "program_type_do_exchange.destination_regions_id",
        "exchange_target.id",
    ),
    (
        "program_type_code_copy.destination_regions_id",
        "exchange_target.id",
    ),
    ("host_exchange_from_host.regions_id", "exchange_target.id"),
    ("host_exchange_to_host.regions_id", "exchange_target.id"),
    (
        "host_exchange_to_host.stream_copy_mid_id",
        "program_type_stream_copy_mid.id",
    ),
    ("exchange_regions.id", "exchange_target.id"),
    ("exchange_regions.var_id", "vars_info.var_id"),
    ("vertex_instances.vertex_type", "vertex_types.id"),
    ("vertex_instances.compute_set", "compute_sets.compute_set"),
    ("memory_by_vertex_type.vertex_type", "vertex_types.id"),
    ("vars_info.category", "var_categories.id"),
    ("vars_info.name_base_id", "vars_string_table.id"),
    ("vars_info.unlowered_var_id", "unlowered_vars.id"),
    ("debug_ids.variable_id", "unlowered_vars.id"),
    (
        "var_bytes_by_eq_class.unlowered_var_id",
        "unlowered_vars.id",
    ),
    ("var_bytes_by_eq_class.eq_class_id", "eq_classes.id"),
    ("eq_class_step.eq_class_id", "eq_classes.id"),
    ("depth_first_steps.program_id", "programs.id"),
    ("depth_first_steps.parent_step_id", "depth_first_steps.id"),
];

#[test]
fn foreign_ids_resolve() {
    with_each(|case, profile| {
        for (from, to) in IDS {
            let [(table, column), (target, key)] =
                [from, to].map(|place| place.split_once('.').expect("a column"));
            let sql = format!(
                "SELECT count(*) FROM {table} WHERE {column} IS NOT NULL
                 AND {column} NOT IN (SELECT {key} FROM {target})"
            );
            assert_eq!(number(profile, &sql), 0, "{case}: {table}.{column}");
        }
        let dense = "SELECT count(*) - max(var_id) FROM vars_info";
        assert_eq!(number(profile, dense), 1, "{case}");
        let limit = number(profile, "SELECT max(var_id) FROM vars_info") as u64;
        let sets: Vec<Vec<u8>> = rows(
            profile,
            "SELECT var_ids_diff_rle FROM compute_sets",
            |row| row.get(0),
        );
        for blob in sets {
            let ids = decode_diff_rle(&blob);
            assert!(ids.is_sorted_by(|a, b| a < b), "{case}");
            assert!(ids.iter().all(|&id| id <= limit), "{case}");
        }
    });
}

#[test]
fn programs_use_all_user_data() {
    with_each(|case, profile| {
        let user = "SELECT var_id FROM vars_info WHERE size_bytes > 0 AND category IN
                    (SELECT id FROM var_categories WHERE name IN
                     ('variable', 'constant', 'message', 'rearrangement', 'outputEdge'))";
        let mut unused: HashSet<u64> = rows(profile, user, |row| row.get(0)).into_iter().collect();
        assert!(unused.len() > 300, "{case}");
        let sets = "SELECT var_ids_diff_rle FROM compute_sets";
        for blob in rows(profile, sets, |row| row.get::<_, Vec<u8>>(0)) {
            for id in decode_diff_rle(&blob) {
                unused.remove(&id);
            }
        }
        for id in rows(profile, "SELECT var_id FROM exchange_regions", |row| {
            row.get(0)
        }) {
            unused.remove(&id);
        }
        assert!(unused.is_empty(), "{case}");
    });
}

#[test]
fn bodies_of_functions_are_listed_as_asked() {
    let nested = &["--nested"][..];
    for (outlined, more, listings) in [
        ("once", &[][..], 1),
        ("per-call", &[], 3),
        ("once", nested, 2),
        ("per-call", nested, 3 + 2 * 3),
    ] {
        let directory = TempDir::new().unwrap();
        generate(
            directory.path(),
            &[&["--outlined", outlined], more].concat(),
        );
        let profile = open(&directory.path().join("profile.pop"));
        let listed = "SELECT count(*) FROM depth_first_steps
                      WHERE program_id IN (SELECT program FROM function_programs)";
        assert_eq!(number(&profile, listed), listings);
        let calls = number(&profile, "SELECT count(*) FROM program_type_call");
        assert_eq!(calls, 3 + 2 * more.len() as i64);
    }
}

#[test]
fn aims_are_met() {
    let directory = TempDir::new().unwrap();
    let aims = [
        "--variables",
        "9000",
        "--steps",
        "1500",
        "--classes",
        "1200",
        "--contexts",
        "4000",
    ];
    let summary = generate(directory.path(), &aims);
    let near = |found: usize, aim: usize| found.abs_diff(aim) * 10 <= aim;
    assert!(near(summary.variables, 9000), "{summary:?}");
    assert!(near(summary.steps, 1500), "{summary:?}");
    assert!(near(summary.classes, 1200), "{summary:?}");
    assert!(near(summary.contexts, 4000), "{summary:?}");
}

#[test]
fn an_execution_is_that_of_the_program_tree() {
    with_each(|case, profile| {
        let count = |sql: &str| number(profile, sql);
        let steps = count("SELECT count(*) FROM steps");
        assert_eq!(steps > 0, case.contains("--execution"), "{case}");
        for sql in [
            "SELECT count(*) FROM steps_by_ipu JOIN steps ON id = step_id",
            "SELECT coalesce(sum(num_steps), 0) FROM runs",
        ] {
            assert_eq!(count(sql), steps, "{case}: {sql}");
        }
        let named = count("SELECT count(program) FROM steps");
        assert_eq!(
            count("SELECT coalesce(sum(num_programs), 0) FROM runs"),
            named
        );
        assert_eq!(
            named,
            count(
                "SELECT count(*) FROM steps s JOIN programs p ON p.id = s.program
                 JOIN program_types t ON t.id = p.variant AND t.name = s.type"
            ),
            "{case}"
        );
        let sets = count("SELECT count(cycles_by_tile_ids) FROM compute_sets");
        assert_eq!(sets == 0, case.contains("--no-cycle-estimates"), "{case}");
    });
}
