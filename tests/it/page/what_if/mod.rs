//! Cuts that are moved in the page: every number that the page then shows is what its command line
//! computes.

mod checks;
mod generated;
mod limits;
mod stages;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use super::browser::Browser;
use super::{export, no_errors};
use crate::support::{DEFAULT_REGEX, finish, models::share, profile, root};
use checks::{check_step, check_totals, check_verdict, plain};
use serde_json::{Value, json};

/// The split that the reader tries, as the page shows it.
const SHOWN: &str = "(() => {
    const part = (name) => document.getElementById('what-if-' + name);
    const texts = (all) => [...all].map((one) => one.textContent);
    return {
        now: [...document.querySelectorAll('[data-now]')].map((one) => [one.dataset.now, one.textContent]),
        shares: texts(document.querySelectorAll('#what-if-stages td:nth-child(5)')),
        totals: texts(document.querySelectorAll('#what-if-totals dd')),
        fits: part('verdict').dataset.fits,
        verdict: part('verdict').textContent,
        head: document.querySelector('#answer h1').className,
        step: [...document.querySelectorAll('[data-now]')].filter((one) => one.dataset.now === '/step/cycles').length,
        best_fits: part('best').dataset.fits,
        command: part('command').textContent,
        cuts: [...document.querySelectorAll('.handle')].map((one) => +one.ariaValueNow),
    };
})()";

/// The ways to move a cut.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Keys,
    Mouse,
    Touch,
}

/// The page of one run, in a browser.
struct Page {
    browser: Browser,
    folder: tempfile::TempDir,
    report: Value,
    tried: BTreeSet<Vec<u64>>,
    /// Reports, by the command lines that made them.
    judged: BTreeMap<String, Value>,
}

impl Page {
    /// Opens the page of a run; `None` if the test is skipped.
    #[track_caller]
    fn open(profile: &Path, options: &[&str]) -> Option<Self> {
        let mut browser = Browser::find()?;
        let folder = tempfile::tempdir().expect("a folder");
        let (page, report) = export(profile, options, folder.path());
        browser.open_at(&page, 1440, "#view=split");
        Some(Self {
            browser,
            folder,
            report,
            tried: BTreeSet::new(),
            judged: BTreeMap::new(),
        })
    }

    fn value(&mut self, expression: &str) -> Value {
        self.browser.value(expression)
    }

    fn positions(&self) -> u64 {
        let last = self.report["what_if"]["boundaries"].as_array();
        last.and_then(|all| all.last()?.as_u64()).expect("a number")
    }

    fn cuts(&mut self) -> Vec<u64> {
        let cuts = self.value(SHOWN)["cuts"].clone();
        serde_json::from_value(cuts).expect("numbers")
    }

    fn press(&mut self, cut: usize, key: &str) {
        let focus = format!("document.querySelectorAll('.handle')[{cut}].focus()");
        self.value(&focus);
        self.browser.press(key);
    }

