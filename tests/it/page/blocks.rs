//! Memory over the steps, tile by tile.

use super::opened::page;
use serde_json::{Value, json};

const SPLIT: [&str; 2] = ["--solve", "--num-ipus=4"];

/// The tile and the step that the blocks show.
const SHOWN: &str = "document.getElementById('live-steps-heading').textContent";

#[test]
fn the_fullest_tile_of_each_stage_is_there_step_by_step() {
    let mut page = or_skip!(page("training-pipeline", &SPLIT, "#view=memory"));
    let stages = page.report["split"]["stages"].as_array().expect("stages");
    let tiles: Vec<Value> = stages
        .iter()
        .map(|stage| stage["fullest_tile"]["tile"].clone())
        .collect();
    for tile in tiles {
        page.value(&format!("choose({{ tile: {tile} }})"));
        let shown = page.value(SHOWN);
        let expected = format!("Tile {tile} at step ");
        assert!(
            shown
                .as_str()
                .is_some_and(|text| text.starts_with(&expected)),
            "{shown}"
        );
        page.numbers_are_those_of_the_report();
        let sums = "['categories', 'layers'].map((name) =>
            document.querySelectorAll(`#live-steps-sums [data-json*='/${name}/']`).length)";
        let found = page.value(sums);
        let lengths = [0, 1].map(|place| found[place].as_u64().expect("a number"));
        assert!(lengths.iter().all(|&rows| rows > 1), "{tile}: {lengths:?}");
    }
    page.done();
}

/// The list of another tile has its variables, with the bytes of the map.
#[test]
fn other_tiles_have_what_was_recorded_of_them() {
    let page = or_skip!(page("popart-bert-inference", &SPLIT, ""));
    let others = page.report["live_steps"]["others"]
        .as_array()
        .expect("tiles");
    assert!(others.len() >= 3, "{}", others.len());
    let tiles = &page.report["memory"]["tiles"];
    for other in others {
        let tile = other["tile"].as_u64().expect("a tile") as usize;
        let number = |list: &str| tiles[list][tile].as_u64().expect("a number");
        let bytes = other["bytes"]
            .as_array()
            .expect("bytes")
            .iter()
            .filter_map(Value::as_u64);
        let highest = bytes.max().expect("a step");
        let always = other["always_live"].as_u64().expect("a number");
        assert!(
            always <= highest && highest <= number("total"),
            "tile {tile}: {always} {highest}"
        );
        assert_eq!(always, number("always_live"), "tile {tile}");
        // Categories are parts of a whole. Variables of several layers count in each layer.
        for (step, all) in other["bytes"].as_array().expect("bytes").iter().enumerate() {
            let sum = |list: &str| -> u64 {
                let list = other[list].as_array().expect("a list").iter();
                list.filter_map(|own| own["bytes"][step].as_u64()).sum()
            };
            assert_eq!(Some(sum("categories")), all.as_u64(), "tile {tile}");
            let everywhere = other["in_every_stage"][step].as_u64().expect("a number");
            assert!(Some(sum("layers") + everywhere) >= all.as_u64(), "{tile}");
        }
        assert_eq!(
            highest,
            number("always_live") + number("not_always_live"),
            "tile {tile}"
        );
    }
}

#[test]
fn what_is_always_live_can_be_opened() {
    let mut page = or_skip!(page("training-pipeline", &SPLIT, "#view=memory"));
    let blocks = "document.querySelectorAll('#live-steps-chart .block').length";
    let before = page.value(blocks).as_u64();
    page.value("document.getElementById('live-steps-open').click()");
    let variables = page.report["live_steps"]["variables"]
        .as_array()
        .expect("a list");
    let always = variables
        .iter()
        .filter(|variable| variable["is_always_live"] == json!(true))
        .count() as u64;
    assert!(always > 0);
    assert_eq!(
        page.value(blocks).as_u64(),
        before.map(|value| value + always)
    );
    // With smaller blocks below them, always-live blocks are as high as the band was.
    let heights = "(() => {
        const names = (one) => one.getBoundingClientRect();
        const svg = document.getElementById('live-steps-chart');
        const blocks = [...svg.querySelectorAll('.block')].slice(0, ALWAYS).map(names);
        return [Math.max(...blocks.map((one) => one.bottom)) - Math.min(...blocks.map((one) => one.top)), names(svg.querySelector('.always')).height];
    })()";
    let found = page.value(&heights.replace("ALWAYS", &always.to_string()));
    let [named, rest] = [0, 1].map(|place| found[place].as_f64().expect("a number"));
    let bytes: u64 = variables_bytes(&page.report);
    let all = page.report["live_steps"]["always_live"]
        .as_u64()
        .expect("a number");
    let expected = bytes as f64 / all as f64;
    assert!(
        (named / (named + rest) - expected).abs() < 0.02,
        "{named} {rest} {expected}"
    );
    page.done();
}

/// Returns the bytes of the listed variables that are always live.
fn variables_bytes(report: &Value) -> u64 {
    let variables = report["live_steps"]["variables"]
        .as_array()
        .expect("a list");
    let always = variables
        .iter()
        .filter(|variable| variable["is_always_live"] == json!(true));
    always
        .filter_map(|variable| variable["bytes"].as_u64())
        .sum()
}

#[test]
fn the_height_is_enlarged_by_keys_mouse_and_buttons() {
    let mut page = or_skip!(page("training-pipeline", &SPLIT, "#view=memory"));
    // Returns the span of the scale at the left.
    let scale = "(() => { const all = [...document.querySelectorAll('#live-steps .scale .axis')]
        .map((one) => +one.textContent.replaceAll(',', '')); return Math.max(...all) - Math.min(...all); })()";
    let span = |page: &mut super::opened::Page| page.value(scale).as_f64().expect("a number");
    let whole = span(&mut page);
    page.focus("live-steps-chart");
    page.browser.press("t");
    page.browser.press("t");
    let taller = span(&mut page);
    assert!(taller < whole / 2.0, "{whole} {taller}");
    page.browser.press("f");
    assert!(span(&mut page) > taller);
    page.browser.press("0");
    assert_eq!(span(&mut page), whole);
    page.value("document.getElementById('live-steps-taller').click()");
    assert!(span(&mut page) < whole);
    page.browser.press("0");
    // Drags over a part of the drawing.
    let place = page.value(
        "(() => { const one = document.getElementById('live-steps-chart');
            one.scrollIntoView({ block: 'center', behavior: 'instant' });
            const box = one.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })()",
    );
    let [x, y, width, height] = [0, 1, 2, 3].map(|at| place[at].as_f64().expect("a number"));
    for (kind, share) in [
        ("mousePressed", 0.3),
        ("mouseMoved", 0.6),
        ("mouseReleased", 0.6),
    ] {
        let event = json!({"type": kind, "x": x + width * share, "y": y + height * share, "button": "left", "buttons": 1, "clickCount": 1});
        page.browser.send("Input.dispatchMouseEvent", event);
    }
    assert!(span(&mut page) < whole, "{whole}");
    page.done();
}
