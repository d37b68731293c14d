use super::*;
use crate::memory::{Correction, PlacedStage};
use crate::report::terminal::{self, TextStyle};
use crate::report::{Part, RefusalReason, Stage, Units, html, markdown, write_csv};
use crate::search::IpuCount;
use crate::search::search;
use crate::solve::Plan;
use std::fs;
use std::ops::Range;

#[test]
fn names_are_not_fetched_from_a_profile_that_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let to = folder.path().join(name);
        fs::copy(Path::new("fixtures/poplar-mlp").join(name), &to).unwrap();
        to
    };
    let (profile, debug) = (copy("profile.pop"), copy("debug.cbor"));
    let analysis = Analysis::read(&profile, &debug).unwrap();
    let places = PlacementOptions::default();
    let layers = analysis
        .layers(Rules::Full, &LayerOptions::default(), &places)
        .unwrap();
    assert!(layers.split(SearchRequest::default()).is_ok());
    // The change counter of SQLite's header, bytes 24 to 27.
    let mut bytes = fs::read(&profile).unwrap();
    bytes[27] ^= 1;
    fs::write(&profile, bytes).unwrap();
    let error = layers.split(SearchRequest::default()).unwrap_err();
    assert!(format!("{error:#}").contains("changed"), "{error:#}");
    assert!(format!("{error:#}").contains("profile.pop"), "{error:#}");
}

