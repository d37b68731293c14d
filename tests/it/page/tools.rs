//! Each tool by mouse, touch and keys, and links that restore a view.

use super::opened::{Page, page};
use super::show;
use serde_json::{Value, json};

const SPLIT: [&str; 2] = ["--solve", "--num-ipus=4"];

#[test]
fn a_tile_is_chosen_in_the_map_by_keys_mouse_and_touch() {
    let mut page = or_skip!(page("training-pipeline", &SPLIT, "#view=memory"));
    let chart = "tile-map-plot-chart";
    let fullest = page.report["memory"]["tiles"]["fullest"]
        .as_u64()
        .expect("a tile");
    assert_eq!(page.now(chart), fullest);
    page.focus(chart);
    page.browser.press("Home");
    assert_eq!(page.now(chart), 0);
    page.browser.press("ArrowRight");
    assert_eq!(
        (page.now(chart), &*page.text("#tile-map-name")),
        (1, "Tile 1")
    );
    page.numbers_are_those_of_the_report();
    page.browser
        .click("document.getElementById('tile-map-plot-chart')", 0.99, 1);
    assert_eq!(page.now(chart), 7);
    assert!(page.hash().contains("tile=7"), "{}", page.hash());
    page.touch(chart, 0.3);
    assert_eq!(page.now(chart), 2);
    page.numbers_are_those_of_the_report();
    // In the order by fullness the chosen tile is elsewhere, and stays chosen.
    page.value(
        "(() => { const one = document.getElementById('tile-map-order'); one.value = 'fullest';
          one.dispatchEvent(new Event('change')); })()",
    );
    assert_eq!(page.text("#tile-map-name"), "Tile 2");
    page.focus(chart);
    page.browser.press("Home");
    assert_eq!(page.text("#tile-map-name"), format!("Tile {fullest}"));
    page.done();
}

#[test]
fn steps_and_blocks_are_chosen_by_keys_mouse_and_touch() {
    let mut page = or_skip!(page("training-pipeline", &SPLIT, "#view=memory"));
    let chart = "live-steps-chart";
    let steps: Vec<u64> =
        serde_json::from_value(page.report["live_steps"]["steps"].clone()).expect("steps");
    let peak = page.report["liveness"]["fullest_tile_curve"]["peak"]["step"].as_u64();
    assert_eq!(Some(page.now(chart)), peak);
    page.focus(chart);
    page.browser.press("Home");
    assert_eq!(page.now(chart), steps[0]);
    page.browser.press("ArrowRight");
    assert_eq!(page.now(chart), steps[1]);
    page.numbers_are_those_of_the_report();
    page.browser.press("End");
    assert_eq!(page.now(chart), *steps.last().expect("a step"));
    page.browser.press("+");
    let visible = "document.querySelector('#live-steps-chart .cursor').getAttribute('visibility')";
    assert_eq!(page.value(visible), json!("visible"));
    page.browser.press("0");
    // A click on a block chooses its variable, which the table of the step marks.
    let block = "(() => { const box = [...document.querySelectorAll('#live-steps-chart .block')]
        .map((one) => one.getBoundingClientRect()).sort((a, b) => b.width * b.height - a.width * a.height)[0];
        return [box.x + box.width / 2, box.y + box.height / 2]; })()";
    page.value("document.getElementById('live-steps-chart').scrollIntoView({ block: 'center', behavior: 'instant' })");
    let place = page.value(block);
    for kind in ["mousePressed", "mouseReleased"] {
        let event =
            json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
        page.browser.send("Input.dispatchMouseEvent", event);
    }
    assert!(page.hash().contains("variable="), "{}", page.hash());
    let marked =
        page.value("document.querySelectorAll('#live-steps-chart .block.is-chosen').length");
    assert!(marked.as_u64() >= Some(1), "{marked}");
    page.touch(chart, 0.5);
    page.numbers_are_those_of_the_report();
    page.done();
}

