//! The page of `--export-html` in a real browser: no error, no request, every
//! number that of the JSON form, and no sideways scrolling.
//!
//! Without a Chromium in the PATH these tests say that they are skipped.

mod accessible;
mod browser;
mod execution;
mod live_steps;
mod tile_map;
mod what_if;

use std::path::{Path, PathBuf};

use crate::support::{FIXTURES, popliner, profile};
use browser::{Browser, find};
use serde_json::{Value, json};

/// The widths of a phone and of a desk.
const WIDTHS: [u32; 2] = [390, 1440];

/// Writes the page and the JSON form of one run.
fn export(profile: &Path, options: &[&str], folder: &Path) -> (PathBuf, Value) {
    let [page, json] = ["report.html", "report.json"].map(|name| folder.join(name));
    let exports = [
        format!("--export-html={}", page.display()),
        format!("--export-json={}", json.display()),
    ];
    let fixed = [profile.to_str().expect("a plain path"), "-q"];
    let exports = exports.iter().map(String::as_str);
    let arguments = fixed
        .into_iter()
        .chain(options.iter().copied())
        .chain(exports);
    let run = popliner(arguments.collect::<Vec<_>>());
    assert!([0, 1].contains(&run.code), "{run:?}");
    let report = std::fs::read(&json).expect("a report");
    (page, serde_json::from_slice(&report).expect("JSON"))
}

/// All elements that say where in the JSON form their number stands: the
/// place goes on from that of the elements around them.
const NUMBERS: &str = "[...document.querySelectorAll('[data-json]')].map((element) => {
    let place = element.dataset.json;
    for (let at = element.closest('[data-at]'); at; at = at.parentElement.closest('[data-at]'))
        place = at.dataset.at + place;
    return [place, element.textContent];
})";

/// Does anything stick out of the page, or does the page scroll sideways?
const TOO_WIDE: &str = "document.documentElement.scrollWidth > innerWidth
    || document.body.scrollWidth > innerWidth";

fn check(browser: &mut Browser, page: &Path, report: &Value) {
    for width in WIDTHS {
        browser.open(page, width);
        assert_eq!(browser.value("innerWidth"), json!(width));
        assert_eq!(
            browser.value(TOO_WIDE),
            json!(false),
            "{} at {width}",
            page.display()
        );
        let zero = json!(0);
        let numbers = browser.value(NUMBERS);
        let numbers = numbers.as_array().expect("a list");
        assert!(numbers.len() > 100, "{} numbers", numbers.len());
        for number in numbers {
            let place = number[0].as_str().expect("a place");
            let shown = number[1].as_str().expect("a text").replace(',', "");
            // A part of nothing is left out.
            let is_part = place.contains("/parts/");
            let expected = report.pointer(place);
            let expected = expected.or(is_part.then_some(&zero));
            let expected = expected.unwrap_or_else(|| panic!("no {place}"));
            // Numbers that may be beyond 64 bits are text.
            let text = expected.as_str().map(String::from);
            let expected = text.unwrap_or_else(|| expected.to_string());
            assert_eq!(shown, expected, "{place}");
        }
        check_hovering(browser);
        no_errors(browser, page);
    }
}

/// Nothing was logged, thrown or fetched but the page itself.
fn no_errors(browser: &Browser, page: &Path) {
    for kind in [
        "Log.entryAdded",
        "Runtime.exceptionThrown",
        "Runtime.consoleAPICalled",
    ] {
        let found = browser.named(kind);
        assert!(found.is_empty(), "{}: {found:?}", page.display());
    }
    let requests = browser.named("Network.requestWillBeSent");
    assert_eq!(requests.len(), 1, "{requests:?}");
}

/// The pointer over the middle of a chart shows the bytes of that step or tile, and
/// over a part of a bar what it is.
fn check_hovering(browser: &mut Browser) {
    let words: [(&str, &[&str]); 2] = [
        ("[data-chart]", &["step ", "tile "]),
        ("rect[data-tip]", &["bytes", "cycles"]),
    ];
    for (selector, words) in words {
        // Scrolling hides what is shown, a frame later.
        let middle = format!(
            "(async () => {{
                const all = [...document.querySelectorAll('{selector}')];
                const one = all.find((one) => one.getBoundingClientRect().height > 4);
                one.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
                const box = one.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"
        );
        let middle = browser.value(&middle);
        let moved = json!({"type": "mouseMoved", "x": middle[0], "y": middle[1]});
        browser.send("Input.dispatchMouseEvent", moved);
        let shown = "document.querySelector('#tip.shown')?.textContent";
        let tip = browser.value(shown);
        let tip = tip
            .as_str()
            .unwrap_or_else(|| panic!("no tip over {selector}"));
        let is_known = words.iter().any(|word| tip.contains(word));
        assert!(is_known, "{selector}: {tip}");
    }
}

