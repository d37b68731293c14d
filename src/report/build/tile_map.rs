//! Lists the contents of each tile for the HTML page's drawing of all tiles: the bytes by recorded
//! category, and the largest lowered variables.

use crate::{
    profile::{RecordedCategory, RecordedTile, TileBytes},
    report::{TileCategory, TileMap, TileVariables, VariableKind},
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Upper bound on the values for the HTML page's drawing of all tiles, each the bytes of one
/// category on one tile. That many values take less than about 4 MB of JSON, and are enough for all
/// categories on 16 IPUs.
const MAX_NUMBERS: usize = 1_000_000;
/// Upper bound on the variables that the HTML page lists for each tile.
pub const MAX_VARIABLES: usize = 10;
/// Maximum number of tiles whose largest variables the report lists. One IPU has fewer tiles, so
/// all of them are listed; of a profile with several IPUs, only the fullest tiles are.
const MAX_TILES: usize = 2_000;

impl TileMap {
    /// Makes the data of the HTML page's drawing of all `tiles`: the bytes of each tile by
    /// category. Returns `None` if there are no tiles. The data has at most 1,000,000 numbers, so
    /// the categories with the fewest bytes may be left out. `variables` has the largest variables
    /// of the fullest tiles, if their names are known.
    pub(in crate::report) fn new(
        tiles: &[RecordedTile],
        categories: &[RecordedCategory],
        variables: Option<TileVariables>,
    ) -> Option<Self> {
        let all = 0..u32::try_from(tiles.len()).ok().filter(|&tiles| tiles > 0)?;
        let mut used = Vec::from_iter(categories.iter().filter(|own| own.bytes.total() > 0));
        used.sort_by_cached_key(|category| Reverse(category.bytes.total()));
        let by_tile = |bytes: &TileBytes| match bytes.end() {
            0 => Vec::new(),
            _ => all.clone().map(|tile| bytes.get(tile).into()).collect(),
        };
        let mut room = MAX_NUMBERS;
        let categories: Vec<_> = (used.iter())
            .map(|category| TileCategory {
                name: category.name.clone(),
                bytes: by_tile(&category.bytes),
                overlapped: by_tile(&category.overlapped),
            })
            .take_while(|own: &TileCategory| {
                let left = room.checked_sub(own.bytes.len() + own.overlapped.len());
                room = left.unwrap_or(0);
                left.is_some()
            })
            .collect();
        Some(Self {
            left_out: (used.len() - categories.len()) as u32,
            categories,
            variables,
        })
    }
}

impl TileVariables {
    /// Returns the tiles whose largest variables the HTML page lists, at most 2,000: the tiles with
    /// the most recorded bytes, the fullest first. Equally full tiles are in ascending order.
    pub(super) fn tiles(recorded: &[RecordedTile]) -> Vec<u32> {
        let mut tiles: Vec<u32> = (0..recorded.len() as u32).collect();
        tiles.sort_by_key(|&tile| Reverse(recorded[tile as usize].total));
        tiles.truncate(MAX_TILES);
        tiles
    }

    /// Makes the lists of the largest variables of each tile, which the HTML page shows. `found`
    /// has the variables to list for each tile in `tiles`. Variables on many tiles have the same
    /// name and category, so each distinct pair is stored once (with whether it is always live),
    /// and a variable is an index of this pair and its bytes. `kind` returns both for a variable.
    pub(super) fn new<T>(
        tiles: Vec<u32>,
        found: &[Vec<T>],
        kind: impl Fn(&T) -> (VariableKind, u64),
    ) -> Self {
        let mut kinds = Vec::new();
        let mut places = FxHashMap::default();
        let mut place = |variable| {
            let (kind, bytes) = kind(variable);
            let next = kinds.len() as u32;
            let place = *places.entry(kind.clone()).or_insert(next);
            if place == next {
                kinds.push(kind);
            }
            (place, bytes)
        };
        let largest = found
            .iter()
            .map(|of_tile| of_tile.iter().map(&mut place).collect())
            .collect();
        Self {
            most: MAX_VARIABLES as u32,
            tiles,
            largest,
            kinds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn category(name: &str, bytes: [u32; 3], overlapped: [u32; 3]) -> RecordedCategory {
        RecordedCategory {
            name: name.into(),
            bytes: bytes.into_iter().collect(),
            overlapped: overlapped.into_iter().collect(),
        }
    }

    #[test]
    fn categories_have_their_bytes_by_tile_and_the_smallest_are_left_out() {
        let categories = [
            category("none", [0; 3], [0; 3]),
            category("small", [1, 0, 0], [0; 3]),
            category("large", [9, 0, 7], [0, 0, 6]),
        ];
        let map = |tiles| TileMap::new(&vec![RecordedTile::default(); tiles], &categories, None);
        let whole = map(3).unwrap();
        let names: Vec<&str> = whole
            .categories
            .iter()
            .map(|category| &*category.name)
            .collect();
        assert_eq!((names, whole.left_out), (vec!["large", "small"], 0));
        assert_eq!(whole.categories[0].bytes, [9, 0, 7]);
        assert_eq!(whole.categories[0].overlapped, [0, 0, 6]);
        assert_eq!(whole.categories[1].bytes, [1, 0, 0]);
        assert!(whole.categories[1].overlapped.is_empty());
        let kept = |tiles| map(tiles).map(|map| (map.categories.len(), map.left_out));
        assert_eq!(kept(MAX_NUMBERS / 3), Some((2, 0)));
        assert_eq!(kept(MAX_NUMBERS / 2), Some((1, 1)));
        assert_eq!(kept(MAX_NUMBERS / 2 + 1), Some((0, 2)));
        assert_eq!(kept(0), None);
    }

    #[test]
    fn variables_of_one_name_are_one_kind() {
        let variable = |name: &str, always_live| {
            let kind = VariableKind {
                name: name.into(),
                category: "variable".into(),
                always_live,
            };
            (kind, 8)
        };
        let found = vec![
            vec![variable("a", true), variable("b", true)],
            vec![variable("b", false), variable("a", true)],
        ];
        let variables = TileVariables::new(vec![1, 0], &found, Clone::clone);
        assert_eq!(variables.kinds.len(), 3);
        assert_eq!(variables.largest, [[(0, 8), (1, 8)], [(2, 8), (0, 8)]]);
    }

    #[test]
    fn the_fullest_tiles_come_first() {
        let tile = |total| RecordedTile {
            total,
            ..RecordedTile::default()
        };
        assert_eq!(TileVariables::tiles(&[3, 5, 5, 4].map(tile)), [1, 2, 3, 0]);
    }
}
