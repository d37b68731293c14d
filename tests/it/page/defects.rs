//! Defects that users reported, each with a test.

use super::browser::Browser;
use super::{export, show, views};
use crate::support::{DEFAULT_REGEX, profile};
use serde_json::json;

/// Opens the page of a fixture in a browser.
fn open(
    fixture: &str,
    options: &[&str],
    width: u32,
    hash: &str,
) -> Option<(Browser, tempfile::TempDir)> {
    let mut browser = Browser::find()?;
    let folder = tempfile::tempdir().expect("a folder");
    let (page, _) = export(&profile(fixture), options, folder.path());
    browser.open_at(&page, width, hash);
    Some((browser, folder))
}

const SPLIT: [&str; 2] = ["--solve", "--num-ipus=4"];

#[test]
fn the_cursor_stays_when_the_pointer_moves_and_the_page_scrolls() {
    let hash = "#view=memory&step=100";
    let (mut browser, _folder) = or_skip!(open("training-pipeline", &SPLIT, 1440, hash));
    let moved = json!({"type": "mouseMoved", "x": 400, "y": 500});
    browser.send("Input.dispatchMouseEvent", moved);
    browser.value("scrollBy(0, 300)");
    browser.value("new Promise(requestAnimationFrame)");
    let visible =
        "getComputedStyle(document.querySelector('#live-steps-chart .cursor')).visibility";
    assert_eq!(browser.value(visible), json!("visible"));
}

#[test]
fn labels_of_stages_are_not_struck_through() {
    let (mut browser, _folder) = or_skip!(open("training-pipeline", &SPLIT, 1440, "#view=split"));
    let apart = "[...document.querySelectorAll('.stage')].every((one) => {
        const label = one.querySelector('span').getBoundingClientRect();
        return label.height > 0 && label.bottom <= one.querySelector('.level').getBoundingClientRect().top + 1;
    })";
    assert_eq!(browser.value(apart), json!(true));
}

#[test]
fn a_table_that_goes_on_says_so() {
    let (mut browser, _folder) = or_skip!(open("training-pipeline", &SPLIT, 390, "#view=split"));
    let message = "[...document.querySelectorAll('.scroll')].filter((one) => one.checkVisibility())
        .map((one) => (one.scrollWidth - one.clientWidth > 2) === one.classList.contains('goes-right'))";
    browser.value("new Promise((resolve) => setTimeout(resolve, 100))");
    let message = browser.value(message);
    let all = message.as_array().expect("a list");
    assert!(
        !all.is_empty() && all.iter().all(|value| *value == json!(true)),
        "{message}"
    );
    let some = "[...document.querySelectorAll('.goes-right')].length > 0";
    assert_eq!(browser.value(some), json!(true));
}

#[test]
fn shares_of_one_whole_are_a_hundred_per_cent() {
    let (mut browser, _folder) = or_skip!(open("training-pipeline", &SPLIT, 1440, "#view=memory"));
    for parts in ["[764, 236, 1]", "[1, 1, 1]", "[5]", "[0, 3, 0, 4]"] {
        let sum = format!(
            "shares({parts}).reduce((sum, own) => sum + Math.round(parseFloat(own) * 10), 0)"
        );
        assert_eq!(browser.value(&sum), json!(1000), "{parts}");
    }
    let nothing = browser.value("shares([0, 0])");
    assert_eq!(nothing, json!(["0.0 %", "0.0 %"]));
}

/// Not sorted as text, by which 8.5 % would be more than 75.8 %.
#[test]
fn shares_are_sorted_by_how_large_they_are() {
    let (mut browser, _folder) = or_skip!(open("training-pipeline", &SPLIT, 1440, "#view=memory"));
    let sorted = "(() => {
        const table = document.querySelector('#live-steps-sums table');
        table.querySelectorAll('.sort')[2].click();
        return [...table.querySelectorAll('tbody tr')].map((row) => parseFloat(row.lastChild.textContent));
    })()";
    let shares: Vec<f64> = serde_json::from_value(browser.value(sorted)).expect("numbers");
    assert!(
        shares.len() > 3 && shares.is_sorted_by(|a, b| a >= b),
        "{shares:?}"
    );
}

