//! Profiles that contradict themselves have no verdict, in every form. Sound profiles do not
//! contradict themselves.

use std::fs;
use std::path::Path;

use popliner::debug_info::DebugInfo;
use popliner::memory::MemoryModel;
use popliner::model::{Layering, Model, Placement, PlacementOptions};
use popliner::profile::Profile;
use serde_json::Value;

use crate::hostile::cases::Case;
use crate::support::each;
use crate::support::models::{Random, every_kind, generate, seeds, share};
use crate::support::{ONE_IPU_FIXTURES, Run, mutations, popliner, sample_pair, vary};

/// Returns a fixture without keys and constraints.
fn loose(fixture: &str) -> Case {
    let case = Case::of(fixture);
    mutations::loosen(&case.profile);
    case
}

/// Checks that there is an error with all these parts and no result, and with `--allow-incomplete`
/// results with the same exit code.
fn no_verdict(case: &Case, options: &[&str], parts: &[&str]) {
    let run = case.run(options);
    assert_eq!((run.code, &*run.out), (3, ""), "{parts:?}: {run:?}");
    let line = run.err.lines().last().expect("a message");
    assert!(line.contains("the profile contradicts itself: "), "{line}");
    assert!(line.contains("--allow-incomplete"), "{line}");
    for part in parts {
        assert!(line.contains(part), "{part:?} in {line}");
    }
    let run = case.run(&[options, &["--allow-incomplete"]].concat());
    assert_eq!(run.code, 3, "{parts:?}: {run:?}");
    assert!(!run.err.contains("SUCCESS"), "{parts:?}: {run:?}");
    assert!(!run.err.contains("error: "), "{parts:?}: {run:?}");
}

#[test]
fn what_is_lost_takes_the_verdict_with_it() {
    let cases: [(&str, &[&str]); 19] = [
        (
            "DELETE FROM depth_first_steps",
            &[
                "table `memory_by_tile`, tile 0: the total is 1,476,690, and its variables and code take",
            ],
        ),
        (
            "DELETE FROM eq_class_step",
            &[
                "table `memory_by_tile`, tile",
                "and its variables and code take",
            ],
        ),
        (
            "UPDATE compute_sets SET var_ids_diff_rle = NULL",
            &["table `compute_sets`, variables that no program uses: "],
        ),
        (
            "UPDATE programs SET debug_id = NULL WHERE id % 2 = 0",
            &["table `programs`, programs without a context whose compute set has one: 70 of 475"],
        ),
        (
            "DELETE FROM vertex_instances",
            &[
                "table `vertex_instances`, programs with other vertices than their compute set counts: ",
            ],
        ),
        (
            "DELETE FROM memory_by_category",
            &["table `memory_by_category`: its rows are 0"],
        ),
        (
            "DELETE FROM memory_by_tile",
            &["table `memory_by_tile`: its rows are 0"],
        ),
        (
            "UPDATE memory_by_tile SET total = total * 3 / 2",
            &[
                "table `memory_by_tile`, tile 0: the total is 2,215,035, and its parts make up 1,476,7",
            ],
        ),
        (
            "UPDATE memory_by_tile SET total = total / 2 WHERE tile = 3",
            &[
                "table `memory_by_tile`, tile 3: the total is ",
                "and its parts make up",
            ],
        ),
        (
            "UPDATE vars_info SET size_bytes = size_bytes / 2 WHERE tile = 5",
            &[
                "table `memory_by_tile`, tile 5: the total is ",
                "its variables and code take",
            ],
        ),
        (
            "DELETE FROM exchange_regions",
            &["table `exchange_regions`: its rows are 0"],
        ),
        (
            "UPDATE vars_info SET category = (SELECT id FROM var_categories WHERE name = 'stack')
             WHERE rowid % 7 = 0",
            &[
                "table `memory_by_category`, category `",
                "bytes are ",
                "and its variables have",
            ],
        ),
        (
            "UPDATE memory_by_category SET non_interleaved_overlapped = \
             non_interleaved_non_overlapped WHERE category_id = 'variable'",
            &["table `memory_by_category`, category `variable`, tile"],
        ),
        (
            "UPDATE eq_class_step SET step_id_to = step_id_from + 1
             WHERE step_id_to - step_id_from > 20",
            &["table `memory_not_always_live_by_step_and_ipu`, step "],
        ),
        (
            "UPDATE memory_not_always_live_by_step_and_ipu SET delta_bytes = delta_bytes / 2",
            &["table `memory_not_always_live_by_step_and_ipu`, step "],
        ),
        (
            "UPDATE depth_first_steps SET program_id = 3 WHERE id > 400",
            &["table `depth_first_steps`, programs without a step below one that runs them: "],
        ),
        (
            "UPDATE exchange_regions SET regions = '[0,4),[8,99999999)'",
            &["table `exchange_regions`, variables that do not hold the regions in them: "],
        ),
        (
            "UPDATE debug_ids SET ids = NULL",
            &[
                "table `debug_ids`, variables without contexts that live from the first to the last step",
            ],
        ),
        (
            "UPDATE memory_by_tile SET overflowed = 0, overflowed_including_gaps = 0",
            &["table `memory_by_tile`, tile 0: the total is 1,476,690, and its parts make up"],
        ),
    ];
    each(&cases, |(sql, parts)| {
        no_verdict(
            &loose("impossible").sql(sql),
            &["--solve", "--num-ipus=4"],
            parts,
        );
    });
}

