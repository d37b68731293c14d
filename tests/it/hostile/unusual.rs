//! Unusual but valid files: the right answer, or a refusal with the reason.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use popliner::profile::encoding::decode_list;
use rusqlite::{Connection, params};
use synthesize::encoding::{encode_diff_rle, encode_list};

use super::cases::{Case, SOLVE, tables};
use crate::oracle::codec::differences;
use crate::support::contexts;
use crate::support::models::{self, share};

#[test]
fn one_of_several_replicas_is_analysed() {
    for values in [
        "num_ipus = 2, num_tiles = 32, num_replicas = 2",
        "num_tiles = 32, num_replicas = 2",
        "num_replicas = 2",
    ] {
        let case = Case::new().sql(&format!("UPDATE target_info SET {values}"));
        case.same().says("2 identical replicas of one IPU each");
    }
    // Replicas may differ if the profile lists the tiles of all of them.
    let case = Case::new().sql(
        "UPDATE target_info SET num_tiles = 32, num_replicas = 2;
         CREATE TEMP TABLE more AS SELECT * FROM memory_by_tile;
         UPDATE more SET tile = tile + 16;
         INSERT INTO memory_by_tile SELECT * FROM more;",
    );
    case.refused(&["2 replicas", "32 tiles", "without replication"]);
    // `cli::first_run` has several IPUs without replicas.
    let case = Case::new().sql(
        "UPDATE target_info
         SET num_ipus = 4, num_tiles = 64, num_replicas = 2, ipus_per_replica = 2",
    );
    case.refused(&["replicas: 2", "compile the whole model for one IPU"]);
}

/// Models of other machines, of one layer, and of hundreds.
#[test]
fn small_and_large_models_are_solved() {
    for options in [
        "--layers=2 --tiles=1216 --bytes-per-tile=262144".to_owned(),
        "--layers=2 --tiles=1472 --bytes-per-tile=638976".to_owned(),
        "--layers=1 --tiles=4".to_owned(),
        format!("--layers={} --tiles=4", 400 / share(5)),
    ] {
        let case = Case::new();
        let options = format!("{options} --vars-per-layer-tile=1");
        models::generate(case.folder.path(), &options);
        let run = case.run("--solve --layer-breakdown");
        assert!(run.code < 2, "{run:?}");
        run.prints("# solve\n");
    }
    // Each distinct name is a layer.
    let run = Case::new().run("--solve --num-ipus=99 --layer-name-regex=(.+)");
    assert!(run.code < 2, "{run:?}");
}

/// `cli::first_run` has other major versions and an older one, and `numbers::cycle_counts` the cycles of
/// older ones.
#[test]
fn a_later_format_is_read_with_a_warning() {
    let later = "UPDATE version_info SET minor = 12";
    Case::new().sql(later).same().warns(&["3.12.0"]);
}

#[test]
fn compilation_steps() {
    let one = "UPDATE programs SET compilation_step_id = 7;
               UPDATE control_programs SET compilation_step_id = 7;
               INSERT INTO compilation_steps VALUES (7, 'main');";
    Case::new().sql(one).same();
    let two = "INSERT INTO programs SELECT 1, id, variant, variant_index, children, name,
                                           debug_id, control_code_bytes_by_tile FROM programs;";
    let parts = ["several compilation steps", "record each compilation"];
    Case::new().sql(two).refused(&parts);
}

#[test]
fn odd_names() {
    for name in ["", &"x".repeat(10_000), "層 ñ 🚀"] {
        Case::new().names(|text| format!("{text}{name}")).same();
    }
    let case = Case::new().names(|_| String::new());
    case.run("--operation-breakdown").exits(0);
    let said = "runs of steps between which little data";
    case.run("--solve").exits(3).says(said);
}

const FAR: u64 = 1 << 40;

