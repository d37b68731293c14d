//! Stores one number for each tile, such as bytes of code, as runs of tiles with equal numbers.

use super::encoding::{BlobError, ValueRun, value_runs, varints};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{iter::once, ops::Range, sync::Arc};

/// A number of bytes (or a count) for each tile, as runs of tiles with equal numbers. A tile
/// outside all runs has the number 0. Most programs treat thousands of tiles alike, so runs take
/// far less memory than an array. Clones share the runs, since many rows of a profile may refer to
/// one blob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileBytes {
    runs: Arc<[TileRun]>,
}

/// A run of consecutive tiles with the same number, such as bytes of code. The number is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct TileRun {
    /// The first tile of the run (consecutive tiles with the same number).
    pub from: u32,
    /// The end of the run of tiles (exclusive), which is the tile after its last tile.
    pub to: u32,
    /// The number of each tile in this run of tiles, such as its bytes of code or its count of
    /// vertices.
    pub value: u32,
}

impl TileBytes {
    /// Decodes a run-length blob with one value for each of `tiles` tiles. An empty blob means 0 on
    /// all tiles.
    pub(super) fn from_rle(blob: &[u8], tiles: u32) -> Result<Self, BlobError> {
        Self::collect(value_runs(blob), tiles, blob.is_empty())
    }

    /// Decodes a list of varints, one for each of `tiles` tiles, without the run lengths of
    /// [`TileBytes::from_rle`]. An empty blob means 0 on all tiles.
    pub(super) fn from_list(blob: &[u8], tiles: u32) -> Result<Self, BlobError> {
        let values = varints(blob).map(|v| v.map(|value| ValueRun { count: 1, value }));
        Self::collect(values, tiles, blob.is_empty())
    }

    /// Stores one number for each of `tiles` tiles, from tile 0 on. `runs` has these numbers in
    /// order, as runs of equal numbers.
    ///
    /// # Errors
    /// If a number exceeds 32 bits, or if `runs` has more than `tiles` numbers. Fewer numbers are
    /// an error too, unless `empty` is true; the remaining tiles then have the number 0.
    fn collect(
        runs: impl Iterator<Item = Result<ValueRun, BlobError>>,
        tiles: u32,
        empty: bool,
    ) -> Result<Self, BlobError> {
        let limit = tiles as usize;
        let mut bytes = Vec::new();
        let mut tile = 0u32;
        for run in runs {
            let ValueRun { count, value } = run?;
            if count > u64::from(tiles - tile) {
                return Err(BlobError::TooLong(limit));
            }
            push(
                &mut bytes,
                tile,
                tile + count as u32,
                u32::try_from(value).map_err(|_| BlobError::BeyondTile(value))?,
            );
            tile += count as u32;
        }
        if tile != tiles && !empty {
            return Err(BlobError::WrongLength(tile as usize, limit));
        }
        Ok(Self { runs: bytes.into() })
    }

    /// Stores one number for each tile. `runs` must have the form of [`TileBytes::runs`]:
    /// ascending, no run empty or with the value 0, and no two adjacent runs with equal values.
    /// Returns `None` if `runs` have another form.
    pub fn from_runs(runs: Vec<TileRun>) -> Option<Self> {
        if runs.is_empty() {
            // Most programs have no code on any tile, so their `runs`, the ranges of tiles with
            // code, are empty. The default value is returned, since it allocates no memory.
            return Some(Self::default());
        }
        let whole = |run: &TileRun| run.from < run.to && run.value != 0;
        let disjoint = |pair: &[TileRun]| {
            pair[0].to < pair[1].from
                || (pair[0].to == pair[1].from && pair[0].value != pair[1].value)
        };
        (runs.iter().all(whole) && runs.windows(2).all(disjoint))
            .then(|| Self { runs: runs.into() })
    }

