//! The cases, grouped by kind of surprise.

use std::fs;

use super::Row;
use super::files::{
    changed, drop_some, empty, fixture, folder, other_file, recompute, with_contexts,
    with_debug_of, with_sql,
};
use super::layer_rows::{layers, names};
use crate::support::copy;
use rusqlite::Connection;

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

const ENGINES: [(&str, &str); 4] = [
    ("a", FOUR_IPUS),
    ("b", ONE_IPU),
    ("c", ONE_IPU),
    ("d", ONE_IPU),
];

fn folders() -> Vec<Row> {
    vec![
        Row::new(
            "the folder of a profile: note of --solve --num-ipus=4
                Reading
                /profile.pop",
            folder(&[("", ONE_IPU)], &["archive.a", "profile.pop_cache"]),
        ),
        Row::new(
            "a profile one folder below, with its contexts above: note of --solve --num-ipus=4
                Reading
                /training/profile.pop",
            Box::new(|folder| {
                let engine = folder.join("training");
                fs::create_dir(&engine).expect("a folder");
                let [_, debug] = copy(ONE_IPU, &engine);
                fs::rename(debug, folder.join("debug.cbor")).expect("a move");
                folder.to_path_buf()
            }),
        ),
        Row::new(
            "several engines, of which one can be split: note of --solve --num-ipus=4
                Reading
                /b/profile.pop",
            folder(&[("a", FOUR_IPUS), ("b", ONE_IPU)], &[]),
        ),
        Row::new(
            "several engines that all can be judged: error 2 of --fit
                there are 4 profiles below this folder; give one of them:
                /a/profile.pop --fit  4 IPUs, with lowered variables, executed
                /b/profile.pop --fit  1 IPU, with lowered variables
                /c/profile.pop --fit  1 IPU, without lowered variables
                /d/profile.pop --fit  the file is not an SQLite database",
            Box::new(|path| {
                folder(&ENGINES, &[])(path);
                let without = Connection::open(path.join("c/profile.pop")).expect("a profile");
                let sql = "DELETE FROM vars_info";
                without.execute_batch(sql).expect(sql);
                fs::write(path.join("d/profile.pop"), "no profile").expect("a file");
                path.to_path_buf()
            }),
        ),
        Row::new(
            "an empty folder: error 3 of --solve
                no profile.pop in this folder
                it is empty; give the folder that",
            folder(&[], &[]),
        ),
        Row::new(
            "a folder with other files: error 3 of --solve
                it has archive.a, debug.cbor; give
                autoReport.directory",
            folder(&[], &["archive.a", "debug.cbor"]),
        ),
    ]
}

fn other_files() -> Vec<Row> {
    vec![
        Row::new(
            "the archive of compiled code: error 3 of --solve
                archive.a:
                an archive of compiled code
                give the profile.pop",
            other_file("archive.a", b"!<arch>\nname/"),
        ),
        Row::new(
            "PopVision's cache: error 3 of --solve
                profile.pop_cache:
                PopVision
                give the profile.pop",
            Box::new(|folder| {
                let [profile, _] = copy("poplar-mlp", folder);
                let cache = folder.join("profile.pop_cache");
                fs::copy(profile, &cache).expect("a copy");
                cache
            }),
        ),
        Row::new(
            "the two files swapped: error 3 of --solve
                debug.cbor:
                looks like CBOR
                give profile.pop first and debug.cbor second",
            Box::new(|folder| copy("poplar-mlp", folder)[1].clone()),
        ),
    ]
}

