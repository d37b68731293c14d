//! What `--planted` writes, against the profile.

use std::collections::HashMap;

use serde_json::Value;
use tempfile::TempDir;

use super::{TILES, cases, generate, number, open, pairs};

/// A list of bytes by tile.
pub fn by_tile(value: &Value) -> Vec<i64> {
    let bytes = value.as_array().unwrap().iter();
    let bytes: Vec<i64> = bytes.map(|bytes| bytes.as_i64().unwrap()).collect();
    assert_eq!(bytes.len(), TILES);
    bytes
}

/// The sum over the lists of a map.
fn over_categories(value: &Value) -> Vec<i64> {
    let mut sums = vec![0; TILES];
    for bytes in value.as_object().unwrap().values() {
        let bytes = by_tile(bytes);
        sums.iter_mut()
            .zip(bytes)
            .for_each(|(sum, own)| *sum += own);
    }
    sums
}

/// What a range needs without overhead.
fn needs(range: &Value) -> Vec<i64> {
    let mut sums = over_categories(&range["code"]);
    for part in ["always_live", "peak"] {
        let bytes = by_tile(&range[part]);
        sums.iter_mut()
            .zip(bytes)
            .for_each(|(sum, own)| *sum += own);
    }
    sums
}

pub fn planted(arguments: &[&str]) -> (TempDir, Value) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("planted.json");
    let mut all = arguments.to_vec();
    all.extend(["--planted", path.to_str().unwrap()]);
    generate(directory.path(), &all);
    let text = std::fs::read_to_string(path).unwrap();
    (directory, serde_json::from_str(&text).unwrap())
}

#[test]
fn all_layers_and_overhead_are_the_recorded_memory() {
    for case in cases() {
        let (directory, planted) = planted(&case);
        let profile = open(&directory.path().join("profile.pop"));
        let recorded = pairs(
            &profile,
            "SELECT tile, total FROM memory_by_tile ORDER BY tile",
        );
        let ranges = planted["ranges"].as_array().unwrap();
        let whole = ranges
            .iter()
            .find(|range| range["from"] == 0 && range["to"] == 2);
        let needs = needs(whole.unwrap());
        let overhead = over_categories(&planted["overhead"]);
        let passing = over_categories(&planted["passing"]);
        for (tile, total) in recorded {
            let tile = tile as usize;
            let explained = needs[tile] + overhead[tile];
            assert!(explained <= total, "{case:?}, tile {tile}");
            let has_gaps = case.contains(&"--gaps");
            assert!(
                has_gaps || total <= explained + passing[tile],
                "{case:?}, tile {tile}"
            );
        }
    }
}

#[test]
fn ranges_grow_and_never_exceed_their_parts() {
    for case in cases() {
        let (_directory, planted) = planted(&case);
        let ranges: HashMap<(u64, u64), Vec<i64>> = planted["ranges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|range| {
                let ends = ["from", "to"].map(|end| range[end].as_u64().unwrap());
                ((ends[0], ends[1]), needs(range))
            })
            .collect();
        assert_eq!(ranges.len(), 6);
        for (&(from, to), own) in ranges.iter().filter(|(ends, _)| ends.0 < ends.1) {
            let left = &ranges[&(from, to - 1)];
            let right = &ranges[&(to, to)];
            for tile in 0..TILES {
                assert!(own[tile] >= left[tile], "{case:?}");
                assert!(own[tile] >= right[tile], "{case:?}");
                assert!(own[tile] <= left[tile] + right[tile], "{case:?}");
            }
        }
    }
}

#[test]
fn layers_own_all_user_data() {
    for case in cases() {
        let (directory, planted) = planted(&case);
        let profile = open(&directory.path().join("profile.pop"));
        for category in [
            "variable",
            "constant",
            "message",
            "rearrangement",
            "outputEdge",
        ] {
            let recorded = number(
                &profile,
                &format!(
                    "SELECT sum(size_bytes) FROM vars_info WHERE category =
                     (SELECT id FROM var_categories WHERE name = '{category}')"
                ),
            );
            let layers = planted["layers"].as_array().unwrap();
            let own = layers.iter().map(|layer| by_tile(&layer[category]));
            let owned: i64 = own.map(|bytes| bytes.iter().sum::<i64>()).sum();
            assert!(owned >= recorded && recorded > 0, "{case:?}, {category}");
            assert!(
                planted["overhead"].get(category).is_none(),
                "{case:?}, {category}"
            );
        }
    }
}