    /// Returns the sum of `parts`, tile by tile. Each part is a pair: one number for each tile, and
    /// a factor by which all these numbers are multiplied.
    ///
    /// # Errors
    /// If the sum on a tile exceeds 32 bits. The error is the first tile with such a sum.
    pub fn sum<'a>(parts: impl IntoIterator<Item = (&'a TileBytes, u64)>) -> Result<Self, u32> {
        Self::combine(
            parts
                .into_iter()
                .map(|(part, factor)| (part, factor.min(1 << 32) as i64)),
            |sum| u32::try_from(sum).ok(),
        )
    }

    /// Returns what is left on each tile if all `parts` are subtracted from `self`, such as the
    /// code of a program without the code of its children; 0 on a tile where the parts have more.
    pub(super) fn beyond<'a>(&self, parts: impl Iterator<Item = &'a TileBytes>) -> Self {
        let parts = once((self, 1)).chain(parts.map(|part| (part, -1)));
        Self::combine(parts, |sum| Some(sum.max(0) as u32)).unwrap_or_default()
    }

    /// Returns one number for each tile: 1 if any of `parts`, such as the code bytes of several
    /// programs, has a number above 0 on the tile, and 0 otherwise.
    pub(crate) fn where_any<'a>(parts: impl IntoIterator<Item = &'a TileBytes>) -> Self {
        Self::combine(parts.into_iter().map(|part| (part, 1)), |sum| {
            Some(u32::from(sum > 0))
        })
        .unwrap_or_default()
    }

    /// Multiplies each part in `parts` by its factor, adds up the products on each tile, and calls
    /// `value` with the sum. Returns, for each tile, the number that `value` returned.
    ///
    /// # Errors
    /// If `value` returns `None` for the sum of a tile. The error is the index of the first such
    /// tile.
    fn combine<'a>(
        parts: impl Iterator<Item = (&'a TileBytes, i64)>,
        value: impl Fn(i64) -> Option<u32>,
    ) -> Result<Self, u32> {
        // The tiles at which the sum over `parts` changes, each with the change, so that the sum on
        // a tile is the sum of the changes up to it. A run of tiles with equal numbers changes the
        // sum at its first tile, and changes it back after its last tile.
        let mut changes: Vec<(u32, i64)> = Vec::new();
        for (part, factor) in parts {
            for run in part.runs() {
                // If the number of a run times the factor reaches 2^32, the sum on its tiles
                // exceeds 32 bits, which is an error. Larger products are cut to 2^32, so that the
                // sum fits 64 bits.
                let bytes = i64::from(run.value).saturating_mul(factor).min(1 << 32);
                changes.extend([(run.from, bytes), (run.to, -bytes)]);
            }
        }
        // `changes` consists of one sequence per part, each in ascending order of tiles, and a
        // stable sort merges such sequences quickly.
        changes.sort_by_key(|&(tile, _)| tile);
        let ends = changes.iter().skip(1).map(|&(tile, _)| tile);
        let (mut runs, mut sum) = (Vec::new(), 0);
        for (&(tile, change), end) in changes.iter().zip(ends) {
            sum += change;
            if tile < end {
                push(&mut runs, tile, end, value(sum).ok_or(tile)?);
            }
        }
        Ok(Self { runs: runs.into() })
    }

    /// Returns the runs of tiles with equal numbers (such as bytes of code), ascending, without
    /// tiles whose number is 0.
    pub fn runs(&self) -> &[TileRun] {
        &self.runs
    }

    /// Returns the index after the last tile whose number (such as bytes of code) is not 0; 0 if
    /// every tile has the number 0.
    pub fn end(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.to)
    }

    /// Returns the number that is stored for `tile`, such as bytes of code.
    pub fn get(&self, tile: u32) -> u32 {
        let run = self.runs.partition_point(|run| run.to <= tile);
        match self.runs.get(run) {
            Some(run) if run.from <= tile => run.value,
            _ => 0,
        }
    }

    /// Adds the number of each tile, such as its count of vertices, times `factor` to the entry of
    /// the tile in `sums`. A run of tiles that reaches beyond `sums` is skipped.
    pub(crate) fn add_times(&self, factor: u64, sums: &mut [u64]) {
        for run in self.runs() {
            let product = u64::from(run.value).saturating_mul(factor);
            let sums = sums.get_mut(run.from as usize..run.to as usize);
            for sum in sums.into_iter().flatten() {
                *sum = sum.saturating_add(product);
            }
        }
    }

    /// Adds the number of each tile, such as its bytes of code, to the entry of the tile in `sums`.
    /// A run of tiles that reaches beyond `sums` is skipped.
    pub(crate) fn add_to(&self, sums: &mut [u64]) {
        self.add_times(1, sums);
    }

    /// Returns the sum of the numbers (such as bytes of code) of all tiles in the range `tiles`
    /// (end exclusive), such as the tiles of one IPU.
    pub fn total_of(&self, tiles: Range<usize>) -> u64 {
        self.runs
            .iter()
            .map(|run| {
                let from = tiles.start.max(run.from as usize);
                let to = tiles.end.min(run.to as usize);
                to.saturating_sub(from) as u64 * u64::from(run.value)
            })
            .sum()
    }

    /// Returns the sum of the numbers (such as bytes of code) of all tiles.
    pub fn total(&self) -> u64 {
        self.total_of(0..usize::MAX)
    }
}

