//! Compiled pipelines of models whose places are known: what `--fit` reads of them
//! against what was planted, what `--against` says of the prediction from the
//! compilation for one IPU, and what is learnt from that.
//!
//! `cargo test --test it planted::compiled -- --nocapture` prints how far
//! predictions are off, before and after learning; `SEEDS=12..13` looks at one model.

mod case;

use super::places::distribution::Distribution;
use crate::support::models::seeds;
use case::{Case, Compiled};
use popliner::model::CodeKind;
use popliner::profile::PipelineName;
use popliner::report::{Against, Calibration, Fit, MatchedBy, TileParts};
use rayon::prelude::*;
use synthesize::pipeline::{NameKind, StageTruth};

/// How many models are drawn; those without a backward pass that shows are left out.
const MODELS: u64 = 160;

fn each(check: impl Fn(&Case) + Sync) {
    let seeds: Vec<u64> = seeds(MODELS).collect();
    let count: usize = seeds
        .par_iter()
        .map(|&seed| {
            let cases = Case::of_model(seed);
            cases.iter().for_each(&check);
            cases.len()
        })
        .sum();
    assert!(
        count >= 100 || std::env::var("SEEDS").is_ok(),
        "{count} cases"
    );
}

#[test]
fn every_tile_of_every_ipu_has_what_was_planted() {
    each(|case| {
        let compiled = &case.compiled;
        let recorded: Vec<u64> = compiled
            .profile
            .tiles
            .iter()
            .map(|tile| tile.total)
            .collect();
        let truth = compiled.truth.stages.iter();
        let planted: Vec<u64> = truth.flat_map(|own| own.tiles.iter().copied()).collect();
        assert_eq!(recorded, planted, "{case}");
        assert_eq!(compiled.profile.warnings, Vec::<String>::new(), "{case}");
        let fit = compiled.fit();
        assert_eq!(fit.ipus.len(), compiled.truth.stages.len(), "{case}");
        for (ipu, truth) in compiled.truth.stages.iter().enumerate() {
            check_ipu(case, &fit, ipu, truth);
        }
        let over = |own: &StageTruth| own.tiles.iter().any(|&bytes| bytes > fit.limit);
        let any_over = compiled.truth.stages.iter().any(over);
        assert_eq!(fit.fits, !any_over, "{case}");
    });
}

fn check_ipu(case: &Case, fit: &Fit, ipu: usize, truth: &StageTruth) {
    let own = &fit.ipus[ipu];
    let fullest = truth.tiles.iter().copied().max().expect("tiles");
    let tile = truth
        .tiles
        .iter()
        .position(|&bytes| bytes == fullest)
        .expect("the fullest");
    let found = &own.fullest_tile;
    assert_eq!(
        (found.bytes, found.tile_of_ipu as usize),
        (fullest, tile),
        "{case}"
    );
    assert_eq!(
        found.tile,
        own.ipu * fit.tiles_per_ipu + found.tile_of_ipu,
        "{case}"
    );
    assert_eq!(own.total, truth.tiles.iter().sum::<u64>(), "{case}");
    let over = truth
        .tiles
        .iter()
        .filter(|&&bytes| bytes > fit.limit)
        .count();
    assert_eq!(own.tiles_over as usize, over, "{case}");
    assert_eq!(
        found.parts,
        parts(truth, tile),
        "{case}: IPU {ipu}, tile {tile}"
    );
    assert_eq!(found.parts.total(), fullest, "{case}");
    let named = own.named.expect("names");
    assert_eq!(named.stashed, truth.stash.iter().sum::<u64>(), "{case}");
    let sums = own.categories.iter();
    let category = |wanted: &str| {
        let found = sums.clone().find(|own| own.name == wanted);
        found.map_or(0, |own| own.all_tiles)
    };
    let planted: u64 = truth.planted.global_exchange.iter().sum();
    assert_eq!(category("globalExchangeCode"), planted, "{case}");
}

/// What was planted on a tile, by part.
fn parts(truth: &StageTruth, tile: usize) -> TileParts {
    let content = &truth.contents[tile];
    let kind = |kind| content.kinds.get(&kind).copied().unwrap_or(0);
    let mut parts = TileParts {
        stash: kind(NameKind::Stashed),
        accumulators: kind(NameKind::Accumulator),
        gaps: content.gap,
        ..TileParts::default()
    };
    for (&category, &bytes) in &content.categories {
        let part = match (CodeKind::of_category(category), category) {
            (Some(CodeKind::VertexCode), _) => &mut parts.vertex_code,
            (Some(CodeKind::VertexState), _) => &mut parts.vertex_state,
            (Some(CodeKind::ExchangeCode), _) => &mut parts.exchange_code,
            (Some(CodeKind::ControlCode), _) => &mut parts.control_code,
            (None, "hostExchangeCode") => &mut parts.host_exchange_code,
            (None, "globalExchangeCode") => &mut parts.global_exchange_code,
            (None, _) => &mut parts.variables,
        };
        *part += bytes;
    }
    parts.variables -= parts.stash + parts.accumulators;
    parts
}

