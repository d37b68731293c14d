//! Unusual but valid files: the right answer, or a refusal with the reason.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use ciborium::Value;
use popliner::profile::encoding::{decode_list, encode_diff_rle, encode_list};
use rusqlite::{Connection, params};

use crate::hostile::cases::{Case, get, limited, number, set};
use crate::support::models::{self, share};
use crate::support::{cells, decode_diff_rle, finish};

#[test]
fn machines_of_several_ipus_are_refused() {
    let cases = [
        ("two IPUs", "num_ipus = 2, num_tiles = 32", "2 IPUs"),
        (
            "a pipeline over four",
            "num_ipus = 4, num_tiles = 64, ipus_per_replica = 4",
            "4 IPUs",
        ),
        (
            "two replicas of two IPUs",
            "num_ipus = 4, num_tiles = 64, num_replicas = 2, ipus_per_replica = 2",
            "replicas: 2",
        ),
    ];
    for (what, values, part) in cases {
        let case = Case::new().sql(&format!("UPDATE target_info SET {values}"));
        case.refused(what, &[part, "compile the whole model for one IPU"]);
    }
}

#[test]
fn one_of_several_replicas_is_analysed() {
    for values in [
        "num_ipus = 2, num_tiles = 32, num_replicas = 2",
        "num_tiles = 32, num_replicas = 2",
        "num_replicas = 2",
    ] {
        let case = Case::new().sql(&format!("UPDATE target_info SET {values}"));
        let message = case.same(values);
        assert!(
            message.contains("2 identical replicas of one IPU each"),
            "{message}"
        );
    }
    // Replicas that are all listed may differ.
    let case = Case::new().sql(
        "UPDATE target_info SET num_tiles = 32, num_replicas = 2;
         CREATE TEMP TABLE more AS SELECT * FROM memory_by_tile;
         UPDATE more SET tile = tile + 16;
         INSERT INTO memory_by_tile SELECT * FROM more;",
    );
    case.refused(
        "replicas listed each",
        &["2 replicas", "32 tiles", "without replication"],
    );
}

fn generated(options: &[&str]) -> Case {
    let case = Case::new();
    let options: Vec<String> = options.iter().map(|&option| option.into()).collect();
    models::generate(case.folder.path(), &options);
    fs::remove_file(case.folder.path().join("planted.json")).ok();
    case
}

#[test]
fn a_mk1_and_other_tiles() {
    for (tiles, bytes) in [(1216, 262_144), (1472, 638_976)] {
        let tiles = format!("--tiles={tiles}");
        let bytes = format!("--bytes-per-tile={bytes}");
        let case = generated(&["--layers=2", "--vars-per-layer-tile=1", &tiles, &bytes]);
        let run = case.run(&["--solve", "--memory-totals"]);
        assert_eq!(run.code, 0, "{run:?}");
    }
}

#[test]
fn other_format_versions_are_read_with_a_warning() {
    let cases = [("3, minor = 1", "3.1.0"), ("3, minor = 12", "3.12.0")];
    for (values, part) in cases {
        let sql = format!("UPDATE version_info SET major = {values}");
        let message = Case::new().sql(&sql).same(values);
        let warning = message.lines().find(|line| line.starts_with("warning: "));
        assert!(warning.is_some_and(|line| line.contains(part)), "{message}");
    }
    for (major, part) in [(4, "4.8.0"), (2, "2.8.0"), (0, "0.8.0")] {
        let sql = format!("UPDATE version_info SET major = {major}");
        let parts = [part, "reads only format 3", "record it with such an SDK"];
        Case::new().sql(&sql).refused(part, &parts);
    }
    // Before format 3.2, cycle estimates were in other columns.
    let case = Case::new().sql(
        "UPDATE version_info SET minor = 1;
         ALTER TABLE compute_sets DROP COLUMN cycles_by_tile_ids;
         ALTER TABLE program_type_do_exchange DROP COLUMN cycles_by_tile_ids;
         DROP TABLE compilation_cycles_by_tile;",
    );
    assert!(case.same("before 3.2").contains("3.1.0"));
}

#[test]
fn compilation_steps() {
    let one = "UPDATE programs SET compilation_step_id = 7;
               UPDATE control_programs SET compilation_step_id = 7;
               INSERT INTO compilation_steps VALUES (7, 'main');";
    Case::new().sql(one).same("one compilation step");
    let two = "INSERT INTO programs SELECT 1, id, variant, variant_index, children, name,
                                           debug_id, control_code_bytes_by_tile FROM programs;";
    Case::new().sql(two).refused(
        "two",
        &["several compilation steps", "record each compilation"],
    );
}

/// The oracle checks the numbers in other tests. Here it is enough that both ways to list a body's
/// steps are read.
#[test]
fn function_bodies_once_and_for_each_call() {
    for outlined in ["once", "per-call"] {
        let case = generated(&["--layers=3", "--tiles=4", "--outlined", outlined]);
        let run = case.run(&["--solve"]);
        assert_eq!(run.code, 0, "{run:?}");
    }
}

