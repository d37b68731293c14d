//! Answers of the command with a schedule, against all splits of a fixture tried one by one: the
//! memory of a stage depends on the number of stages after it.

use crate::support::models::share;
use crate::support::{debug, popliner, profile, root};
use popliner::analysis::{Analysis, Request};
use popliner::memory::{Accumulator, MemoryModel, Pipeline, Recompute, Schedule};
use serde_json::Value;
use std::ops::Range;

const FIXTURE: &str = "training-pipeline";
const IPUS: usize = 4;

const PIPELINES: [(Schedule, Recompute); 5] = [
    (Schedule::Popart, Recompute::None),
    (Schedule::Popart, Recompute::Stage),
    (Schedule::Popart, Recompute::Layer),
    (Schedule::TfGrouped, Recompute::None),
    (Schedule::Sequential, Recompute::Stage),
];

/// Returns all splits into at most [`IPUS`] stages.
pub fn splits(positions: usize) -> impl Iterator<Item = Vec<Range<usize>>> {
    let all = (0_u32..1 << (positions - 1)).filter(|bits| bits.count_ones() < IPUS as u32);
    all.map(move |bits| {
        let is_cut = |cut: &usize| bits >> (cut - 1) & 1 == 1;
        let mut start = 0;
        let ends = (1..positions).filter(is_cut).chain([positions]);
        ends.map(|end| std::mem::replace(&mut start, end)..end)
            .collect()
    })
}

/// Returns the bytes on the fullest tile of each stage of a split.
fn peaks(memory: &MemoryModel<'_>, split: &[Range<usize>]) -> Vec<u64> {
    let stages = memory.split(split);
    stages.iter().map(|stage| stage.max_tile_bytes()).collect()
}

fn lowest(memory: &MemoryModel<'_>) -> u64 {
    let of_split = |split: Vec<Range<usize>>| peaks(memory, &split).into_iter().max();
    splits(memory.layers())
        .filter_map(of_split)
        .min()
        .expect("a split")
}

#[test]
fn each_schedule_has_the_best_of_all_splits() {
    let files = [profile(FIXTURE), debug(FIXTURE)].map(|file| root().join(file));
    let analysis = Analysis::read(&files[0], &files[1]).expect("both files");
    let layers = analysis.layers(&Request::default()).expect("layers");
    let plain = layers.memory().expect("memory");
    for (schedule, recompute) in PIPELINES.into_iter().step_by(share(2)) {
        let memory = plain.in_pipeline(Pipeline {
            schedule,
            recompute,
            accumulator: Accumulator::AsWeight,
            ..Pipeline::default()
        });
        let lowest = lowest(&memory.expect("few sets"));
        let chosen = [
            format!("--schedule={schedule}"),
            format!("--recompute={recompute}"),
            format!("--num-ipus={IPUS}"),
            "--explain".to_string(),
        ];
        // A limit that is just enough, and one byte less.
        for (memory, code) in [(lowest, 0), (lowest - 1, 1)] {
            let limit = format!("--mem-per-tile={memory}");
            let options = [&chosen[..], &[limit, "--solve".into()]].concat();
            let found = report(&options);
            assert_eq!(found.1, code, "{options:?}");
            let stages = found.0["split"]["stages"].as_array().expect("stages");
            let bytes = stages
                .iter()
                .map(|stage| stage["fullest_tile"]["bytes"].as_u64());
            assert_eq!(bytes.max().flatten(), Some(lowest), "{options:?}");
            if code == 1 {
                let needed = &found.0["refusal"]["smallest_tile_memory"];
                assert_eq!(needed, &Value::from(lowest), "{options:?}");
            }
        }
    }
}

/// Returns the report of the command, and its exit code.
fn report(options: &[String]) -> (Value, i32) {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("report.json");
    let profile = profile(FIXTURE);
    let fixed = [
        profile.to_str().expect("a plain path").to_string(),
        format!("--export-json={}", path.display()),
        "-q".to_string(),
    ];
    let run = popliner(fixed.iter().chain(options));
    let text = std::fs::read_to_string(&path).expect("a report");
    (serde_json::from_str(&text).expect("JSON"), run.code)
}

#[test]
fn alternatives_are_what_their_options_give() {
    let (refused, code) = report(&[
        "--solve".to_string(),
        "--num-ipus=4".to_string(),
        "--recompute=none".to_string(),
    ]);
    assert_eq!(code, 1);
    let alternatives = &refused["pipeline"]["alternatives"];
    let alternatives = alternatives.as_array().expect("alternatives");
    assert_eq!(alternatives.len(), 3, "{alternatives:?}");
    let more = &refused["refusal"]["on_more_ipus"];
    assert!(more.is_object(), "{refused}");
    for alternative in alternatives.iter().chain([more]) {
        let typed = alternative["options"].as_str().expect("options");
        let given = ["--num-ipus=4", "--recompute=none"];
        let left = given.iter().filter(|given| {
            let (name, _) = given.split_once('=').expect("a value");
            !typed.contains(name)
        });
        let typed_words = typed.split(' ').chain(left.copied());
        let options: Vec<String> = typed_words.chain(["--solve"]).map(String::from).collect();
        let (found, code) = report(&options);
        assert_eq!(alternative["fits"], Value::from(code == 0), "{typed}");
        let stages = found["split"]["stages"].as_array().expect("stages");
        let layers: Vec<&Value> = stages.iter().map(|stage| &stage["layers"]).collect();
        let expected = alternative["stages"].as_array().expect("stages");
        let expected: Vec<&Value> = expected.iter().collect();
        assert_eq!(layers, expected, "{typed}");
        if code == 0 {
            assert_eq!(
                alternative["milliseconds"], found["step"]["milliseconds"],
                "{typed}"
            );
        }
    }
}

#[test]
fn a_schedule_is_refused_where_none_is_known() {
    let cases: [(&[&str], &str); 4] = [
        (
            &["--solver=greedy", "--schedule=popart"],
            "--schedule: --solver greedy",
        ),
        (
            &["--memory-model=classic", "--recompute=stage"],
            "--recompute: --memory-model classic",
        ),
        (
            &["--memory-model=classic", "--accumulator=float32"],
            "--accumulator: ",
        ),
        (
            &["--schedule=sometimes"],
            "possible values: auto, none, popart",
        ),
    ];
    for (options, text) in cases {
        let profile = profile(FIXTURE);
        let fixed = [profile.to_str().expect("a plain path"), "--solve"];
        let run = popliner(fixed.iter().chain(options));
        assert_eq!(
            (run.code, run.out.as_str()),
            (2, ""),
            "{options:?}: {run:?}"
        );
        assert!(run.err.contains(text), "{options:?}: {}", run.err);
    }
}

/// Costs depend on the number of stages after a range, so they are computed for more stages.
#[test]
fn other_numbers_of_ipus_can_be_tried() {
    let (found, code) = report(&["--solve".to_string(), format!("--num-ipus={IPUS}")]);
    assert_eq!(code, 0);
    let best = found["what_if"]["best"].as_array().expect("best splits");
    let tried = best.iter().filter_map(|best| best["ipus"].as_u64());
    let positions = found["layers"].as_array().expect("positions").len() as u64;
    assert!(tried.eq(1..=positions), "{best:?}");
}
