//! Profiles of one model with several sizes of a micro-batch, in one search: the answer is the best
//! of the answers to each profile alone.

use super::number;
use crate::support::models::{generate, pairs};
use crate::support::{Run, popliner};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// Micro-batches of a step with 1 sample each.
const MICRO_BATCHES: u64 = 130;

/// The sizes that are recorded. 130 samples are no multiple of 4 or 8.
const SIZES: [u64; 3] = [1, 4, 8];

/// A model that was recorded with each of [`SIZES`].
struct Sizes(TempDir);

impl Sizes {
    fn new(options: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        for size in SIZES {
            write(
                &folder.path().join(size.to_string()),
                &format!("{options} --batch {size}"),
            );
        }
        Self(folder)
    }

    fn folder(&self, size: u64) -> String {
        self.0.path().join(size.to_string()).display().to_string()
    }

    /// Runs the command on the profile whose micro-batch has `size` samples. Its micro-batches are
    /// counted so that a step has at least [`MICRO_BATCHES`] samples.
    fn alone(&self, size: u64, options: &[&str]) -> Value {
        let micro_batches = MICRO_BATCHES.div_ceil(size);
        let own = [
            self.folder(size),
            format!("--micro-batch={size}"),
            format!("--micro-batches={micro_batches}"),
        ];
        run(&own, options).report()
    }

    /// Runs the command on the profiles of all [`SIZES`]; the one of `first` is the first profile.
    fn together(&self, first: u64, options: &[&str]) -> Run {
        let micro_batches = MICRO_BATCHES.div_ceil(first);
        let own = [
            self.folder(first),
            format!("--micro-batch={first}"),
            format!("--micro-batches={micro_batches}"),
        ];
        let others = SIZES.iter().filter(|&&size| size != first);
        let others = others.map(|&size| format!("--micro-batch={size}={}", self.folder(size)));
        run(&own.into_iter().chain(others).collect::<Vec<_>>(), options)
    }
}

pub(super) fn write(folder: &Path, options: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    let _ = generate(folder, options);
}

pub(super) fn run(own: &[String], options: &[&str]) -> Run {
    let options = options.iter().copied();
    popliner(
        own.iter()
            .map(String::as_str)
            .chain(options)
            .chain(["-q", "--export-json=-"]),
    )
}

fn samples_per_second(report: &Value) -> f64 {
    report["step"]["samples_per_second"]
        .as_f64()
        .expect("samples a second")
}

const MODELS: [&str; 3] = [
    "--framework popart --mode training --layers 4 --tiles 6 --execution --overflow",
    "--framework tensorflow --mode training --layers 3 --tiles 6 --accumulation --optimiser adam-each",
    "--framework poptorch --mode inference --layers 5 --tiles 4 --execution",
];

const MORE: [&str; 3] = ["--num-ipus=4", "--num-ipus=2 --splits=1", "--sweep"];

#[test]
fn the_answer_is_the_best_of_those_to_each_size_alone() {
    let (mut chosen, mut refused) = (Vec::new(), 0);
    for model in MODELS {
        let sizes = Sizes::new(model);
        let wide = sizes.alone(8, &["--solve", "--num-ipus=4", "--mem-per-tile=100000000"]);
        let recorded = number(&wide["memory"]["tiles"]["total"].as_array().expect("tiles")[0]);
        for (&tenths, more) in pairs(&[3, 5, 8, 12, 20], &MORE, 2) {
            let limit = recorded * tenths / 10;
            let line = format!("--solve --mem-per-tile={limit} {more}");
            let options: Vec<&str> = line.split(' ').collect();
            let alone = SIZES.map(|size| sizes.alone(size, &options));
            let report = sizes.together(1, &options).report();
            check(&report, &alone, &format!("{model}: {options:?}"));
            chosen.extend(report["step"]["micro_batch"].as_u64());
            refused += usize::from(report["split"]["fits"] == false);
        }
    }
    assert!(SIZES.iter().all(|size| chosen.contains(size)), "{chosen:?}");
    assert!(refused > 0);
}

/// Checks a report on all sizes against those on each size alone.
fn check(report: &Value, alone: &[Value], of: &str) {
    let rows = report["sizes"].as_array().expect("sizes");
    assert_eq!(rows.len(), SIZES.len(), "{of}");
    for ((row, own), size) in rows.iter().zip(alone).zip(SIZES) {
        assert_eq!(row["step"]["micro_batch"], size, "{of}");
        assert_eq!(row["fits"], own["split"]["fits"], "{of}: {size}");
        for key in ["micro_batches", "cycles", "samples_per_second"] {
            assert_eq!(row["step"][key], own["step"][key], "{of}: {size}: {key}");
        }
    }
    let fitting: Vec<&Value> = alone
        .iter()
        .filter(|own| own["split"]["fits"] == true)
        .collect();
    assert_eq!(report["split"]["fits"] == true, !fitting.is_empty(), "{of}");
    // Fewer IPUs come first if their number is open, and state off the chip, whose time is unknown, last.
    let is_open = !of.contains("--num-ipus");
    let rank = |own: &Value| {
        let ipus = number(&own["split"]["max_stages"]) * number(&own["split"]["replicas"]);
        let is_elsewhere =
            !["on-chip", "null"].contains(&own["pipeline"]["state"].as_str().unwrap_or("null"));
        (is_elsewhere, if is_open { ipus } else { 0 })
    };
    let Some(best) = fitting.into_iter().min_by(|one, other| {
        let by_rank = rank(one).cmp(&rank(other));
        by_rank.then(samples_per_second(other).total_cmp(&samples_per_second(one)))
    }) else {
        return;
    };
    assert_eq!(samples_per_second(report), samples_per_second(best), "{of}");
    assert_eq!(report["split"]["stages"], best["split"]["stages"], "{of}");
}

