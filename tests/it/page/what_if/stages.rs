//! Adding and removing stages.

use super::super::no_errors;
use super::{Page, SHOWN};
use crate::support::{models::share, profile};
use serde_json::json;

/// Cuts are added and removed in every way, up to the largest number of stages in the report and
/// down to one.
#[test]
fn cuts_are_added_and_removed() {
    let fixtures = ["poptorch-bert-training", "popart-bert-inference"];
    for fixture in fixtures.into_iter().step_by(share(2)) {
        let options = ["--solve", "--num-ipus=4", "--reserve=2%"];
        let mut page = or_skip!(Page::open(&profile(fixture), &options));
        let max_stages = page.report["what_if"]["max_stages"]
            .as_u64()
            .expect("a number");
        let cuts = page.cuts();
        page.press(0, "Delete");
        page.check();
        assert_eq!(page.cuts(), cuts[1..], "{fixture}");
        page.announces("Cut removed after ");
        page.click("add");
        page.announces("Cut added after ");
        assert_eq!(page.cuts().len(), cuts.len(), "{fixture}");
        page.press(1, "Backspace");
        page.check();
        page.add_by_double_click();
        page.add_by_enter();
        page.add_all(max_stages);
        page.remove_all();
        page.add_all(max_stages.min(3));
        page.click("reset");
        assert_eq!(page.cuts(), cuts, "{fixture}");
        let folder = page.folder.path().join("report.html");
        no_errors(&page.browser, &folder);
    }
}

impl Page {
    /// Checks that the page says what was done, before the verdict.
    fn announces(&mut self, start: &str) {
        let state = self.value(SHOWN);
        let verdict = state["verdict"].as_str().expect("a verdict");
        assert!(verdict.starts_with(start), "{verdict}");
        assert!(verdict.contains(". This split "), "{verdict}");
    }

    /// Adds a cut to the last stage, which is as wide as its positions.
    fn add_by_double_click(&mut self) {
        let (cuts, positions) = (self.cuts(), self.positions());
        let from = cuts.last().copied().unwrap_or(0);
        assert!(positions - from > 1, "the last stage has one position");
        let stage = "[...document.querySelectorAll('.stage')].at(-1)";
        // Nearest to the last inner boundary.
        let share = (positions - 1 - from) as f64 / (positions - from) as f64;
        self.browser.click(stage, share, 2);
        assert_eq!(self.cuts(), [&cuts[..], &[positions - 1]].concat());
        self.check();
    }

    /// Adds a cut to the widest stage; the new cut gets the focus.
    fn add_by_enter(&mut self) {
        let before = self.cuts().len();
        let focus = "[...document.querySelectorAll('.stage')]
            .reduce((a, b) => b.offsetWidth > a.offsetWidth ? b : a).focus()";
        self.value(focus);
        self.browser.press("Enter");
        assert_eq!(self.cuts().len(), before + 1);
        let focused = "document.activeElement.classList.contains('handle')";
        assert_eq!(self.value(focused), json!(true));
        self.check();
    }

    fn is_disabled(&mut self, what: &str) -> bool {
        let disabled = format!("document.getElementById('what-if-{what}').disabled");
        self.value(&disabled) == json!(true)
    }

    /// Adds cuts with the button, up to this number of stages.
    fn add_all(&mut self, stages: u64) {
        while (self.cuts().len() as u64) + 1 < stages {
            let before = self.cuts();
            self.click("add");
            let after = self.cuts();
            assert_eq!(after.len(), before.len() + 1);
            assert!(after.is_sorted() && before.iter().all(|cut| after.contains(cut)));
        }
        let is_full = self.report["what_if"]["max_stages"] == json!(stages);
        assert_eq!(self.is_disabled("add"), is_full);
        let note = self.value("document.getElementById('what-if-most').textContent");
        assert_eq!(note != json!(""), is_full, "{note}");
    }

    /// Removes cuts with the button, which removes the cut that last had the focus.
    fn remove_all(&mut self) {
        self.value("document.querySelector('.handle').focus()");
        for left in (0..self.cuts().len()).rev() {
            assert!(!self.is_disabled("remove"));
            self.browser
                .click("document.getElementById('what-if-remove')", 0.5, 1);
            assert_eq!(self.cuts().len(), left);
            self.check();
        }
        assert!(self.is_disabled("remove"));
    }
}
