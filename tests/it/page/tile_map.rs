//! The map of all tiles: what the page shows of a tile is what was recorded of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::browser::{Browser, find};
use super::{export, no_errors};
use crate::support::{popliner, profile, root};
use popliner::profile::encoding::decode_list;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

/// What the page shows of the tile that is chosen, and of the map.
const SHOWN: &str = "(() => {
    const part = (name) => document.getElementById('tile-map-' + name);
    const rows = (name) => [...part(name).rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    const chart = part('chart');
    return {
        tile: +chart.getAttribute('aria-valuenow'),
        range: ['min', 'max'].map((end) => +chart.getAttribute('aria-value' + end)),
        text: chart.getAttribute('aria-valuetext'),
        name: part('name').textContent,
        shown: part('range').textContent,
        bytes: rows('bytes'),
        categories: rows('categories'),
        largest: part('variables').checkVisibility() ? rows('largest') : null,
        note: part('variables-note').textContent,
        numbers: [...document.querySelectorAll('#tile-map-tool [data-json]')]
            .map((one) => [one.dataset.json, one.textContent]),
    };
})()";

/// The page of one run, in a browser.
struct Page {
    browser: Browser,
    report: Value,
    profile: Connection,
    path: std::path::PathBuf,
    folder: tempfile::TempDir,
    tried: BTreeSet<u64>,
}

impl Page {
    fn open(program: &Path, fixture: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = profile(fixture);
        let (page, report) = export(&path, options, folder.path());
        let mut browser = Browser::start(program);
        browser.open(&page, 1440);
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let file = root().join(&path);
        Self {
            browser,
            report,
            profile: Connection::open_with_flags(file, read_only).expect("a profile"),
            path,
            folder,
            tried: BTreeSet::new(),
        }
    }

    fn recorded(&self, list: &str) -> Vec<u64> {
        let list = &self.report["memory"]["tiles"][list];
        serde_json::from_value(list.clone()).expect("numbers")
    }

    fn tile(&mut self) -> u64 {
        self.browser.value(SHOWN)["tile"].as_u64().expect("a tile")
    }

    fn press(&mut self, key: &str) {
        self.browser
            .value("document.getElementById('tile-map-chart').focus()");
        for kind in ["keyDown", "keyUp"] {
            let event =
                json!({"type": kind, "key": key, "text": if key.len() == 1 { key } else { "" }});
            self.browser.send("Input.dispatchKeyEvent", event);
        }
    }

