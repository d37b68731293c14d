//! Each tool by mouse, touch and keys, and links that restore a view.

use super::SPLIT;
use super::opened::{Page, page};
use serde_json::{Value, json};

#[test]
fn a_tile_is_chosen_in_the_map_by_keys_mouse_and_touch() {
    let mut page = or_skip!(page("training-pipeline", SPLIT, "#view=memory"));
    let chart = "tile-map-plot-chart";
    let fullest: u64 = page.at("/memory/tiles/fullest");
    assert_eq!(page.now(chart), fullest);
    page.press(chart, "Home");
    assert_eq!(page.now(chart), 0);
    page.browser.press("ArrowRight");
    assert_eq!(
        (page.now(chart), &*page.text("#tile-map-name")),
        (1, "Tile 1")
    );
    page.check_numbers();
    page.browser.click(&format!("$('#{chart}')"), 0.99, 1);
    assert_eq!(page.now(chart), 7);
    assert!(page.hash().contains("tile=7"), "{}", page.hash());
    page.tap(chart, 0.3);
    assert_eq!(page.now(chart), 2);
    page.check_numbers();
    // In the order by fullness the chosen tile is elsewhere, and stays chosen.
    page.enter("#tile-map-order", "fullest", "change");
    assert_eq!(page.text("#tile-map-name"), "Tile 2");
    page.press(chart, "Home");
    assert_eq!(page.text("#tile-map-name"), format!("Tile {fullest}"));
}

#[test]
fn steps_and_blocks_are_chosen_by_keys_mouse_and_touch() {
    let mut page = or_skip!(page("training-pipeline", SPLIT, "#view=memory"));
    let chart = "live-steps-chart";
    let steps: Vec<u64> = page.at("/live_steps/steps");
    let peak: u64 = page.at("/liveness/fullest_tile_curve/peak/step");
    assert_eq!(page.now(chart), peak);
    page.press(chart, "Home");
    assert_eq!(page.now(chart), steps[0]);
    page.browser.press("ArrowRight");
    assert_eq!(page.now(chart), steps[1]);
    page.check_numbers();
    page.browser.press("End");
    assert_eq!(page.now(chart), *steps.last().expect("a step"));
    page.browser.press("+");
    let visible = "$('#live-steps-chart .cursor').getAttribute('visibility') === 'visible'";
    assert!(page.is(visible));
    page.browser.press("0");
    // A click on a block chooses its variable, which the table of the step marks.
    let largest = "$$('#live-steps-chart .block').map((one) => [one, one.getBoundingClientRect()])
        .sort(([, a], [, b]) => b.width * b.height - a.width * a.height)[0][0]";
    page.browser.place("$('#live-steps-chart')");
    page.browser.click(largest, 0.5, 1);
    assert!(page.hash().contains("variable="), "{}", page.hash());
    assert!(page.count("#live-steps-chart .block.is-chosen") > 0);
    page.tap(chart, 0.5);
    page.check_numbers();
}

/// The points under two fingers stay under them, along the drawing and upwards.
#[test]
fn two_fingers_enlarge_a_drawing() {
    let mut page = or_skip!(page("training-pipeline", SPLIT, "#view=memory"));
    let chart = "live-steps-chart";
    let is_off = |page: &mut Page, button: &str| -> bool {
        page.value(&format!("$('#live-steps-{button}').disabled"))
    };
    page.tap(chart, 0.4);
    let held = page.now(chart);
    page.fingers(chart, [[0.4, 0.5], [0.6, 0.5]], [[0.2, 0.5], [0.8, 0.5]]);
    assert!(!is_off(&mut page, "out") && is_off(&mut page, "flatter"));
    page.tap(chart, 0.8);
    assert_ne!(page.now(chart), held);
    page.tap(chart, 0.2);
    assert_eq!(page.now(chart), held);
    page.fingers(chart, [[0.2, 0.5], [0.8, 0.5]], [[0.45, 0.5], [0.55, 0.5]]);
    assert!(is_off(&mut page, "out") && is_off(&mut page, "whole"));
    page.fingers(chart, [[0.5, 0.4], [0.5, 0.6]], [[0.5, 0.2], [0.5, 0.8]]);
    assert!(is_off(&mut page, "out") && !is_off(&mut page, "flatter"));
}

