//! The generator of synthetic profiles, held against plain SQL and a second,
//! simpler computation of what it records.

#[path = "../examples/synthesize/generator/mod.rs"]
mod generator;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use ciborium::Value;
use clap::Parser;
use popliner::profile::encoding::{decode_diff_rle, decode_list, decode_rle};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

const TILES: usize = 9;

/// Small models of every framework, mode and way of outlining.
fn cases() -> Vec<Vec<&'static str>> {
    let mut cases = Vec::new();
    for framework in ["popart", "poptorch", "tensorflow", "poplar"] {
        for mode in ["inference", "training"] {
            for outlined in ["none", "once", "per-call"] {
                cases.push(vec![
                    "--framework",
                    framework,
                    "--mode",
                    mode,
                    "--outlined",
                    outlined,
                ]);
            }
        }
    }
    cases.push(vec!["--overflow", "--outlined", "once"]);
    cases.push(vec!["--mode", "training", "--classes", "2000"]);
    cases
}

fn generate(directory: &Path, arguments: &[&str]) -> generator::Summary {
    let out = directory.to_str().expect("a plain path");
    let fixed = ["synthesize", "--out", out, "--layers", "3", "--tiles", "9"];
    let more = ["--vars-per-layer-tile", "9", "--page-size", "1024"];
    let all = fixed.iter().chain(&more).chain(arguments);
    let options = generator::options::Options::parse_from(all);
    generator::generate(options.settle()).expect("the files are written")
}

/// Runs `check` on the profile of every case.
fn with_each(check: impl Fn(&str, &Connection)) {
    for case in cases() {
        let directory = TempDir::new().unwrap();
        generate(directory.path(), &case);
        let profile = open(&directory.path().join("profile.pop"));
        check(&case.join(" "), &profile);
    }
}

