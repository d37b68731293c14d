//! Files that were made to do harm.

use ciborium::Value;
use rusqlite::{Connection, params};
use synthesize::encoding::encode_list;

use super::cases::{Case, hex, number, run_of};
use crate::support::contexts::set;
use crate::support::models;

#[test]
fn few_bytes_that_name_many_variables() {
    let case = Case::new();
    let variables = number(&case.profile, "SELECT count(*) FROM vars_info") as u64;
    let all = [vec![0x83, 0x80], run_of(variables - 1, 1)].concat();
    let connection = Connection::open(&case.profile).unwrap();
    let sql = "WITH RECURSIVE n(n) AS (SELECT 100000 UNION ALL SELECT n + 1 FROM n LIMIT 15000)
               INSERT INTO compute_sets (compute_set, name, vertex_types, vertex_counts,
                                         var_ids_diff_rle)
               SELECT n, '', x'', x'', ?1 FROM n";
    connection.execute(sql, params![all]).unwrap();
    drop(connection);
    let parts = ["`compute_sets`", "`var_ids_diff_rle`", "row 1", "together"];
    case.refused(&parts);
    // A list that has one variable 2^60 times.
    let same = [vec![0x83, 0x80], run_of(1 << 60, 0)].concat();
    let change = format!(
        "SET var_ids_diff_rle = {} WHERE compute_set = 1",
        hex(&same)
    );
    let case = Case::new().sql(&format!("UPDATE compute_sets {change}"));
    case.refused(&["`var_ids_diff_rle`", "row 1", "expands to more"]);
}

/// Returns programs that each run the next one twice; with `call`, through a Call.
fn doubled(levels: i64, each: usize, call: bool) -> Case {
    let case = Case::new();
    let connection = Connection::open(&case.profile).unwrap();
    let kind = |name: &str| {
        let sql = "INSERT INTO program_types SELECT max(id) + 1, ?1, '' FROM program_types
                   WHERE ?1 NOT IN (SELECT name FROM program_types)";
        connection.execute(sql, [name]).unwrap();
        let sql = "SELECT id FROM program_types WHERE name = ?1";
        connection.query_row(sql, [name], |row| row.get(0)).unwrap()
    };
    let (sequence, calls): (i64, i64) = (kind("Sequence"), kind("Call"));
    let add = |id: i64, kind: i64, index: Option<i64>, children: &[u64]| {
        let sql = "INSERT INTO programs (id, variant, variant_index, children, debug_id,
                                         control_code_bytes_by_tile)
                   VALUES (?1, ?2, ?3, ?4, 1, x'')";
        let row = params![id, kind, index, encode_list(children)];
        connection.execute(sql, row).unwrap();
    };
    for level in 0..levels {
        let (body, next) = (1000 + 10 * level, 1010 + 10 * level);
        let mut children = vec![next as u64; each];
        if call {
            for (n, child) in children.iter_mut().enumerate() {
                *child = (body + 1) as u64 + n as u64;
                add(*child as i64, calls, Some(level), &[]);
            }
            let sql = "INSERT INTO function_programs (id, program) VALUES (?1, ?2)";
            connection.execute(sql, [level, next]).unwrap();
            let sql = "INSERT INTO program_type_call (id, function_id) VALUES (?1, ?1)";
            connection.execute(sql, [level]).unwrap();
        }
        add(body, sequence, None, &children);
    }
    add(1000 + 10 * levels, sequence, None, &[]);
    let sql = "INSERT INTO control_programs (id, program) VALUES (77, 1000)";
    connection.execute(sql, []).unwrap();
    drop(connection);
    case
}

#[test]
fn calls_in_calls() {
    let run = doubled(60, 2, false).run("--solve");
    assert!(run.code < 2, "{run:?}");
    doubled(40, 2, true).refused(&["unfolds to more than", "`program_type_call`"]);
    doubled(100, 1, true).refused(&["nested more than 64 deep at program 1641"]);
    let run = doubled(50, 1, true).run("--solve");
    assert!(run.code < 2, "{run:?}");
}

#[test]
fn too_many_layers() {
    let case = Case::new();
    let options = "--layers=300 --tiles=4 --vars-per-layer-tile=1 --framework=popart";
    models::generate(case.folder.path(), options);
    let run = case.run("--solve --layer-name-regex=(.+)");
    run.refuses(2, &["2048 are the maximum", "--layer-name-regex"]);
}

#[test]
fn regexes_that_explode_elsewhere() {
    let case = Case::new().names(|_| "x".repeat(10_000));
    for regex in ["(x+x+)+y", "(?:x?){30}x{30}z", "^(x|xx)+$y"] {
        let option = format!("--layer-name-regex={regex}");
        case.run(&["--operation-breakdown", &option]).exits(0);
    }
    let run = case.run("--solve --layer-name-regex=((a{1000}){1000}){10}");
    run.exits(2).says("size limit");
    // An operation whose inputs name very many layers.
    let inputs: Vec<Value> = (0..30_000).map(|n| format!("layer{n}").into()).collect();
    let case = Case::of("popart-bert-inference").cbor(|contexts, _| {
        let is_operation = |context: &Value| format!("{context:?}").contains("opid");
        let place = contexts.iter().position(is_operation);
        let operation = &mut contexts[place.expect("an operation")];
        set(operation, "inputs", Value::Array(inputs));
    });
    case.run("--operation-breakdown").exits(0);
}