/// With so few micro-batches, all of them are drawn.
#[test]
fn the_strip_of_a_step_has_its_cycles() {
    for run in [
        "training-pipeline --micro-batches=8",
        "training-pipeline --micro-batches=8 --schedule=sequential",
        "training-pipeline --micro-batches=8 --schedule=tf-grouped",
        "training-pipeline --micro-batches=16 --schedule=tf-interleaved",
        "popart-bert-inference --micro-batches=8",
    ] {
        let (fixture, options) = run.split_once(' ').expect("options");
        let mut page = or_skip!(page(fixture, &format!("{SPLIT} {options}"), "#view=time"));
        let drawn: u64 = page.value("+$('#step-strip').dataset.cycles");
        let number = |name: &str| page.report["step"][name].as_u64().unwrap_or(0);
        let expected = number("cycles") - number("copy_cycles") - number("update_cycles");
        assert_eq!(drawn, expected, "{run}");
    }
}

#[test]
fn a_link_shows_the_same_again() {
    let mut page = or_skip!(page("training-pipeline", SPLIT, "#view=split"));
    page.run("$('.handle').focus()");
    page.browser.press("ArrowRight");
    page.show("memory");
    page.press("tile-map-plot-chart", "Home");
    page.press("live-steps-chart", "End");
    page.enter("#live-steps-layer", "2", "change");
    let message = |page: &mut Page| {
        ["#live-steps-said", "#live-steps-variables"].map(|selector| page.text(selector))
    };
    let (hash, before) = (page.hash(), message(&mut page));
    for part in ["view=memory", "tile=", "step=", "cuts=", "layer=2"] {
        assert!(hash.contains(part), "{part}: {hash}");
    }
    page.browser.open(&page.path, 1440, &hash);
    assert_eq!(message(&mut page), before);
    page.show("split");
    let cuts: Value = page.value("$$('.handle').map((one) => +one.ariaValueNow)");
    let (_, expected) = hash.split_once("cuts=").expect("cuts");
    let expected = expected
        .split('&')
        .next()
        .expect("cuts")
        .replace("%2C", ",");
    assert_eq!(cuts.to_string(), format!("[{expected}]"));
    // Going back in the history goes back in the views.
    page.run("history.back()");
    page.pause(300);
    assert!(page.is("$('#bar [aria-current]').dataset.view === 'memory'"));
}

/// Stages of each configuration of the plan, and of the best split for each number of IPUs.
#[test]
fn stages_are_drawn_against_their_limits() {
    let strips = ".map((row) => [...row.querySelectorAll('.stage')].map((one) => {
        const share = one.querySelector('.fill').offsetHeight / one.querySelector('.level').clientHeight;
        return [+one.dataset.tip.split('\\n')[2].split(' of ')[0].replaceAll(',', ''), share];
    }))";
    for (options, section) in [
        ("--plan --num-ipus=6", "plan"),
        ("--solve --sweep --num-ipus=4", "sweep"),
    ] {
        let mut page = or_skip!(page("training-pipeline", options, "#view=plan"));
        let strips = format!("$$('#{section} tbody tr'){strips}");
        let rows: Vec<Vec<(u64, f64)>> = page.value(&strips);
        let expected: Vec<Value> = page.at(&format!("/{section}/rows"));
        assert_eq!(rows.len(), expected.len());
        for (row, expected) in rows.iter().zip(&expected) {
            assert_eq!(
                row.len(),
                super::list(&expected["stages"]).count(),
                "{expected}"
            );
            let fullest = row.iter().map(|(bytes, _)| *bytes).max();
            assert_eq!(fullest, expected["fullest_tile_bytes"].as_u64());
            for &(bytes, share) in row {
                let expected = (bytes as f64 / page.at::<f64>("/split/limit")).min(1.0);
                assert!((share - expected).abs() < 0.04, "{share} {expected}");
            }
        }
        page.check_numbers();
    }
}

