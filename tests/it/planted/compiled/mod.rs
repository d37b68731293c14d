//! Compiled pipelines of planted models: `--fit` against the planted truth, and `--compare` with
//! the prediction from the compilation for one IPU.
//!
//! `SEEDS=12..13 cargo test --test it planted::compiled` runs one model.

mod case;

use crate::support::models::seeds;
use crate::support::{Checking, each};
use case::Case;
use popliner::profile::CodeKind;
use popliner::report::{Fit, MatchedBy, TileParts};
use synthesize::pipeline::{ProfileForm, StageTruth};

/// Number of models to draw. Models whose backward pass is unknown are left out.
const MODELS: u64 = 5;

/// Each model is written, compiled and read once for all checks.
#[test]
fn compiled_pipelines_are_read_and_compared() {
    let is_chosen = std::env::var("SEEDS").is_ok();
    let seeds: Vec<u64> = seeds(MODELS).collect();
    let of_seed = |&seed: &u64| {
        let case = Case::of_model(seed);
        case.iter().for_each(check);
        usize::from(case.is_some())
    };
    let cases: usize = each(&seeds, of_seed).into_iter().sum();
    assert!(cases >= 4 || is_chosen, "{cases} cases");
}

fn check(case: &Case) {
    let _checking = Checking(case);
    let fit = case.compiled.fit();
    every_tile_of_every_ipu_has_what_was_planted(case, &fit);
    the_prediction_lacks_what_was_planted(case, &fit);
    the_reserve_covers_what_was_recorded(case, &fit);
    other_forms_say_the_same(case, &fit);
    if let Some(other) = case.cut_elsewhere() {
        other_cuts_are_recognised(case, &other.fit());
    }
}

fn every_tile_of_every_ipu_has_what_was_planted(case: &Case, fit: &Fit) {
    let compiled = &case.compiled;
    let tiles = compiled.read.profile.recorded.tiles.iter();
    let recorded: Vec<u64> = tiles.map(|tile| tile.total).collect();
    let truth = &compiled.truth;
    let planted = truth.iter().flat_map(|stage| stage.tiles.iter().copied());
    assert_eq!(recorded, planted.collect::<Vec<u64>>());
    assert_eq!(compiled.read.profile.warnings, []);
    assert_eq!(fit.ipus.len(), truth.len());
    for (ipu, truth) in truth.iter().enumerate() {
        check_ipu(fit, ipu, truth);
    }
    let over = |stage: &StageTruth| stage.tiles.iter().any(|&bytes| bytes > fit.limit);
    assert_eq!(fit.fits, !truth.iter().any(over));
}

fn check_ipu(fit: &Fit, ipu: usize, truth: &StageTruth) {
    let ipu_fit = &fit.ipus[ipu];
    let fullest = truth.tiles.iter().copied().max().expect("tiles");
    let tile = truth.tiles.iter().position(|&bytes| bytes == fullest);
    let tile = tile.expect("the fullest");
    let found = &ipu_fit.fullest_tile;
    assert_eq!((found.bytes, found.tile_of_ipu as usize), (fullest, tile));
    let first = ipu_fit.ipu * fit.tiles_per_ipu;
    assert_eq!(found.tile, first + found.tile_of_ipu);
    assert_eq!(ipu_fit.total, truth.tiles.iter().sum::<u64>());
    let over = truth.tiles.iter().filter(|&&bytes| bytes > fit.limit);
    assert_eq!(ipu_fit.tiles_over as usize, over.count());
    assert_eq!(found.parts, parts(truth, tile), "IPU {ipu}, tile {tile}");
    assert_eq!(found.parts.total(), fullest);
    let named = ipu_fit.named.expect("names");
    assert_eq!(named.stashed, truth.stash.iter().sum::<u64>());
    let sums = ipu_fit.categories.iter();
    let category = |wanted: &str| {
        let found = sums.clone().find(|sum| sum.name == wanted);
        found.map_or(0, |sum| sum.all_tiles)
    };
    let planted: u64 = truth.planted["globalExchangeCode"].iter().sum();
    assert_eq!(category("globalExchangeCode"), planted);
}

