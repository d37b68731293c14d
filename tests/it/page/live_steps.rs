//! Stepping through liveness: what the page shows at a step is what the profile's own
//! tables say of it.

use super::browser::{Browser, find};
use super::{TOO_WIDE, export, no_errors};
use crate::support::{models, profile};
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What the page shows of the chosen step.
const SHOWN: &str = "(() => {
    const part = (name) => document.getElementById('live-steps-' + name);
    const number = (text) => Number(text.replaceAll(',', ''));
    const rows = (name) => [...part(name).rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    const total = (name) => number(document.querySelector(`[data-step=${name}]`).firstChild.data);
    return {
        step: Number(part('chart').ariaValueNow),
        said: part('said').textContent,
        runs: part('runs').textContent,
        on_tile: total('on_tile'), count: total('count'),
        not_always_live: total('not_always_live'), all_tiles: total('all_tiles'),
        variables: rows('variables').map((cells) => [cells[0], number(cells[1]), cells[2]]),
        others: part('others').textContent,
        categories: rows('categories').map((cells) => [cells[0], number(cells[1])]),
        layers: rows('layers').map((cells) => [cells[0], number(cells[1])]),
        drawn: [number(part('from').value), number(part('to').value)],
    };
})()";

/// The page of one run, beside its profile.
struct Page {
    browser: Browser,
    file: PathBuf,
    _folder: tempfile::TempDir,
    report: Value,
    profile: Connection,
}

impl Page {
    fn open(program: &Path, profile: &Path, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, report) = export(profile, options, folder.path());
        let mut browser = Browser::start(program);
        browser.open(&file, 1440);
        Self {
            browser,
            file,
            _folder: folder,
            report,
            profile: Connection::open(profile).expect("a profile"),
        }
    }

    fn shown(&mut self) -> Value {
        self.browser.value(SHOWN)
    }

    fn press(&mut self, key: &str) {
        self.browser
            .value("document.getElementById('live-steps-chart').focus()");
        self.browser.press(key);
    }

    /// The middle of the part of the chart at this share of its width.
    fn place(&mut self, share: f64) -> [f64; 2] {
        let place = format!(
            "(() => {{
                const chart = document.getElementById('live-steps-chart');
                chart.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                const box = chart.getBoundingClientRect();
                return [box.x + box.width * {share}, box.y + box.height / 2];
            }})()"
        );
        serde_json::from_value(self.browser.value(&place)).expect("a place")
    }

    fn mouse(&mut self, kind: &str, share: f64) {
        let [x, y] = self.place(share);
        let event =
            json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1});
        self.browser.send("Input.dispatchMouseEvent", event);
    }

    fn enter(&mut self, what: &str, change: &str) {
        let enter = format!(
            "(() => {{
                const input = document.getElementById('live-steps-{what}');
                {change};
                for (const kind of ['input', 'change']) input.dispatchEvent(new Event(kind));
            }})()"
        );
        self.browser.value(&enter);
    }

    fn number(&self, query: &str, step: u64) -> u64 {
        let number = self
            .profile
            .query_row(query, [step], |row| row.get::<_, i64>(0));
        number.expect("a number").try_into().expect("bytes")
    }

    /// Bytes, name and category of what is live on the fullest tile, the largest first.
    fn live(&self, step: u64) -> Vec<(u64, String, String)> {
        let tile = self.report["live_steps"]["tile"].as_i64().expect("a tile");
        let query =
            "SELECT v.size_bytes, n.string, v.name_prefix__vertex_field_, v.name_suffix, c.name
            FROM vars_info v JOIN eq_class_step s ON s.eq_class_id = v.equivalence_class
            JOIN vars_string_table n ON n.id = v.name_base_id
            JOIN var_categories c ON c.id = v.category
            WHERE v.tile = ?1 AND s.step_id_from <= ?2 AND ?2 < s.step_id_to
            ORDER BY v.size_bytes DESC, v.rowid";
        let mut query = self.profile.prepare(query).expect("a query");
        let step = i64::try_from(step).expect("a step");
        let rows = query.query_map([tile, step], |row| {
            let field: Option<i64> = row.get(2)?;
            let field = field.map_or(String::new(), |own| format!("__vertexField_{own}"));
            let [base, suffix]: [String; 2] = [row.get(1)?, row.get(3)?];
            let bytes: i64 = row.get(0)?;
            Ok((bytes as u64, format!("{field}{base}{suffix}"), row.get(4)?))
        });
        rows.expect("rows").map(|row| row.expect("a row")).collect()
    }

    /// The chosen step is shown as the profile has it. Gives the step.
    fn check(&mut self) -> u64 {
        let shown = self.shown();
        let step = shown["step"].as_u64().expect("a step");
        let recorded = "SELECT sum(delta_bytes) FROM memory_not_always_live_by_step_and_ipu
                        WHERE ipu IS NULL AND step_id <= ?1";
        let recorded = self.number(recorded, step);
        assert_eq!(shown["not_always_live"], json!(recorded), "step {step}");
        let live = self.live(step);
        assert_eq!(shown["count"], json!(live.len()), "step {step}");
        let variables = shown["variables"].as_array().expect("variables");
        assert_eq!(variables.len(), live.len().min(20), "step {step}");
        for (shown, (bytes, name, category)) in variables.iter().zip(&live) {
            assert_eq!(*shown, json!([name, bytes, category]), "step {step}");
        }
        self.check_sums(&shown, &live);
        self.check_totals(&shown, recorded);
        step
    }

    fn check_sums(&self, shown: &Value, live: &[(u64, String, String)]) {
        let mut sums = std::collections::BTreeMap::new();
        for (bytes, _, category) in live.iter().filter(|own| own.0 > 0) {
            *sums.entry(category.clone()).or_insert(0) += bytes;
        }
        let categories: std::collections::BTreeMap<String, u64> =
            serde_json::from_value::<Vec<(String, u64)>>(shown["categories"].clone())
                .expect("categories")
                .into_iter()
                .collect();
        assert_eq!(categories, sums, "{}", shown["said"]);
        let others: u64 = live.iter().skip(20).map(|own| own.0).sum();
        let count = live.len().saturating_sub(20);
        let said = format!("{count} others with {others} bytes.");
        let found = shown["others"].as_str().expect("a text").replace(',', "");
        assert_eq!(found, said, "{}", shown["said"]);
    }

    /// The totals are those of the curves, with what runs at the step.
    fn check_totals(&self, shown: &Value, recorded: u64) {
        let liveness = &self.report["liveness"];
        let number = |at: &str| {
            liveness
                .pointer(at)
                .and_then(Value::as_u64)
                .expect("a number")
        };
        let below = number("/all_tiles/fixed") + number("/all_tiles/always_live");
        assert_eq!(shown["all_tiles"], json!(below + recorded));
        let step = shown["step"].as_u64().expect("a step");
        let query = "SELECT t.name, c.name FROM depth_first_steps s JOIN programs p ON p.id = s.program_id
            JOIN program_types t ON t.id = p.variant
            LEFT JOIN program_type_on_tile_execute e ON e.id = p.variant_index AND t.name = 'OnTileExecute'
            LEFT JOIN compute_sets c ON c.compute_set = e.compute_set WHERE s.id = ?1";
        let runs = self.profile.query_row(query, [step as i64], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?))
        });
        let (kind, name) = runs.optional().expect("a query").expect("a step");
        let expected = format!("Runs {kind} {}", name.unwrap_or_default());
        let found = shown["runs"].as_str().expect("a text");
        assert!(
            found.starts_with(expected.trim_end()),
            "{found}, not {expected}"
        );
    }
}