fn open(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn rows<T, F>(connection: &Connection, sql: &str, read: F) -> Vec<T>
where
    F: Fn(&rusqlite::Row) -> rusqlite::Result<T>,
{
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| read(row)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn pairs(connection: &Connection, sql: &str) -> Vec<(i64, i64)> {
    rows(connection, sql, |row| Ok((row.get(0)?, row.get(1)?)))
}

#[test]
fn the_schema_is_that_of_the_real_sample() {
    let sample =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/samples/firehose.profile.pop");
    if !sample.exists() {
        eprintln!("skipped: {} is not there", sample.display());
        return;
    }
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
    let own = columns(&open(&directory.path().join("profile.pop")));
    let uri = format!("file:{}?immutable=1", sample.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let real = columns(&Connection::open_with_flags(uri, flags).unwrap());
    assert!(real.len() > 300);
    assert_eq!(own, real);
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

#[test]
fn control_code_includes_that_of_the_children() {
    with_each(|case, profile| {
        let programs: HashMap<i64, (Vec<u64>, Vec<u64>)> = rows(
            profile,
            "SELECT id, children, control_code_bytes_by_tile FROM programs",
            |row| {
                let children = decode_list(&row.get::<_, Vec<u8>>(1)?, 1 << 20).unwrap();
                let code = decode_rle(&row.get::<_, Vec<u8>>(2)?, TILES).unwrap();
                Ok((row.get(0)?, (children, code)))
            },
        )
        .into_iter()
        .collect();
        let mut parents = 0;
        for (children, code) in programs.values().filter(|program| !program.0.is_empty()) {
            parents += 1;
            for (tile, &own) in code.iter().enumerate() {
                let inside = children.iter().map(|id| programs[&(*id as i64)].1[tile]);
                assert!(own >= inside.sum(), "{case}");
            }
        }
        assert!(parents > 3, "{case}");
        let roots = "SELECT program FROM control_programs UNION ALL
                     SELECT program FROM function_programs";
        let in_trees: u64 = rows(profile, roots, |row| row.get::<_, i64>(0))
            .iter()
            .map(|root| programs[root].1.iter().sum::<u64>())
            .sum();
        let recorded = category_bytes(profile, "controlCode");
        assert!(
            recorded as u64 > in_trees,
            "{case}: start-up code comes on top"
        );
    });
}

fn category_bytes(profile: &Connection, category: &str) -> i64 {
    number(
        profile,
        &format!(
            "SELECT coalesce(sum(size_bytes), 0) FROM vars_info
             WHERE category = (SELECT id FROM var_categories WHERE name = '{category}')"
        ),
    )
}

/// Live bytes by step and tile of what is not always live, the slow way.
fn live_bytes(profile: &Connection) -> Vec<Vec<i64>> {
    let steps = number(profile, "SELECT count(*) FROM depth_first_steps") as usize;
    let mut live = vec![vec![0; TILES]; steps];
    let ranges = "SELECT v.tile, v.size_bytes, s.step_id_from, s.step_id_to
                  FROM vars_info v
                  JOIN eq_classes c ON c.id = v.equivalence_class AND c.is_always_live = 0
                  JOIN eq_class_step s ON s.eq_class_id = c.id";
    let read = |row: &rusqlite::Row| -> rusqlite::Result<[i64; 4]> {
        Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
    };
    for [tile, bytes, from, to] in rows(profile, ranges, read) {
        assert!(from < to && to as usize <= steps);
        for step in &mut live[from as usize..to as usize] {
            step[tile as usize] += bytes;
        }
    }
    live
}

#[test]
fn step_totals_are_those_of_the_variables() {
    with_each(|case, profile| {
        let live = live_bytes(profile);
        for ipu in ["IS NULL", "= 0"] {
            let deltas: HashMap<i64, i64> = pairs(
                profile,
                &format!(
                    "SELECT step_id, delta_bytes FROM memory_not_always_live_by_step_and_ipu
                     WHERE ipu {ipu}"
                ),
            )
            .into_iter()
            .collect();
            assert!(deltas.values().all(|&delta| delta != 0), "{case}");
            let mut total = 0;
            for (step, tiles) in live.iter().enumerate() {
                total += deltas.get(&(step as i64)).unwrap_or(&0);
                assert_eq!(total, tiles.iter().sum::<i64>(), "{case}, step {step}");
            }
        }
    });
}

#[test]
fn tiles_and_categories_are_those_of_the_variables() {
    with_each(|case, profile| {
        let live = live_bytes(profile);
        let always: HashMap<i64, i64> = pairs(
            profile,
            "SELECT v.tile, sum(v.size_bytes) FROM vars_info v
             JOIN eq_classes c ON c.id = v.equivalence_class
             WHERE c.is_always_live = 1 GROUP BY v.tile",
        )
        .into_iter()
        .collect();
        let categories = category_sums(profile);
        let sql = "SELECT tile, total, always_live_bytes, not_always_live_max_bytes,
                   interleaved + non_interleaved + overflowed, overflowed FROM memory_by_tile";
        let read = |row: &rusqlite::Row| -> rusqlite::Result<Vec<i64>> {
            (0..6).map(|column| row.get(column)).collect()
        };
        let limit = number(profile, "SELECT bytes_per_tile FROM target_info");
        let recorded = rows(profile, sql, read);
        assert_eq!(recorded.len(), TILES);
        for row in recorded {
            let tile = row[0] as usize;
            let peak = live.iter().map(|step| step[tile]).max().unwrap();
            assert_eq!(row[2], always[&row[0]], "{case}, tile {tile}");
            assert_eq!(row[3], peak, "{case}, tile {tile}");
            assert_eq!(row[1], row[2] + row[3], "{case}, tile {tile}");
            assert_eq!(row[4], row[1], "{case}, tile {tile}");
            assert_eq!(row[5], (row[1] - limit).max(0), "{case}, tile {tile}");
            assert_eq!(categories[tile] as i64, row[1], "{case}, tile {tile}");
            assert_eq!(row[5] > 0, case.contains("overflow"), "{case}, tile {tile}");
        }
    });
}

/// Sum of `memory_by_category` over categories and columns, by tile.
fn category_sums(profile: &Connection) -> Vec<u64> {
    let mut sums = vec![0; TILES];
    let blobs = rows(profile, "SELECT * FROM memory_by_category", |row| {
        (1..7)
            .map(|column| row.get(column))
            .collect::<Result<Vec<Vec<u8>>, _>>()
    });
    assert_eq!(blobs.len(), 27);
    for blob in blobs.iter().flatten() {
        let values = decode_list(blob, TILES).unwrap();
        assert_eq!(values.len(), TILES);
        sums.iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum += value);
    }
    sums
}

#[test]
fn code_of_the_categories_is_that_of_programs_and_vertices() {
    with_each(|case, profile| {
        let sum = |sql: &str, list: bool| -> i64 {
            let blobs: Vec<Vec<u8>> = rows(profile, sql, |row| row.get(0));
            let decode = if list { decode_list } else { decode_rle };
            let totals = blobs
                .iter()
                .map(|blob| decode(blob, TILES).unwrap().iter().sum::<u64>());
            totals.sum::<u64>() as i64
        };
        let state: i64 = ["vertex_data_bytes", "edge_ptr_bytes", "copy_ptr_bytes"]
            .map(|column| {
                sum(
                    &format!("SELECT {column} FROM memory_by_compute_set"),
                    false,
                )
            })
            .iter()
            .sum();
        let recorded =
            ["vertexInstanceState", "vertexFieldData"].map(|c| category_bytes(profile, c));
        assert_eq!(state, recorded.iter().sum::<i64>(), "{case}");
        let descriptors = sum("SELECT descriptor_bytes FROM memory_by_compute_set", false);
        assert_eq!(
            descriptors,
            category_bytes(profile, "copyDescriptor"),
            "{case}"
        );
        let types = sum("SELECT code_bytes FROM memory_by_vertex_type", true);
        assert!(category_bytes(profile, "vertexCode") > types, "{case}");
        for category in [
            "stack",
            "hostMessage",
            "hostExchangeCode",
            "instrumentationResults",
        ] {
            assert!(category_bytes(profile, category) > 0, "{case}, {category}");
        }
    });
}

#[test]
fn foreign_ids_resolve() {
    with_each(|case, profile| {
        for (table, column, target, key) in [
            ("programs", "variant", "program_types", "id"),
            ("control_programs", "program", "programs", "id"),
            ("function_programs", "program", "programs", "id"),
            (
                "program_type_call",
                "function_id",
                "function_programs",
                "id",
            ),
            (
                "program_type_on_tile_execute",
                "compute_set",
                "compute_sets",
                "compute_set",
            ),
            (
                "program_type_do_exchange",
                "source_regions_id",
                "exchange_target",
                "id",
            ),
            (
                "program_type_do_exchange",
                "destination_regions_id",
                "exchange_target",
                "id",
            ),
            (
                "program_type_code_copy",
                "destination_regions_id",
                "exchange_target",
                "id",
            ),
            (
                "host_exchange_from_host",
                "regions_id",
                "exchange_target",
                "id",
            ),
            (
                "host_exchange_to_host",
                "regions_id",
                "exchange_target",
                "id",
            ),
            (
                "host_exchange_to_host",
                "stream_copy_mid_id",
                "program_type_stream_copy_mid",
                "id",
            ),
            ("exchange_regions", "id", "exchange_target", "id"),
            ("exchange_regions", "var_id", "vars_info", "var_id"),
            ("vertex_instances", "vertex_type", "vertex_types", "id"),
            (
                "vertex_instances",
                "compute_set",
                "compute_sets",
                "compute_set",
            ),
            ("memory_by_vertex_type", "vertex_type", "vertex_types", "id"),
            ("vars_info", "category", "var_categories", "id"),
            ("vars_info", "name_base_id", "vars_string_table", "id"),
            ("vars_info", "unlowered_var_id", "unlowered_vars", "id"),
            ("debug_ids", "variable_id", "unlowered_vars", "id"),
            (
                "var_bytes_by_eq_class",
                "unlowered_var_id",
                "unlowered_vars",
                "id",
            ),
            ("var_bytes_by_eq_class", "eq_class_id", "eq_classes", "id"),
            ("eq_class_step", "eq_class_id", "eq_classes", "id"),
            ("depth_first_steps", "program_id", "programs", "id"),
            (
                "depth_first_steps",
                "parent_step_id",
                "depth_first_steps",
                "id",
            ),
        ] {
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
            let ids = decode_diff_rle(&blob, limit as usize + 1).unwrap();
            assert!(ids.is_sorted_by(|a, b| a < b), "{case}");
            assert!(ids.iter().all(|&id| id <= limit), "{case}");
        }
    });
}

/// Fields of the contexts of a case by id, and the names of its string table.
fn contexts(directory: &Path) -> (Vec<HashMap<String, Value>>, usize) {
    let file = std::fs::File::open(directory.join("debug.cbor")).unwrap();
    let document: Value = ciborium::from_reader(std::io::BufReader::new(file)).unwrap();
    let entries = document.into_map().unwrap();
    let names: Vec<_> = entries
        .iter()
        .map(|entry| entry.0.as_text().unwrap())
        .collect();
    assert_eq!(names, ["contexts", "stringTable"]);
    let strings = entries[1].1.as_array().unwrap().len();
    let list = entries.into_iter().next().unwrap().1.into_array().unwrap();
    let contexts = list.into_iter().map(|context| {
        let fields = context.into_map().unwrap().into_iter();
        fields
            .map(|(key, value)| (key.into_text().unwrap(), value))
            .collect()
    });
    (contexts.collect(), strings)
}

fn uint(value: Option<&Value>) -> Option<u64> {
    value.map(|value| value.as_integer().unwrap().try_into().unwrap())
}

#[test]
fn contexts_parse_and_come_before_their_parents() {
    for case in cases() {
        let directory = TempDir::new().unwrap();
        let summary = generate(directory.path(), &case);
        let (contexts, strings) = contexts(directory.path());
        assert_eq!(contexts.len(), summary.contexts, "{case:?}");
        let ids: HashSet<u64> = contexts
            .iter()
            .map(|c| uint(c.get("id")).unwrap())
            .collect();
        assert_eq!(ids.len(), contexts.len(), "{case:?}");
        let mut written = HashSet::new();
        for context in &contexts {
            if let Some(parent) = uint(context.get("parentId")) {
                assert!(
                    ids.contains(&parent) && !written.contains(&parent),
                    "{case:?}"
                );
            }
            written.insert(uint(context.get("id")).unwrap());
            assert!((uint(context.get("name")).unwrap() as usize) < strings);
        }
        let profile = open(&directory.path().join("profile.pop"));
        let used = "SELECT debug_id FROM programs UNION SELECT debug_id FROM compute_sets";
        let used = rows(&profile, used, |row| row.get::<_, i64>(0));
        assert!(
            used.iter().all(|id| ids.contains(&(*id as u64))),
            "{case:?}"
        );
        assert_eq!(
            summary.steps as i64,
            number(&profile, "SELECT count(*) FROM depth_first_steps")
        );
        assert_eq!(
            summary.programs as i64,
            number(&profile, "SELECT count(*) FROM programs")
        );
        assert_eq!(
            summary.classes as i64,
            number(&profile, "SELECT count(*) FROM eq_classes")
        );
        assert_eq!(
            summary.variables as i64,
            number(&profile, "SELECT count(*) FROM vars_info")
        );
        assert!(summary.shared > 0, "{case:?}");
    }
}

#[test]
fn bodies_of_functions_are_listed_as_asked() {
    for (outlined, listings) in [("once", 1), ("per-call", 3)] {
        let directory = TempDir::new().unwrap();
        generate(directory.path(), &["--outlined", outlined]);
        let profile = open(&directory.path().join("profile.pop"));
        let listed = "SELECT count(*) FROM depth_first_steps
                      WHERE program_id IN (SELECT program FROM function_programs)";
        assert_eq!(number(&profile, listed), listings);
        let calls = number(&profile, "SELECT count(*) FROM program_type_call");
        assert_eq!(calls, 3);
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
