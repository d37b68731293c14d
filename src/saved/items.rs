//! The variables: by far the most of a file.
//!
//! A *use* is a class and a set of bodies that some item has. The same uses
//! come back on tile after tile (on a real profile 6,000 items have 48), so
//! they stand once in a table, sorted, and an item is a position in it and its
//! bytes. Items are sorted by their use, so the positions of one tile ascend
//! and only differences are kept.

use super::SavedError;
use super::columns::{Input, Output};
use super::format::{Frame, Kind, Section};
use super::shape::Shape;
use crate::model::{VariableGroup, VariableGroups};
use rayon::prelude::*;
use std::ops::Range;

/// A frame takes the items of so many tiles that it has at least this many.
const ITEMS_OF_FRAME: usize = 1 << 18;

/// (class, set), in one number for fast comparison.
type Use = u64;

fn use_of(item: &VariableGroup) -> Use {
    u64::from(item.class) << 32 | u64::from(item.set)
}

/// The frames of uses, tiles and items.
pub(super) fn write(variables: &VariableGroups) -> Result<Vec<Frame>, SavedError> {
    let spans = spans(variables);
    let uses = uses(variables, &spans);
    let mut tiles = Output::default();
    for tile in 0..variables.tiles() {
        tiles.length(variables.on_tile(tile).len());
    }
    tiles.length(spans.len());
    for span in &spans {
        tiles.length(span.len());
    }
    let head = [
        Frame::new(Kind::Uses, &write_uses(&uses).0),
        Frame::new(Kind::Tiles, &tiles.0),
    ];
    let items = spans.into_par_iter().map(|span| {
        let output = write_span(variables, span, &uses);
        Frame::new(Kind::Items, &output.0)
    });
    let items: Vec<_> = items.collect();
    head.into_iter().chain(items).collect()
}

/// The tiles of each frame.
fn spans(variables: &VariableGroups) -> Vec<Range<u32>> {
    let mut spans = Vec::new();
    let (mut from, mut items) = (0, 0);
    for tile in 0..variables.tiles() {
        items += variables.on_tile(tile).len();
        if items >= ITEMS_OF_FRAME || tile + 1 == variables.tiles() {
            spans.push(from..tile + 1);
            (from, items) = (tile + 1, 0);
        }
    }
    spans
}

fn uses(variables: &VariableGroups, spans: &[Range<u32>]) -> Vec<Use> {
    let of_span = |span: &Range<u32>| {
        let items = span.clone().flat_map(|tile| variables.on_tile(tile));
        let mut uses: Vec<Use> = items.map(use_of).collect();
        uses.sort_unstable();
        uses.dedup();
        uses
    };
    let mut uses: Vec<Use> = spans.par_iter().flat_map_iter(of_span).collect();
    uses.par_sort_unstable();
    uses.dedup();
    uses
}

/// Their number, then for each the difference of its class to that of the one
/// before, and its set; within a class, how far the set is behind the next one.
fn write_uses(uses: &[Use]) -> Output {
    let mut output = Output::default();
    output.length(uses.len());
    let mut last = None;
    for &this in uses {
        let (class, set) = (this >> 32, this as u32);
        let (last_class, last_set) = last.unwrap_or((0, 0));
        output.number(class - last_class);
        match last.is_some() && class == last_class {
            true => output.number(set - last_set - 1),
            false => output.number(set),
        }
        last = Some((class, set));
    }
    output
}

fn read_uses(mut input: Input<'_>, shape: &Shape) -> Result<Vec<(u32, u32)>, SavedError> {
    let count = input.count(2)?;
    let mut uses = Vec::with_capacity(count);
    let mut last: Option<(u64, u64)> = None;
    for _ in 0..count {
        let (more, set) = (input.number()?, input.number()?);
        let class = last.map_or(0, |last| last.0).checked_add(more);
        let next = last.filter(|_| more == 0).map_or(0, |last| last.1 + 1);
        let found = class.zip(next.checked_add(set)).filter(|&(class, set)| {
            class < u64::from(shape.classes) && set < u64::from(shape.sets)
        });
        let Some((class, set)) = found else {
            return Err(input.problem("a class or set is not there"));
        };
        uses.push((class as u32, set as u32));
        last = found;
    }
    input.finish()?;
    Ok(uses)
}

/// How many bytes the uses take; the uses of all items, tile by tile as
/// differences; the bytes of all items.
fn write_span(variables: &VariableGroups, span: Range<u32>, uses: &[Use]) -> Output {
    let (mut places, mut bytes) = (Output::default(), Output::default());
    for tile in span {
        let mut last = 0;
        for item in variables.on_tile(tile) {
            let own = use_of(item);
            let more = gallop(&uses[last..], own);
            places.length(more);
            bytes.number(item.bytes);
            last += more;
        }
    }
    let mut output = Output::default();
    output.length(places.0.len());
    output.0.append(&mut places.0);
    output.0.append(&mut bytes.0);
    output
}