/// The points under two fingers stay under them, along the drawing and upwards.
#[test]
fn two_fingers_enlarge_a_drawing() {
    let mut page = or_skip!(page("training-pipeline", &SPLIT, "#view=memory"));
    let chart = "live-steps-chart";
    let is_off = |page: &mut Page, button: &str| {
        let disabled = format!("document.getElementById('live-steps-{button}').disabled");
        page.value(&disabled) == json!(true)
    };
    page.touch(chart, 0.4);
    let held = page.now(chart);
    page.fingers(chart, [[0.4, 0.5], [0.6, 0.5]], [[0.2, 0.5], [0.8, 0.5]]);
    assert!(!is_off(&mut page, "out") && is_off(&mut page, "flatter"));
    page.touch(chart, 0.8);
    assert_ne!(page.now(chart), held);
    page.touch(chart, 0.2);
    assert_eq!(page.now(chart), held);
    page.fingers(chart, [[0.2, 0.5], [0.8, 0.5]], [[0.45, 0.5], [0.55, 0.5]]);
    assert!(is_off(&mut page, "out") && is_off(&mut page, "whole"));
    page.fingers(chart, [[0.5, 0.4], [0.5, 0.6]], [[0.5, 0.2], [0.5, 0.8]]);
    assert!(is_off(&mut page, "out") && !is_off(&mut page, "flatter"));
    page.done();
}

/// The blocks of a step, with everything below and above them, add up to all its bytes.
#[test]
fn the_blocks_of_a_step_are_as_high_as_its_bytes() {
    let mut page = or_skip!(page("popart-bert-inference", &SPLIT, "#view=memory"));
    page.value("document.getElementById('live-steps-low').click()");
    let heights = "(() => {
        const svg = document.getElementById('live-steps-chart');
        const top = Math.min(...[...svg.querySelectorAll('.block, .tile-others, .always')].map((one) => one.getBoundingClientRect().top));
        const always = svg.querySelector('.always').getBoundingClientRect();
        return [always.bottom - top, always.height];
    })()";
    let found = page.value(heights);
    let [all, always] = [0, 1].map(|place| found[place].as_f64().expect("a number"));
    let curve = &page.report["liveness"]["fullest_tile_curve"];
    let [fixed, always_live, peak] = ["/fixed", "/always_live", "/peak/bytes"]
        .map(|at| curve.pointer(at).and_then(Value::as_f64).expect("a number"));
    let expected = peak / (fixed + always_live);
    assert!(
        (all / always - expected).abs() < 0.02,
        "{all} {always} {expected}"
    );
    page.done();
}

#[test]
fn the_strip_of_a_step_has_its_cycles() {
    /// So few micro-batches that all of them are drawn.
    const FEW: &str = "--micro-batches=8";
    for (fixture, options) in [
        ("training-pipeline", &["--solve", "--num-ipus=4", FEW][..]),
        (
            "training-pipeline",
            &["--solve", "--num-ipus=4", "--schedule=sequential", FEW],
        ),
        (
            "training-pipeline",
            &["--solve", "--num-ipus=4", "--schedule=tf-grouped", FEW],
        ),
        (
            "training-pipeline",
            &[
                "--solve",
                "--num-ipus=4",
                "--schedule=tf-interleaved",
                "--micro-batches=16",
            ],
        ),
        ("popart-bert-inference", &["--solve", "--num-ipus=4", FEW]),
    ] {
        let mut page = or_skip!(page(fixture, options, "#view=time"));
        let drawn = page.value("+document.getElementById('step-strip').dataset.cycles");
        let step = &page.report["step"];
        let number = |name: &str| step[name].as_u64().unwrap_or(0);
        let expected = number("cycles") - number("copy_cycles") - number("update_cycles");
        assert_eq!(drawn, json!(expected), "{fixture} {options:?}");
        page.done();
    }
}