#[test]
fn a_compilation_is_held_against_the_same() {
    let cases: [(&str, &[&str]); 4] = [
        (
            "UPDATE memory_by_tile SET total = total / 2",
            &["table `memory_by_tile`", "its parts make up"],
        ),
        (
            "UPDATE memory_by_tile SET total = total / 2, interleaved = interleaved / 2,
             non_interleaved = non_interleaved / 2, always_live_bytes = always_live_bytes / 2,
             not_always_live_max_bytes = not_always_live_max_bytes / 2",
            &["table `memory_by_tile`", "and its variables and code take"],
        ),
        (
            "DELETE FROM eq_class_step",
            &["table `memory_by_tile`", "and its variables and code take"],
        ),
        (
            "DELETE FROM memory_by_category",
            &["table `memory_by_category`: its rows are 0"],
        ),
    ];
    each(&cases, |(sql, parts)| {
        no_verdict(&loose("training-pipelined").sql(sql), &["--fit"], parts);
    });
}

/// Decodes the characters that Markdown writes as numbers.
fn decoded(markdown: &str) -> String {
    let mut parts = markdown.split("&#");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| {
        let (code, rest) = part.split_once(';').expect("a character");
        let code = code.parse().ok().and_then(char::from_u32);
        format!("{all}{}{rest}", code.expect("a character"))
    })
}