/// The position of `wanted` in `uses`, which is near the start.
fn gallop(uses: &[Use], wanted: Use) -> usize {
    let mut end = 1;
    while end < uses.len() && uses[end] <= wanted {
        end *= 2;
    }
    let uses = &uses[..end.min(uses.len())];
    uses.partition_point(|&one| one < wanted)
}

/// Reads the variables back.
pub(super) fn read(
    shape: &Shape,
    uses: &Section<'_>,
    tiles: &Section<'_>,
    items: &[Section<'_>],
) -> Result<VariableGroups, SavedError> {
    let mut buffer = Vec::new();
    uses.decompress(Kind::Uses, &mut buffer)?;
    let uses = read_uses(Input::new(Kind::Uses.name(), &buffer), shape)?;
    tiles.decompress(Kind::Tiles, &mut buffer)?;
    let input = Input::new(Kind::Tiles.name(), &buffer);
    let (counts, spans) = read_tiles(input, shape, items)?;
    let mut parts = Vec::with_capacity(spans.len());
    let mut all = nothing(counts.iter().map(|&count| count as usize).sum());
    let mut rest = &mut all[..];
    for (span, section) in spans.into_iter().zip(items) {
        let counts = &counts[span];
        let own = counts.iter().map(|&count| count as usize).sum();
        let (part, behind) = rest.split_at_mut(own);
        rest = behind;
        parts.push((section, counts, part));
    }
    parts
        .into_par_iter()
        .try_for_each_init(Vec::new, |buffer, (section, counts, part)| {
            section.decompress(Kind::Items, buffer)?;
            let input = Input::new(Kind::Items.name(), buffer);
            read_span(input, counts, &uses, part)
        })?;
    VariableGroups::from_ordered(&counts, all)
        .ok_or_else(|| SavedError::invalid("the items of a tile are not as many as stated"))
}

/// Room for so many items. Threads fill it side by side, because the first
/// touch of so much memory is slow.
fn nothing(items: usize) -> Vec<VariableGroup> {
    let nothing = VariableGroup {
        class: 0,
        set: 0,
        bytes: 0,
    };
    rayon::iter::repeat_n(nothing, items).collect()
}

/// By tile the number of items, and by frame its tiles. Every item takes two
/// bytes of its frame or more.
fn read_tiles(
    mut input: Input<'_>,
    shape: &Shape,
    items: &[Section<'_>],
) -> Result<(Vec<u32>, Vec<Range<usize>>), SavedError> {
    let tiles = 0..shape.target.num_tiles;
    let counts = tiles.map(|_| input.small());
    let counts: Vec<u32> = counts.collect::<Result<_, _>>()?;
    if input.count(1)? != items.len() {
        return Err(input.problem("frames of items are not as many as stated"));
    }
    let mut spans = Vec::with_capacity(items.len());
    let mut from = 0;
    for section in items {
        let length = input.small()? as usize;
        let own = counts[from..].get(..length);
        let own = own.ok_or_else(|| input.problem("a frame reaches beyond the last tile"))?;
        let needed = own.iter().map(|&count| u64::from(count) * 2).sum::<u64>();
        if needed > section.raw() as u64 {
            return Err(input.problem("a frame is too short for its items"));
        }
        spans.push(from..from + length);
        from += length;
    }
    if from != counts.len() {
        return Err(input.problem("some tiles are in no frame"));
    }
    input.finish()?;
    Ok((counts, spans))
}

fn read_span(
    mut input: Input<'_>,
    counts: &[u32],
    uses: &[(u32, u32)],
    mut items: &mut [VariableGroup],
) -> Result<(), SavedError> {
    let length = input.count(1)?;
    let mut places = Input::new(Kind::Items.name(), input.bytes(length)?);
    for &count in counts {
        let (own, rest) = std::mem::take(&mut items).split_at_mut(count as usize);
        items = rest;
        let mut place = 0u64;
        for item in own {
            place = place.saturating_add(places.number()?);
            let found = usize::try_from(place)
                .ok()
                .and_then(|place| uses.get(place));
            let Some(&(class, set)) = found else {
                return Err(places.problem("an item has a use that is not there"));
            };
            let bytes = input.small()?;
            *item = VariableGroup { class, set, bytes };
        }
    }
    places.finish()?;
    input.finish()
}
