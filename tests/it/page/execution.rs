//! The strip of cycles: boxes as wide as the numbers of the JSON form, and a stage over
//! the whole width by mouse and keyboard.

use std::path::Path;

use super::browser::{Browser, find};
use super::{WIDTHS, export, no_errors};
use crate::support::profile;
use serde_json::{Value, json};

/// All boxes in sight, in order. What is hidden has no width.
const BOXES: &str = "[...document.querySelectorAll('#execution-strip .box')]
    .filter((own) => own.querySelector('.edge').getBoundingClientRect().width > 0)
    .map((own) => {
        const part = (name) => own.querySelector(`:scope > .${name}`)?.getBoundingClientRect();
        const edge = part('edge');
        return {
            at: own.dataset.box, x: edge.x, width: edge.width,
            compute: part('compute')?.width ?? 0, exchange: part('exchange')?.width ?? 0,
            tip: own.querySelector(':scope > .edge').dataset.tip,
        };
    })";

/// Names that are shown and stick out of their boxes.
const TOO_LONG: &str = "[...document.querySelectorAll('#execution-strip text:not(.tight)')]
    .filter((own) => own.getBoundingClientRect().right
            > own.parentElement.querySelector('.edge').getBoundingClientRect().right)
    .map((own) => own.textContent)";

const STATUS: &str = "document.getElementById('execution-shown').textContent";

/// A page in a browser, with its report.
struct Page<'a> {
    browser: &'a mut Browser,
    report: Value,
}

/// What the report has of a box: cycles, and those of exchanges.
fn amount(report: &Value, at: &str) -> [u64; 2] {
    let execution = &report["execution"];
    let number = |own: &Value| own.as_u64().expect("a number");
    let own = report.pointer(at).unwrap_or_else(|| panic!("no {at}"));
    match at {
        "/execution" => {
            let layers = execution["layers"].as_array().expect("layers").iter();
            let layers = layers.map(|own| number(&own["exchange"])).sum::<u64>();
            let exchange = layers + number(&execution["unplaced_exchange"]);
            [number(&own["total"]), exchange]
        }
        "/execution/unplaced" => [number(own), number(&execution["unplaced_exchange"])],
        "/execution/other" => [number(own), 0],
        _ => [number(&own["cycles"]), number(&own["exchange"])],
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let places = digits.char_indices();
    places.fold(String::new(), |text, (place, digit)| {
        let comma = place > 0 && (digits.len() - place).is_multiple_of(3);
        format!("{text}{}{digit}", if comma { "," } else { "" })
    })
}

impl Page<'_> {
    fn boxes(&mut self) -> Vec<Value> {
        let boxes = self.browser.value(BOXES);
        boxes.as_array().expect("boxes").clone()
    }

    fn width(&mut self) -> f64 {
        let width = "document.getElementById('execution-strip').getBoundingClientRect().width";
        self.browser.value(width).as_f64().expect("a width")
    }

    /// Every box in sight is as wide as its cycles of `whole`, but the first, which is
    /// all; and says its numbers.
    fn check(&mut self, whole: u64) {
        let width = self.width();
        for (place, own) in self.boxes().iter().enumerate() {
            let at = own["at"].as_str().expect("a place");
            let [cycles, exchange] = amount(&self.report, at);
            let scale = width / (if place == 0 { cycles } else { whole }) as f64;
            for (drawn, number) in [("width", cycles), ("exchange", exchange)] {
                let drawn = own[drawn].as_f64().expect("a width");
                let expected = number as f64 * scale;
                assert!((drawn - expected).abs() <= 1.0, "{own}: {expected}");
            }
            let tip = own["tip"].as_str().expect("a tip");
            assert!(
                tip.contains(&format!("\n{} cycles, ", grouped(cycles))),
                "{tip}"
            );
            let says = tip.contains(&format!("\nexchange: {}", grouped(exchange)));
            assert_eq!(says, exchange > 0, "{tip}");
        }
        let too_long = self.browser.value(TOO_LONG);
        assert_eq!(too_long, json!([]), "names stick out");
    }

    /// Boxes of one row touch each other, and take the whole width together.
    fn check_row(&mut self, kind: &str, and: &[&str]) {
        let width = self.width();
        let left = self.boxes()[0]["x"].as_f64().expect("a place");
        let mut end = left;
        for own in self.boxes() {
            let at = own["at"].as_str().expect("a place");
            if at.starts_with(kind) || and.contains(&at) {
                let [x, width] = ["x", "width"].map(|part| own[part].as_f64().expect("pixels"));
                assert!((x - end).abs() <= 1.0, "{own} begins at {end}");
                end = x + width;
            }
        }
        assert!((end - left - width).abs() <= 1.0, "{kind} end at {end}");
    }

    /// Those of all places of which the report has cycles.
    fn expected(&self, stage: Option<usize>) -> Vec<String> {
        let execution = &self.report["execution"];
        let all = |kind: &str| {
            let count = execution[kind].as_array().expect("a list").len();
            (0..count)
                .map(|own| format!("/execution/{kind}/{own}"))
                .collect::<Vec<_>>()
        };
        let mut places = vec!["/execution".to_string()];
        match stage {
            None => {
                places.extend(all("stages").into_iter().chain(all("layers")));
                places.extend(["unplaced", "other"].map(|own| format!("/execution/{own}")));
            }
            Some(stage) => {
                places.push(format!("/execution/stages/{stage}"));
                let range = &self.report["split"]["stages"][stage]["positions"];
                let [start, end] =
                    ["start", "end"].map(|own| range[own].as_u64().expect("a place"));
                places.extend((start..end).map(|own| format!("/execution/layers/{own}")));
            }
        }
        places.retain(|at| amount(&self.report, at)[0] > 0);
        places.sort_unstable();
        places
    }

    fn check_places(&mut self, stage: Option<usize>) {
        let boxes = self.boxes();
        let mut found: Vec<&str> = boxes.iter().filter_map(|own| own["at"].as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, self.expected(stage));
    }

    fn check_all(&mut self) {
        let total = amount(&self.report, "/execution")[0];
        self.check_places(None);
        self.check(total);
        self.check_row(
            "/execution/layers/",
            &["/execution/unplaced", "/execution/other"],
        );
    }

    fn check_stage(&mut self, stage: usize) {
        let [cycles, _] = amount(&self.report, &format!("/execution/stages/{stage}"));
        self.check_places(Some(stage));
        self.check(cycles);
        self.check_row("/execution/layers/", &[]);
        let status = self.browser.value(STATUS);
        let said = format!(
            "IPU {stage} over the whole width: {} cycles",
            grouped(cycles)
        );
        assert!(
            status.as_str().is_some_and(|own| own.contains(&said)),
            "{status}"
        );
    }
}

