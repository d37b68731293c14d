//! Adding and removing stages.

use super::{Page, open};
use crate::support::models::share;

/// Cuts are added and removed in every way, up to the largest number of stages in the report and
/// down to one.
#[test]
fn cuts_are_added_and_removed() {
    let fixtures = ["poptorch-bert-training", "popart-bert-inference"];
    for fixture in fixtures.into_iter().step_by(share(2)) {
        let mut page = or_skip!(open(fixture, "--num-ipus=4 --reserve=2%"));
        let max_stages: u64 = page.at("/what_if/max_stages");
        let cuts = page.cuts();
        page.press_cut(0, "Delete");
        page.check();
        assert_eq!(page.cuts(), cuts[1..], "{fixture}");
        page.announces("Cut removed before ");
        page.try_button("add");
        page.announces("Cut added before ");
        assert_eq!(page.cuts().len(), cuts.len(), "{fixture}");
        page.press_cut(1, "Backspace");
        page.check();
        page.add_by_double_click();
        page.add_by_enter();
        page.add_all(max_stages);
        page.remove_all();
        page.add_all(max_stages.min(3));
        page.try_button("reset");
        assert_eq!(page.cuts(), cuts, "{fixture}");
    }
}

impl Page {
    /// Checks that the page says what was done, before the verdict.
    fn announces(&mut self, start: &str) {
        let verdict = self.shown().verdict;
        let is_both = verdict.starts_with(start) && verdict.contains(". This split ");
        assert!(is_both, "{verdict}");
    }

    /// Adds a cut to the last stage, which is as wide as its positions.
    fn add_by_double_click(&mut self) {
        let (cuts, positions) = (self.cuts(), self.positions());
        let from = cuts.last().copied().unwrap_or(0);
        assert!(positions - from > 1, "the last stage has one position");
        // Click where the last inner boundary is nearest.
        let share = (positions - 1 - from) as f64 / (positions - from) as f64;
        self.browser.click("$$('.stage').at(-1)", share, 2);
        assert_eq!(self.cuts(), [&cuts[..], &[positions - 1]].concat());
        self.check();
    }

    /// Adds a cut to the widest stage; the new cut gets the focus.
    fn add_by_enter(&mut self) {
        let before = self.cuts().len();
        self.run("$$('.stage').reduce((a, b) => b.offsetWidth > a.offsetWidth ? b : a).focus()");
        self.browser.press("Enter");
        assert_eq!(self.cuts().len(), before + 1);
        assert!(self.is("document.activeElement.classList.contains('handle')"));
        self.check();
    }

    fn is_disabled(&mut self, button: &str) -> bool {
        self.value(&format!("$('#what-if-{button}').disabled"))
    }

    /// Adds cuts with the button, up to this number of stages.
    fn add_all(&mut self, stages: u64) {
        while (self.cuts().len() as u64) + 1 < stages {
            let before = self.cuts();
            self.try_button("add");
            let after = self.cuts();
            assert_eq!(after.len(), before.len() + 1);
            assert!(after.is_sorted() && before.iter().all(|cut| after.contains(cut)));
        }
        let is_full = self.at::<u64>("/what_if/max_stages") == stages;
        assert_eq!(self.is_disabled("add"), is_full);
        let note = self.text("#what-if-most");
        assert_eq!(!note.is_empty(), is_full, "{note}");
    }

    /// Removes cuts with the button, which removes the cut that last had the focus.
    fn remove_all(&mut self) {
        self.run("$('.handle').focus()");
        for left in (0..self.cuts().len()).rev() {
            assert!(!self.is_disabled("remove"));
            self.browser.click("$('#what-if-remove')", 0.5, 1);
            assert_eq!(self.cuts().len(), left);
            self.check();
        }
        assert!(self.is_disabled("remove"));
    }
}