    /// Clicks the middle of a column, of so many that are shown.
    fn click(&mut self, column: u64, of: u64) {
        let place = format!(
            "(async () => {{
                const chart = document.getElementById('tile-map-chart');
                chart.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
                const box = chart.getBoundingClientRect();
                return [box.x + box.width * ({column} + 0.5) / {of}, box.y + box.height / 2];
            }})()"
        );
        let place = self.browser.value(&place);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1,
            });
            self.browser.send("Input.dispatchMouseEvent", event);
        }
    }

    /// Gives a control another value.
    fn set(&mut self, what: &str, event: &str, value: u64) {
        self.set_text(what, event, &value.to_string());
    }

    fn set_text(&mut self, what: &str, event: &str, value: &str) {
        let set = format!(
            "(() => {{
                const own = document.getElementById('tile-map-{what}');
                own.value = '{value}';
                own.dispatchEvent(new Event('{event}'));
            }})()"
        );
        self.browser.value(&set);
    }

    /// The tile that is chosen is `tile`, and all that is shown of it was recorded.
    fn check(&mut self, tile: u64) {
        let shown = self.browser.value(SHOWN);
        assert_eq!(shown["tile"], tile, "{shown}");
        self.tried.insert(tile);
        let numbers = shown["numbers"].as_array().expect("numbers");
        assert!(numbers.len() > 10, "{numbers:?}");
        for number in numbers {
            let place = number[0].as_str().expect("a place");
            let expected = self.report.pointer(place);
            let expected = expected.unwrap_or_else(|| panic!("no {place}"));
            assert_eq!(plain(&number[1]), expected.to_string(), "{place}");
        }
        self.check_bytes(&shown, tile);
        self.check_categories(&shown, tile);
        let text = shown["text"].as_str().expect("a text");
        let total = self.recorded("total")[tile as usize];
        assert!(
            plain(&shown["text"]).ends_with(&format!("{total} bytes in use")),
            "{text}"
        );
    }

    /// The first table has every row, in the file's own numbers.
    fn check_bytes(&self, shown: &Value, tile: u64) {
        let row = "SELECT total, total_including_gaps, always_live_bytes,
                   not_always_live_max_bytes FROM memory_by_tile WHERE tile = ?";
        let [total, with_gaps, always, others] = self
            .profile
            .query_row(row, [tile], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, i64>(3)?])
            })
            .expect("a tile");
        let limit = |rows: &Value| plain(&rows[5][1]).parse::<i64>().expect("a number");
        let limit = limit(&shown["bytes"]);
        let expected = [
            ("Bytes in use", total),
            ("With gaps", with_gaps),
            ("Gaps", with_gaps - total),
            ("Always live", always),
            ("Most of others", others),
            ("Limit", limit),
            ("Free of the limit", limit - total),
        ];
        let rows = shown["bytes"].as_array().expect("rows").iter();
        let rows: Vec<_> = rows
            .map(|row| (row[0].as_str().expect("a name"), plain(&row[1])))
            .collect();
        let expected = expected.map(|(name, bytes)| (name, bytes.to_string()));
        assert_eq!(rows, expected, "tile {tile}");
    }

    /// The second table has all categories with bytes, as the file has them; what stands
    /// alone is no more than the total.
    fn check_categories(&self, shown: &Value, tile: u64) {
        let expected = categories(&self.profile, tile as usize);
        let rows = shown["categories"].as_array().expect("rows");
        let mut found = BTreeMap::new();
        let mut before = u64::MAX;
        let mut alone = 0;
        for row in rows {
            let number = |at: usize| plain(&row[at]).parse::<u64>().expect("a number");
            assert!(number(1) <= before, "tile {tile}: {rows:?}");
            before = number(1);
            assert_eq!(number(1), number(2) + number(3), "tile {tile}: {row}");
            alone += number(2);
            found.insert(
                row[0].as_str().expect("a name").to_string(),
                [number(1), number(3)],
            );
        }
        assert_eq!(found, expected, "tile {tile}");
        assert!(
            alone <= self.recorded("total")[tile as usize],
            "tile {tile}"
        );
    }

    /// The third table has the largest variables, as the file has them.
    fn check_largest(&mut self, tile: u64) {
        let shown = self.browser.value(SHOWN);
        let rows = shown["largest"].as_array().expect("variables").iter();
        let rows = rows.map(|row| {
            let text = |at: usize| row[at].as_str().expect("a text").to_string();
            (text(0), text(1), text(2) == "always", plain(&row[3]))
        });
        let expected = largest(&self.profile, tile);
        assert!(!expected.is_empty());
        assert_eq!(rows.collect::<Vec<_>>(), expected, "tile {tile}");
    }

    /// What `--memory-totals` prints of all tiles that were tried is what the page had.
    fn check_totals(&self) {
        let tiles: Vec<String> = self.tried.iter().map(u64::to_string).collect();
        let tiles = format!("--tiles={}", tiles.join(","));
        let path = self.path.to_str().expect("a plain path");
        let run = popliner([path, "-q", "--memory-totals", &tiles, "--format=csv"]);
        assert_eq!(run.code, 0, "{run:?}");
        let lists = ["always_live", "not_always_live", "total"];
        let lists = lists.map(|name| self.recorded(name));
        for &tile in &self.tried {
            let [always, others, total] = [0, 1, 2].map(|list: usize| lists[list][tile as usize]);
            let row = format!("{tile},{always},{others},{total}");
            assert!(
                run.out.lines().any(|line| line == row),
                "{row}: {}",
                run.out
            );
        }
    }

    /// The bytes of each category over all tiles are the sum that the report has of it.
    fn check_sums(&self) {
        let memory = &self.report["memory"];
        let map = memory["tile_map"]["categories"]
            .as_array()
            .expect("categories");
        let sum = |list: &Value| -> u64 {
            let list = list.as_array().expect("numbers").iter();
            list.map(|own| own.as_u64().expect("a number")).sum()
        };
        let mut found: Vec<_> = map
            .iter()
            .map(|own| (&own["name"], sum(&own["bytes"])))
            .collect();
        let all = memory["categories"].as_array().expect("categories").iter();
        let expected = all.map(|own| (&own["name"], own["all_tiles"].as_u64().expect("a number")));
        let mut expected: Vec<_> = expected.filter(|(_, bytes)| *bytes > 0).collect();
        assert!(
            found.is_sorted_by_key(|own| std::cmp::Reverse(own.1)),
            "{found:?}"
        );
        for list in [&mut found, &mut expected] {
            list.sort_by_key(|(name, _)| name.to_string());
        }
        assert_eq!(found, expected);
    }
}