/// A fixture with its limit, on 4 IPUs.
fn on_fixture(name: &str, answer: impl Fn(&Analysis, &Layers<'_>, SearchRequest)) {
    let folder = Path::new("fixtures").join(name);
    let files = ["profile.pop", "debug.cbor"].map(|file| folder.join(file));
    let analysis = Analysis::read(&files[0], &files[1]).unwrap();
    let (regexes, places) = (LayerOptions::default(), PlacementOptions::default());
    let layers = analysis.layers(Rules::Full, &regexes, &places).unwrap();
    let request = SearchRequest {
        ipus: IpuCount::Exactly(4),
        limits: vec![analysis.model.target.bytes_per_tile],
        ..SearchRequest::default()
    };
    answer(&analysis, &layers, request);
}

fn report(layers: &Layers<'_>, request: &SearchRequest, correction: Option<Correction>) -> Report {
    let pipeline = request.pipeline.choose(&layers.analysis.model);
    let memory = layers.memory().unwrap().in_pipeline(pipeline).unwrap();
    let memory = memory.corrected(correction);
    let found = search(&memory, &layers.placement, request.clone()).unwrap();
    let (limit, detail) = (request.highest_limit(), Detail::Full);
    layers
        .report(&memory, Some(&found), limit, detail, Vec::new())
        .unwrap()
}

fn stages(report: &Report) -> &[Stage] {
    &report.split.as_ref().unwrap().stages
}

fn ranges(report: &Report) -> Vec<Range<usize>> {
    let positions = stages(report).iter().map(|stage| &stage.positions);
    let range = |stage: &Range<u32>| stage.start as usize..stage.end as usize;
    positions.map(range).collect()
}

/// Where the place of a stage matters, the proof says that the number of stages
/// is not enough, and not how many would be.
fn without_stages_needed(mut report: Report) -> Report {
    let proof = report.proof.iter_mut();
    for bottleneck in proof.flat_map(|proof| &mut proof.bottlenecks) {
        bottleneck.stages_needed = None;
    }
    report
}

#[test]
fn zeros_that_were_learnt_change_no_number() {
    let all = |request: &SearchRequest| SearchRequest {
        sweep: true,
        moves: true,
        ..request.clone()
    };
    let too_low = |request: &SearchRequest| SearchRequest {
        limits: vec![request.limits[0] / 3],
        ..request.clone()
    };
    for name in ["popart-bert-inference", "poptorch-bert-training"] {
        on_fixture(name, |_, layers, request| {
            for request in [request.clone(), all(&request), too_low(&request)] {
                let expected = report(layers, &request, None);
                let mut found = report(layers, &request, Some(Correction::default()));
                let split = found.split.as_mut().unwrap();
                assert!(std::mem::take(&mut split.is_calibrated), "{name}");
                for stage in &mut split.stages {
                    assert!(std::mem::take(&mut stage.fullest_tile.learnt_is_estimate));
                }
                let expected = without_stages_needed(expected);
                assert!(without_stages_needed(found) == expected, "{name}");
            }
        });
    }
}

#[test]
fn compiled_stages_need_what_was_predicted_and_learnt() {
    for name in ["popart-bert-inference", "poptorch-bert-training"] {
        on_fixture(name, |_, layers, request| {
            let before = report(layers, &request, None);
            let ranges = ranges(&before);
            let compiled = PlacedStage::of_split(&ranges);
            let numbered = |sign: i64| (1..).map(move |number: i64| sign * 1000 * number);
            for sign in [-1, 1] {
                let correction = Correction {
                    stages: compiled.iter().cloned().zip(numbered(sign)).collect(),
                    ..Correction::default()
                };
                let request = SearchRequest {
                    given: Plan::new(ranges.clone(), layers.placement.positions.len()),
                    ..request.clone()
                };
                let found = report(layers, &request, Some(correction));
                let both = stages(&before).iter().zip(stages(&found));
                for ((before, now), correction) in both.zip(numbered(sign)) {
                    let (before, now) = (&before.fullest_tile, &now.fullest_tile);
                    let bytes = before.bytes.saturating_add_signed(correction);
                    assert_eq!((now.bytes, now.learnt), (bytes, correction), "{name}");
                    assert_eq!(now.parts, before.parts, "{name}");
                    assert_eq!(now.free, before.free - correction, "{name}");
                    assert!(!now.learnt_is_estimate, "{name}");
                }
                let peak = stages(&found)
                    .iter()
                    .map(|stage| stage.fullest_tile.bytes)
                    .max();
                let best = found.given.map(|given| given.best_fullest_tile_bytes);
                assert!(best <= peak, "{name}");
            }
        });
    }
}

#[test]
fn a_split_that_needed_less_stays_the_best() {
    on_fixture("popart-bert-inference", |_, layers, request| {
        let before = report(layers, &request, None);
        let compiled = PlacedStage::of_split(&ranges(&before));
        let correction = Correction {
            stages: compiled.into_iter().map(|stage| (stage, -1000)).collect(),
            ..Correction::default()
        };
        // It fits where nothing did before.
        let needed = stages(&before).iter().map(|stage| stage.fullest_tile.bytes);
        let request = SearchRequest {
            limits: vec![needed.max().unwrap() - 1000],
            ..request
        };
        assert!(report(layers, &request, None).refusal.is_some());
        let found = report(layers, &request, Some(correction));
        assert_eq!(ranges(&found), ranges(&before));
        assert!(found.split.is_some_and(|split| split.fits));
    });
}

/// Stages of which the first and those between others have a number.
fn first_and_middle() -> Correction {
    Correction {
        first: 1536,
        middle: -2048,
        ..Correction::default()
    }
}

#[test]
fn a_spreadsheet_has_what_was_learnt_in_its_last_column() {
    on_fixture("popart-bert-inference", |_, layers, request| {
        let found = report(layers, &request, Some(first_and_middle()));
        let correction = stages(&found).iter().map(|stage| stage.fullest_tile.learnt);
        assert_eq!(correction.collect::<Vec<_>>(), [1536, -2048, -2048, 0]);
        let mut cells = Vec::new();
        write_csv(&found, &mut cells).unwrap();
        let cells = String::from_utf8(cells).unwrap();
        let last = cells.lines().skip(1).take(5);
        let last: Vec<_> = last
            .filter_map(|row| Some(row.rsplit_once(',')?.1))
            .collect();
        assert_eq!(
            last,
            ["Calibrated correction", "1536", "-2048", "-2048", "0"]
        );
    });
}

#[test]
fn people_see_what_was_learnt() {
    on_fixture("popart-bert-inference", |_, layers, request| {
        let found = report(layers, &request, Some(first_and_middle()));
        let look = TextStyle {
            units: Units::Bytes,
            screen: None,
            columns: None,
        };
        let answer = terminal::text(&found, &look, &[Part::Verdict, Part::Table, Part::Answer]);
        assert!(answer.contains("-2,048"));
        let explained = terminal::text(&found, &look, &[Part::Explanation]);
        assert!(explained.contains(", calibrated correction -2,048"));
        let sentence = "The calibrated correction of every IPU";
        assert!(answer.contains(sentence));
        for text in [markdown(&found), html(&found)] {
            assert!(text.contains("-2,048") && text.contains(&sentence[1..]));
        }
        let plain = report(layers, &request, None);
        assert!(!markdown(&plain).contains("Calibrated"));
        let answer = terminal::text(&plain, &look, &[Part::Verdict, Part::Table, Part::Answer]);
        assert!(!answer.contains("calibrated"), "{answer}");
    });
}

#[test]
fn what_was_learnt_can_be_why_nothing_fits() {
    on_fixture("popart-bert-inference", |_, layers, request| {
        let correction = Correction {
            first: 1 << 20,
            alone: 1 << 20,
            ..Correction::default()
        };
        let found = report(layers, &request, Some(correction));
        let refusal = found.refusal.expect("nothing fits");
        assert_eq!(refusal.reason, RefusalReason::Learnt);
        assert!(refusal.smallest_limit > Some(1 << 20));
    });
}

#[test]
fn a_compilation_is_judged_in_a_few_calls() {
    let folder = Path::new("fixtures/training-pipelined");
    let contexts = |file: &str| ContextsOf {
        file: Some(folder.join(file)),
        is_named: false,
        is_trusted: false,
    };
    let read = |contexts: &ContextsOf| {
        let layers = |_: &_| LayerOptions::default();
        Compilation::read(&folder.join("profile.pop"), contexts, layers, false).unwrap()
    };
    let compilation = read(&contexts("debug.cbor"));
    let limit = compilation.profile.target.bytes_per_tile;
    let fit = compilation.fit(vec![limit]).fit.unwrap();
    assert!(fit.fits);
    let peaks: Vec<u64> = fit.ipus.iter().map(|ipu| ipu.fullest_tile.bytes).collect();
    assert_eq!(peaks, [243_878, 212_824, 238_451, 188_350]);
    let second: Vec<Option<String>> = ["1", "2"].map(|name| Some(name.into())).into();
    assert_eq!(fit.ipus[1].layers.as_ref(), Some(&second));
    assert!(!compilation.fit(vec![peaks[0] - 1]).fit.unwrap().fits);
    // Without contexts that can be read there are no layers, and a warning says why.
    let without = read(&contexts("nowhere.cbor"));
    let warning = &without.warnings[0].1;
    assert!(
        warning.contains("layers on IPUs are left out"),
        "{warning:?}"
    );
    assert_eq!(without.fit(vec![limit]).fit.unwrap().ipus[1].layers, None);
}
