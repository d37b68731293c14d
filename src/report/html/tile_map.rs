//! The map of all tiles: the numbers for the script, and what it fills in.

use super::chart_data::for_script;
use super::dense::{MAX_NUMBER, changes, plain};
use super::fit;
use super::tiles::Block;
use super::widgets::filled;
use crate::report::table::{Column, Kind};
use crate::report::text::shown;
use crate::report::{Report, TileCategory, TileMap, TileTotals, TileVariables};
use maud::{Markup, html};
use serde::Serialize;
use std::collections::HashMap;

/// What the numbers take in the page at most, in bytes.
const MAX_DATA: usize = 500_000;
/// How much of it is kept for variables.
const FOR_VARIABLES: usize = 120_000;
/// What one entry takes beside its texts, at most: names of fields and numbers.
const ENTRY: usize = 100;

/// What the script needs. It names the fields again.
#[derive(Serialize)]
struct TileMapData {
    fullest: u32,
    always_live: String,
    not_always_live: String,
    total: Above,
    with_gaps: Option<Above>,
    ipus: Vec<Ipu>,
    categories: Vec<Category>,
    left_out: usize,
    variables: Option<PackedVariables>,
}

/// Numbers that are never below those of another list, or seldom.
#[derive(Serialize)]
struct Above {
    /// How much they are above that list, and not the numbers themselves?
    by: bool,
    numbers: String,
}

/// Tiles with one limit.
#[derive(Serialize)]
struct Ipu {
    /// Its number, where there are several.
    ipu: Option<u32>,
    first: usize,
    end: usize,
    limit: u64,
    /// Where the limit is in the JSON form.
    at: String,
}

#[derive(Serialize)]
struct Category {
    name: String,
    /// Its place in the report.
    place: usize,
    bytes: String,
    overlapped: String,
}

/// The largest variables of some tiles.
#[derive(Serialize)]
struct PackedVariables {
    most: u32,
    tiles: String,
    /// The name without digits at its end, the category, and whether it is always live.
    stems: Vec<(String, String, bool)>,
    /// By tile: how many there are, and for each its place in `stems`, 0 or the number
    /// behind its name and 1, and its bytes.
    largest: String,
}

/// What the script fills in; `None` without a map.
pub(super) fn part(report: &Report) -> Option<Markup> {
    report.memory.tile_map.as_ref()?;
    let tiles = report.memory.tiles.as_ref()?;
    let ipus = report.fit.as_ref().map_or(1, |fit| fit.ipus.len());
    Some(html! {
        h3 id="tile-map" { "Map of all tiles" }
        p.soft id="tile-map-without" {
            "The map cannot be shown: either the browser runs no scripts, or the numbers are too many or too large for a page. The drawing and the table above do without."
        }
        div id="tile-map-tool" hidden {
            (controls(ipus, tiles))
            (drawing(tiles))
            h4 id="tile-map-name" {}
            div.tile-tables { (tables()) }
            p.soft id="tile-map-variables-note" { (without_variables(report)) }
        }
    })
}

fn controls(ipus: usize, tiles: &TileTotals) -> Markup {
    let last = tiles.total.len().saturating_sub(1);
    html! {
        div.controls {
            label hidden[ipus < 2] { "Show " select id="tile-map-ipu" {} }
            label { "Order " select id="tile-map-order" {
                option value="number" { "by number" }
                option value="fullest" { "fullest first" }
            } }
            label { "Height " select id="tile-map-height" {
                option value="limit" { "up to the limit" }
                option value="tiles" { "of the tiles shown" }
            } }
            label { "Tile " input id="tile-map-tile" type="number" min="0" max=(last) step="1"; }
            span {
                button type="button" id="tile-map-in" aria-label="Zoom in" { "+" } " "
                button type="button" id="tile-map-out" aria-label="Zoom out" { "\u{2212}" } " "
                button type="button" id="tile-map-whole" { "Whole" }
            }
        }
    }
}

fn drawing(tiles: &TileTotals) -> Markup {
    html! {
        figure id="tile-map-figure" {
            div.plot {
                svg.scale id="tile-map-scale" height="280" aria-hidden="true" {}
                svg id="tile-map-chart" height="280" tabindex="0" role="slider" aria-label="Tile" {}
            }
            ul.legend id="tile-map-legend" {}
            figcaption {
                span id="tile-map-range" {}
                " Each column is a tile. Stacked from the bottom, in the order of the legend, are the bytes of each category that are not overlapped, at addresses that one variable has alone; hatched above them are the addresses that several variables share, each at steps of its own. So the hatched part ends at what the tile has in use"
                @if tiles.with_gaps.is_some() { ", and above it are gaps" }
                ". The dashed line is the limit. "
                span id="tile-map-thinned" { "Where tiles stand too close to tell them apart, the fullest of them is drawn: zoom in. " }
                "Click a tile, or press the arrow keys, Page Up, Page Down, Home or End; + and \u{2212} zoom, and 0 shows the whole."
            }
        }
    }
}

