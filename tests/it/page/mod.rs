//! The page of `--export-html` in a real browser: no error, no request, every number equal to the
//! JSON form, and no sideways scrolling.
//!
//! Without a Chromium in the PATH these tests are skipped.

/// Returns the value, or ends the test if there is none, since the test is skipped.
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

use std::collections::HashSet;

use crate::support::FIXTURES;
use crate::support::models::{pairs, share};
use opened::{Page, page};
use serde_json::Value;

/// The options of most tests.
const SPLIT: &str = "--solve --num-ipus=4";

/// Does any element stick out of the page, or does the page scroll sideways?
const TOO_WIDE: &str = "document.documentElement.scrollWidth > innerWidth
    || document.body.scrollWidth > innerWidth";

/// Finds the first labels of drawings that overlap.
const OVER_EACH_OTHER: &str = "$$('figure svg.drawn').flatMap((svg) => {
    const texts = [...svg.querySelectorAll('text')].map((own) => [own.textContent, own.getBoundingClientRect()]);
    return texts.flatMap(([name, a], place) => texts.slice(place + 1).filter(([, b]) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
        .map(([other]) => [name, other]));
}).slice(0, 3)";

/// Compares every number of every view of a page with the report, at the width of a phone or of a
/// desktop in turn, or at both with `SEEDS`.
fn check(number: usize, page: &mut Page) {
    let widths = [390, 1440].into_iter().skip(number % share(2));
    for width in widths.step_by(share(2)) {
        page.browser.open(&page.path.clone(), width, "");
        assert!(page.is(&format!("innerWidth === {width}")));
        let mut count = 0;
        page.in_each_view(|page, view| {
            assert!(!page.is(TOO_WIDE), "{view} at {width}");
            let overlapping: Vec<[String; 2]> = page.value(OVER_EACH_OTHER);
            assert!(overlapping.is_empty(), "{view} at {width}: {overlapping:?}");
            count += page.check_numbers();
        });
        page.no_errors();
        assert!(count > 100, "{} has {count} numbers", page.path.display());
    }
}

#[test]
fn the_page_of_every_fixture_works_on_a_phone_and_on_a_desk() {
    let options = [SPLIT, "", "--fit"];
    for (number, (fixture, &options)) in pairs(&FIXTURES, &options, 4).enumerate() {
        let mut page = or_skip!(page(fixture, options, ""));
        check(number, &mut page);
        let views = page.views();
        let is_compilation = options == "--fit";
        assert_eq!(
            views.contains(&"ipus".to_string()),
            is_compilation,
            "{views:?}"
        );
        assert_ne!(
            views.contains(&"layers".to_string()),
            is_compilation,
            "{views:?}"
        );
    }
}

/// All results that can be requested, and a refusal of a given split.
#[test]
fn the_page_shows_what_was_asked_for() {
    let bert = "popart-bert-inference";
    let asked = "--sweep --explain --num-ipus=5 --together=1,2";
    let several = "--solve --mem-per-tile=638976,600000,638976,300000";
    let refused = "--splits=2 --num-ipus=2 --pin=3=0";
    let cases = [
        (bert, asked, "sweep cuts proof constraints"),
        ("training-pipeline", SPLIT, "shared-variables cuts"),
        ("poptorch-bert-training", refused, "given constraints"),
        ("training-pipeline", "--plan --num-ipus=6", "plan"),
        ("impossible", "--solve --num-ipus=3", "what-if"),
        (bert, several, "stages"),
    ];
    for (number, (fixture, options, sections)) in cases.into_iter().enumerate() {
        let mut page = or_skip!(page(fixture, options, ""));
        check(number, &mut page);
        for section in sections.split(' ') {
            let count = page.count(&format!("section#{section} *"));
            assert!(count > 1, "{fixture}: {section}");
        }
    }
}

/// The first screen says whether the model fits, on how many IPUs, how near each is to its limit,
/// how long a step takes, and what to paste.
#[test]
fn the_first_screen_has_the_answers() {
    let mut page = or_skip!(page("training-pipeline", SPLIT, ""));
    let head = page.text("#head");
    for part in [
        "The model fits on 4 IPUs",
        "242,654 of 262,144 bytes; tile 7 of IPU 0",
        "IPU 2: 90.4 %",
        "1,278 ms",
        "slowest is IPU 2",
        "To paste (popart):",
        "session_options.enablePipelining = True",
        "with builder.virtualGraph(3), builder.pipelineStage(3):",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert!(page.is("$('#bar').getBoundingClientRect().bottom < 500"));
    assert_eq!(page.report["heading"], "The model fits on 4 IPUs");
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
    // The strip of a step draws this small number of micro-batches in full; one fixture has no
    // cycles.
    for (fixture, few) in [
        ("training-pipeline", "--micro-batches=8"),
        ("popart-bert-inference", "--micro-batches=8"),
        ("impossible", ""),
    ] {
        let options = format!("--sweep --explain --num-ipus=4 {few}");
        let mut page = or_skip!(page(fixture, &options, ""));
        let mut known = HashSet::new();
        all_numbers(&page.report, &mut known);
        sums(&page.report, &mut known);
        page.in_each_view(|page, view| {
            let mut others: Vec<(String, String)> = page.value(OTHERS);
            others.retain(|(_, number)| !known.contains(number));
            assert!(others.is_empty(), "{fixture}: {view}: {others:?}");
        });
    }
}