#[test]
fn a_program_of_several_parents() {
    let case = Case::new();
    let leaf = "SELECT id FROM programs WHERE length(children) = 0 AND id < 128 AND debug_id > 0";
    let leaf = number(&case.profile, leaf) as u8;
    let sql = format!(
        "UPDATE programs SET children = children || x'{:02x}' WHERE length(children) > 1",
        0x80 | leaf
    );
    // A concatenation is text in SQLite.
    let case = case
        .sql(&sql)
        .sql("UPDATE programs SET children = CAST(children AS BLOB)");
    let run = case.run(&["--solve"]);
    assert!(run.code < 2, "{run:?}");
}

#[test]
fn odd_names() {
    let long = "x".repeat(10_000);
    let names = [
        "",
        ",;\t",
        "\"'`",
        "\n\r\n",
        "層 ñ 🚀",
        "=1+1",
        "\u{1b}[2J\u{202e}",
        &long,
    ];
    for name in names {
        let case = Case::new().cbor(|_, strings| {
            for string in strings.iter_mut() {
                let text = string.as_text().unwrap();
                *string = Value::Text(format!("{text}{name}"));
            }
        });
        case.same(name);
        let run = case.run(&["--operation-breakdown", "--format=csv"]);
        assert_eq!(run.code, 0, "{name}: {run:?}");
        assert!(!run.out.contains('\u{1b}') && !run.out.contains('\u{202e}'));
        let plain = Case::new().run(&["--operation-breakdown", "--format=csv"]);
        assert_eq!(cells(&run.out, ',').len(), cells(&plain.out, ',').len());
    }
    let case = Case::new().cbor(|_, strings| strings.fill(Value::Text(String::new())));
    let run = case.run(&["--operation-breakdown"]);
    assert_eq!(run.code, 0, "{run:?}");
    let run = case.run(&["--solve"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.err.contains("runs of steps between which little data"),
        "{run:?}"
    );
}

/// A regex finds layer names, so missing numbers change only names.
#[test]
fn layers_with_gaps() {
    let case = Case::new().cbor(|_, strings| {
        for string in strings.iter_mut() {
            let text = string.as_text().unwrap();
            let digits = text.rfind(|c: char| c.is_ascii_digit());
            let spread = digits.map(|at| format!("{}7{}", &text[..=at], &text[at + 1..]));
            *string = Value::Text(spread.unwrap_or(text.to_string()));
        }
    });
    let (run, plain) = (case.run(&["--solve"]), Case::new().run(&["--solve"]));
    assert_eq!(run.code, plain.code, "{run:?}");
    let bytes = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains("_mem\""));
        lines.map(str::to_string).collect()
    };
    assert_eq!(bytes(&run.out), bytes(&plain.out));
}

#[test]
fn one_layer_and_hundreds() {
    for layers in [1, 400 / share(2)] {
        let layers = format!("--layers={layers}");
        let case = generated(&[&layers, "--tiles=4", "--vars-per-layer-tile=1"]);
        let run = case.run(&["--layer-breakdown", "--solve"]);
        assert!(run.code < 2, "{run:?}");
        assert!(run.out.contains("# solve\n"), "{run:?}");
    }
}

#[test]
fn a_layer_with_one_operation() {
    // Each distinct name is a layer.
    let case = Case::new();
    let run = case.run(&["--solve", "--num-ipus=99", "--layer-name-regex=(.+)"]);
    assert!(run.code < 2, "{run:?}");
}

const FAR: i64 = 1 << 40;

#[test]
fn ids_beyond_32_bits() {
    let case = Case::new();
    let connection = Connection::open(&case.profile).unwrap();
    let plus = |table: &str, columns: &[&str]| {
        for column in columns {
            let sql = format!("UPDATE {table} SET {column} = {column} + {FAR}");
            connection.execute(&sql, []).expect(&sql);
        }
    };
    plus("vars_info", &["var_id"]);
    plus("exchange_regions", &["var_id", "id"]);
    plus(
        "program_type_do_exchange",
        &["source_regions_id", "destination_regions_id"],
    );
    plus("program_type_code_copy", &["destination_regions_id"]);
    plus("host_exchange_from_host", &["regions_id"]);
    plus("host_exchange_to_host", &["regions_id"]);
    plus("vars_info", &["equivalence_class", "category"]);
    plus("var_categories", &["id"]);
    plus("eq_classes", &["id"]);
    plus(
        "eq_class_step",
        &["eq_class_id", "step_id_from", "step_id_to"],
    );
    plus("depth_first_steps", &["id", "parent_step_id", "program_id"]);
    plus("programs", &["id", "debug_id"]);
    plus("control_programs", &["program"]);
    plus("compute_sets", &["compute_set", "debug_id"]);
    plus("program_type_on_tile_execute", &["compute_set"]);
    plus("vertex_instances", &["compute_set", "vertex_type"]);
    plus("vertex_types", &["id"]);
    plus("memory_by_vertex_type", &["vertex_type"]);
    plus("memory_by_compute_set", &["compute_set"]);
    blobs(&connection, "programs", "children", |blob| {
        let ids = decode_list(blob, 10_000).unwrap();
        encode_list(&ids.iter().map(|id| id + FAR as u64).collect::<Vec<_>>())
    });
    blobs(&connection, "compute_sets", "var_ids_diff_rle", |blob| {
        let ids = decode_diff_rle(blob);
        encode_diff_rle(&ids.iter().map(|id| id + FAR as u64).collect::<Vec<_>>())
    });
    let case = case.cbor(|contexts, _| {
        for context in contexts {
            for key in ["id", "parentId"] {
                if let Some(id) = get(context, key).filter(|&id| id > 0) {
                    set(context, key, Value::from(id + FAR as u64));
                }
            }
        }
    });
    case.same("ids beyond 32 bits");
}