const CATEGORIES: [Column; 4] = [
    Column::text("Category"),
    Column::new("Bytes", Kind::Bytes, ""),
    Column::new("Not overlapped", Kind::Bytes, ""),
    Column::new("Overlapped", Kind::Bytes, ""),
];

const VARIABLES: [Column; 4] = [
    Column::new("Largest variables", Kind::Name, ""),
    Column::text("Category"),
    Column::text("Live"),
    Column::new("Bytes", Kind::Bytes, ""),
];

fn tables() -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Bytes of the chosen tile" {
            table { tbody id="tile-map-bytes" {} }
        }
        (filled("tile-map-categories", "Categories of the chosen tile", &CATEGORIES))
        div id="tile-map-variables" {
            (filled("tile-map-largest", "Largest variables of the chosen tile", &VARIABLES))
        }
    }
}

/// Why there are no variables; nothing where there are some.
fn without_variables(report: &Report) -> &'static str {
    let map = report.memory.tile_map.as_ref();
    let files = &report.provenance.files;
    match map.and_then(|map| map.variables.as_ref()) {
        Some(_) => "",
        None if files.saved_model => {
            "A saved model has no names of variables: make the page from profile.pop to see the largest variables of a tile."
        }
        None if report.fit.is_some() => {
            "With --fit single variables are not looked up, so the largest ones of a tile are not named here."
        }
        None => "The largest variables of a tile are not known here.",
    }
}

/// The numbers for the script; `None` where there is no map, and where a number is beyond
/// what a browser adds up exactly.
pub(super) fn data(report: &Report) -> Option<String> {
    let map = report.memory.tile_map.as_ref()?;
    let tiles = report.memory.tiles.as_ref()?;
    let ipus = ipus(report, tiles.total.len());
    if ipus.is_empty() || !is_exact(map, tiles, &ipus) {
        return None;
    }
    Some(for_script(&TileMapData::new(map, tiles, ipus, MAX_DATA)?))
}

fn is_exact(map: &TileMap, tiles: &TileTotals, ipus: &[Ipu]) -> bool {
    let with_gaps = tiles.with_gaps.iter().flatten();
    let categories = map.categories.iter();
    let categories = categories.flat_map(|own| own.bytes.iter().chain(&own.overlapped));
    let variables = map.variables.iter().flat_map(|own| &own.largest).flatten();
    let totals = [&tiles.total, &tiles.always_live, &tiles.not_always_live];
    let mut all = (totals
        .into_iter()
        .flatten()
        .chain(with_gaps)
        .chain(categories))
    .chain(variables.map(|(_, bytes)| bytes))
    .chain(ipus.iter().map(|own| &own.limit));
    all.all(|&number| number < MAX_NUMBER / 2)
}

/// The tiles of each IPU.
fn ipus(report: &Report, recorded: usize) -> Vec<Ipu> {
    let of_block = |own: Block, at: String| Ipu {
        ipu: own.ipu,
        first: own.tiles.start,
        end: own.tiles.end,
        limit: own.limit,
        at,
    };
    let Some(fit) = &report.fit else {
        let all = Block {
            ipu: None,
            tiles: 0..recorded,
            limit: report.memory.limit,
        };
        let some = (recorded > 0).then(|| of_block(all, "/memory/limit".into()));
        return some.into_iter().collect();
    };
    let blocks = fit::blocks(fit, recorded).into_iter();
    let ipus = blocks.map(|own| {
        let place = own.ipu.unwrap_or(0);
        of_block(own, format!("/fit/ipus/{place}/fullest_tile/limit"))
    });
    ipus.collect()
}

impl Above {
    fn new(numbers: &[u64], base: &[u64]) -> Self {
        let pairs = || numbers.iter().zip(base);
        let by = numbers.len() == base.len() && pairs().all(|(own, base)| own >= base);
        Self {
            by,
            numbers: if by {
                changes(pairs().map(|(own, base)| own - base))
            } else {
                changes(numbers.iter().copied())
            },
        }
    }
}