#[test]
fn a_choice_is_followed_everywhere() {
    let mut page = or_skip!(page("training-pipeline", SPLIT, "#view=layers"));
    page.press("layer-bytes-chart", "End");
    assert_eq!(page.text("#layer h3"), "Layer Out");
    page.check_numbers();
    page.show("split");
    assert!(page.is("$$('.layer').findIndex((one) => one.classList.contains('is-chosen')) === 7"));
    page.run("$$('#what-if-stages .link')[2].click()");
    assert_eq!(page.text("#stage h2"), "IPU 2");
    page.check_numbers();
    page.run("$$('#stage button').find((one) => one.textContent.includes('in Memory')).click()");
    let tile: u64 = page.at("/split/stages/2/fullest_tile/tile");
    assert_eq!(page.text("#tile-map-name"), format!("Tile {tile}"));
}

/// The chosen layer is marked in lists of layers, in splits, and in drawings over steps and layers.
#[test]
fn the_chosen_layer_is_marked_in_every_view() {
    let options = "--sweep --explain --num-ipus=4";
    let mut page = or_skip!(page("training-pipeline", options, "#view=plan&layer=3"));
    let has_layer = |text: &String| text.split(' ').any(|name| name == "2");
    let rows = page.at::<Vec<Value>>("/sweep/rows").len();
    let plan = page.texts("#sweep .has-layer");
    assert!(plan.len() == rows && plan.iter().all(has_layer), "{plan:?}");
    page.show("split");
    for table in ["#what-if-stages", "#stages"] {
        let found = page.texts(&format!("{table} .has-layer"));
        assert!(
            found.len() == 1 && has_layer(&found[0]),
            "{table}: {found:?}"
        );
    }
    page.show("memory");
    assert!(page.count("#live-steps-chart .band.is-chosen") > 0);
    page.show("time");
    assert_eq!(page.now("layer-cycles-chart"), 3);
    page.show("layers");
    assert_eq!(page.now("layer-bytes-chart"), 3);
    assert_eq!(page.count("#all-layers tr.is-chosen"), 1);
    // Another layer is also marked in a view that was built before.
    page.press("layer-bytes-chart", "Home");
    page.show("plan");
    let plan = page.texts("#sweep .has-layer");
    assert!(
        plan.len() == rows && plan.iter().all(|text| text.starts_with("In")),
        "{plan:?}"
    );
}

#[test]
fn tables_are_sorted_filtered_and_copied() {
    let mut page = or_skip!(page("popart-bert-inference", SPLIT, "#view=memory"));
    let numbers = |page: &mut Page| -> Vec<u64> {
        let cells = page.texts("#categories tbody td:nth-child(2)").into_iter();
        let numbers = cells.map(|text| text.replace(',', "").parse().expect("a number"));
        numbers.collect()
    };
    page.run("$$('#categories .sort')[1].click()");
    let down = numbers(&mut page);
    assert!(
        down.is_sorted_by(|a, b| a >= b) && down.len() > 12,
        "{down:?}"
    );
    page.run("$$('#categories .sort')[1].click()");
    assert!(numbers(&mut page).is_sorted());
    assert!(page.is("$$('#categories th')[1].ariaSort === 'ascending'"));
    page.enter("#categories input[type=search]", "vertexcode", "input");
    assert_eq!(numbers(&mut page).len(), 1);
    page.replace_clipboard();
    page.run("$$('#categories button').find((one) => one.textContent === 'Copy as TSV').click()");
    let categories: Vec<Value> = page.at("/memory/categories");
    let code = categories
        .iter()
        .find(|category| category["name"] == "vertexCode");
    let [all, fullest] = ["all_tiles", "fullest_tile"].map(|tiles| &code.expect("code")[tiles]);
    let expected = format!("Category\tAll tiles\tFullest tile\nvertexCode\t{all}\t{fullest}\n");
    assert_eq!(page.value::<Value>("window.clipboard"), json!(expected));
}
