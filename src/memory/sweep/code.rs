//! The code of one tile, for the sweep.

use crate::limits;
use crate::memory::MemoryModel;
use crate::memory::code::CodeItem;
use rayon::prelude::*;

/// How many tiles one thread gathers the code of at once.
const TILES_AT_ONCE: usize = 64;

/// What code is on each tile.
pub(super) enum CodeByTile {
    /// By tile: (code item, bytes there).
    Listed(Vec<Vec<(u32, u64)>>),
    /// Too much for a list: sought tile by tile, which takes longer.
    Sought,
}

impl CodeByTile {
    pub(super) fn new(model: &MemoryModel<'_>) -> Self {
        let sums = model.code.iter().flat_map(|item| &item.bytes);
        let entries: u64 = sums.map(|sum| u64::from(sum.to - sum.from)).sum();
        if entries <= limits::ENTRIES as u64 {
            Self::Listed(listed(model))
        } else {
            Self::Sought
        }
    }

    /// What is on `tile`: (code item, bytes there). `buffer` may hold it.
    pub(super) fn on<'a>(
        &'a self,
        model: &MemoryModel<'_>,
        tile: u32,
        buffer: &'a mut Vec<(u32, u64)>,
    ) -> &'a [(u32, u64)] {
        match self {
            Self::Listed(by_tile) => &by_tile[tile as usize],
            Self::Sought => {
                sought(model, tile, buffer);
                buffer
            }
        }
    }
}

fn listed(model: &MemoryModel<'_>) -> Vec<Vec<(u32, u64)>> {
    let mut by_tile = vec![Vec::new(); model.model.target.num_tiles as usize];
    let parts = by_tile.par_chunks_mut(TILES_AT_ONCE).enumerate();
    parts.for_each(|(part, tiles)| {
        let first = (part * TILES_AT_ONCE) as u32;
        let end = first + tiles.len() as u32;
        for (number, CodeItem { bytes, .. }) in (0u32..).zip(&*model.code) {
            let before = bytes.partition_point(|sum| sum.to <= first);
            for sum in bytes[before..].iter().take_while(|sum| sum.from < end) {
                let (from, to) = (sum.from.max(first) - first, sum.to.min(end) - first);
                for tile in &mut tiles[from as usize..to as usize] {
                    tile.push((number, sum.bytes));
                }
            }
        }
    });
    by_tile
}

fn sought(model: &MemoryModel<'_>, tile: u32, found: &mut Vec<(u32, u64)>) {
    found.clear();
    for (number, CodeItem { bytes, .. }) in (0u32..).zip(&*model.code) {
        let before = bytes.partition_point(|sum| sum.to <= tile);
        let here = bytes.get(before).filter(|sum| sum.from <= tile);
        found.extend(here.map(|sum| (number, sum.bytes)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::reference_model::{classic, memory, plain};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_sought_is_what_is_listed(plain in plain()) {
            let (model, layering) = plain.model();
            let placement = classic(&model, &layering);
            let memory = memory(&model, &placement);
            let mut found = Vec::new();
            for (tile, expected) in (0u32..).zip(listed(&memory)) {
                sought(&memory, tile, &mut found);
                prop_assert_eq!(&found, &expected);
            }
        }
    }
}