/// Bytes over a limit are not shown as negative, and pasted text says that the model does not fit.
#[test]
fn the_head_of_a_model_that_does_not_fit_says_so_throughout() {
    let options = [&SPLIT[..], &[DEFAULT_REGEX]].concat();
    let (mut browser, _folder) = or_skip!(open("impossible", &options, 1440, "#view=split"));
    let head = browser.value("document.getElementById('head').innerText");
    let head = head.as_str().expect("a text");
    for part in [
        "Furthest over its limit",
        "Over the limit by\n215,825",
        "To paste (popart), which does not fit:",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
}

/// Samples of colours beside the name of a category, on all views.
#[test]
fn a_category_has_one_colour_on_all_pages() {
    let mut colours = std::collections::BTreeMap::new();
    for (fixture, options) in [
        ("training-pipeline", &SPLIT[..]),
        ("popart-bert-inference", &SPLIT[..]),
        ("training-pipelined", &["--fit"]),
    ] {
        let (mut browser, _folder) = or_skip!(open(fixture, options, 1440, ""));
        for view in views(&mut browser) {
            show(&mut browser, &view);
            let found = "[...document.querySelectorAll('td, th')].filter((one) => one.querySelector('.swatch'))
                .map((one) => [one.textContent, one.querySelector('.swatch rect').getAttribute('class')])";
            let found: Vec<(String, String)> =
                serde_json::from_value(browser.value(found)).expect("pairs");
            for (name, look) in found {
                let first = colours.entry(name.clone()).or_insert_with(|| look.clone());
                assert_eq!(*first, look, "{name}");
            }
        }
    }
    assert!(colours.len() > 12, "{colours:?}");
    // A part of a stage has the colour of its category.
    assert_eq!(colours["Variables"], colours["variable"]);
    assert_eq!(colours["Vertex code"], colours["vertexCode"]);
}

/// The memory that a pipeline adds cannot be proven by ranges of layers.
#[test]
fn a_refusal_shows_no_certificate_that_proves_nothing() {
    let options = ["--solve", "--num-ipus=4", "--recompute=none"];
    let (mut browser, _folder) = or_skip!(open("training-pipeline", &options, 1440, "#view=split"));
    let message = browser.value("document.querySelector('#what-if .bad-list').textContent");
    let message = message.as_str().expect("a text");
    assert!(
        message.contains("The layers by themselves would fit"),
        "{message}"
    );
    assert!(!message.contains(" on tile "), "{message}");
}

#[test]
fn one_is_not_many_and_bytes_are_bytes() {
    for (fixture, options) in [
        ("popart-bert-inference", &["--solve", "--num-ipus=1"][..]),
        ("training-pipeline", &["--solve", "--sweep", "--num-ipus=4"]),
        ("poplar-mlp", &["--fit"]),
    ] {
        let (mut browser, _folder) = or_skip!(open(fixture, options, 390, ""));
        for view in views(&mut browser) {
            show(&mut browser, &view);
            let text = browser.value("document.body.innerText");
            let text = text.as_str().expect("a text");
            for wrong in ["1 IPUs", "1 stages", "1 tiles ", " KiB", " MiB"] {
                let found = text.match_indices(wrong).any(|(place, _)| {
                    !text[..place].ends_with(|c: char| c.is_ascii_digit() || c == ',' || c == '.')
                });
                assert!(!found, "{fixture}, {view}: {wrong}");
            }
        }
    }
}

/// If the curve stays far below the limit, the axis ends below the limit.
#[test]
fn a_curve_is_no_flat_line() {
    let (mut browser, _folder) =
        or_skip!(open("popart-bert-inference", &SPLIT, 1440, "#view=split"));
    let high =
        "(() => { const svg = document.getElementById('stage-curve-chart').getBoundingClientRect();
        const top = document.querySelector('#stage-curve-chart .curve').getBoundingClientRect().top;
        return (top - svg.top) / svg.height; })()";
    let high = browser.value(high);
    assert!(high.as_f64() < Some(0.4), "{high}");
}

#[test]
fn links_and_cells_look_as_the_page_does() {
    let (mut browser, _folder) = or_skip!(open("training-pipeline", &SPLIT, 390, "#view=split"));
    let blue = "[...document.querySelectorAll('a, .link')].filter((one) => one.checkVisibility())
        .filter((one) => ['rgb(0, 0, 238)', 'rgb(85, 26, 139)'].includes(getComputedStyle(one).color)).length";
    assert_eq!(browser.value(blue), json!(0));
    // The last of an odd number of figures takes the whole width.
    let empty = "[...document.querySelectorAll('.figures')].filter((one) => one.checkVisibility()).map((own) => {
        const last = own.lastElementChild.getBoundingClientRect();
        return Math.round(own.getBoundingClientRect().right - last.right);
    })";
    let rests = browser.value(empty);
    let rests = rests.as_array().expect("a list");
    assert!(
        rests.iter().all(|rest| rest.as_f64() < Some(4.0)),
        "{rests:?}"
    );
}

/// On a phone too, all links to views are visible.
#[test]
fn the_links_to_all_views_are_in_sight() {
    let (mut browser, _folder) = or_skip!(open("training-pipeline", &SPLIT, 390, ""));
    let outside = "[...document.querySelectorAll('#bar a')].filter((one) => {
        const own = one.getBoundingClientRect();
        return own.left < 0 || own.right > innerWidth;
    }).map((one) => one.dataset.view)";
    assert_eq!(browser.value(outside), json!([]));
}

/// A piece of work that is no wider than its edges is drawn without edges.
#[test]
fn thin_pieces_of_work_are_seen() {
    let options = ["--solve", "--num-ipus=4", "--micro-batches=64"];
    let (mut browser, _folder) = or_skip!(open("training-pipeline", &options, 390, "#view=time"));
    let edges = "[...document.querySelectorAll('#step-strip .work')]
        .filter((own) => getComputedStyle(own).stroke !== 'none').length";
    assert_eq!(browser.value(edges), json!(0));
    // Enlarged pieces have edges again.
    for _ in 0..6 {
        browser.value("document.getElementById('step-strip-in').click()");
    }
    assert!(browser.value(edges).as_u64() > Some(0));
}

/// A compilation has code among its always-live bytes, so the page does not show code by itself.
#[test]
fn nothing_is_said_of_bytes_that_are_not_there() {
    let (mut browser, _folder) = or_skip!(open("training-pipelined", &["--fit"], 1440, ""));
    for view in views(&mut browser) {
        show(&mut browser, &view);
        let text = browser.value("document.body.innerText");
        let text = text.as_str().expect("a text");
        assert!(!text.contains(" 0 are code"), "{view}: {text}");
        assert!(!text.contains(" 0 of code"), "{view}: {text}");
    }
}
