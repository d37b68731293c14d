//! Encodes variables, by far the largest part of a file, as columns.
//!
//! A *use* is a class and a use set that a group of variables has. Uses recur on many tiles (a real
//! profile has 48 for 6,000 groups), so each is stored once in a sorted table, and a group is
//! stored as a position in that table and its bytes. The groups of a tile are sorted by use, so
//! positions ascend and only differences are stored.
//!
//! Each part of groups covers some consecutive tiles. It has the length of the first column in
//! bytes (32 bits); the column of uses, as differences within each tile; and the column of bytes.
//! Numbers are varints as in a profile (`profile/encoding.rs`).

use super::container::{Content, Part};
use super::{SavedError, part_of};
use crate::model::{TileUse, VariableGroups};
use crate::parallel::{filled, split_by};
use crate::profile::encoding::{Varints, push_varint};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A part ends with the tile at which it has at least this many groups.
const GROUPS_OF_PART: usize = 1 << 18;

/// Class and use set.
type Use = (u32, u32);

/// Uses of all groups, and the sizes of parts.
#[derive(Debug, Serialize, Deserialize)]
struct Uses {
    /// The distinct uses of all groups, ascending.
    uses: Vec<Use>,
    /// By tile: number of groups.
    counts: Vec<u32>,
    /// By part of groups: number of tiles.
    tiles: Vec<u32>,
}

/// Part of the uses, followed by the parts of groups.
pub(super) fn write(variables: &VariableGroups) -> Result<Vec<Part<'static>>, SavedError> {
    let spans = spans(variables);
    let uses = variables.uses().iter();
    let count = |tile| variables.uses_on_tile(tile).len() as u32;
    let head = Uses {
        uses: uses.map(|group| (group.class, group.set)).collect(),
        counts: (0..variables.tiles()).map(count).collect(),
        tiles: spans.iter().map(|span| span.len() as u32).collect(),
    };
    let groups = spans.into_par_iter().map(|span| Part {
        content: Content::Variables,
        bytes: write_span(variables, span).into(),
    });
    let mut parts = vec![part_of(Content::Uses, &head)?];
    parts.par_extend(groups);
    Ok(parts)
}

/// Tiles of each part.
fn spans(variables: &VariableGroups) -> Vec<Range<u32>> {
    let mut spans = Vec::new();
    let (mut from, mut groups) = (0, 0);
    for tile in 0..variables.tiles() {
        groups += variables.uses_on_tile(tile).len();
        if groups >= GROUPS_OF_PART || tile + 1 == variables.tiles() {
            spans.push(from..tile + 1);
            (from, groups) = (tile + 1, 0);
        }
    }
    spans
}

fn write_span(variables: &VariableGroups, span: Range<u32>) -> Vec<u8> {
    let (mut places, mut bytes) = (Vec::new(), Vec::new());
    for tile in span {
        let mut last = 0;
        for group in variables.uses_on_tile(tile) {
            push_varint(&mut places, (group.number - last).into());
            push_varint(&mut bytes, group.bytes.into());
            last = group.number;
        }
    }
    // A column of 2^32 bytes or more makes a part that `assemble` refuses.
    let length = (places.len() as u32).to_le_bytes();
    [&length[..], &places, &bytes].concat()
}

/// Reads the variables. Classes and use sets of their uses are not checked here.
pub(super) fn read(uses: &Part<'_>, groups: &[Part<'_>]) -> Result<VariableGroups, SavedError> {
    let head: Uses = super::read(uses)?;
    let spans = head.spans(groups);
    let spans = spans.map_err(|problem| uses.content.problem(problem))?;
    let mut all = filled(TileUse::default(), total(&head.counts));
    let lengths = spans.iter().map(|counts| total(counts));
    let of_parts = split_by(&mut all, lengths);
    let parts = groups.par_iter().zip(spans).zip(of_parts);
    parts.try_for_each(|((part, counts), place)| {
        let read = read_span(&part.bytes, counts, head.uses.len(), place);
        read.map_err(|problem| part.content.problem(problem))
    })?;
    VariableGroups::from_numbered(&head.uses, &head.counts, all)
        .ok_or_else(|| SavedError::invalid("there are more variables than any model has"))
}

/// Sum of numbers of groups.
fn total(counts: &[u32]) -> usize {
    counts.iter().map(|&count| count as usize).sum()
}

impl Uses {
    /// Numbers of groups by tile, for each part. Every group takes at least two bytes of its part,
    /// so memory is only reserved for groups that can exist.
    fn spans(&self, parts: &[Part<'_>]) -> Result<Vec<&[u32]>, &'static str> {
        if !self.uses.is_sorted_by(|a, b| a < b) {
            return Err("the uses are not in order");
        }
        if self.tiles.len() != parts.len() {
            return Err("the number of parts of groups is wrong");
        }
        let mut rest = &self.counts[..];
        let spans = self.tiles.iter().zip(parts).map(|(&tiles, part)| {
            let split = rest.split_at_checked(tiles as usize);
            let (first, behind) = split.ok_or("a part reaches beyond the last tile")?;
            rest = behind;
            let needed = first.iter().map(|&count| u64::from(count) * 2).sum::<u64>();
            if needed > part.bytes.len() as u64 {
                return Err("a part is too short for its groups");
            }
            Ok(first)
        });
        let spans = spans.collect::<Result<_, _>>()?;
        if rest.is_empty() {
            Ok(spans)
        } else {
            Err("some tiles are in no part")
        }
    }
}

/// Fills `groups` from the columns of one part. `counts` has the number of groups on each of its
/// tiles; `uses` is the number of uses.
fn read_span(
    part: &[u8],
    counts: &[u32],
    uses: usize,
    groups: &mut [TileUse],
) -> Result<(), &'static str> {
    let columns = part
        .split_first_chunk()
        .and_then(|(length, columns)| {
            columns.split_at_checked(u32::from_le_bytes(*length) as usize)
        })
        .ok_or("it is too short for its columns")?;
    let (mut places, mut bytes) = (Varints::new(columns.0), Varints::new(columns.1));
    for of_tile in split_by(groups, counts.iter().map(|&count| count as usize)) {
        let mut place = 0u64;
        for group in of_tile {
            place = place.saturating_add(number(&mut places)?);
            if place >= uses as u64 {
                return Err("a group has a use that is not there");
            }
            let bytes = number(&mut bytes)?;
            let bytes = u32::try_from(bytes).map_err(|_| "a group has more than 4 GiB")?;
            *group = TileUse {
                number: place as u32,
                bytes,
            };
        }
    }
    if places.next().is_none() && bytes.next().is_none() {
        Ok(())
    } else {
        Err("a column is too long")
    }
}

#[inline]
fn number(column: &mut Varints<'_>) -> Result<u64, &'static str> {
    match column.next() {
        Some(Ok(number)) => Ok(number),
        _ => Err("a column is too short or has a number of more than 64 bits"),
    }
}
