//! The cases, grouped by kind of surprise.

use std::fs;

use super::Kind::{Error, Note, Warning};
use super::Row;
use super::files::{
    changed, drop_some, empty, fixture, folder, other_file, recompute, with_contexts,
    with_debug_of, with_sql,
};
use super::layer_rows::{layers, names};
use crate::support::copy;
use rusqlite::Connection;

pub const SPLIT: &[&str] = &["--solve", "--num-ipus=4"];
const FIT: &[&str] = &["--fit"];

/// All cases.
pub fn rows() -> Vec<Row> {
    let groups = [
        folders(),
        other_files(),
        contexts(),
        versions(),
        recordings(),
        layers(),
        names(),
    ];
    groups.into_iter().flatten().collect()
}

pub const ONE_IPU: &str = "training-pipeline";
const FOUR_IPUS: &str = "training-pipelined";

fn folders() -> Vec<Row> {
    vec![
        Row {
            what: "the folder of a profile",
            files: folder(&[("", ONE_IPU)], &["archive.a", "profile.pop_cache"]),
            options: SPLIT,
            kind: Note,
            says: &["Reading ", "/profile.pop"],
        },
        Row {
            what: "a profile one folder below, with its contexts above",
            files: Box::new(|folder| {
                let engine = folder.join("training");
                fs::create_dir(&engine).expect("a folder");
                let [_, debug] = copy(ONE_IPU, &engine);
                fs::rename(debug, folder.join("debug.cbor")).expect("a move");
                folder.to_path_buf()
            }),
            options: SPLIT,
            kind: Note,
            says: &["Reading ", "/training/profile.pop"],
        },
        Row {
            what: "several engines, of which one can be split",
            files: folder(&[("a", FOUR_IPUS), ("b", ONE_IPU)], &[]),
            options: SPLIT,
            kind: Note,
            says: &["Reading ", "/b/profile.pop"],
        },
        Row {
            what: "several engines that all can be judged",
            files: Box::new(|path| {
                folder(
                    &[
                        ("a", FOUR_IPUS),
                        ("b", ONE_IPU),
                        ("c", ONE_IPU),
                        ("d", ONE_IPU),
                    ],
                    &[],
                )(path);
                let without = Connection::open(path.join("c/profile.pop")).expect("a profile");
                let sql = "DELETE FROM vars_info";
                without.execute_batch(sql).expect(sql);
                fs::write(path.join("d/profile.pop"), "no profile").expect("a file");
                path.to_path_buf()
            }),
            options: FIT,
            kind: Error(2),
            says: &[
                "there are 4 profiles below this folder; give one of them:\n",
                "/a/profile.pop --fit  4 IPUs, with lowered variables, executed\n",
                "/b/profile.pop --fit  1 IPU, with lowered variables\n",
                "/c/profile.pop --fit  1 IPU, without lowered variables\n",
                "/d/profile.pop --fit  the file is not an SQLite database",
            ],
        },
        Row {
            what: "an empty folder",
            files: folder(&[], &[]),
            options: SPLIT,
            kind: Error(3),
            says: &[
                "no profile.pop in this folder",
                "it is empty; give the folder that",
            ],
        },
        Row {
            what: "a folder with other files",
            files: folder(&[], &["archive.a", "debug.cbor"]),
            options: SPLIT,
            kind: Error(3),
            says: &["it has archive.a, debug.cbor; give", "autoReport.directory"],
        },
    ]
}

fn other_files() -> Vec<Row> {
    vec![
        Row {
            what: "the archive of compiled code",
            files: other_file("archive.a", b"!<arch>\nname/"),
            options: SPLIT,
            kind: Error(3),
            says: &[
                "archive.a: ",
                "an archive of compiled code",
                "give the profile.pop",
            ],
        },
        Row {
            what: "PopVision's cache",
            files: Box::new(|folder| {
                let [profile, _] = copy("poplar-mlp", folder);
                let cache = folder.join("profile.pop_cache");
                fs::copy(profile, &cache).expect("a copy");
                cache
            }),
            options: SPLIT,
            kind: Error(3),
            says: &["profile.pop_cache: ", "PopVision", "give the profile.pop"],
        },
        Row {
            what: "a profile under another name",
            files: Box::new(|folder| {
                let [profile, _] = copy("poplar-mlp", folder);
                let renamed = folder.join("bert.pop");
                fs::rename(profile, &renamed).expect("a move");
                renamed
            }),
            options: SPLIT,
            kind: Note,
            says: &["SUCCESS"],
        },
        Row {
            what: "the two files swapped",
            files: Box::new(|folder| copy("poplar-mlp", folder)[1].clone()),
            options: SPLIT,
            kind: Error(3),
            says: &["debug.cbor: ", "looks like CBOR", "give profile.pop first"],
        },
    ]
}

