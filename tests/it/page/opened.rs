//! A page in a browser, with the report of the same run.

use super::browser::Browser;
use crate::support::models::generate;
use crate::support::{popliner, profile};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tempfile::TempDir;

/// Pages and reports of runs by their command lines, since many tests use the same page.
static EXPORTED: Mutex<BTreeMap<String, [Vec<u8>; 2]>> = Mutex::new(BTreeMap::new());

/// Writes the page and the JSON form of one run into a folder.
pub fn export(profile: &Path, options: &str, folder: &Path) -> [PathBuf; 2] {
    let files = ["report.html", "report.json"].map(|name| folder.join(name));
    let line = format!("{} -q {options}", profile.display());
    let known = EXPORTED.lock().expect("pages").get(&line).cloned();
    let both = known.unwrap_or_else(|| {
        let [page, json] = files.each_ref().map(|file| file.display());
        let exports = [
            format!("--export-html={page}"),
            format!("--export-json={json}"),
        ];
        let run = popliner(
            line.split_whitespace()
                .chain(exports.iter().map(String::as_str)),
        );
        assert!(run.code < 2, "{run:?}");
        let both = files
            .each_ref()
            .map(|file| std::fs::read(file).expect("a file"));
        EXPORTED.lock().expect("pages").insert(line, both.clone());
        both
    });
    for (file, bytes) in files.iter().zip(both) {
        std::fs::write(file, bytes).expect("a file");
    }
    files
}

pub fn report(path: &Path) -> Value {
    let text = std::fs::read(path).expect("a report");
    serde_json::from_slice(&text).expect("JSON")
}

pub struct Page {
    pub browser: Browser,
    pub folder: TempDir,
    pub path: PathBuf,
    pub report: Value,
}

/// Opens the page of a fixture at a view; `None` if the test is skipped.
#[track_caller]
pub fn page(fixture: &str, options: &str, hash: &str) -> Option<Page> {
    Page::open(&profile(fixture), options, 1440, hash)
}

impl Page {
    /// Opens the page of a run; `None` if the test is skipped.
    #[track_caller]
    pub fn open(profile: &Path, options: &str, width: u32, hash: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        Self::open_in(folder, profile, options, width, hash)
    }

    /// Opens the page of a generated model at its split.
    #[track_caller]
    pub fn of_model(model: &str, options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let [profile, _] = generate(folder.path(), model);
        Self::open_in(folder, &profile, options, 1440, "#view=split")
    }

    /// Opens the page of a generated model, recorded with several available memory proportions.
    #[track_caller]
    pub fn of_proportions(model: &str, options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let recorded = |own: &str| {
            let options = format!("{model} --temporaries 40 --proportion {own}");
            let [profile, _] = generate(&folder.path().join(own), &options);
            profile
        };
        let [profile, some, little] = ["0.6", "0.3", "0.05"].map(recorded);
        let (some, little) = (some.display(), little.display());
        let options = format!("{options} --amp=0.6 --amp=0.3={some} --amp=0.05={little}");
        Self::open_in(folder, &profile, &options, 1440, "#view=split")
    }

    #[track_caller]
    fn open_in(
        folder: TempDir,
        profile: &Path,
        options: &str,
        width: u32,
        hash: &str,
    ) -> Option<Self> {
        let mut browser = Browser::find()?;
        let [path, json] = export(profile, options, folder.path());
        browser.open(&path, width, hash);
        let report = report(&json);
        Some(Self {
            browser,
            folder,
            path,
            report,
        })
    }

    /// Evaluates an expression in the page (see [`Browser::value`]).
    #[track_caller]
    pub fn value<T: DeserializeOwned>(&mut self, expression: &str) -> T {
        let value = self.browser.value(expression);
        let read = serde_json::from_value(value.clone());
        read.unwrap_or_else(|error| panic!("{expression} is {value}: {error}"))
    }

    /// Evaluates an expression whose value is not used.
    pub fn run(&mut self, expression: &str) {
        self.browser.value(expression);
    }

    /// Is this true in the page?
    #[track_caller]
    pub fn is(&mut self, expression: &str) -> bool {
        self.value(expression)
    }

    /// Returns the value at a path in the report.
    #[track_caller]
    pub fn at<T: DeserializeOwned>(&self, place: &str) -> T {
        let value = self
            .report
            .pointer(place)
            .unwrap_or_else(|| panic!("no {place}"));
        serde_json::from_value(value.clone()).expect(place)
    }

    pub fn text(&mut self, selector: &str) -> String {
        self.value(&format!("$('{selector}').textContent"))
    }

    pub fn texts(&mut self, selector: &str) -> Vec<String> {
        self.value(&format!("$$('{selector}').map((one) => one.textContent)"))
    }

    pub fn count(&mut self, selector: &str) -> usize {
        self.value(&format!("$$('{selector}').length"))
    }