fn contexts() -> Vec<Row> {
    vec![
        Row::new(
            "the contexts of another compilation: error 3 of --solve
                debug.cbor: the debug file belongs to another compilation
                --trust-debug-info",
            with_debug_of("poplar-mlp", "tied-weights"),
        ),
        Row::new(
            "the same where they are trusted: warning of --list-layers --trust-debug-info
                another compilation than the profile, but is used as requested: of 89",
            with_debug_of("poplar-mlp", "tied-weights"),
        ),
        Row::new(
            "some contexts are missing: error 3 of --solve
                debug.cbor: the debug file is damaged: contexts that programs and
                refer to and that are missing:
                copy debug.cbor again
                --trust-debug-info",
            with_contexts("poplar-mlp", drop_some),
        ),
        Row::new(
            "the same where they are trusted: warning of --solve --num-ipus=4 --trust-debug-info
                is damaged, but is used as requested: contexts that programs",
            with_contexts("poplar-mlp", drop_some),
        ),
        Row::new(
            "no contexts at all: error 3 of --solve
                debug.cbor:
                it has no contexts
                autoReport.outputDebugInfo",
            changed("poplar-mlp", |[_, debug]| empty(debug)),
        ),
        Row::new(
            "a pipeline with the contexts of another compilation: warning of --fit
                layers on IPUs are left out
                debug.cbor: the debug file belongs to another compilation
                --trust-debug-info",
            with_debug_of(FOUR_IPUS, "tied-weights"),
        ),
        Row::new(
            "a pipeline of which some contexts are missing: warning of --fit
                layers on IPUs are left out
                debug.cbor: the debug file is damaged: contexts that programs
                --trust-debug-info",
            with_contexts(FOUR_IPUS, drop_some),
        ),
        Row::new(
            "a pipeline with no contexts at all: warning of --fit
                layers on IPUs are left out
                debug.cbor: it has no contexts
                autoReport.outputDebugInfo",
            changed(FOUR_IPUS, |[_, debug]| empty(debug)),
        ),
    ]
}

fn versions() -> Vec<Row> {
    vec![
        Row::new(
            "a format before SQLite: error 3 of --solve
                report format 2.8.0
                popliner reads only format 3
                record it with such an SDK",
            with_sql("poplar-mlp", "UPDATE version_info SET major = 2"),
        ),
        Row::new(
            "a format that came later: error 3 of --solve
                report format 4.8.0
                popliner reads only format 3
                use a popliner that reads",
            with_sql("poplar-mlp", "UPDATE version_info SET major = 4"),
        ),
        Row::new(
            "an older format: warning of --solve --num-ipus=4
                report format 3.1.0
                only 3.8 (Poplar 3.3)
                record the profile with",
            with_sql("poplar-mlp", "UPDATE version_info SET minor = 1"),
        ),
    ]
}

fn recordings() -> Vec<Row> {
    let replicated = "UPDATE target_info SET num_ipus = 2, num_replicas = 2";
    vec![
        Row::new(
            "several IPUs: error 3 of --solve
                compiled for 4 IPUs
                compile the whole model for one IPU
                judge it as it is with --fit",
            fixture(FOUR_IPUS),
        ),
        Row::new(
            "replicas of one IPU each: warning of --solve --num-ipus=4
                2 identical replicas
                compile without replication",
            with_sql("poplar-mlp", replicated),
        ),
        Row::new(
            "recomputation, where stages keep more: warning of --solve --num-ipus=4 --recompute=none
                recorded with recomputation
                --recompute none keeps more
                autoRecomputation = popart.RecomputationType.NoRecompute
                --recompute layer",
            with_contexts(ONE_IPU, recompute),
        ),
        Row::new(
            "weights that some stream copies miss: warning of --solve --num-ipus=4
                280 variables with 5,659,824 bytes
                all 207 steps except at most 3, between step 2 and step 4
                do not count as always live",
            with_sql("poplar-mlp", MISSED_BY_A_COPY),
        ),
    ]
}

/// A copy from the host: class 2, the class of the weights, is dead at steps 2 to 4.
const MISSED_BY_A_COPY: &str = "UPDATE eq_classes SET is_always_live = 0 WHERE id = 2;
    DELETE FROM eq_class_step WHERE eq_class_id = 2;
    INSERT INTO eq_class_step VALUES (2, 0, 2), (2, 5, 207);
    INSERT INTO memory_not_always_live_by_step_and_ipu
    VALUES (0, 0, 5659824), (0, 2, -5659824), (0, 5, 5659824);";