fn contexts() -> Vec<Row> {
    vec![
        Row {
            what: "the contexts of another compilation",
            files: with_debug_of("poplar-mlp", "tied-weights"),
            options: SPLIT,
            kind: Error(3),
            says: &[
                "debug.cbor: the debug file belongs to another compilation",
                "--trust-debug-info",
            ],
        },
        Row {
            what: "the same where they are trusted",
            files: with_debug_of("poplar-mlp", "tied-weights"),
            options: &["--list-layers", "--trust-debug-info"],
            kind: Warning,
            says: &["another compilation than the profile, but is used as requested: of 89"],
        },
        Row {
            what: "some contexts are missing",
            files: with_contexts("poplar-mlp", drop_some),
            options: SPLIT,
            kind: Error(3),
            says: &[
                "debug.cbor: the debug file is damaged: contexts that programs and",
                "refer to and that are missing: ",
                "copy debug.cbor again",
                "--trust-debug-info",
            ],
        },
        Row {
            what: "the same where they are trusted",
            files: with_contexts("poplar-mlp", drop_some),
            options: &["--solve", "--num-ipus=4", "--trust-debug-info"],
            kind: Warning,
            says: &["is damaged, but is used as requested: contexts that programs"],
        },
        Row {
            what: "no contexts at all",
            files: changed("poplar-mlp", |[_, debug]| empty(debug)),
            options: SPLIT,
            kind: Error(3),
            says: &[
                "debug.cbor: ",
                "it has no contexts",
                "autoReport.outputDebugInfo",
            ],
        },
        Row {
            what: "a pipeline with the contexts of another compilation",
            files: with_debug_of(FOUR_IPUS, "tied-weights"),
            options: FIT,
            kind: Warning,
            says: &[
                "layers on IPUs are left out",
                "debug.cbor: the debug file belongs to another compilation",
                "--trust-debug-info",
            ],
        },
        Row {
            what: "a pipeline of which some contexts are missing",
            files: with_contexts(FOUR_IPUS, drop_some),
            options: FIT,
            kind: Warning,
            says: &[
                "layers on IPUs are left out",
                "debug.cbor: the debug file is damaged: contexts that programs",
                "--trust-debug-info",
            ],
        },
        Row {
            what: "a pipeline with no contexts at all",
            files: changed(FOUR_IPUS, |[_, debug]| empty(debug)),
            options: FIT,
            kind: Warning,
            says: &[
                "layers on IPUs are left out",
                "debug.cbor: it has no contexts",
                "autoReport.outputDebugInfo",
            ],
        },
    ]
}

fn versions() -> Vec<Row> {
    let version = |what, sql, kind, says| Row {
        what,
        files: with_sql("poplar-mlp", sql),
        options: SPLIT,
        kind,
        says,
    };
    vec![
        version(
            "a format before SQLite",
            "UPDATE version_info SET major = 2",
            Error(3),
            &[
                "report format 2.8.0",
                "popliner reads only format 3",
                "record it with such an SDK",
            ],
        ),
        version(
            "a format after those that are known",
            "UPDATE version_info SET major = 4",
            Error(3),
            &[
                "report format 4.8.0",
                "popliner reads only format 3",
                "use a popliner that reads",
            ],
        ),
        version(
            "an older format",
            "UPDATE version_info SET minor = 1",
            Warning,
            &[
                "report format 3.1.0",
                "only 3.8 (Poplar 3.3)",
                "record the profile with",
            ],
        ),
    ]
}

fn recordings() -> Vec<Row> {
    vec![
        Row {
            what: "several IPUs",
            files: fixture(FOUR_IPUS),
            options: SPLIT,
            kind: Error(3),
            says: &[
                "compiled for 4 IPUs",
                "compile the whole model for one IPU",
                "judge it as it is with --fit",
            ],
        },
        Row {
            what: "replicas of one IPU each",
            files: with_sql(
                "poplar-mlp",
                "UPDATE target_info SET num_ipus = 2, num_replicas = 2",
            ),
            options: SPLIT,
            kind: Warning,
            says: &["2 identical replicas", "compile without replication"],
        },
        Row {
            what: "recomputation, where stages keep more",
            files: with_contexts(ONE_IPU, recompute),
            options: &["--solve", "--num-ipus=4", "--recompute=none"],
            kind: Warning,
            says: &[
                "recorded with recomputation",
                "--recompute none keeps more",
                "autoRecomputation = popart.RecomputationType.NoRecompute",
                "--recompute layer",
            ],
        },
        Row {
            what: "weights that some stream copies miss",
            files: with_sql("poplar-mlp", MISSED_BY_A_COPY),
            options: SPLIT,
            kind: Warning,
            says: &[
                "280 variables with 5,659,824 bytes",
                "all 207 steps except at most 3, between step 2 and step 4",
                "do not count as always live",
            ],
        },
    ]
}

/// A copy from the host: class 2, the class of the weights, is dead at steps 2 to 4.
const MISSED_BY_A_COPY: &str = "UPDATE eq_classes SET is_always_live = 0 WHERE id = 2;
    DELETE FROM eq_class_step WHERE eq_class_id = 2;
    INSERT INTO eq_class_step VALUES (2, 0, 2), (2, 5, 207);
    INSERT INTO memory_not_always_live_by_step_and_ipu
    VALUES (0, 0, 5659824), (0, 2, -5659824), (0, 5, 5659824);";