#[test]
fn a_link_shows_the_same_again() {
    let mut page = or_skip!(page("training-pipeline", &SPLIT, "#view=split"));
    page.value("document.querySelectorAll('.handle')[0].focus()");
    page.browser.press("ArrowRight");
    show(&mut page.browser, "memory");
    page.focus("tile-map-plot-chart");
    page.browser.press("Home");
    page.focus("live-steps-chart");
    page.browser.press("End");
    page.value("document.querySelector('#live-steps-layer').value = '2'");
    page.value("document.querySelector('#live-steps-layer').dispatchEvent(new Event('change'))");
    let message = |page: &mut Page| {
        ["#live-steps-said", "#live-steps-variables"].map(|selector| page.text(selector))
    };
    let (hash, before) = (page.hash(), message(&mut page));
    for part in ["view=memory", "tile=", "step=", "cuts=", "layer=2"] {
        assert!(hash.contains(part), "{part}: {hash}");
    }
    let path = page.path.clone();
    page.browser.open_at(&path, 1440, &hash);
    assert_eq!(message(&mut page), before);
    show(&mut page.browser, "split");
    let cuts =
        page.value("[...document.querySelectorAll('.handle')].map((one) => +one.ariaValueNow)");
    let expected = hash
        .split("cuts=")
        .nth(1)
        .and_then(|cuts| cuts.split('&').next());
    let expected = expected.expect("cuts").replace("%2C", ",");
    assert_eq!(cuts.to_string(), format!("[{expected}]"));
    // Going back in the history goes back in the views.
    page.value("history.back()");
    let back = "new Promise((resolve) => setTimeout(() => resolve(document.querySelector('#bar [aria-current]').dataset.view), 300))";
    assert_eq!(page.value(back), json!("memory"));
    page.done();
}

/// Stages of each configuration of the plan, and of the best split for each number of IPUs.
#[test]
fn stages_are_drawn_against_their_limits() {
    let strips = "[...document.querySelectorAll('SECTION tbody tr')].map((row) => [...row.querySelectorAll('.stage')].map((one) => {
        const share = one.querySelector('.fill').offsetHeight / one.querySelector('.level').clientHeight;
        return [one.dataset.tip.split('\\n')[2].split(' of ')[0].replaceAll(',', ''), share];
    }))";
    for (options, section) in [
        (&["--plan", "--num-ipus=6"][..], "plan"),
        (&["--solve", "--sweep", "--num-ipus=4"], "sweep"),
    ] {
        let mut page = or_skip!(page("training-pipeline", options, "#view=plan"));
        let strips = strips.replace("SECTION", &format!("#{section}"));
        let rows: Vec<Vec<(String, f64)>> =
            serde_json::from_value(page.value(&strips)).expect("strips");
        let expected = page.report[section]["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), expected.len());
        for (row, expected) in rows.iter().zip(expected) {
            let stages = expected["stages"].as_array().expect("stages").len();
            assert_eq!(row.len(), stages, "{expected}");
            let limit = page.report["split"]["limit"].as_f64().expect("a limit");
            let bytes = row.iter().map(|(bytes, _)| bytes.parse::<u64>());
            let bytes: Vec<u64> = bytes.map(|bytes| bytes.expect("a number")).collect();
            assert_eq!(
                bytes.iter().max().copied(),
                expected["fullest_tile_bytes"].as_u64()
            );
            for ((_, share), bytes) in row.iter().zip(bytes) {
                let expected = (bytes as f64 / limit).min(1.0);
                assert!((share - expected).abs() < 0.04, "{share} {expected}");
            }
        }
        page.numbers_are_those_of_the_report();
        page.done();
    }
}

#[test]
fn a_choice_is_followed_everywhere() {
    let mut page = or_skip!(page("training-pipeline", &SPLIT, "#view=layers"));
    page.focus("layer-bytes-chart");
    page.browser.press("End");
    assert_eq!(page.text("#layer h3"), "Layer Out");
    page.numbers_are_those_of_the_report();
    show(&mut page.browser, "split");
    let marked = "[...document.querySelectorAll('.layer')].findIndex((one) => one.classList.contains('is-chosen'))";
    assert_eq!(page.value(marked), json!(7));
    page.value("[...document.querySelectorAll('#what-if-stages .link')][2].click()");
    assert_eq!(page.text("#stage h2"), "IPU 2");
    page.numbers_are_those_of_the_report();
    page.value("[...document.querySelectorAll('#stage button')].find((one) => one.textContent.includes('in Memory')).click()");
    let tile = page.report["split"]["stages"][2]["fullest_tile"]["tile"].to_string();
    assert_eq!(page.text("#tile-map-name"), format!("Tile {tile}"));
    page.done();
}