impl FromIterator<u32> for TileBytes {
    /// Stores `values`, one number for each tile from tile 0 on.
    fn from_iter<T: IntoIterator<Item = u32>>(values: T) -> Self {
        let mut runs = Vec::new();
        for (value, tile) in values.into_iter().zip(0..) {
            push(&mut runs, tile, tile + 1, value);
        }
        Self { runs: runs.into() }
    }
}

/// Serializes each run of tiles as three numbers, which are mostly small: the number of tiles
/// between the previous run and this run, the number of tiles of this run, and its value.
impl Serialize for TileBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut end = 0;
        serializer.collect_seq(self.runs.iter().map(|run| {
            (
                run.from - std::mem::replace(&mut end, run.to),
                run.to - run.from,
                run.value,
            )
        }))
    }
}

/// Deserializes runs of tiles with equal numbers. In the file, each run has its distance from the
/// end of the run before, its number of tiles, and its value. A run that is empty or has the value
/// 0 is an error. The number of tiles is unknown here, so callers must check [`TileBytes::end`].
impl<'de> Deserialize<'de> for TileBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut runs: Vec<TileRun> = Vec::deserialize(deserializer)?;
        let mut end = 0u32;
        let within = runs.iter_mut().try_for_each(|run| {
            run.from = end.checked_add(run.from)?;
            run.to = run.from.checked_add(run.to)?;
            end = run.to;
            Some(())
        });
        within
            .and_then(|()| Self::from_runs(runs))
            .ok_or_else(|| D::Error::custom("values by tile are not in order"))
    }
}

/// Appends the run of tiles `from..to`, or merges it with the last run, if the last run ends at
/// `from` and has the same value. Appends nothing for an empty run or the value 0.
fn push(runs: &mut Vec<TileRun>, from: u32, to: u32, value: u32) {
    match runs.last_mut() {
        Some(last) if last.to == from && last.value == value => last.to = to,
        _ if value == 0 || from == to => {}
        _ => runs.push(TileRun { from, to, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use synthesize::encoding::{encode_list, encode_rle};

    #[test]
    fn sums_beyond_a_tile_are_errors() {
        let full: TileBytes = [0, 0, u32::MAX].into_iter().collect();
        for count in [2, 20] {
            assert_eq!(TileBytes::sum(vec![(&full, 1); count]), Err(2));
        }
    }

    #[test]
    fn numbers_beyond_a_sum_are_never_below_0() {
        let [all, one, other] = [[9, 9, 2, 5], [4, 0, 2, 5], [1, 9, 2, 0]]
            .map(|bytes| bytes.into_iter().collect::<TileBytes>());
        let expected: TileBytes = [4, 0, 0, 0].into_iter().collect();
        assert_eq!(all.beyond([&one, &other].into_iter()), expected);
        assert_eq!(all.beyond([].into_iter()), all);
    }

    #[test]
    fn wrong_lengths_and_values_are_errors() {
        let blob = encode_rle(&[3, 3, 3, 3]);
        let too_long = BlobError::TooLong(3);
        assert_eq!(TileBytes::from_rle(&blob, 3), Err(too_long));
        assert!(TileBytes::from_rle(&blob, 5).is_err());
        assert!(TileBytes::from_rle(&encode_rle(&[1 << 40]), 1).is_err());
        assert_eq!(TileBytes::from_rle(&[], 5), Ok(TileBytes::default()));
    }

    proptest! {
        #[test]
        fn sums_are_those_of_each_tile(
            parts in proptest::collection::vec(
                (proptest::collection::vec(0u32..3, 20), 0u64..4), 0..12),
        ) {
            let runs: Vec<(TileBytes, u64)> = parts
                .iter()
                .map(|(values, factor)| (values.iter().copied().collect(), *factor))
                .collect();
            let sum = TileBytes::sum(runs.iter().map(|(part, factor)| (part, *factor)));
            let of_tile = |tile: usize| {
                let bytes = parts.iter().map(|(values, factor)| u64::from(values[tile]) * factor);
                bytes.sum::<u64>() as u32
            };
            prop_assert_eq!(sum, Ok((0..20).map(of_tile).collect()));
        }

        #[test]
        fn both_encodings_give_the_values_back(values in proptest::collection::vec(0u64..4, 1..60)) {
            let tiles = values.len() as u32;
            let bytes = TileBytes::from_rle(&encode_rle(&values), tiles).unwrap();
            prop_assert_eq!(&bytes, &TileBytes::from_list(&encode_list(&values), tiles).unwrap());
            prop_assert_eq!(&bytes, &values.iter().map(|&v| v as u32).collect());
            for (tile, &value) in values.iter().enumerate() {
                prop_assert_eq!(u64::from(bytes.get(tile as u32)), value);
            }
            prop_assert_eq!(bytes.total(), values.iter().sum::<u64>());
        }
    }
}