/// The box of a stage, as an expression.
fn stage_box(stage: usize) -> String {
    format!("document.querySelector('[data-box=\"/execution/stages/{stage}\"]')")
}

#[test]
fn boxes_are_as_wide_as_their_cycles_and_a_stage_is_shown_alone() {
    let Some(program) = find() else { return };
    let mut browser = Browser::start(&program);
    for fixture in [
        "popart-bert-inference",
        "poptorch-bert-training",
        "poplar-mlp",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = ["--solve", "--num-ipus=4"];
        let (file, report) = export(&profile(fixture), &options, folder.path());
        for width in WIDTHS {
            browser.open(&file, width);
            let report = report.clone();
            let mut page = Page {
                browser: &mut browser,
                report,
            };
            page.check_all();
            show_each_stage(&mut page);
            no_errors(&browser, &file);
        }
    }
}

/// By mouse and by keyboard, and back in every way.
fn show_each_stage(page: &mut Page<'_>) {
    let focused = "document.activeElement.dataset.box";
    let stages = page.report["execution"]["stages"]
        .as_array()
        .expect("stages")
        .len();
    for stage in 0..stages {
        let own = stage_box(stage);
        page.browser
            .click(&format!("{own}.querySelector('.edge')"), 0.5, 1);
        page.check_stage(stage);
        page.browser.press("Escape");
        page.check_all();
        page.browser.value(&format!("{own}.focus()"));
        page.browser.press("Enter");
        page.check_stage(stage);
        let at = json!(format!("/execution/stages/{stage}"));
        assert_eq!(page.browser.value(focused), at);
        assert_eq!(
            page.browser.value(&format!("{own}.ariaPressed")),
            json!("true")
        );
        page.browser.click(
            "document.querySelector('#execution-strip .box .edge')",
            0.5,
            1,
        );
        page.check_all();
        assert_eq!(page.browser.value(focused), at);
    }
}

#[test]
fn without_a_split_layers_are_below_all() {
    let Some(program) = find() else { return };
    let mut browser = Browser::start(&program);
    let folder = tempfile::tempdir().expect("a folder");
    let (file, report) = export(&profile("poplar-mlp"), &[], folder.path());
    check_without_split(&mut browser, &file, report);
}

fn check_without_split(browser: &mut Browser, file: &Path, report: Value) {
    for width in WIDTHS {
        browser.open(file, width);
        let report = report.clone();
        let mut page = Page { browser, report };
        page.check_all();
        // There is nothing to choose.
        let buttons = "document.querySelectorAll('#execution-strip [role=button]').length";
        assert_eq!(page.browser.value(buttons), json!(0));
        page.browser.press("Escape");
        page.check_all();
        no_errors(browser, file);
    }
}