/// In lists of layers, in splits of any number of IPUs, and in drawings over steps and layers.
#[test]
fn the_chosen_layer_is_marked_in_every_view() {
    let options = ["--sweep", "--explain", "--num-ipus=4"];
    let mut page = or_skip!(page("training-pipeline", &options, "#view=plan&layer=3"));
    let marks = |page: &mut Page, selector: &str| {
        let texts = page.value(&format!(
            "[...document.querySelectorAll('{selector}')].map((one) => one.textContent)"
        ));
        serde_json::from_value::<Vec<String>>(texts).expect("texts")
    };
    let has_layer = |text: &String| text.split(' ').any(|name| name == "2");
    let rows = page.report["sweep"]["rows"].as_array().expect("rows").len();
    let plan = marks(&mut page, "#sweep .has-layer");
    assert_eq!(plan.len(), rows);
    assert!(plan.iter().all(has_layer), "{plan:?}");
    for (view, selector) in [
        ("split", "#what-if-stages .has-layer"),
        ("split", "#stages .has-layer"),
    ] {
        show(&mut page.browser, view);
        let found = marks(&mut page, selector);
        assert!(
            found.len() == 1 && has_layer(&found[0]),
            "{selector}: {found:?}"
        );
    }
    show(&mut page.browser, "memory");
    assert!(!marks(&mut page, "#live-steps-chart .band.is-chosen").is_empty());
    show(&mut page.browser, "time");
    assert_eq!(page.now("layer-cycles-chart"), 3);
    show(&mut page.browser, "layers");
    assert_eq!(page.now("layer-bytes-chart"), 3);
    assert_eq!(marks(&mut page, "#all-layers tr.is-chosen").len(), 1);
    // Another layer is also marked in a view that was built before.
    page.focus("layer-bytes-chart");
    page.browser.press("Home");
    show(&mut page.browser, "plan");
    let plan = marks(&mut page, "#sweep .has-layer");
    assert!(
        plan.len() == rows && plan.iter().all(|text| text.starts_with("In")),
        "{plan:?}"
    );
    page.done();
}

#[test]
fn tables_are_sorted_filtered_and_copied() {
    let mut page = or_skip!(page("popart-bert-inference", &SPLIT, "#view=memory"));
    let column = "[...document.querySelectorAll('#categories tbody tr')].map((row) => row.children[1].textContent.replaceAll(',', ''))";
    let numbers = |page: &mut Page| -> Vec<u64> {
        let texts: Vec<String> = serde_json::from_value(page.value(column)).expect("texts");
        texts
            .iter()
            .map(|text| text.parse().expect("a number"))
            .collect()
    };
    page.value("document.querySelectorAll('#categories .sort')[1].click()");
    let down = numbers(&mut page);
    assert!(
        down.is_sorted_by(|a, b| a >= b) && down.len() > 12,
        "{down:?}"
    );
    page.value("document.querySelectorAll('#categories .sort')[1].click()");
    assert!(numbers(&mut page).is_sorted());
    let sorted = page.value("document.querySelectorAll('#categories th')[1].ariaSort");
    assert_eq!(sorted, json!("ascending"));
    page.value(
        "(() => { const one = document.querySelector('#categories input[type=search]');
          one.value = 'vertexcode'; one.dispatchEvent(new Event('input')); })()",
    );
    assert_eq!(numbers(&mut page).len(), 1);
    page.value(
        "void (navigator.clipboard.writeText = async (text) => { window.clipboard = text; })",
    );
    page.value("[...document.querySelectorAll('#categories button')].find((one) => one.textContent === 'Copy as TSV').click()");
    let categories = page.report["memory"]["categories"]
        .as_array()
        .expect("a list");
    let code = categories
        .iter()
        .find(|category| category["name"] == "vertexCode")
        .expect("code");
    let expected = format!(
        "Category\tAll tiles\tFullest tile\nvertexCode\t{}\t{}\n",
        code["all_tiles"], code["fullest_tile"]
    );
    assert_eq!(page.value("window.clipboard"), json!(expected));
    page.done();
}