fn blobs(connection: &Connection, table: &str, column: &str, change: impl Fn(&[u8]) -> Vec<u8>) {
    let sql = format!("SELECT rowid, {column} FROM {table} WHERE length({column}) > 0");
    let mut statement = connection.prepare(&sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows: Vec<(i64, Vec<u8>)> = rows.unwrap().map(Result::unwrap).collect();
    for (row, blob) in rows {
        let sql = format!("UPDATE {table} SET {column} = ?2 WHERE rowid = ?1");
        connection
            .execute(&sql, params![row, change(&blob)])
            .unwrap();
    }
}

#[test]
fn write_ahead_logs_and_journals() {
    let case = Case::new().sql("PRAGMA journal_mode = WAL; UPDATE programs SET name = name");
    case.same("closed in WAL mode");
    fs::write(case.folder.path().join("profile.pop-wal"), "").unwrap();
    case.same("an empty log");
    let journal = case.folder.path().join("profile.pop-journal");
    fs::write(&journal, [0; 512]).unwrap();
    case.same("a journal that was kept");
    fs::write(&journal, b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7 and more").unwrap();
    case.refused(
        "a hot journal",
        &["changes are waiting in", "profile.pop-journal"],
    );
    let case = Case::new();
    let writer = Connection::open(&case.profile).unwrap();
    let writing = "PRAGMA journal_mode = WAL; DELETE FROM vars_info WHERE var_id > 900";
    writer.execute_batch(writing).unwrap();
    case.refused(
        "being written",
        &["changes are waiting in", "profile.pop-wal"],
    );
    // SQLite keeps its log beside the file that a link leads to.
    let link = case.folder.path().join("inner");
    fs::create_dir(&link).unwrap();
    symlink(&case.profile, link.join("linked.pop")).unwrap();
    let arguments = [
        link.join("linked.pop"),
        case.debug.clone(),
        "--solve".into(),
    ];
    let arguments: Vec<&OsStr> = arguments.iter().map(|a| a.as_os_str()).collect();
    let run = finish(&mut limited("", &arguments));
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.err.contains("profile.pop-wal"), "{run:?}");
}

#[test]
fn odd_paths() {
    let names: [&[u8]; 7] = [
        b"with space",
        b"what?mode=rw",
        b"a#b",
        b"100%25",
        b"\xff\xfe",
        b"new\nline",
        b"-dash",
    ];
    for name in names {
        let mut case = Case::new();
        let path = case.folder.path().join(OsStr::from_bytes(name));
        fs::rename(&case.profile, &path).unwrap();
        case.profile = path;
        case.same(&String::from_utf8_lossy(name));
        case.sql("DROP TABLE programs")
            .refused("its message", &["`programs`"]);
    }
}

#[test]
fn links_pipes_and_devices() {
    let mut case = Case::new();
    let link = case.folder.path().join("link");
    symlink(&case.profile, &link).unwrap();
    case.profile = link;
    case.same("a link");
    let pipe = case.folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let bytes = fs::read(&case.debug).unwrap();
    case.debug = pipe.clone();
    let writer = std::thread::spawn(move || fs::write(pipe, bytes));
    let run = case.run(crate::hostile::cases::SOLVE);
    writer.join().unwrap().unwrap();
    assert_eq!(
        run.out,
        Case::new().run(crate::hostile::cases::SOLVE).out,
        "{run:?}"
    );
    let mut case = Case::new();
    for path in [case.folder.path().join("pipe"), "/dev/zero".into()] {
        if !path.exists() {
            assert!(
                Command::new("mkfifo")
                    .arg(&path)
                    .status()
                    .unwrap()
                    .success()
            );
        }
        case.profile = path;
        case.refused("no file", &["a pipe or a device", "must be a file"]);
    }
    let mut case = Case::new();
    case.debug = "/dev/zero".into();
    case.refused("an endless device", &["/dev/zero", "not a debug.cbor"]);
}