#[test]
fn ids_beyond_32_bits() {
    let columns = "
        vars_info var_id equivalence_class category
        exchange_regions var_id id
        program_type_do_exchange source_regions_id destination_regions_id
        program_type_code_copy destination_regions_id
        host_exchange_from_host regions_id
        host_exchange_to_host regions_id
        var_categories id
        eq_classes id
        eq_class_step eq_class_id step_id_from step_id_to
        depth_first_steps id parent_step_id program_id
        programs id debug_id
        control_programs program
        compute_sets compute_set debug_id
        program_type_on_tile_execute compute_set
        vertex_instances compute_set vertex_type
        vertex_types id
        memory_by_vertex_type vertex_type
        memory_by_compute_set compute_set
    ";
    let case = Case::new();
    let connection = Connection::open(&case.profile).unwrap();
    for (table, columns) in tables(columns) {
        for column in columns {
            let sql = format!("UPDATE {table} SET {column} = {column} + {FAR}");
            connection.execute(&sql, []).expect(&sql);
        }
    }
    let far = |ids: Vec<u64>| -> Vec<u64> { ids.iter().map(|id| id + FAR).collect() };
    blobs(&connection, "programs", "children", |blob| {
        encode_list(&far(decode_list(blob, 10_000).unwrap()))
    });
    blobs(&connection, "compute_sets", "var_ids_diff_rle", |blob| {
        encode_diff_rle(&far(differences(blob)))
    });
    let case = case.cbor(|contexts, _| {
        for context in contexts {
            for key in ["id", "parentId"] {
                if let Some(id) = contexts::number(context, key).filter(|&id| id > 0) {
                    contexts::set(context, key, id + FAR);
                }
            }
        }
    });
    case.same();
}

/// Changes all blobs of a column.
fn blobs(connection: &Connection, table: &str, column: &str, change: impl Fn(&[u8]) -> Vec<u8>) {
    let sql = format!("SELECT rowid, {column} FROM {table} WHERE length({column}) > 0");
    let mut statement = connection.prepare(&sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows: Vec<(i64, Vec<u8>)> = rows.unwrap().map(Result::unwrap).collect();
    let sql = format!("UPDATE {table} SET {column} = ?2 WHERE rowid = ?1");
    for (row, blob) in rows {
        let changed = params![row, change(&blob)];
        connection.execute(&sql, changed).unwrap();
    }
}

#[test]
fn write_ahead_logs_and_journals() {
    let case = Case::new().sql("PRAGMA journal_mode = WAL; UPDATE programs SET name = name");
    case.same();
    // An empty log, and a journal that was kept.
    fs::write(case.folder.path().join("profile.pop-wal"), "").unwrap();
    case.same();
    let journal = case.folder.path().join("profile.pop-journal");
    fs::write(&journal, [0; 512]).unwrap();
    case.same();
    fs::write(&journal, b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7 and more").unwrap();
    case.refused(&["changes are waiting in", "profile.pop-journal"]);
    let mut case = Case::new();
    let writer = Connection::open(&case.profile).unwrap();
    let writing = "PRAGMA journal_mode = WAL; DELETE FROM vars_info WHERE var_id > 900";
    writer.execute_batch(writing).unwrap();
    let waiting = ["changes are waiting in", "profile.pop-wal"];
    case.refused(&waiting);
    // SQLite keeps its log beside the file that a link leads to.
    let inner = case.folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let link = inner.join("linked.pop");
    symlink(&case.profile, &link).unwrap();
    case.profile = link;
    case.refused(&waiting);
}

#[test]
fn links_pipes_and_devices() {
    let mut case = Case::new();
    let file = |case: &Case, name: &str| case.folder.path().join(name);
    let link = file(&case, "link");
    symlink(&case.profile, &link).unwrap();
    case.profile = link;
    case.same();
    let pipe = file(&case, "pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let bytes = fs::read(&case.debug).unwrap();
    case.debug.clone_from(&pipe);
    let to = pipe.clone();
    let writer = std::thread::spawn(move || fs::write(to, bytes));
    let run = case.run(SOLVE);
    writer.join().unwrap().unwrap();
    assert_eq!(run.out, Case::new().run(SOLVE).out, "{run:?}");
    let mut case = Case::new();
    for path in [pipe, "/dev/zero".into()] {
        case.profile = path;
        case.refused(&["a pipe or a device", "must be a file"]);
    }
    let mut case = Case::new();
    case.debug = "/dev/zero".into();
    case.refused(&["/dev/zero", "not a debug.cbor"]);
}
