//! Memory over the steps, tile by tile.

use super::opened::{Page, page};
use super::{SPLIT, list, number};
use serde_json::{Value, json};

#[test]
fn the_fullest_tile_of_each_stage_is_there_step_by_step() {
    let mut page = or_skip!(page("training-pipeline", SPLIT, "#view=memory"));
    let stages: Vec<Value> = page.at("/split/stages");
    for stage in stages {
        let tile = &stage["fullest_tile"]["tile"];
        page.run(&format!("choose({{ tile: {tile} }})"));
        let shown = page.text("#live-steps-heading");
        assert!(
            shown.starts_with(&format!("Tile {tile} at step ")),
            "{shown}"
        );
        page.check_numbers();
        for list in ["categories", "layers"] {
            let rows = page.count(&format!("#live-steps-sums [data-json*=\"/{list}/\"]"));
            assert!(rows > 1, "{tile}: {rows} {list}");
        }
    }
}

/// The list of another tile has its variables, with the bytes of the map.
#[test]
fn other_tiles_have_what_was_recorded_of_them() {
    let page = or_skip!(page("popart-bert-inference", SPLIT, ""));
    let others: Vec<Value> = page.at("/live_steps/others");
    assert!(others.len() >= 3, "{}", others.len());
    for other in others {
        let tile = &other["tile"];
        let recorded = |list: &str| page.at::<u64>(&format!("/memory/tiles/{list}/{tile}"));
        let highest = list(&other["bytes"]).map(number).max().expect("a step");
        let always = recorded("always_live");
        assert_eq!(number(&other["always_live"]), always, "tile {tile}");
        assert_eq!(highest, always + recorded("not_always_live"), "tile {tile}");
        assert!(highest <= recorded("total"), "tile {tile}");
        // Categories are parts of a whole.
        for (step, all) in list(&other["bytes"]).enumerate() {
            let categories = list(&other["categories"]);
            let sum: u64 = categories.map(|own| number(&own["bytes"][step])).sum();
            assert_eq!(sum, number(all), "tile {tile}");
        }
    }
}

#[test]
fn what_is_always_live_can_be_opened() {
    let mut page = or_skip!(page("training-pipeline", SPLIT, "#view=memory"));
    let before = page.count("#live-steps-chart .block");
    page.click("#live-steps-open");
    let mut always: Vec<Value> = page.at("/live_steps/variables");
    always.retain(|variable| variable["is_always_live"] == json!(true));
    let count = always.len();
    assert!(count > 0);
    assert_eq!(page.count("#live-steps-chart .block"), before + count);
    // Heights: of the blocks of always-live variables, and of the area of all smaller ones.
    let heights = format!(
        "(() => {{
            const names = (one) => one.getBoundingClientRect();
            const blocks = $$('#live-steps-chart .block').slice(0, {count}).map(names);
            const height = Math.max(...blocks.map((one) => one.bottom)) - Math.min(...blocks.map((one) => one.top));
            return [height, names($('#live-steps-chart .always')).height];
        }})()"
    );
    let [named, rest]: [f64; 2] = page.value(&heights);
    let bytes: u64 = always
        .iter()
        .map(|variable| number(&variable["bytes"]))
        .sum();
    let expected = bytes as f64 / page.at::<f64>("/live_steps/always_live");
    let share = named / (named + rest);
    assert!((share - expected).abs() < 0.02, "{share} {expected}");
}

/// The blocks of a step, with everything below and above them, add up to all its bytes.
#[test]
fn the_blocks_of_a_step_are_as_high_as_its_bytes() {
    let mut page = or_skip!(page("popart-bert-inference", SPLIT, "#view=memory"));
    page.click("#live-steps-low");
    let heights = "(() => {
        const all = ['block', 'tile-others', 'always'].flatMap((own) => $$(`#live-steps-chart .${own}`));
        const top = Math.min(...all.map((one) => one.getBoundingClientRect().top));
        const always = $('#live-steps-chart .always').getBoundingClientRect();
        return [always.bottom - top, always.height];
    })()";
    let [all, always]: [f64; 2] = page.value(heights);
    let [fixed, always_live, peak] = ["fixed", "always_live", "peak/bytes"]
        .map(|name| page.at::<f64>(&format!("/liveness/fullest_tile_curve/{name}")));
    let expected = peak / (fixed + always_live);
    assert!(
        (all / always - expected).abs() < 0.02,
        "{all} {always} {expected}"
    );
}

#[test]
fn the_height_is_enlarged_by_keys_mouse_and_buttons() {
    let chart = "live-steps-chart";
    let mut page = or_skip!(page("training-pipeline", SPLIT, "#view=memory"));
    // Returns the span of the scale at the left.
    let span = |page: &mut Page| -> f64 {
        let scale = page.texts("#live-steps .scale .axis").into_iter();
        let scale = scale.map(|text| text.replace(',', "").parse().expect("a number"));
        let scale: Vec<f64> = scale.collect();
        scale.iter().fold(0.0, |a, &b| b.max(a)) - scale.iter().fold(f64::MAX, |a, &b| b.min(a))
    };
    let whole = span(&mut page);
    page.press(chart, "t");
    page.browser.press("t");
    let taller = span(&mut page);
    assert!(taller < whole / 2.0, "{whole} {taller}");
    page.browser.press("f");
    assert!(span(&mut page) > taller);
    page.browser.press("0");
    assert_eq!(span(&mut page), whole);
    page.click("#live-steps-taller");
    assert!(span(&mut page) < whole);
    page.press(chart, "0");
    // Drags over a part of the drawing.
    let [x, y, width, height] = page.browser.place("$('#live-steps-chart')");
    let [from, to] = [0.3, 0.6].map(|share| [x + width * share, y + height * share]);
    page.browser.drag(from, to);
    assert!(span(&mut page) < whole, "{whole}");
}