#[test]
fn the_page_of_every_fixture_works_on_a_phone_and_on_a_desk() {
    let Some(program) = find() else { return };
    let mut browser = Browser::start(&program);
    for fixture in FIXTURES {
        let options: [&[&str]; 2] = [&["--solve", "--num-ipus=4"], &[]];
        for options in options {
            let folder = tempfile::tempdir().expect("a folder");
            let (page, report) = export(&profile(fixture), options, folder.path());
            check(&mut browser, &page, &report);
        }
    }
}

#[test]
fn the_page_of_a_compilation_works_on_a_phone_and_on_a_desk() {
    let Some(program) = find() else { return };
    let mut browser = Browser::start(&program);
    for fixture in FIXTURES {
        let folder = tempfile::tempdir().expect("a folder");
        let (page, report) = export(&profile(fixture), &["--fit"], folder.path());
        check(&mut browser, &page, &report);
        for (section, is_there) in [("ipus", true), ("memory", true), ("layers", false)] {
            let found = format!("document.querySelector('section#{section} *') !== null");
            assert_eq!(
                browser.value(&found),
                json!(is_there),
                "{fixture}: {section}"
            );
        }
    }
}

/// Everything that can be asked for, and a refusal of a split that was given.
#[test]
fn the_page_shows_what_was_asked_for() {
    let Some(program) = find() else { return };
    let mut browser = Browser::start(&program);
    let asked = ["--sweep", "--explain", "--num-ipus=5", "--together=1,2"];
    let several = ["--solve", "--mem-per-tile=638976,600000,638976,300000"];
    let refused = ["--check-splits=1", "--num-ipus=2", "--pin=3=0"];
    let cases: [(&str, &[&str], &[&str]); 4] = [
        (
            "poplar-mlp",
            &asked,
            &["sweep", "cuts", "shared-variables", "proof", "constraints"],
        ),
        (
            "poptorch-bert-training",
            &refused,
            &["refusal", "given", "constraints"],
        ),
        ("impossible", &["--solve", "--num-ipus=3"], &["refusal"]),
        ("popart-bert-inference", &several, &["split"]),
    ];
    for (fixture, options, sections) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let (page, report) = export(&profile(fixture), options, folder.path());
        check(&mut browser, &page, &report);
        for section in sections {
            let found = format!("document.querySelectorAll('section#{section} *').length > 1");
            assert_eq!(browser.value(&found), json!(true), "{fixture}: {section}");
        }
        let execution = "document.querySelector('#execution') !== null";
        let has_cycles = report.get("execution").is_some();
        assert_eq!(browser.value(execution), json!(has_cycles), "{fixture}");
        let optimal =
            "document.querySelector('#proof').textContent.includes('Optimal: the integer')";
        assert_eq!(
            browser.value(optimal),
            report["proof"]["optimal"],
            "{fixture}"
        );
    }
}

#[test]
fn what_the_browser_draws_is_there() {
    let Some(program) = find() else { return };
    let mut browser = Browser::start(&program);
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--solve", "--num-ipus=4"];
    let (page, report) = export(&profile("popart-bert-inference"), &options, folder.path());
    browser.open(&page, 1440);
    let stages = report["split"]["stages"].as_array().expect("stages").len();
    let cards = browser.value("document.querySelectorAll('.card').length");
    assert_eq!(cards, json!(stages));
    // Two curves for each stage, two of the model, and one over the tiles.
    let curves = browser.value("document.querySelectorAll('[data-chart]').length");
    assert_eq!(curves, json!(stages * 2 + 3));
    // The highest point of a curve is where its peak says.
    let heights = "[...document.querySelectorAll('[data-chart] path.curve')].map((path) => {
        const svg = path.ownerSVGElement.getBoundingClientRect();
        return [path.getBoundingClientRect().top - svg.top,
            path.closest('[data-chart]').querySelector('circle').getBoundingClientRect(),
            svg.top].map((one) => one.top === undefined ? one : one.top + one.height / 2); })";
    for curve in browser.value(heights).as_array().expect("a list") {
        let [top, dot, svg] = [0, 1, 2].map(|place| curve[place].as_f64().expect("a number"));
        assert!((svg + top - dot).abs() <= 1.5, "{curve}");
    }
}