    /// Waits this number of milliseconds.
    pub fn pause(&mut self, time: u32) {
        self.run(&format!(
            "new Promise((resolve) => setTimeout(resolve, {time}))"
        ));
    }

    pub fn click(&mut self, selector: &str) {
        self.run(&format!("$('{selector}').click()"));
    }

    /// Gives a field a value, as a user who types or chooses it.
    pub fn enter(&mut self, selector: &str, value: &str, event: &str) {
        let enter = format!("one.value = '{value}'; one.dispatchEvent(new Event('{event}'))");
        self.run(&format!(
            "(() => {{ const one = $('{selector}'); {enter}; }})()"
        ));
    }

    /// Replaces the clipboard, since all browsers on a machine share one, which may not answer.
    pub fn replace_clipboard(&mut self) {
        let write = "async (text) => { window.clipboard = text; }";
        self.run(&format!("void (navigator.clipboard.writeText = {write})"));
    }

    /// Moves the focus to an element, and presses a key.
    pub fn press(&mut self, id: &str, key: &str) {
        self.run(&format!("document.getElementById('{id}').focus()"));
        self.browser.press(key);
    }

    pub fn hash(&mut self) -> String {
        self.value("location.hash")
    }

    /// Returns the value that a drawing announces as chosen.
    pub fn now(&mut self, id: &str) -> u64 {
        self.value(&format!("+document.getElementById('{id}').ariaValueNow"))
    }

    /// Taps at a share of a drawing's width, in the middle of its height.
    pub fn tap(&mut self, id: &str, share: f64) {
        self.touches(id, &[("touchStart", &[[share, 0.5]]), ("touchEnd", &[])]);
    }

    /// Moves two fingers from some shares of a drawing to others.
    pub fn fingers(&mut self, id: &str, from: [[f64; 2]; 2], to: [[f64; 2]; 2]) {
        let between: [[f64; 2]; 2] = std::array::from_fn(|finger| {
            std::array::from_fn(|axis| (from[finger][axis] + to[finger][axis]) / 2.0)
        });
        let moves: [(&str, &[[f64; 2]]); 4] = [
            ("touchStart", &from),
            ("touchMove", &between),
            ("touchMove", &to),
            ("touchEnd", &[]),
        ];
        self.touches(id, &moves);
    }

    fn touches(&mut self, id: &str, events: &[(&str, &[[f64; 2]])]) {
        let place = self
            .browser
            .place(&format!("document.getElementById('{id}')"));
        let point = |&[x, y]: &[f64; 2]| [place[0] + place[2] * x, place[1] + place[3] * y];
        for (kind, points) in events {
            let points: Vec<[f64; 2]> = points.iter().map(point).collect();
            self.browser.touch(kind, &points);
        }
        // A tap becomes a click a moment later.
        self.pause(400);
    }

    /// Shows a view, and unfolds everything in it.
    pub fn show(&mut self, view: &str) {
        self.click(&format!("#bar a[data-view={view}]"));
        self.run(
            "(async () => {
                $$('details').forEach((one) => { one.open = true; });
                for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
            })()",
        );
        assert!(
            self.is(&format!("$('#view-{view}').checkVisibility()")),
            "{view}"
        );
    }

    /// Returns the names of the views that the page links to.
    pub fn views(&mut self) -> Vec<String> {
        self.value("$$('#bar a').map((own) => own.dataset.view)")
    }

    /// Shows each view in turn, and does something in it.
    pub fn in_each_view(&mut self, mut work: impl FnMut(&mut Self, &str)) {
        for view in self.views() {
            self.show(&view);
            work(self, &view);
        }
    }

    /// Compares all visible numbers that have a place in the report with the report, and returns
    /// how many there are.
    pub fn check_numbers(&mut self) -> usize {
        let numbers = "$$('[data-json]').filter((one) => one.checkVisibility())
            .map((one) => [one.dataset.json, one.textContent])";
        let numbers: Vec<[String; 2]> = self.value(numbers);
        for [place, shown] in &numbers {
            assert_eq!(
                shown.replace([',', '+'], ""),
                plain(&self.at(place)),
                "{place}"
            );
        }
        numbers.len()
    }

    /// Checks that nothing was logged or thrown, and that only the page itself was fetched.
    pub fn no_errors(&self) {
        for kind in [
            "Log.entryAdded",
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
        ] {
            let found = self.browser.named(kind);
            assert!(found.is_empty(), "{}: {found:?}", self.path.display());
        }
        let requests = self.browser.named("Network.requestWillBeSent");
        assert_eq!(requests.len(), 1, "{requests:?}");
    }

    /// Chooses the medium and the colours of the page.
    pub fn media(&mut self, medium: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let media = json!({"media": medium, "features": features});
        self.browser.send("Emulation.setEmulatedMedia", media);
    }
}

impl Drop for Page {
    /// Checks that the page had no errors, unless the test has failed already.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.no_errors();
        }
    }
}

/// Writes a number of the report. Numbers that may be beyond 64 bits are text there.
pub fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), String::from)
}