/// Runs the tool on a case with all exports; returns the run, the report, and the texts of Markdown
/// and page.
fn exported(case: &Case, options: &[&str]) -> (Run, Value, [String; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["report.json", "report.md", "report.html"].map(|name| folder.path().join(name));
    let exports = ["--export-json", "--export-markdown", "--export-html"];
    let inputs = [&case.profile, &case.debug].map(|path| path.as_os_str());
    let pairs = exports.iter().zip(&files);
    let pairs = pairs.flat_map(|(option, file)| [option.as_ref(), file.as_os_str()]);
    let options = options.iter().map(|option| option.as_ref());
    let run = popliner(inputs.into_iter().chain(options).chain(pairs));
    let [json, markdown, page] = files.map(|file| fs::read_to_string(file).expect("an export"));
    (
        run,
        serde_json::from_str(&json).expect("JSON"),
        [decoded(&markdown), page],
    )
}

#[test]
fn without_a_verdict_no_form_has_one() {
    let lost = "memory_by_category";
    for (fixture, options, at) in [
        (
            "impossible",
            &["--solve", "--sweep", "--num-ipus=4"][..],
            "/split/fits",
        ),
        ("training-pipelined", &["--fit"], "/fit/fits"),
    ] {
        let case = loose(fixture).sql(&format!("DELETE FROM {lost}"));
        let options = [options, &["--allow-incomplete"]].concat();
        let (run, report, texts) = exported(&case, &options);
        assert_eq!(run.code, 3, "{run:?}");
        assert_eq!(report.pointer(at), Some(&false.into()), "{fixture}");
        let found = report["contradictions"].as_array().expect("a list");
        let rows = found.iter().find(|item| item["witness"] == "rows");
        let rows = rows.expect("a table without rows");
        assert_eq!(rows["table"], lost);
        assert_eq!(
            (&rows["tile"], &rows["recorded"]),
            (&Value::Null, &0.into())
        );
        assert_eq!(rows["refused"], true);
        for text in texts.iter().chain([&run.err]) {
            assert!(
                text.contains("No verdict, since the profile contradicts itself"),
                "{text}"
            );
            assert!(text.contains(lost), "{text}");
        }
    }
}

#[test]
fn another_program_is_no_root() {
    let run = loose("impossible")
        .sql("UPDATE control_programs SET program = 7")
        .run(&["--solve"]);
    assert_eq!((run.code, &*run.out), (3, ""), "{run:?}");
    let message = "table `control_programs`, programs of steps that no root leads to: 474 of 475";
    assert!(run.err.contains(message), "{run:?}");
}

#[test]
fn more_code_than_was_recorded_is_said() {
    let run = loose("impossible")
        .sql(
            "UPDATE memory_by_category SET interleaved_non_overlapped = interleaved_overlapped,
             non_interleaved_non_overlapped = non_interleaved_overlapped,
             overflowed_non_overlapped = overflowed_overlapped WHERE category_id = 'vertexCode'",
        )
        .run(&["--solve", "--num-ipus=4"]);
    assert_eq!(run.code, 1, "{run:?}");
    for message in [
        "`memory_by_category`, category `vertexCode`, tile",
        "`memory_by_category`, `vertexCode`, tile",
    ] {
        assert!(run.err.contains(message), "{message}: {run:?}");
    }
}

#[test]
fn a_saved_model_keeps_what_contradicts_itself() {
    let case = loose("impossible").sql("DELETE FROM depth_first_steps");
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("model");
    let saved = saved.to_str().expect("a plain path");
    let run = case.run(&["--allow-incomplete", "--save-to-file", saved]);
    assert_eq!(run.code, 3, "{run:?}");
    for (options, is_allowed) in [
        (&["--solve"][..], false),
        (&["--solve", "--allow-incomplete"], true),
    ] {
        let run = popliner([&[saved, "--load-from-file"], options].concat());
        assert_eq!(run.code, 3, "{run:?}");
        assert_eq!(run.out.is_empty(), !is_allowed, "{run:?}");
        assert!(run.err.contains("its variables and code take"), "{run:?}");
    }
}

#[test]
fn one_per_cent_is_a_warning_in_every_form() {
    let case = loose("impossible").sql(
        "UPDATE vars_info SET size_bytes = size_bytes + 64 WHERE rowid =
         (SELECT max(v.rowid) FROM vars_info v JOIN eq_classes c ON c.id = v.equivalence_class
          WHERE v.tile = 8 AND c.is_always_live = 1)",
    );
    let (run, report, texts) = exported(&case, &["--solve", "--num-ipus=4"]);
    assert_eq!(run.code, 1, "{run:?}");
    let message = "table `memory_by_tile`, tile 8: the total is 1,060,454, and its variables and code \
                take 1,060,518, which could move up to 64 bytes (0.1 % of the fullest tile)";
    let all = report["contradictions"].as_array().expect("a list");
    let contradiction = all.iter().find(|item| item["witness"] == "one-stage");
    let contradiction = contradiction.expect("the witness of a stage");
    assert_eq!(
        (&contradiction["refused"], &contradiction["computed"]),
        (&false.into(), &1_060_518.into())
    );
    let warnings = report["warnings"].as_array().expect("a list");
    assert!(warnings.iter().any(|warning| {
        warning
            .as_str()
            .is_some_and(|warning| warning.contains(message))
    }));
    assert!(run.err.contains(message), "{run:?}");
    for text in texts {
        assert!(text.contains(message), "{text}");
    }
}

/// Checks that the model of both files has no contradiction, and that all its layers in one stage
/// need the recorded bytes, tile by tile.
fn agrees(profile: &Path, debug: &Path, what: &str) {
    let profile = Profile::read(profile).unwrap_or_else(|error| panic!("{what}: {error}"));
    // Some varied models refer to contexts that do not exist, which is damage.
    let contexts = DebugInfo::read(debug).unwrap_or_else(|error| panic!("{what}: {error}"));
    let model = Model::build(profile, &contexts, false);
    let model = model.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(model.contradictions, [], "{what}");
    let layering = Layering::original(&model.operations);
    let placement = Placement::full(&model, &layering, &PlacementOptions::default());
    let placement = placement.expect("places");
    let memory = MemoryModel::new(&model, &placement).expect("memory");
    let whole = 0..memory.layers();
    let stage = &memory.stages(std::slice::from_ref(&whole))[0];
    for (tile, recorded) in model.recorded.tiles.iter().enumerate() {
        assert_eq!(
            stage.tile_bytes(tile),
            recorded.total,
            "{what}, tile {tile}"
        );
    }
}

#[test]
fn whole_files_contradict_nothing() {
    for fixture in ONE_IPU_FIXTURES {
        let case = Case::of(fixture);
        agrees(&case.profile, &case.debug, fixture);
        mutations::loosen(&case.profile);
        agrees(
            &case.profile,
            &case.debug,
            &format!("{fixture} without keys"),
        );
    }
    if let Some([profile, debug]) = sample_pair() {
        agrees(&profile, &debug, "the real sample");
    }
    let folder = crate::hostile::cases::new_folder();
    for options in every_kind(1).iter().step_by(share(5)) {
        let [profile, debug] = generate(folder.path(), options);
        agrees(&profile, &debug, &options.join(" "));
    }
}

#[test]
fn what_is_unusual_but_sound_contradicts_nothing() {
    let folder = crate::hostile::cases::new_folder();
    for seed in seeds(8) {
        let mut random = Random(seed);
        let options = crate::support::models::options(seed);
        let [profile, debug] = generate(folder.path(), &options);
        vary::profile(&profile, &mut random);
        vary::contexts(&debug, &mut random);
        agrees(&profile, &debug, &format!("seed {seed}"));
    }
}
