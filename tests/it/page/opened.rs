//! A page of a fixture in a browser.

use super::browser::Browser;
use super::{check_number, export, no_errors};
use crate::support::profile;
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) struct Page {
    pub(super) browser: Browser,
    _folder: tempfile::TempDir,
    pub(super) path: PathBuf,
    pub(super) report: Value,
}

/// Opens the page of a fixture at a view.
pub(super) fn page(fixture: &str, options: &[&str], hash: &str) -> Option<Page> {
    let mut browser = Browser::find()?;
    let folder = tempfile::tempdir().expect("a folder");
    let (path, report) = export(&profile(fixture), options, folder.path());
    browser.open_at(&path, 1440, hash);
    Some(Page {
        browser,
        _folder: folder,
        path,
        report,
    })
}

impl Page {
    pub(super) fn value(&mut self, expression: &str) -> Value {
        self.browser.value(expression)
    }

    pub(super) fn focus(&mut self, id: &str) {
        self.value(&format!("document.getElementById('{id}').focus()"));
    }

    pub(super) fn text(&mut self, selector: &str) -> String {
        let text = self.value(&format!("document.querySelector('{selector}').textContent"));
        text.as_str().expect("a text").to_string()
    }

    pub(super) fn hash(&mut self) -> String {
        let hash = self.value("location.hash");
        hash.as_str().expect("a text").to_string()
    }

    /// Returns the value that a drawing announces as chosen.
    pub(super) fn now(&mut self, id: &str) -> u64 {
        let now = self.value(&format!("+document.getElementById('{id}').ariaValueNow"));
        now.as_u64().expect("a number")
    }

    /// Taps at a share of a drawing's width, in the middle of its height.
    pub(super) fn touch(&mut self, id: &str, share: f64) {
        self.touches(id, &[("touchStart", &[[share, 0.5]]), ("touchEnd", &[])]);
    }

    /// Moves two fingers from some shares of a drawing to others.
    pub(super) fn fingers(&mut self, id: &str, from: [[f64; 2]; 2], to: [[f64; 2]; 2]) {
        let between: [[f64; 2]; 2] = std::array::from_fn(|finger| {
            std::array::from_fn(|axis| (from[finger][axis] + to[finger][axis]) / 2.0)
        });
        let events: [(&str, &[[f64; 2]]); 4] = [
            ("touchStart", &from),
            ("touchMove", &between),
            ("touchMove", &to),
            ("touchEnd", &[]),
        ];
        self.touches(id, &events);
    }

    fn touches(&mut self, id: &str, events: &[(&str, &[[f64; 2]])]) {
        let place = format!(
            "(() => {{ const one = document.getElementById('{id}');
                one.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                const box = one.getBoundingClientRect();
                return [box.x, box.y, box.width, box.height]; }})()"
        );
        let place: [f64; 4] = serde_json::from_value(self.value(&place)).expect("a place");
        let point = |&[x, y]: &[f64; 2]| json!({"x": place[0] + place[2] * x, "y": place[1] + place[3] * y});
        for (kind, points) in events {
            let points: Vec<Value> = points.iter().map(point).collect();
            let event = json!({"type": kind, "touchPoints": points});
            self.browser.send("Input.dispatchTouchEvent", event);
        }
        // A tap becomes a click a moment later.
        self.value("new Promise((resolve) => setTimeout(resolve, 400))");
    }

    pub(super) fn numbers_are_those_of_the_report(&mut self) {
        let numbers = self.value(super::NUMBERS);
        for number in numbers.as_array().expect("a list") {
            check_number(number, &self.report);
        }
    }

    pub(super) fn done(self) {
        no_errors(&self.browser, &self.path);
    }
}