impl TileMapData {
    /// With as many categories, and then with the variables of as many tiles, as there is
    /// room for; `None` where there is none for what tiles have in use.
    fn new(map: &TileMap, tiles: &TileTotals, ipus: Vec<Ipu>, room: usize) -> Option<Self> {
        let mut data = Self::of_totals(tiles, ipus);
        data.left_out = map.left_out as usize + map.categories.len();
        let mut used = data.narrow(tiles, room)?;
        let spare = map
            .variables
            .as_ref()
            .map_or(0, |_| FOR_VARIABLES.min(room / 4));
        for (place, own) in map.categories.iter().enumerate() {
            let category = Category::new(place, own);
            let size = category.size();
            if used + size + spare <= room {
                used += size;
                data.left_out -= 1;
                data.categories.push(category);
            }
        }
        let variables = map.variables.as_ref();
        let variables = variables.map(|own| PackedVariables::new(own, room.saturating_sub(used)));
        data.variables = variables.filter(|own| !own.tiles.is_empty());
        Some(data)
    }

    /// What all tiles have in use, and what of it is live.
    fn of_totals(tiles: &TileTotals, ipus: Vec<Ipu>) -> Self {
        let live = tiles.always_live.iter().zip(&tiles.not_always_live);
        let live = live.map(|(&own, &others)| own.saturating_add(others));
        let with_gaps = tiles.with_gaps.as_ref();
        Self {
            fullest: tiles.fullest,
            always_live: changes(tiles.always_live.iter().copied()),
            not_always_live: changes(tiles.not_always_live.iter().copied()),
            total: Above::new(&tiles.total, &live.collect::<Vec<_>>()),
            with_gaps: with_gaps.map(|own| Above::new(own, &tiles.total)),
            ipus,
            categories: Vec::new(),
            left_out: 0,
            variables: None,
        }
    }

    /// Leaves out gaps, and then what is live, where there is no room for them, and says
    /// how much all takes; `None` where even the rest has no room.
    fn narrow(&mut self, tiles: &TileTotals, room: usize) -> Option<usize> {
        let size = |own: &Self| Some(for_script(own).len() + ENTRY).filter(|&size| size <= room);
        if let Some(used) = size(self) {
            return Some(used);
        }
        self.with_gaps = None;
        if let Some(used) = size(self) {
            return Some(used);
        }
        self.total = Above::new(&tiles.total, &[]);
        self.always_live.clear();
        self.not_always_live.clear();
        size(self)
    }
}

impl Category {
    fn new(place: usize, own: &TileCategory) -> Self {
        Self {
            name: shown(&own.name),
            place,
            bytes: changes(own.bytes.iter().copied()),
            overlapped: changes(own.overlapped.iter().copied()),
        }
    }

    /// What it takes at most.
    fn size(&self) -> usize {
        for_script(&self.name).len() + self.bytes.len() + self.overlapped.len() + ENTRY
    }
}

impl PackedVariables {
    /// Those of the first tiles, as many as there is room for.
    fn new(variables: &TileVariables, room: usize) -> Self {
        let names: Vec<_> = variables.kinds.iter().map(|own| shown(&own.name)).collect();
        let names: Vec<_> = names.iter().map(|name| split(name)).collect();
        let mut stems = Vec::new();
        let mut places = HashMap::new();
        let (mut tiles, mut largest) = (Vec::new(), String::new());
        let mut used = ENTRY;
        for (&tile, own) in variables.tiles.iter().zip(&variables.largest) {
            let mut numbers = vec![own.len() as u64];
            let before = stems.len();
            for &(kind, bytes) in own {
                let Some(own) = variables.kinds.get(kind as usize) else {
                    numbers[0] -= 1;
                    continue;
                };
                let (stem, number) = names[kind as usize];
                let key = (stem, &*own.category, own.always_live);
                let place = *places.entry(key).or_insert_with(|| {
                    stems.push((stem.to_string(), shown(&own.category), own.always_live));
                    stems.len() - 1
                });
                numbers.extend([place as u64, number, bytes]);
            }
            let text = plain(numbers);
            // A tile takes at most four characters in the list of tiles.
            let new = stems[before..]
                .iter()
                .map(|stem| for_script(stem).len() + 1);
            used += text.len() + 4 + new.sum::<usize>();
            if used > room {
                stems.truncate(before);
                break;
            }
            tiles.push(u64::from(tile));
            largest += &text;
        }
        Self {
            most: variables.most,
            tiles: plain(tiles),
            stems,
            largest,
        }
    }
}