#[test]
fn every_step_is_shown_as_the_profile_has_it() {
    let Some(program) = find() else { return };
    for fixture in ["popart-bert-inference", "poptorch-bert-training"] {
        let mut page = Page::open(&program, &profile(fixture), &["--solve", "--num-ipus=4"]);
        let chosen = page.report["live_steps"]["steps"].clone();
        let chosen: Vec<u64> = serde_json::from_value(chosen).expect("steps");
        // At first the peak.
        let peak = page.check();
        let expected = page.report["liveness"]["fullest_tile_curve"]["peak"].clone();
        assert_eq!(expected["step"], json!(peak), "{fixture}");
        assert_eq!(expected["bytes"], page.shown()["on_tile"], "{fixture}");
        page.press("Home");
        for &step in &chosen {
            assert_eq!(page.check(), step, "{fixture}");
            page.press("ArrowRight");
        }
        page.press("PageDown");
        let back = chosen.len().saturating_sub(11);
        assert_eq!(page.check(), chosen[back], "{fixture}");
        no_errors(&page.browser, &page.file);
    }
}

#[test]
fn the_pointer_chooses_holds_and_zooms() {
    let Some(program) = find() else { return };
    let mut page = Page::open(&program, &profile("poptorch-bert-training"), &[]);
    let whole = page.shown()["drawn"].clone();
    let last = whole[1].as_u64().expect("a step");
    let mut steps = Vec::new();
    for share in [0.1, 0.35, 0.6, 0.9] {
        page.mouse("mouseMoved", share);
        steps.push(page.check());
    }
    assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
    // A held step stays.
    page.mouse("mousePressed", 0.9);
    page.mouse("mouseReleased", 0.9);
    page.mouse("mouseMoved", 0.2);
    assert_eq!(page.check(), steps[3]);
    let held = page.shown()["said"]
        .as_str()
        .map(|said| said.ends_with(", held"));
    assert_eq!(held, Some(true));
    page.mouse("mousePressed", 0.25);
    page.mouse("mouseMoved", 0.4);
    page.mouse("mouseReleased", 0.5);
    let drawn: (u64, u64) = serde_json::from_value(page.shown()["drawn"].clone()).unwrap();
    let near = |step: u64, share: f64| (step as f64 / last as f64 - share).abs() < 0.01;
    assert!(
        near(drawn.0, 0.25) && near(drawn.1, 0.5),
        "{drawn:?} of {last}"
    );
    page.press("0");
    assert_eq!(page.shown()["drawn"], whole);
    page.press("+");
    let zoomed: (u64, u64) = serde_json::from_value(page.shown()["drawn"].clone()).unwrap();
    assert!(
        zoomed.1 - zoomed.0 + 1 == (last + 1).div_ceil(2),
        "{zoomed:?}"
    );
    page.enter("from", "input.value = '7'");
    page.enter("to", "input.value = '9'");
    assert_eq!(page.shown()["drawn"], json!([7, 9]));
    let axis = "[...document.querySelectorAll('#live-steps-chart > text.axis')].map((own) => own.textContent).slice(-2)";
    assert_eq!(page.browser.value(axis), json!(["step 7", "9"]));
    // The chart follows a step that is not drawn.
    page.press("End");
    let drawn: (u64, u64) = serde_json::from_value(page.shown()["drawn"].clone()).unwrap();
    assert_eq!(page.check(), last);
    assert!((drawn.0..=drawn.1).contains(&last), "{drawn:?}");
}