#[test]
fn a_copy_under_another_size_changes_no_stage() {
    let sizes = Sizes::new(MODELS[0]);
    let own = sizes.folder(1);
    let options = ["--solve", "--num-ipus=4", "--objective=peak"];
    let both = run(
        &[
            own.clone(),
            "--micro-batch=1".to_owned(),
            format!("--micro-batch=2={own}"),
        ],
        &options,
    );
    let alone = run(&[own], &options).report();
    assert_eq!(both.report()["split"]["stages"], alone["split"]["stages"]);
}

#[test]
fn another_model_is_refused_with_what_differs() {
    let folder = TempDir::new().expect("a folder");
    let model = "--framework popart --mode training --layers 4 --tiles 6 --execution";
    let at = |name: &str| folder.path().join(name);
    write(&at("own"), model);
    for (name, from, to, different) in [
        (
            "layers",
            "--layers 4",
            "--layers 3",
            "no further layer in place of layer 3",
        ),
        (
            "tiles",
            "--tiles 6",
            "--tiles 5",
            "5 tiles in place of 6 tiles",
        ),
        (
            "mode",
            "training",
            "inference",
            "for inference in place of a program for training",
        ),
        ("framework", "popart", "tensorflow", "framework TensorFlow"),
        (
            "pipelined",
            "--execution",
            "--execution --pipelined 1",
            "was compiled for 2 IPUs",
        ),
        (
            "tied",
            "--execution",
            "--execution --tied ends",
            "it has weight Embedding",
        ),
    ] {
        write(&at(name), &model.replace(from, to));
        refuses(folder.path(), name, different);
    }
    // The two files of a folder belong to different models.
    write(&at("swapped"), model);
    for (from, file) in [("tiles", "profile.pop"), ("framework", "debug.cbor")] {
        std::fs::copy(at(from).join(file), at("swapped").join(file)).expect("a copy");
    }
    refuses(folder.path(), "swapped", "swapped");
    let saved = at("saved");
    let to_file = format!("--save-to-file={}", saved.display());
    let save = run(&[at("own").display().to_string(), to_file], &[]);
    save.exits(0);
    let mut bytes = std::fs::read(&saved).expect("a saved model");
    // The version of the format comes after 8 bytes that all saved models begin with.
    bytes[8] += 1;
    std::fs::write(&saved, bytes).expect("a file");
    refuses(folder.path(), "saved", "has format version 2");
}

/// Checks that a further profile in `folder` is refused, whatever differs from the first one, and that
/// the error names its file.
fn refuses(folder: &Path, name: &str, different: &str) {
    for (option, [mine, other]) in [("--micro-batch", ["1", "4"]), ("--amp", ["0.6", "0.3"])] {
        let own = [
            folder.join("own").display().to_string(),
            format!("{option}={mine}"),
            format!("{option}={other}={}", folder.join(name).display()),
        ];
        run(&own, &["--solve", "--num-ipus=2"]).refuses(3, &[name, different]);
    }
}

#[test]
fn settings_that_contradict_each_other_are_wrong_usage() {
    for (option, [one, two]) in [("--micro-batch", ["1", "2"]), ("--amp", ["0.6", "0.3"])] {
        for (options, text) in [
            (format!("{option}={two}=x"), "of the first profile"),
            (
                format!("{option}={one} {option}={two}"),
                "without a profile",
            ),
            (format!("{option}={one} {option}={one}=x"), "twice"),
            (
                format!("{option}={one} {option}={two}=x --memory-totals"),
                "works on one profile",
            ),
            (
                format!("{option}={one} {option}={two}=x --solver=greedy"),
                "works on one profile",
            ),
            (
                format!("{option}={one} {option}={two}=x --memory-model=classic"),
                "works on one profile",
            ),
            (
                format!("{option}={one} {option}={two}=x --save-to-file=x"),
                "works on one profile",
            ),
        ] {
            let line = format!("fixtures/training-pipeline --solve --num-ipus=2 {options}");
            popliner(line.split(' ')).refuses(2, &[option, text]);
        }
    }
    let both = "fixtures/training-pipeline --solve --amp=0.6 --amp=0.3=x --micro-batch=1 --micro-batch=2=x";
    popliner(both.split(' ')).refuses(2, &["--amp", "--micro-batch", "only one of them"]);
    popliner("fixtures/training-pipeline --fit --amp=0.6".split(' ')).refuses(2, &["--amp"]);
}