/// A name without the number that it ends with, and this number and 1; 0 without one.
fn split(name: &str) -> (&str, u64) {
    /// A browser has no more exactly.
    const DIGITS: usize = 15;
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[stem.len()..];
    let is_plain = digits.len() <= DIGITS && (digits == "0" || !digits.starts_with('0'));
    match digits.parse::<u64>() {
        Ok(number) if is_plain => (stem, number + 1),
        _ => (name, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::dense::tests::{read_changes, read_plain};
    use super::*;
    use crate::report::VariableKind;
    use crate::report::testing::{compiled, report};
    use serde_json::{Value, json};

    fn read(report: &Report) -> Value {
        serde_json::from_str(&data(report).unwrap()).unwrap()
    }

    fn list(text: &Value) -> Vec<u64> {
        read_changes(text.as_str().unwrap())
    }

    #[test]
    fn all_numbers_read_back() {
        let report = report();
        let (data, memory) = (read(&report), &report.memory);
        let (tiles, map) = (
            memory.tiles.as_ref().unwrap(),
            memory.tile_map.as_ref().unwrap(),
        );
        let above = |own: &Value, base: Vec<u64>| -> Vec<u64> {
            assert_eq!(own["by"], true);
            let pairs = list(&own["numbers"]).into_iter().zip(base);
            pairs.map(|(own, base)| own + base).collect()
        };
        let live = list(&data["always_live"]);
        let live = live.iter().zip(list(&data["not_always_live"]));
        let live = live.map(|(own, others)| own + others).collect();
        assert_eq!(above(&data["total"], live), tiles.total);
        let with_gaps = above(&data["with_gaps"], tiles.total.clone());
        assert_eq!(Some(with_gaps), tiles.with_gaps);
        let category = &data["categories"][0];
        assert_eq!(list(&category["bytes"]), map.categories[0].bytes);
        assert_eq!(list(&category["overlapped"]), map.categories[0].overlapped);
        assert_eq!(data["left_out"], 1);
        let variables = &data["variables"];
        assert_eq!(read_plain(variables["tiles"].as_str().unwrap()), [1, 0]);
        assert_eq!(variables["stems"], json!([["weights#", "variable", true]]));
        let largest = read_plain(variables["largest"].as_str().unwrap());
        assert_eq!(largest, [1, 0, 1, 2000, 1, 0, 1, 1000]);
    }

    #[test]
    fn each_ipu_has_its_tiles_and_its_limit() {
        let data = read(&compiled());
        let ipus = data["ipus"].as_array().unwrap();
        let limits: Vec<_> = ipus.iter().map(|own| &own["limit"]).collect();
        assert_eq!(limits, [638_976, 630_000, 620_000]);
        assert_eq!((&ipus[1]["first"], &ipus[1]["end"]), (&4.into(), &8.into()));
        assert_eq!(ipus[2]["at"], "/fit/ipus/2/fullest_tile/limit");
    }

    #[test]
    fn numbers_that_a_browser_does_not_hold_are_left_out() {
        let mut report = report();
        let map = report.memory.tile_map.as_mut().unwrap();
        map.categories[0].overlapped[1] = MAX_NUMBER;
        assert_eq!(data(&report), None);
        assert!(part(&report).is_some());
    }

    #[test]
    fn without_room_for_all_lists_the_bytes_in_use_are_left() {
        let report = report();
        let memory = &report.memory;
        let (tiles, map) = (
            memory.tiles.as_ref().unwrap(),
            memory.tile_map.as_ref().unwrap(),
        );
        let data = |room| TileMapData::new(map, tiles, ipus(&report, 2), room);
        let whole = for_script(&data(MAX_DATA).unwrap()).len();
        let found: Vec<TileMapData> = (0..2 * whole).filter_map(data).collect();
        assert!(found[0].with_gaps.is_none() && found[0].always_live.is_empty());
        assert_eq!(read_changes(&found[0].total.numbers), tiles.total);
        // Categories and variables come when all totals are there.
        let lists = |own: &TileMapData| {
            let totals = [!own.always_live.is_empty(), own.with_gaps.is_some()];
            let others = [!own.categories.is_empty(), own.variables.is_some()];
            totals.into_iter().chain(others).collect::<Vec<bool>>()
        };
        let all: Vec<_> = found.iter().map(lists).collect();
        assert!(all.contains(&vec![true, false, false, false]));
        assert!(all.contains(&vec![true, true, false, false]));
        assert_eq!(all[all.len() - 1], [true; 4]);
    }

    #[test]
    fn lists_of_other_lengths_and_kinds_that_are_not_there_are_no_trouble() {
        let mut report = report();
        let tiles = report.memory.tiles.as_mut().unwrap();
        tiles.always_live.pop();
        tiles.with_gaps = Some(vec![1, 2, 3]);
        let map = report.memory.tile_map.as_mut().unwrap();
        map.categories[0].bytes.clear();
        let variables = map.variables.as_mut().unwrap();
        variables.largest[0] = vec![(7, 1), (0, 2)];
        variables.tiles = vec![99];
        let data = read(&report);
        assert_eq!(
            (&data["total"]["by"], &data["with_gaps"]["by"]),
            (&false.into(), &false.into())
        );
        let largest = read_plain(data["variables"]["largest"].as_str().unwrap());
        assert_eq!(largest, [1, 0, 1, 2]);
    }

    /// Sixteen IPUs whose tiles have nothing in common.
    #[test]
    fn large_maps_keep_to_their_room() {
        let count = 16 * 1472;
        let noise = |seed: u64| -> Vec<u64> {
            let tiles = 0..count as u64;
            tiles
                .map(|tile| (tile + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 45)
                .collect()
        };
        let category = |seed: u64| TileCategory {
            name: format!("<{seed}>"),
            bytes: noise(seed),
            overlapped: Vec::new(),
        };
        let kinds = (0..500).map(|kind| VariableKind {
            name: format!("<&>layer{}/weights#{kind}", kind % 50),
            ..VariableKind::default()
        });
        let largest = |tile: u32| (0..10).map(|own| ((tile + own) % 500, 100_000)).collect();
        let map = |categories: u64| TileMap {
            categories: (0..categories).map(category).collect(),
            left_out: 0,
            variables: Some(TileVariables {
                most: 10,
                tiles: (0..2000).collect(),
                kinds: kinds.clone().collect(),
                largest: (0..2000).map(largest).collect(),
            }),
        };
        let mut report = report();
        let [total, always_live, not_always_live] = [0, 1, 2].map(noise);
        report.memory.tiles = Some(TileTotals {
            fullest: 0,
            total,
            with_gaps: None,
            always_live,
            not_always_live,
        });
        for categories in [1, 30] {
            report.memory.tile_map = Some(map(categories));
            let text = data(&report).unwrap();
            assert!((400_000..=MAX_DATA).contains(&text.len()), "{}", text.len());
            let data = read(&report);
            let kept = data["categories"].as_array().unwrap().len() as u64;
            assert_eq!(data["left_out"], categories - kept);
            assert_eq!(kept, 1);
            let listed = read_plain(data["variables"]["tiles"].as_str().unwrap());
            assert!((1000..2000).contains(&listed.len()), "{}", listed.len());
            let first: Vec<u64> = (0..listed.len() as u64).collect();
            assert_eq!(listed, first);
        }
    }

    /// Neighbours in the stack, for those who do not tell colours apart.
    #[test]
    fn neighbouring_colours_differ_in_lightness() {
        let colour = |text: &str| -> f64 {
            let part = |at: usize| {
                let part = u8::from_str_radix(&text[at..at + 2], 16).unwrap();
                let part = f64::from(part) / 255.0;
                if part > 0.04045 {
                    ((part + 0.055) / 1.055).powf(2.4)
                } else {
                    part / 12.92
                }
            };
            0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)
        };
        let style = super::super::STYLE;
        let all: Vec<f64> = style
            .split("--tile-")
            .skip(1)
            .filter_map(|own| Some(colour(own.split_once(": #")?.1.get(..6)?)))
            .take(26)
            .collect();
        assert_eq!(all.len(), 26);
        for scheme in all.chunks(13) {
            for pair in scheme.windows(2) {
                let [low, high] = [pair[0].min(pair[1]), pair[0].max(pair[1])];
                assert!((high + 0.05) / (low + 0.05) > 1.8, "{pair:?}");
            }
        }
    }

    #[test]
    fn names_split_where_they_can_be_put_together_again() {
        for (name, stem, number) in [
            ("weights#14", "weights#", 15),
            ("weights#0", "weights#", 1),
            ("weights#007", "weights#007", 0),
            ("weights", "weights", 0),
            ("9999999999999999", "9999999999999999", 0),
            ("", "", 0),
        ] {
            assert_eq!(split(name), (stem, number));
        }
    }
}