    /// Returns the middle of a handle, and its middle if it were at `position`.
    fn places(&mut self, cut: usize, position: u64) -> [[f64; 2]; 2] {
        let positions = self.positions();
        let places = format!(
            "(() => {{
                const handle = document.querySelectorAll('.handle')[{cut}];
                handle.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                const box = handle.getBoundingClientRect();
                const strip = document.getElementById('what-if-strip').getBoundingClientRect();
                const y = box.y + box.height / 2;
                return [[box.x + box.width / 2, y], [strip.x + strip.width * {position} / {positions}, y]];
            }})()"
        );
        serde_json::from_value(self.value(&places)).expect("places")
    }

    fn drag(&mut self, by: By, cut: usize, position: u64) {
        let [from, to] = self.places(cut, position);
        let events = match by {
            By::Touch => ["touchStart", "touchMove", "touchEnd"],
            _ => ["mousePressed", "mouseMoved", "mouseReleased"],
        };
        for (kind, [x, y]) in events.into_iter().zip([from, to, to]) {
            let points = if kind == "touchEnd" {
                json!([])
            } else {
                json!([{"x": x, "y": y}])
            };
            let (method, event) = match by {
                By::Touch => (
                    "Input.dispatchTouchEvent",
                    json!({"type": kind, "touchPoints": points}),
                ),
                _ => (
                    "Input.dispatchMouseEvent",
                    json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}),
                ),
            };
            self.browser.send(method, event);
        }
    }

    fn move_to(&mut self, by: By, cut: usize, position: u64) {
        if by != By::Keys {
            self.drag(by, cut, position);
        }
        for _ in 0..self.positions() {
            let at = self.cuts()[cut];
            if at == position {
                return;
            }
            assert_eq!(by, By::Keys, "cut {cut} is at {at}, not at {position}");
            self.press(
                cut,
                if at < position {
                    "ArrowRight"
                } else {
                    "ArrowLeft"
                },
            );
        }
        panic!("cut {cut} does not come to {position}");
    }

    /// Makes another split: moves all cuts to the right, then each to its place.
    fn make(&mut self, by: By, cuts: &[u64]) {
        for cut in (0..cuts.len()).rev() {
            self.press(cut, "End");
        }
        for (cut, &position) in cuts.iter().enumerate() {
            self.move_to(by, cut, position);
        }
        assert_eq!(self.cuts(), cuts);
        self.tried.insert(cuts.to_vec());
        self.check();
    }

    fn enter(&mut self, what: &str, value: &str) {
        self.enter_unchecked(what, value);
        self.check();
    }

    fn enter_unchecked(&mut self, what: &str, value: &str) {
        let enter = format!(
            "(() => {{
                const input = document.getElementById('what-if-{what}');
                input.value = '{value}';
                input.dispatchEvent(new Event('input'));
            }})()"
        );
        self.value(&enter);
    }

    fn click(&mut self, what: &str) {
        self.click_unchecked(what);
        self.check();
    }

    fn click_unchecked(&mut self, what: &str) {
        let click = format!("document.getElementById('what-if-{what}').click()");
        self.value(&click);
    }

    /// Returns the report of the command line that the page shows.
    fn judged(&mut self, command: &str) -> Value {
        if let Some(report) = self.judged.get(command) {
            return report.clone();
        }
        let json = self.folder.path().join("judged.json");
        let tool = Path::new(env!("CARGO_BIN_EXE_popliner"));
        let path = std::env::var("PATH").expect("a path");
        let folder = tool.parent().expect("a folder").display();
        let line = format!("{command} -q --export-json='{}'", json.display());
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(root());
        let run = finish(shell.env("PATH", format!("{folder}:{path}")));
        assert!([0, 1].contains(&run.code), "{line}: {run:?}");
        let report = std::fs::read(json).expect("a report");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        self.judged.insert(command.to_owned(), report.clone());
        report
    }

    /// Compares everything that the page shows with the report of its command line.
    fn check(&mut self) {
        let state = self.value(SHOWN);
        let command = state["command"].as_str().expect("a command");
        let judged = self.judged(command);
        let stages = judged["split"]["stages"].as_array().expect("stages");
        let numbers = state["now"].as_array().expect("numbers");
        assert!(numbers.len() > stages.len() * 4, "{command}: {numbers:?}");
        for number in numbers {
            let place = number[0].as_str().expect("a place");
            let expected = judged
                .pointer(place)
                .unwrap_or_else(|| panic!("no {place}"));
            assert_eq!(
                plain(&number[1]),
                expected.to_string(),
                "{command}: {place}"
            );
        }
        let ends = stages.iter().map(|stage| &stage["positions"]["end"]);
        let ends: Vec<&Value> = ends.collect();
        let cuts = state["cuts"].as_array().expect("cuts");
        assert!(ends[..ends.len() - 1].iter().copied().eq(cuts), "{command}");
        check_verdict(&state, &judged, command);
        let fits = judged["split"]["fits"].as_bool().expect("a verdict");
        assert_eq!(state["head"] == "good", fits, "{command}");
        check_step(&state, &judged, command);
        check_totals(&state, &judged, command);
    }
}

