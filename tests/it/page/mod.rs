//! The page of `--export-html` in a real browser: no error, no request, every number equal to the
//! JSON form, and no sideways scrolling.
//!
//! Without a Chromium in the PATH these tests are skipped.

/// Returns the value, or ends a test that is skipped.
macro_rules! or_skip {
    ($found:expr) => {
        match $found {
            Some(found) => found,
            None => return,
        }
    };
}

mod accessible;
mod blocks;
mod browser;
mod configuration;
mod defects;
mod large;
mod opened;
mod print;
mod tools;
mod viewer;
mod what_if;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::support::models::{pairs, share};
use crate::support::{FIXTURES, popliner, profile};
use browser::Browser;
use serde_json::{Value, json};

/// The widths of a phone and of a desktop, in pixels.
const WIDTHS: [u32; 2] = [390, 1440];

/// Pages and reports of runs by their arguments, since many tests use the same page.
static EXPORTED: Mutex<BTreeMap<Vec<String>, [Vec<u8>; 2]>> = Mutex::new(BTreeMap::new());

/// Writes the page and the JSON form of one run.
fn export(profile: &Path, options: &[&str], folder: &Path) -> (PathBuf, Value) {
    let [page, json] = ["report.html", "report.json"].map(|name| folder.join(name));
    let arguments = [
        &[profile.to_str().expect("a plain path"), "-q"][..],
        options,
    ]
    .concat();
    let arguments: Vec<String> = arguments.into_iter().map(String::from).collect();
    let known = EXPORTED.lock().expect("pages").get(&arguments).cloned();
    let both = known.unwrap_or_else(|| {
        let exports = [
            format!("--export-html={}", page.display()),
            format!("--export-json={}", json.display()),
        ];
        let run = popliner(arguments.iter().chain(&exports));
        assert!([0, 1].contains(&run.code), "{run:?}");
        let both = [&page, &json].map(|file| std::fs::read(file).expect("a file"));
        EXPORTED
            .lock()
            .expect("pages")
            .insert(arguments, both.clone());
        both
    });
    std::fs::write(&page, &both[0]).expect("a page");
    std::fs::write(&json, &both[1]).expect("a report");
    (page, serde_json::from_slice(&both[1]).expect("JSON"))
}

/// Returns the names of the views that the page links to.
fn views(browser: &mut Browser) -> Vec<String> {
    let views =
        browser.value("[...document.querySelectorAll('#bar a')].map((own) => own.dataset.view)");
    serde_json::from_value(views).expect("names")
}

/// Shows a view, and unfolds everything in it.
fn show(browser: &mut Browser, view: &str) {
    let press = format!("document.querySelector('#bar a[data-view={view}]').click()");
    browser.value(&press);
    let unfold = "(async () => {
        document.querySelectorAll('details').forEach((one) => { one.open = true; });
        for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
    })()";
    browser.value(unfold);
    let displayed = format!("document.getElementById('view-{view}').checkVisibility()");
    assert_eq!(browser.value(&displayed), json!(true), "{view}");
}

/// Finds all visible elements that have the place of their number in the JSON form.
const NUMBERS: &str = "[...document.querySelectorAll('[data-json]')]
    .filter((one) => one.checkVisibility()).map((one) => [one.dataset.json, one.textContent])";

/// Does any element stick out of the page, or does the page scroll sideways?
const TOO_WIDE: &str = "document.documentElement.scrollWidth > innerWidth
    || document.body.scrollWidth > innerWidth";

/// Finds the first labels of drawings that overlap.
const OVER_EACH_OTHER: &str = "[...document.querySelectorAll('figure svg.drawn')].flatMap((svg) => {
    const texts = [...svg.querySelectorAll('text')].map((own) => [own.textContent, own.getBoundingClientRect()]);
    return texts.flatMap(([name, a], place) => texts.slice(place + 1).filter(([, b]) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
        .map(([other]) => [name, other]));
}).slice(0, 3)";

/// Compares every number of every view with the report, at one of the widths in turn, or at both
/// with `SEEDS`.
fn check(number: usize, browser: &mut Browser, page: &Path, report: &Value) {
    for width in WIDTHS.into_iter().skip(number % share(2)).step_by(share(2)) {
        browser.open(page, width);
        assert_eq!(browser.value("innerWidth"), json!(width));
        let mut count = 0;
        for view in views(browser) {
            show(browser, &view);
            let place = format!("{} at {width}: {view}", page.display());
            assert_eq!(browser.value(TOO_WIDE), json!(false), "{place}");
            assert_eq!(browser.value(OVER_EACH_OTHER), json!([]), "{place}");
            let numbers = browser.value(NUMBERS);
            let numbers = numbers.as_array().expect("a list");
            numbers
                .iter()
                .for_each(|number| check_number(number, report));
            count += numbers.len();
        }
        assert!(count > 100, "{} has {count} numbers", page.display());
        no_errors(browser, page);
    }
}

