//! The page as text; in a browser it is tested by `tests/it/page`.

use super::*;
use crate::report::testing::{compiled, hostile, hostile_compiled, report};
use crate::report::{
    Curve, LayerMemory, LiveVariable, TileCategory, TileMap, TileTotals, TileVariables,
    VariableKind,
};
use base64::prelude::{BASE64_STANDARD, Engine};
use sha2::{Digest, Sha256};

mod colours;
mod compilation;

#[test]
fn the_policy_names_the_style_and_the_script() {
    for (text, hash) in [(STYLE, STYLE_HASH), (SCRIPT, SCRIPT_HASH)] {
        let found = BASE64_STANDARD.encode(Sha256::digest(text));
        assert_eq!(hash, found, "the constant in src/report/html is old");
    }
}

#[test]
fn every_section_stands_in_the_page() {
    let page = text(&report());
    for id in [
        "refusal",
        "given",
        "split",
        "what-if",
        "constraints",
        "stages",
        "cuts",
        "tied-weights",
        "shared-variables",
        "proof",
        "sweep",
        "liveness",
        "live-steps",
        "memory",
        "layers",
        "execution",
        "summary",
        "made",
    ] {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    assert!(page.contains("The model does not fit on 2 IPUs"));
    assert!(!page.contains("..</p>"), "a sentence has two ends");
}

#[test]
fn a_report_with_little_in_it_is_a_page_too() {
    let mut report = report();
    report.split = None;
    report.proof = None;
    report.refusal = None;
    report.given = None;
    report.constraints.clear();
    report.tied_weights.clear();
    report.shared_variables.clear();
    report.cuts.clear();
    report.liveness = None;
    report.sweep = None;
    report.execution = None;
    report.memory = Default::default();
    report.layers.clear();
    let page = text(&report);
    assert!(page.contains("<section id=\"summary\">") && !page.contains("<section id=\"split\">"));
}

#[test]
fn a_split_is_optimal_only_when_it_is_proven() {
    let mut report = report();
    let is_optimal = |report: &Report| text(report).contains("<p>Optimal: the integer program");
    assert!(is_optimal(&report));
    report.proof.as_mut().unwrap().optimal = false;
    assert!(!is_optimal(&report));
}

/// Stage 1 of the report may take less than stage 0.
#[test]
fn a_stage_is_held_against_its_own_limit() {
    let mut report = report();
    let stage = &mut report.split.as_mut().unwrap().stages[1];
    stage.fullest_tile.bytes = 638_500;
    stage.fullest_tile.free = -524;
    let page = text(&report);
    assert!(page.contains("<td class=\"n bad\">100.1 %</td>"), "{page}");
    assert!(page.contains("<span data-json=\"/split/limits/1\">637,976</span>"));
}

/// Even with as many stages as layers.
#[test]
fn a_hundred_layers_and_twenty_thousand_steps_take_less_than_two_and_a_half_megabytes() {
    let mut report = report();
    let curve = |points: u32| Curve {
        first_step: 0,
        last_step: 19_999,
        steps: (0..points).map(|point| point * (19_999 / points)).collect(),
        bytes: (0..points)
            .map(|point| 10_000_000 + 9_999_999 * u64::from(point % 2))
            .collect(),
        ..report.split.as_ref().unwrap().stages[1]
            .fullest_tile_curve
            .clone()
            .unwrap()
    };
    // What the report is thinned to.
    let (whole, of_stage) = (curve(1000), curve(12_000 / 200));
    let variable = LiveVariable {
        name: "bert/encoder/layer/17/attention/self/query/MatMul/Weight0#14".into(),
        ..report
            .liveness
            .as_ref()
            .unwrap()
            .peak_variables
            .as_ref()
            .unwrap()
            .largest[0]
            .clone()
    };
    let name = |layer: u32| Some(layer.to_string());
    let split = report.split.as_mut().unwrap();
    let stage = |stage: u32| {
        let mut own = split.stages[1].clone();
        own.stage = stage;
        own.layers = vec![name(stage)];
        own.positions = stage..stage + 1;
        own.all_tiles_curve = Some(of_stage.clone());
        own.fullest_tile_curve = Some(of_stage.clone());
        own.tiles
            .histogram
            .iter_mut()
            .for_each(|bucket| bucket.tiles = 70);
        let peak = own.peak_variables.as_mut().unwrap();
        peak.largest = vec![variable.clone(); 20];
        peak.categories = vec![peak.categories[0].clone(); 20];
        own
    };
    split.stages = (0..100).map(stage).collect();
    report.cuts[0].moves = vec![report.cuts[0].moves[0].clone(); 2];
    report.cuts = vec![report.cuts[0].clone(); 99];
    report.shared_variables = vec![report.shared_variables[0].clone(); 100];
    report.layers = (0..100)
        .map(|layer| LayerMemory {
            name: name(layer),
            ..report.layers[3].clone()
        })
        .collect();
    let liveness = report.liveness.as_mut().unwrap();
    liveness.steps = 20_000;
    liveness.all_tiles = whole.clone();
    liveness.fullest_tile_curve = whole;
    let band = |band: u32| Band {
        layer: name(band % 100),
        from: band * 33,
        to: band * 33 + 32,
    };
    liveness.bands = (0..600).map(band).collect();
    let tiles = vec![12_345_678; 1472];
    report.memory.tiles = Some(TileTotals {
        fullest: 0,
        total: tiles.clone(),
        with_gaps: Some(tiles.clone()),
        always_live: tiles.clone(),
        not_always_live: tiles,
    });
    report.memory.tile_map = Some(tile_map());
    let size = text(&report).len();
    assert!((1_000_000..2_500_000).contains(&size), "{size} bytes");
}

/// Of 1472 tiles, none like the one before it.
fn tile_map() -> TileMap {
    let bytes = |category: u64| -> Vec<u64> {
        let tiles = 0..1472;
        let own = tiles.map(|tile: u64| (tile + category).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        own.map(|own| own >> 46).collect()
    };
    let category = |category: u64| TileCategory {
        name: format!("category{category}"),
        bytes: bytes(category),
        overlapped: bytes(category + 1),
    };
    let kind = |kind: u32| VariableKind {
        name: format!("bert/encoder/layer/{}/MatMul/Weight0#{kind}", kind % 100),
        category: "variable".into(),
        always_live: true,
    };
    let largest = |tile: u32| (0..10).map(|own| (tile * 10 + own, 20_000)).collect();
    TileMap {
        categories: (0..20).map(category).collect(),
        left_out: 0,
        variables: Some(TileVariables {
            most: 10,
            tiles: (0..1472).collect(),
            kinds: (0..14_720).map(kind).collect(),
            largest: (0..1472).map(largest).collect(),
        }),
    }
}

#[test]
fn hostile_names_stay_text() {
    let name = "</script></title><img src=x onerror=alert(1)>\"' onload=\"x\u{1b}&amp;";
    for report in [hostile(name), hostile_compiled(name)] {
        let page = text(&report);
        assert!(!page.contains("<img"), "an element came in");
        assert!(!page.contains("\" onload"), "an attribute came in");
        assert!(!page.contains('\u{1b}'));
        let begun = page.matches("<script").count();
        assert_eq!(page.matches("</script>").count(), begun);
        assert_eq!(page.matches("</title>").count(), 1);
        assert!(page.contains("&lt;img src=x"));
    }
}