fn plain(text: &Value) -> String {
    text.as_str().expect("a text").replace(',', "")
}

/// By name: bytes of each category on a tile, and those of them that are overlapped.
fn categories(profile: &Connection, tile: usize) -> BTreeMap<String, [u64; 2]> {
    let sql = "SELECT category_id, interleaved_non_overlapped, non_interleaved_non_overlapped,
               overflowed_non_overlapped, interleaved_overlapped, non_interleaved_overlapped,
               overflowed_overlapped FROM memory_by_category";
    let mut query = profile.prepare(sql).expect("a table");
    let rows = query.query_map([], |row| {
        let bytes = |column| -> rusqlite::Result<u64> {
            let list = decode_list(&row.get::<_, Vec<u8>>(column)?, 1 << 20).expect("a list");
            Ok(list.get(tile).copied().unwrap_or(0))
        };
        let sum = |columns: [usize; 3]| {
            columns
                .into_iter()
                .map(bytes)
                .sum::<rusqlite::Result<u64>>()
        };
        let (alone, overlapped) = (sum([1, 2, 3])?, sum([4, 5, 6])?);
        Ok((row.get(0)?, [alone + overlapped, overlapped]))
    });
    let rows = rows.expect("rows").map(|row| row.expect("a row"));
    rows.filter(|(_, bytes): &(String, [u64; 2])| bytes[0] > 0)
        .collect()
}

/// Name, category, whether always live, and bytes of the ten largest variables of a tile.
fn largest(profile: &Connection, tile: u64) -> Vec<(String, String, bool, String)> {
    let sql = "SELECT coalesce('__vertexField_' || v.name_prefix__vertex_field_, '') || s.string
                   || v.name_suffix, c.name, e.is_always_live, v.size_bytes
               FROM vars_info v JOIN vars_string_table s ON s.id = v.name_base_id
               JOIN var_categories c ON c.id = v.category
               JOIN eq_classes e ON e.id = v.equivalence_class
               WHERE v.tile = ? AND v.size_bytes > 0
               ORDER BY v.size_bytes DESC, v.var_id LIMIT 10";
    let mut query = profile.prepare(sql).expect("tables");
    let rows = query.query_map([tile], |row| {
        let bytes: i64 = row.get(3)?;
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, bytes.to_string()))
    });
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

#[test]
fn every_number_of_a_tile_is_the_recorded_one() {
    let Some(program) = find() else { return };
    let cases: [(&str, &[&str]); 2] = [
        ("popart-bert-inference", &["--solve", "--num-ipus=4"]),
        ("poplar-mlp", &[]),
    ];
    for (fixture, options) in cases {
        let mut page = Page::open(&program, fixture, options);
        page.check_sums();
        let fullest = page.report["memory"]["tiles"]["fullest"].clone();
        page.check(fullest.as_u64().expect("a tile"));
        let keys = [
            ("Home", 0),
            ("ArrowRight", 1),
            ("ArrowUp", 2),
            ("PageUp", 4),
            ("ArrowLeft", 3),
        ];
        let more = [
            ("End", 15),
            ("ArrowRight", 15),
            ("PageDown", 13),
            ("ArrowDown", 12),
        ];
        for (key, tile) in keys.into_iter().chain(more) {
            page.press(key);
            page.check(tile);
            page.check_largest(tile);
        }
        for tile in [5, 14, 0, 9] {
            page.click(tile, 16);
            page.check(tile);
        }
        for tile in [7, 10] {
            page.set("tile", "input", tile);
            page.check(tile);
            page.check_largest(tile);
        }
        page.set("tile", "input", 16);
        assert_eq!(page.tile(), 10, "there is no tile 16");
        assert!(page.tried.len() >= 10, "{:?}", page.tried);
        page.check_totals();
        no_errors(&page.browser, page.folder.path());
    }
}