/// Returns the planted bytes of a tile, by part.
fn parts(truth: &StageTruth, tile: usize) -> TileParts {
    let mut parts = TileParts {
        stash: truth.stash[tile],
        accumulators: truth.accumulators[tile],
        gaps: truth.gaps[tile],
        ..TileParts::default()
    };
    for (&category, &bytes) in &truth.categories[tile] {
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

/// Checks compilations without lowered variables, with replicas, and with execution.
fn other_forms_say_the_same(case: &Case, fit: &Fit) {
    let plain = ProfileForm::PLAIN;
    let blind = case.compiled_as(ProfileForm {
        lists_variables: false,
        ..plain
    });
    let blind = blind.fit();
    assert_eq!((blind.variables, blind.has_names), (None, false));
    for (ipu, whole) in blind.ipus.iter().zip(&fit.ipus) {
        let (tile, whole) = (&ipu.fullest_tile, &whole.fullest_tile);
        let parts = TileParts {
            variables: whole.parts.variables + whole.parts.stash + whole.parts.accumulators,
            stash: 0,
            accumulators: 0,
            ..whole.parts
        };
        assert_eq!((tile.bytes, tile.parts), (whole.bytes, parts));
    }
    assert_eq!(case.comparison(&blind).cut_elsewhere, None);
    for lists_replicas in [false, true] {
        let replicas = 2;
        let form = ProfileForm {
            replicas,
            lists_replicas,
            ..plain
        };
        let of_replicas = case.compiled_as(form).fit();
        let listed = if lists_replicas { 2 } else { 1 };
        let counts = (of_replicas.replicas, of_replicas.listed_replicas);
        assert_eq!(counts, (replicas, listed));
        assert_eq!(of_replicas.ipus.len(), listed as usize * fit.ipus.len());
        let totals = |fit: &Fit| -> Vec<u64> { fit.ipus.iter().map(|ipu| ipu.total).collect() };
        assert_eq!(totals(&of_replicas), totals(fit).repeat(listed as usize));
        let comparison = case.comparison(&of_replicas);
        assert_eq!(comparison, case.comparison(fit));
    }
    let executed = case.compiled_as(ProfileForm {
        execution: true,
        ..plain
    });
    let cycles = executed.truth.iter().map(|stage| Some(stage.cycles));
    let found = executed.fit().ipus.into_iter().map(|ipu| ipu.cycles);
    assert!(found.eq(cycles));
}

fn the_prediction_lacks_what_was_planted(case: &Case, fit: &Fit) {
    let comparison = case.comparison(fit);
    assert_eq!(comparison.cut_elsewhere, None);
    assert_eq!(comparison.stages.len(), fit.ipus.len());
    for (stage, truth) in comparison.stages.iter().zip(&case.compiled.truth) {
        assert_eq!(stage.stage, stage.ipu);
        let tile = fit.ipus[stage.ipu as usize].fullest_tile.tile_of_ipu as usize;
        let planted = &truth.planted;
        let (predicted, recorded) = (stage.predicted_parts, stage.recorded_parts);
        assert_eq!(recorded.total(), stage.recorded);
        assert_eq!(predicted.total(), stage.predicted);
        let difference = stage.recorded as i64 - stage.predicted as i64;
        assert_eq!(stage.difference, difference);
        let by_part = stage.parts().map(|part| part.difference);
        assert_eq!(by_part.sum::<i64>(), difference);
        let global = [predicted, recorded].map(|parts| parts.global_exchange_code);
        assert_eq!(global, [0, planted["globalExchangeCode"][tile]]);
        // Each side has the host exchange code of its own fullest tile.
        let host = case.host_exchange_on(case.predicted_tile(stage.stage as usize));
        assert_eq!(predicted.host_exchange_code, host);
        let host = case.host_exchange_on(tile) + planted["hostExchangeCode"][tile];
        assert_eq!(recorded.host_exchange_code, host);
    }
}

/// Stages are compared by their layers, or else by their number, which does not change.
fn other_cuts_are_recognised(case: &Case, fit: &Fit) {
    let comparison = case.comparison(fit);
    let is_seen = comparison.matched_by == MatchedBy::Layers;
    assert_eq!(comparison.cut_elsewhere.is_some(), is_seen);
    assert_eq!(comparison.reserve.is_none(), is_seen);
}

/// If each IPU has exactly the memory that its compiled stage needs, the stage that lacks the most
/// just fits with the reserve, and does not with a byte less memory. The other stages need at least
/// as much as compiled.
fn the_reserve_covers_what_was_recorded(case: &Case, fit: &Fit) {
    let comparison = case.comparison(fit);
    let reserve = comparison.reserve.expect("the same cuts");
    let stages = comparison.stages.iter();
    let limits = stages.map(|stage| stage.recorded - reserve);
    let again = case.predict(limits.collect());
    let split = again.split.expect("a split");
    let free = split.stages.iter().map(|stage| stage.fullest_tile.free);
    let most = free.max().expect("stages");
    assert!(most == 0 || reserve == 0 && most < 0, "{case}: {most}");
}