/// Compares a shown number with the report.
fn check_number(number: &Value, report: &Value) {
    let place = number[0].as_str().expect("a place");
    let displayed = number[1].as_str().expect("a text").replace([',', '+'], "");
    let expected = report
        .pointer(place)
        .unwrap_or_else(|| panic!("no {place}"));
    // Numbers that may be beyond 64 bits are text.
    let text = expected.as_str().map(String::from);
    let expected = text.unwrap_or_else(|| expected.to_string());
    assert_eq!(displayed, expected, "{place}");
}

/// Checks that nothing was logged or thrown, and that only the page itself was fetched.
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

#[test]
fn the_page_of_every_fixture_works_on_a_phone_and_on_a_desk() {
    let mut browser = or_skip!(Browser::find());
    let options: [&[&str]; 2] = [&["--solve", "--num-ipus=4"], &[]];
    for (number, (fixture, options)) in pairs(&FIXTURES, &options, 3).enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let (page, report) = export(&profile(fixture), options, folder.path());
        check(number, &mut browser, &page, &report);
    }
}

#[test]
fn the_page_of_a_compilation_works_on_a_phone_and_on_a_desk() {
    let mut browser = or_skip!(Browser::find());
    for (number, fixture) in FIXTURES.into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let (page, report) = export(&profile(fixture), &["--fit"], folder.path());
        check(number, &mut browser, &page, &report);
        let found = views(&mut browser);
        assert!(found.contains(&"ipus".to_string()), "{found:?}");
        assert!(!found.contains(&"layers".to_string()), "{found:?}");
    }
}

/// All results that can be requested, and a refusal of a given split.
#[test]
fn the_page_shows_what_was_asked_for() {
    let mut browser = or_skip!(Browser::find());
    let asked = ["--sweep", "--explain", "--num-ipus=5", "--together=1,2"];
    let several = ["--solve", "--mem-per-tile=638976,600000,638976,300000"];
    let refused = ["--check-splits=1", "--num-ipus=2", "--pin=3=0"];
    let split = ["--solve", "--num-ipus=4"];
    let cases: [(&str, &[&str], &[&str]); 6] = [
        (
            "popart-bert-inference",
            &asked,
            &["sweep", "cuts", "proof", "constraints"],
        ),
        ("training-pipeline", &split, &["shared-variables", "cuts"]),
        (
            "poptorch-bert-training",
            &refused,
            &["given", "constraints"],
        ),
        ("training-pipeline", &["--plan", "--num-ipus=6"], &["plan"]),
        ("impossible", &["--solve", "--num-ipus=3"], &["what-if"]),
        ("popart-bert-inference", &several, &["stages"]),
    ];
    for (number, (fixture, options, sections)) in cases.into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let (page, report) = export(&profile(fixture), options, folder.path());
        check(number, &mut browser, &page, &report);
        for section in sections {
            let found = format!("document.querySelectorAll('section#{section} *').length > 1");
            assert_eq!(browser.value(&found), json!(true), "{fixture}: {section}");
        }
    }
}

/// The first screen says whether the model fits, on how many IPUs, how near each is to its limit,
/// how long a step takes, and what to paste.
#[test]
fn the_first_screen_has_the_answers() {
    let mut browser = or_skip!(Browser::find());
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--solve", "--num-ipus=4"];
    let (page, report) = export(&profile("training-pipeline"), &options, folder.path());
    browser.open(&page, 1440);
    let head = browser.value("document.getElementById('head').textContent");
    let head = head.as_str().expect("a text");
    for part in [
        "The model fits on 4 IPUs",
        "242,990 of 262,144 bytes; tile 7 of IPU 0",
        "IPU 2: 90.6 %",
        "1,278 ms",
        "slowest is IPU 2",
        "To paste (popart):",
        "session_options.enablePipelining = True",
        "with builder.virtualGraph(3), builder.pipelineStage(3):",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    let bottom = browser.value("document.getElementById('bar').getBoundingClientRect().bottom");
    assert!(bottom.as_f64() < Some(500.0), "{bottom}");
    assert_eq!(report["heading"], "The model fits on 4 IPUs");
}

/// Finds visible numbers of a thousand and more without a place in the report, each with the text
/// before it in its element.
const OTHERS: &str = r"(() => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) =>
        node.parentElement.closest('script, style, svg, pre, code, option, [data-json]') || !node.parentElement.checkVisibility()
            ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    const found = [];
    while (walk.nextNode()) {
        const own = walk.currentNode.textContent;
        for (const one of own.matchAll(/\d{1,3}(,\d{3})+/g)) found.push([own.slice(0, one.index), one[0].replaceAll(',', '')]);
    }
    return found;
})()";

