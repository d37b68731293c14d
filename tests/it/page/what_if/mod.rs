//! Cuts that are moved in the page: every number that the page then shows is what its command line
//! computes.

mod checks;
mod generated;
mod limits;
mod stages;

use std::collections::BTreeSet;

use super::SPLIT;
use super::opened::{Page, page};
use crate::support::{DEFAULT_REGEX, models::share};
use serde_json::json;

/// Opens the page of a fixture at its split; `None` if the test is skipped.
#[track_caller]
fn open(fixture: &str, options: &str) -> Option<Page> {
    page(fixture, &format!("--solve {options}"), "#view=split")
}

/// The ways to move a cut.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Keys,
    Mouse,
    Touch,
}

impl Page {
    fn positions(&self) -> u64 {
        *self
            .at::<Vec<u64>>("/what_if/boundaries")
            .last()
            .expect("an end")
    }

    fn cuts(&mut self) -> Vec<u64> {
        self.shown().cuts
    }

    fn command(&mut self) -> String {
        self.shown().command
    }

    fn press_cut(&mut self, cut: usize, key: &str) {
        self.run(&format!("$$('.handle')[{cut}].focus()"));
        self.browser.press(key);
    }

    fn drag(&mut self, by: By, cut: usize, position: u64) {
        let share = position as f64 / self.positions() as f64;
        let [left, _, width, _] = self.browser.place("$('#what-if-strip')");
        let [x, y, own_width, height] = self.browser.place(&format!("$$('.handle')[{cut}]"));
        let y = y + height / 2.0;
        let (from, to) = ([x + own_width / 2.0, y], [left + width * share, y]);
        match by {
            By::Touch => {
                self.browser.touch("touchStart", &[from]);
                self.browser.touch("touchMove", &[to]);
                self.browser.touch("touchEnd", &[]);
            }
            _ => self.browser.drag(from, to),
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
            let is_left = at < position;
            self.press_cut(cut, if is_left { "ArrowRight" } else { "ArrowLeft" });
        }
        panic!("cut {cut} does not come to {position}");
    }

    /// Makes another split: moves all cuts to the right, then each to its place.
    fn make(&mut self, by: By, cuts: &[u64]) {
        for cut in (0..cuts.len()).rev() {
            self.press_cut(cut, "End");
        }
        for (cut, &position) in cuts.iter().enumerate() {
            self.move_to(by, cut, position);
        }
        assert_eq!(self.cuts(), cuts);
        self.check();
    }

    fn fill_in(&mut self, field: &str, value: &str) {
        self.enter(&format!("#what-if-{field}"), value, "input");
    }

    /// Fills in a field, and checks the split.
    fn try_value(&mut self, field: &str, value: &str) {
        self.fill_in(field, value);
        self.check();
    }

    /// Clicks a button, and checks the split.
    fn try_button(&mut self, button: &str) {
        self.click(&format!("#what-if-{button}"));
        self.check();
    }
}

#[test]
fn a_moved_split_has_the_numbers_of_its_command_line() {
    let with_constraints = "--num-ipus=4 --together=1,2 --reserve=2%";
    for (fixture, options, by_stages_after) in [
        ("popart-bert-inference", with_constraints, false),
        ("poptorch-bert-training", "--num-ipus=4", true),
    ] {
        let mut page = or_skip!(open(fixture, options));
        assert_eq!(page.at::<bool>("/what_if/by_stages_after"), by_stages_after);
        page.check();
        let last = page.positions() - 1;
        let count = page.cuts().len() as u64;
        assert!(count >= 1, "{fixture}");
        // Try adjacent cuts, further right each time, and then cuts that are apart.
        let (mut tried, wanted) = (BTreeSet::new(), 12 / share(4));
        for number in 0..50 {
            if tried.len() == wanted {
                break;
            }
            let first = 1 + number % (last - count);
            let spread = |cut: u64| (first + cut + cut * number / 5).min(last - (count - 1 - cut));
            let cuts: Vec<u64> = (0..count).map(spread).collect();
            page.make([By::Keys, By::Mouse, By::Touch][number as usize % 3], &cuts);
            tried.insert(cuts);
        }
        assert_eq!(tried.len(), wanted, "{fixture}");
        page.try_button("reset");
    }
}

#[test]
fn other_limits_and_numbers_of_ipus_have_their_best_split() {
    let fixtures = [
        "poptorch-bert-training",
        "popart-bert-inference",
        "impossible",
    ];
    for fixture in fixtures.into_iter().step_by(share(2)) {
        // The given regex keeps layers unchanged if a layer is over another limit.
        let mut page = or_skip!(open(fixture, &format!("--num-ipus=4 {DEFAULT_REGEX}")));
        for (ipus, limit) in [
            ("3", "638976"),
            ("2", "900000"),
            ("5", "400000"),
            ("1", "1"),
        ] {
            page.fill_in("ipus", ipus);
            page.try_value("memory", limit);
            page.try_button("take");
        }
        page.try_button("reset");
        let cuts = page.cuts();
        page.press_cut(0, "End");
        page.try_button("reset");
        assert_eq!(page.cuts(), cuts, "{fixture}");
    }
}

#[test]
fn the_command_is_copied_or_selected() {
    let mut page = or_skip!(page("popart-bert-inference", SPLIT, "#view=split"));
    page.press_cut(0, "ArrowLeft");
    let command = page.command();
    let copied = "new Promise((resolve) => {
        const note = document.getElementById('what-if-copied');
        if (note.textContent) resolve(note.textContent);
        new MutationObserver(() => resolve(note.textContent)).observe(note, { childList: true });
    })";
    page.replace_clipboard();
    page.click("#what-if-copy");
    assert_eq!(page.value::<String>(copied), "Copied.");
    assert!(page.is(&format!("window.clipboard === {}", json!(command))));
    // If a browser refuses to write to the clipboard, the command is selected.
    page.run("$('#what-if-copied').textContent = ''");
    page.run("getSelection().removeAllRanges()");
    page.run("void (navigator.clipboard.writeText = () => Promise.reject(new Error()))");
    page.click("#what-if-copy");
    let message: String = page.value(copied);
    assert!(message.starts_with("Selected"), "{message}");
    assert_eq!(page.value::<String>("getSelection().toString()"), command);
}