#[test]
fn a_filter_leaves_what_it_says() {
    let Some(program) = find() else { return };
    let mut page = Page::open(&program, &profile("poptorch-bert-training"), &[]);
    let known = page.report["live_steps"]["variables"].clone();
    let known = known.as_array().expect("variables");
    let step = page.check();
    let is_live = |own: &Value| {
        let live: Vec<(u64, u64)> = serde_json::from_value(own["live"].clone()).unwrap();
        live.iter().any(|&(from, to)| (from..=to).contains(&step))
    };
    let mut expect = |change: (&str, &str), is_wanted: &dyn Fn(&Value) -> bool| {
        page.enter(change.0, change.1);
        let names = known.iter().filter(|own| is_live(own) && is_wanted(own));
        let names: Vec<&Value> = names.map(|own| &own["name"]).take(20).collect();
        assert!(!names.is_empty(), "{change:?}");
        let shown = page.shown();
        let shown = shown["variables"].as_array().expect("variables").iter();
        assert_eq!(
            shown.map(|own| &own[0]).collect::<Vec<_>>(),
            names,
            "{change:?}"
        );
    };
    let of_layer = |own: &Value| {
        own["layers"]
            .as_array()
            .is_some_and(|own| own.contains(&json!("2")))
    };
    let has_name = |own: &Value| {
        own["name"]
            .as_str()
            .is_some_and(|own| own.contains("dense"))
    };
    // In, then the layers in order.
    expect(("layer", "input.value = '3'"), &of_layer);
    expect(("name", "input.value = 'DENse '"), &|own| {
        of_layer(own) && has_name(own)
    });
    expect(("layer", "input.value = ''"), &has_name);
    expect(("changing", "input.checked = true"), &|own| {
        has_name(own) && own["is_always_live"] == json!(false)
    });
    let chosen = "document.querySelectorAll('#live-steps-chart path.chosen').length";
    assert_eq!(page.browser.value(chosen), json!(1));
    page.enter("name", "input.value = 'no variable is called this'");
    assert_eq!(page.shown()["variables"], json!([]));
    page.browser.open(&page.file, 390);
    assert_eq!(page.browser.value(TOO_WIDE), json!(false));
}

/// Everything that a page can have, of a large model.
#[test]
fn a_hundred_layers_and_twenty_thousand_steps() {
    let Some(program) = find() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let options = "--framework popart --mode training --layers 100 --tiles 64 --vars-per-layer-tile 8 --steps 20000";
    let options: Vec<String> = options.split(' ').map(String::from).collect();
    let [profile, _] = models::generate(folder.path(), &options);
    let options = ["--solve", "--num-ipus=4", "--mem-per-tile=100000000"];
    let mut page = Page::open(&program, &profile, &options);
    let size = std::fs::metadata(&page.file).expect("a page").len();
    assert!(size < 2_500_000, "{size}");
    let steps = page.report["live_steps"]["steps"].as_array().map(Vec::len);
    assert!(
        steps.is_some_and(|count| (200..=400).contains(&count)),
        "{steps:?}"
    );
    for tool in ["live-steps-tool", "what-if-tool"] {
        let is_there = format!("document.getElementById('{tool}').checkVisibility()");
        assert_eq!(page.browser.value(&is_there), json!(true), "{tool}");
    }
    for key in ["Home", "PageUp", "ArrowRight", "End"] {
        page.press(key);
        page.check();
    }
    // No test of time: it is printed, to be read.
    let time = "(() => {
        const chart = document.getElementById('live-steps-chart');
        const times = [...Array(50)].map((_, number) => {
            const start = performance.now();
            const key = number % 2 ? 'PageUp' : '+';
            chart.dispatchEvent(new KeyboardEvent('keydown', { key }));
            chart.getBoundingClientRect();
            return performance.now() - start;
        });
        return Math.max(...times);
    })()";
    let slowest = page.browser.value(time);
    println!("{size} bytes; the slowest of 50 steps and zooms took {slowest} ms");
    no_errors(&page.browser, &page.file);
}