/// Collects all numbers of a report, also in its texts.
fn all_numbers(value: &Value, found: &mut HashSet<String>) {
    match value {
        Value::Number(number) => drop(found.insert(number.to_string().replace('-', ""))),
        Value::String(text) => {
            let digits = text.replace(',', "");
            let numbers = digits.split(|own: char| !own.is_ascii_digit());
            found.extend(numbers.map(String::from));
        }
        Value::Array(list) => list.iter().for_each(|own| all_numbers(own, found)),
        Value::Object(map) => map.values().for_each(|own| all_numbers(own, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Collects the sums that the page computes: curves plus the bytes that are equal at all steps, the
/// work of each IPU in a step, the unlisted variables of a tile, and the free bytes of the model on
/// one IPU.
fn sums(report: &Value, found: &mut HashSet<String>) {
    if let (Some(bytes), true) = (report["bytes"].as_array(), report["fixed"].is_u64()) {
        let base = number(&report["fixed"]) + number(&report["always_live"]);
        let points = bytes.iter().map(|moving| base + number(moving));
        found.extend(points.chain([base]).map(|sum| sum.to_string()));
    }
    let peak = &report["liveness"]["fullest_tile_curve"]["peak"]["bytes"];
    let over = number(peak).abs_diff(number(&report["memory"]["limit"]));
    found.insert(over.to_string());
    let step = &report["step"];
    let [whole, copies, update, batches] =
        ["cycles", "copy_cycles", "update_cycles", "micro_batches"].map(|name| number(&step[name]));
    let drawn = whole.saturating_sub(copies + update);
    for stage in list(&report["execution"]["stages"]) {
        let passes = ["forward", "backward", "recomputed"];
        let passes = passes.map(|pass| number(&stage["passes"][pass]) * batches);
        let idle = drawn.saturating_sub(passes.iter().sum());
        let all = passes.into_iter().chain([idle, drawn]);
        found.extend(all.map(|cycles| cycles.to_string()));
    }
    let live = &report["live_steps"];
    for tile in [live].into_iter().chain(list(&live["others"])) {
        for (step, all) in list(&live["steps"]).zip(list(&tile["bytes"])) {
            let is_live = |own: &&Value| {
                let mut spans = list(&own["live"]);
                spans.any(|span| (number(&span[0])..=number(&span[1])).contains(&number(step)))
            };
            let listed = list(&tile["variables"]).filter(is_live);
            let listed: u64 = listed.map(|own| number(&own["bytes"])).sum();
            found.insert((number(all) - listed).to_string());
        }
    }
    match report {
        Value::Array(list) => list.iter().for_each(|own| sums(own, found)),
        Value::Object(map) => map.values().for_each(|own| sums(own, found)),
        _ => {}
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Every visible number is in the report, or is one of the sums of [`sums`].
#[test]
fn no_other_number_is_shown() {
    let mut browser = or_skip!(Browser::find());
    // The strip of a step draws this small number of micro-batches in full; one fixture has no
    // cycles.
    let few = ["--micro-batches=8"];
    for (fixture, few) in [
        ("training-pipeline", &few[..]),
        ("popart-bert-inference", &few),
        ("impossible", &[]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = [&["--sweep", "--explain", "--num-ipus=4"], few].concat();
        let (page, report) = export(&profile(fixture), &options, folder.path());
        let mut known = HashSet::new();
        all_numbers(&report, &mut known);
        sums(&report, &mut known);
        browser.open(&page, 1440);
        for view in views(&mut browser) {
            show(&mut browser, &view);
            let found = browser.value(OTHERS);
            let found: Vec<(String, String)> = serde_json::from_value(found).expect("numbers");
            let others = found.iter().filter(|(_, number)| !known.contains(number));
            let others: Vec<_> = others.collect();
            assert!(others.is_empty(), "{fixture}: {view}: {others:?}");
        }
    }
}