#[test]
fn names_tell_the_same_to_reader_and_generator() {
    let pairs = [
        (NameKind::Stashed, PipelineName::Stashed),
        (NameKind::Restored, PipelineName::Restored),
        (NameKind::Accumulator, PipelineName::Accumulator),
        (NameKind::Received, PipelineName::Received),
    ];
    for name in [
        "Stashed___x",
        "Restored___x",
        "Accum___x",
        "x_ipucopy",
        "x/inter-ipu-copy",
        "x/fifo/buffer/0",
        "x/fifo/out/0",
        "x/Accumulator",
        "x/accumulator",
        "x",
        "x_Recomputed",
    ] {
        let read = PipelineName::of(&format!("{name}#"));
        let planted = NameKind::of(name).and_then(|own| {
            let found = pairs.iter().find(|pair| pair.0 == own);
            found.map(|pair| pair.1)
        });
        assert_eq!(read, planted, "{name}");
    }
}

#[test]
fn the_prediction_lacks_what_was_planted_and_cannot_be_known() {
    each(|case| {
        let fit = case.compiled.fit();
        let against = case.against(&case.predict(None), &fit);
        assert_eq!(against.cut_elsewhere, None, "{case}");
        assert_eq!(against.stages.len(), fit.ipus.len(), "{case}");
        for (own, truth) in against.stages.iter().zip(&case.compiled.truth.stages) {
            assert_eq!(own.stage, own.ipu, "{case}");
            let tile = fit.ipus[own.ipu as usize].fullest_tile.tile_of_ipu as usize;
            let planted = &truth.planted;
            let (predicted, recorded) = (own.predicted_parts, own.recorded_parts);
            assert_eq!(recorded.total(), own.recorded, "{case}");
            assert_eq!(predicted.total(), own.predicted, "{case}");
            assert_eq!(own.difference, own.recorded as i64 - own.predicted as i64);
            // The prediction has what the one IPU has of it, of its own fullest tile.
            let [.., global, _] = own.part_differences();
            assert_eq!(global, planted.global_exchange[tile] as i64, "{case}");
            let host = case.host_exchange(own.stage as usize);
            let more = recorded.host_exchange_code - planted.host_exchange[tile];
            assert_eq!(more, case.host_exchange_on(tile), "{case}");
            assert_eq!(predicted.host_exchange_code, host, "{case}");
        }
    });
}

#[test]
fn a_pipeline_that_was_cut_elsewhere_is_recognised() {
    each(|case| {
        let Some(other) = case.other_cuts() else {
            return;
        };
        let fit = case.compiled_at(&other).fit();
        let against = case.against(&case.predict(None), &fit);
        let is_named = against.matched_by == MatchedBy::Layers;
        let cut = against.cut_elsewhere.as_ref();
        assert_eq!(
            cut.is_some(),
            is_named || other.len() != case.cuts.len(),
            "{case}"
        );
        assert!(cut.is_none() || Calibration::new(&case.predict(None), &against).is_err());
    });
}

#[test]
fn what_was_learnt_predicts_the_same_split_as_it_was_recorded() {
    each(|case| {
        let fit = case.compiled.fit();
        let prediction = case.predict(None);
        let against = case.against(&prediction, &fit);
        let learnt = Calibration::new(&prediction, &against).expect("the same cuts");
        let learnt = Calibration::read(learnt.text().as_bytes()).expect("what was written");
        let again = case.predict(Some(&learnt));
        let against = case.against(&again, &fit);
        for own in &against.stages {
            assert_eq!(own.predicted, own.recorded, "{case}");
        }
        // Predicted again, nothing moves.
        let twice = Calibration::new(&again, &against).expect("the same cuts");
        assert_eq!(twice, learnt, "{case}");
    });
}

/// How far another split is off, before and after learning.
#[test]
fn what_was_learnt_helps_with_other_splits() {
    let seeds: Vec<u64> = seeds(MODELS).collect();
    let errors: Vec<(f64, f64)> = seeds
        .par_iter()
        .flat_map_iter(|&seed| Case::of_model(seed))
        .flat_map_iter(|case| {
            let fit = case.compiled.fit();
            let prediction = case.predict(None);
            let against = case.against(&prediction, &fit);
            let learnt = Calibration::new(&prediction, &against).expect("the same cuts");
            let others = case.other_cuts().into_iter();
            let errors = others.flat_map(|cuts| other_split(&case, &cuts, &learnt));
            errors.collect::<Vec<_>>()
        })
        .collect();
    let [mut before, mut after, mut lower_before, mut lower_after] =
        [(); 4].map(|()| Distribution::default());
    for (was, is) in &errors {
        before.add(&[], was.abs());
        after.add(&[], is.abs());
        lower_before.add(&[], was.max(0.0));
        lower_after.add(&[], is.max(0.0));
    }
    before.print("another split off, before learning, per cent of the recorded");
    after.print("the same after learning");
    lower_before.print("too low, before learning");
    lower_after.print("the same after learning");
    assert!(errors.len() > 100 || std::env::var("SEEDS").is_ok());
    for part in [500, 950] {
        assert!(after.per_mille("all", part) <= before.per_mille("all", part));
    }
}

/// For each IPU of a split that was not compiled: what was recorded less what is
/// predicted, as a part of what was recorded, before and after learning.
fn other_split(case: &Case, cuts: &[u32], learnt: &Calibration) -> Vec<(f64, f64)> {
    let fit = Compiled::fit(&case.compiled_at(cuts));
    let off = |calibration| -> Vec<f64> {
        let against: Against = case.against(&case.predict_at(cuts, calibration), &fit);
        let stages = against.stages.iter();
        let part = |bytes: i64, of: u64| bytes as f64 / of as f64;
        stages
            .map(|own| part(own.difference, own.recorded))
            .collect()
    };
    off(None).into_iter().zip(off(Some(learnt))).collect()
}