#[test]
fn a_moved_split_has_the_numbers_of_its_command_line() {
    let cases: [(&str, &[&str], bool); 2] = [
        (
            "popart-bert-inference",
            &["--solve", "--num-ipus=4", "--together=1,2", "--reserve=2%"],
            false,
        ),
        ("poptorch-bert-training", &["--solve", "--num-ipus=4"], true),
    ];
    for (fixture, options, by_stages_after) in cases {
        let mut page = or_skip!(Page::open(&profile(fixture), options));
        let what_if = &page.report["what_if"];
        assert_eq!(
            what_if["by_stages_after"],
            json!(by_stages_after),
            "{fixture}"
        );
        page.check();
        let last = page.positions() - 1;
        let count = page.cuts().len() as u64;
        assert!(count >= 1, "{fixture}");
        // Adjacent cuts, further right each time; then cuts apart.
        let count_of_splits = 12 / share(4);
        for number in 0..50 {
            if page.tried.len() == count_of_splits {
                break;
            }
            let first = 1 + number % (last - count);
            let spread = |cut: u64| (first + cut + cut * number / 5).min(last - (count - 1 - cut));
            let by = [By::Keys, By::Mouse, By::Touch][number as usize % 3];
            page.make(by, &(0..count).map(spread).collect::<Vec<_>>());
        }
        assert_eq!(page.tried.len(), count_of_splits, "{fixture}");
        page.click("reset");
        let folder = page.folder.path().join("report.html");
        no_errors(&page.browser, &folder);
    }
}

#[test]
fn other_limits_and_numbers_of_ipus_have_their_best_split() {
    // The given regex keeps layers unchanged if a layer is over another limit.
    let options = ["--solve", "--num-ipus=4", DEFAULT_REGEX];
    let fixtures = [
        "poptorch-bert-training",
        "popart-bert-inference",
        "impossible",
    ];
    for fixture in fixtures.into_iter().step_by(share(2)) {
        let mut page = or_skip!(Page::open(&profile(fixture), &options));
        for (ipus, limit) in [
            ("3", "638976"),
            ("2", "900000"),
            ("5", "400000"),
            ("1", "1"),
        ] {
            page.enter_unchecked("ipus", ipus);
            page.enter("memory", limit);
            page.click("take");
        }
        page.click("reset");
        let cuts = page.cuts();
        page.press(0, "End");
        page.click("reset");
        assert_eq!(page.cuts(), cuts, "{fixture}");
    }
}

impl Page {
    fn command(&mut self) -> String {
        let state = self.value(SHOWN);
        state["command"].as_str().expect("a command").to_string()
    }
}

#[test]
fn the_command_is_copied_or_selected() {
    let options = ["--solve", "--num-ipus=4"];
    let mut page = or_skip!(Page::open(&profile("popart-bert-inference"), &options));
    page.press(0, "ArrowLeft");
    let command = page.command();
    let press = "document.getElementById('what-if-copy').click()";
    let copied = "new Promise((resolve) => {
        const note = document.getElementById('what-if-copied');
        if (note.textContent) resolve(note.textContent);
        new MutationObserver(() => resolve(note.textContent)).observe(note, { childList: true });
    })";
    // Replaces the clipboard, since all browsers on a machine share one, which may not answer.
    page.value(
        "void (navigator.clipboard.writeText = async (text) => { window.clipboard = text; })",
    );
    page.value(press);
    assert_eq!(page.value(copied), json!("Copied."));
    assert_eq!(page.value("window.clipboard"), json!(command));
    // If a browser refuses to write to the clipboard, the command is selected.
    page.value("document.getElementById('what-if-copied').textContent = ''");
    page.value("getSelection().removeAllRanges()");
    page.value("void (navigator.clipboard.writeText = () => Promise.reject(new Error()))");
    page.value(press);
    let message = page.value(copied);
    assert!(
        message
            .as_str()
            .is_some_and(|message| message.starts_with("Selected")),
        "{message}"
    );
    assert_eq!(page.value("getSelection().toString()"), json!(command));
}