#[test]
fn in_order_of_bytes_the_columns_descend() {
    let Some(program) = find() else { return };
    let mut page = Page::open(&program, "tensorflow-cnn", &[]);
    let total = page.recorded("total");
    page.set_text("order", "change", "fullest");
    page.press("Home");
    let fullest = page.tile();
    assert_eq!(Some(&total[fullest as usize]), total.iter().max());
    let mut order = vec![fullest];
    for _ in 1..total.len() {
        page.press("ArrowRight");
        let tile = page.tile();
        let before = order[order.len() - 1];
        assert!(
            total[tile as usize] <= total[before as usize],
            "{order:?}, {tile}"
        );
        order.push(tile);
    }
    let distinct: BTreeSet<u64> = order.iter().copied().collect();
    assert_eq!(distinct.len(), total.len());
    // Each column is as high as the tile of its place has in use.
    let tops = "(() => {
        const path = document.querySelector('.tile-total').getAttribute('d');
        return [...path.matchAll(/V([\\d.]+)/g)].map((one) => +one[1]);
    })()";
    let tops: Vec<f64> = serde_json::from_value(page.browser.value(tops)).expect("numbers");
    assert!(tops.is_sorted() && tops.len() > 5, "{tops:?}");
    for (column, &tile) in order.iter().enumerate().step_by(5) {
        page.click(column as u64, total.len() as u64);
        page.check(tile);
    }
}

#[test]
fn zoom_shows_the_tiles_around_the_chosen_one() {
    let Some(program) = find() else { return };
    let mut page = Page::open(&program, "popart-bert-inference", &[]);
    let expect = |page: &mut Page, first: u64, last: u64| {
        let shown = page.browser.value(SHOWN)["shown"].clone();
        assert_eq!(shown, format!("Shown: tiles {first} to {last}."));
    };
    expect(&mut page, 0, 15);
    page.set("tile", "input", 9);
    page.press("+");
    expect(&mut page, 5, 12);
    // A column is now of one of eight tiles.
    for (column, tile) in [(0, 5), (7, 12)] {
        page.click(column, 8);
        page.check(tile);
    }
    page.press("End");
    page.check(15);
    expect(&mut page, 8, 15);
    page.press("-");
    expect(&mut page, 0, 15);
    page.set("tile", "input", 1);
    for (button, first, last) in [("in", 0, 7), ("whole", 0, 15), ("in", 0, 7), ("out", 0, 15)] {
        let click = format!("document.getElementById('tile-map-{button}').click()");
        page.browser.value(&click);
        expect(&mut page, first, last);
    }
    page.press("+");
    page.press("0");
    expect(&mut page, 0, 15);
    page.check(1);
}

#[test]
fn the_tiles_of_each_ipu_can_be_chosen() {
    let Some(program) = find() else { return };
    let mut page = Page::open(&program, "training-pipelined", &["--fit"]);
    page.check_sums();
    let per_ipu = page.report["fit"]["tiles_per_ipu"]
        .as_u64()
        .expect("a number");
    let ipus = page.report["fit"]["ipus"].as_array().expect("IPUs").clone();
    assert_eq!(ipus.len(), 4);
    for (ipu, own) in (0..).zip(&ipus) {
        page.set("ipu", "change", ipu);
        let first = ipu * per_ipu;
        let range = page.browser.value(SHOWN)["range"].clone();
        assert_eq!(range, json!([first, first + per_ipu - 1]));
        page.press("Home");
        page.check(first);
        page.click(per_ipu - 1, per_ipu);
        page.check(first + per_ipu - 1);
        let fullest = own["fullest_tile"]["tile"].as_u64().expect("a tile");
        page.set_text("order", "change", "fullest");
        page.press("Home");
        page.check(fullest);
        page.set_text("order", "change", "number");
        let free = page.browser.value(SHOWN)["bytes"][6].clone();
        assert_eq!(plain(&free[1]), own["fullest_tile"]["free"].to_string());
    }
    // A tile of another IPU, and then all of them.
    page.set("tile", "input", 9);
    page.check(9);
    let shown = page.browser.value(SHOWN);
    assert_eq!(shown["name"], "Tile 9: tile 1 of IPU 1");
    assert_eq!(shown["range"], json!([8, 15]));
    page.set_text("ipu", "change", "-1");
    page.click(31, 32);
    page.check(31);
    assert_eq!(page.browser.value(SHOWN)["range"], json!([0, 31]));
    no_errors(&page.browser, page.folder.path());
}
