//! Layers as a number for each IPU, as `layers_per_ipu` has them. Blocks are counted, such as the
//! blocks of a transformer; the model's code places operations before and after them.
//! `--layers-per-ipu` reads the same numbers. The forms `examples` and `optimum` are made of them.

use super::form_source::FormSource;
use super::lines::{FREE, LAST_STAGE, Lines, STAGE};
use crate::escape::{is_digits, printable};
use crate::model::PseudoLayers;
use std::ops::Range;

/// Groups consecutive layers, which have these `names`, into blocks, such as the blocks of a
/// transformer. Returns a range of indices of `names` for each block. Layers are in one block if
/// their names begin with the same text up to the first number; layers without a number are in a
/// block only if they are inside it. If no name has a number, each layer is a block.
pub(crate) fn blocks<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Range<usize>> {
    let names: Vec<&str> = names.into_iter().collect();
    let mut blocks: Vec<(&str, Range<usize>)> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        match (block(name), blocks.last_mut()) {
            // Layers between two layers of a block belong to the block.
            (Some(name), Some((last, range))) if *last == name => range.end = at + 1,
            (Some(name), _) => blocks.push((name, at..at + 1)),
            (None, _) => {}
        }
    }
    if blocks.is_empty() {
        return (0..names.len()).map(|at| at..at + 1).collect();
    }
    blocks.into_iter().map(|(_, range)| range).collect()
}

/// Returns the beginning of a layer's name up to the first part, between dots or slashes, that is a
/// number, such as `encoder.3` of `encoder.3.attention`; `None` without such a part. A part such as
/// `3@1`, which a repeated call of a module has, is a number too, and `_3`, as Keras counts.
fn block(name: &str) -> Option<&str> {
    let mut begin = 0;
    for part in name.split_inclusive(['.', '/']) {
        let own = part.trim_end_matches(['.', '/']);
        if own.trim_start_matches('_').split('@').all(is_digits) {
            return Some(&name[..begin + own.len()]);
        }
        begin += part.len();
    }
    None
}

/// Returns, for each position of the layer order before Out, `item` for the first layer of a block
/// and an empty string for any other position. Adds `notes` on layers outside blocks, on In and Out
/// and on unused IPUs, and warns of stages that begin inside a block.
pub fn items(source: FormSource<'_>, item: &str, notes: &mut Lines<'_>) -> Vec<String> {
    let layers: Vec<(u32, &str)> = source.layers().collect();
    let blocks = blocks(layers.iter().map(|&(_, name)| name));
    numbers(&layers, &blocks, notes);
    let end = layers.last().map_or(1, |&(position, _)| position + 1);
    let mut items = vec![String::new(); end as usize];
    let mut others: Vec<&str> = layers.iter().map(|&(_, name)| name).collect();
    for layers_of in blocks.iter().map(|block| &layers[block.clone()]) {
        items[layers_of[0].0 as usize] = item.to_string();
        others.retain(|other| layers_of.iter().all(|(_, name)| name != other));
        for &(position, name) in &layers_of[1..] {
            let warning = format!(
                "WARNING: blocks are counted as a whole, but IPU {STAGE} would begin inside one, at \
                 {}. Give --emit poptorch, or --together to keep the block in one stage.",
                printable(name)
            );
            notes.begin(position, true, &warning);
        }
    }
    if !others.is_empty() {
        notes.add(format!(
            "Not counted, since most code places layers outside blocks itself (add those that yours counts): {}",
            printable(&others.join(" "))
        ));
    }
    if source.report.pseudo_layers != PseudoLayers::NoneFirst {
        notes.add(format!(
            "In (embedding and the like) belongs on IPU 0, Out (head, loss) on IPU {}: make \
             sure that the model's code puts them there.",
            source.out().map_or("0", |_| LAST_STAGE)
        ));
    }
    notes.add(format!("Unused IPUs: {FREE} (see --num-ipus)."));
    outside_blocks(source, &blocks, notes);
    items
}

/// Adds `notes` that warn of stages that begin with a layer outside blocks, or with Out apart from
/// such layers, where no count begins a stage. Counts put layers before the first block on the first
/// IPU, and those after the last block on the last, as `--layers-per-ipu` does. `blocks` has ranges
/// of indices of layers.
fn outside_blocks(source: FormSource<'_>, blocks: &[Range<usize>], notes: &mut Lines<'_>) {
    let after = blocks.last().map_or(0, |block| block.end);
    let is_outside = |at: &usize| *at != after && !blocks.iter().any(|block| block.contains(at));
    let places = (0..).zip(source.layers_and_out());
    for (_, (position, name)) in places.filter(|(at, _)| is_outside(at)) {
        let judge = match source.other {
            Some(_) => "Give",
            None => "Judge the split that they make with --layers-per-ipu, or give",
        };
        let warning = format!(
            "WARNING: counts cannot begin IPU {STAGE} at {}, which is outside blocks. {judge} --emit \
             poptorch.",
            printable(name)
        );
        notes.begin(position, true, &warning);
    }
}

/// Returns whether each stage of the split begins with a whole block (or with Out), so that counts of
/// blocks say where it begins.
pub fn begin_stages(source: FormSource<'_>) -> bool {
    let layers: Vec<(u32, &str)> = source.layers().collect();
    let blocks = blocks(layers.iter().map(|&(_, name)| name));
    let mut inner = blocks.into_iter().flat_map(|block| &layers[block][1..]);
    !inner.any(|&(position, _)| source.split.begins_at(position))
}

/// Adds a note on the order in which `blocks` are counted, unless their names show it, or on
/// numbers that are missing between blocks. `layers` has the position and the name of each layer,
/// and `blocks` ranges of indices in `layers`.
fn numbers(layers: &[(u32, &str)], blocks: &[Range<usize>], notes: &mut Lines<'_>) {
    let firsts: Vec<&str> = blocks.iter().map(|range| layers[range.start].1).collect();
    let names = unique_names(&firsts);
    let numbers: Option<Vec<u64>> = names.iter().map(|name| name.parse().ok()).collect();
    match numbers.as_deref() {
        Some([first, .., last]) if last.saturating_sub(*first) >= blocks.len() as u64 => {
            notes.add(format!(
                "Layers between {first} and {last} are missing from the profile. If the model has \
             them, add them to the counts."
            ))
        }
        Some(numbers) if numbers.is_sorted() => {}
        _ => notes.add(format!(
            "Blocks are counted in this order: {}",
            printable(&names.join(" "))
        )),
    }
}

/// Returns a name for each block, given the name of its first layer: this name up to its first
/// number, or all of it if several blocks have the same beginning.
fn unique_names<'a>(firsts: &[&'a str]) -> Vec<&'a str> {
    let short = |&name: &&'a str| block(name).unwrap_or(name);
    let unique = |first| {
        let alike = firsts.iter().filter(|other| short(other) == short(first));
        if alike.count() > 1 {
            *first
        } else {
            short(first)
        }
    };
    firsts.iter().map(unique).collect()
}

/// Returns, for each position of the layer order, the items of `pipeline_stages` in Graphcore's
/// BERT for TensorFlow 2, such as `"emb"` for In and `"hid"` for a block. Adds the `notes` of
/// [`items`].
pub fn parts_of_bert(source: FormSource<'_>, notes: &mut Lines<'_>) -> Vec<String> {
    const OUT: &str = "\"enc_out\", \"pool\", \"heads\"";
    let mut items = items(source, "\"hid\"", notes);
    items[0] = "\"emb\"".to_string();
    match (source.report.pseudo_layers, items.last_mut()) {
        // Operations after the layers run in the stage of the last layer.
        (PseudoLayers::NoneFirst, Some(last)) => {
            *last += if last.is_empty() { "" } else { ", " };
            *last += OUT;
        }
        _ => items.push(OUT.to_string()),
    }
    items
}

impl FormSource<'_> {
    /// Returns whether the model is a vision transformer, which has a module named `vit`.
    pub fn is_vit(self) -> bool {
        let mut begins = self
            .split
            .modules
            .iter()
            .filter_map(|own| own.begin.as_ref());
        begins.any(|module| has_part(module, "vit"))
    }
}

/// Returns whether a name has `part` between its dots and slashes.
fn has_part(name: &str, part: &str) -> bool {
    name.split(['.', '/']).any(|own| own == part)
}

/// Adds `notes` on text generation, which compiles the encoder and the decoder separately, so that
/// no stage may contain layers of both. No notes for models without an encoder and a decoder.
pub fn generation(source: FormSource<'_>, notes: &mut Lines<'_>) {
    let of = |part| {
        source
            .layers()
            .filter(move |(_, name)| has_part(name, part))
    };
    let (Some((last, _)), Some((first, name))) = (of("encoder").last(), of("decoder").next())
    else {
        return;
    };
    if first < last {
        return;
    }
    let note = format!(
        "Generation needs the encoder on 1, 2, 4, 8, ... IPUs without layers of the decoder; its \
         last layer is on IPU {STAGE}."
    );
    notes.at(last, &note);
    let warning = format!(
        "WARNING: generation needs a stage that begins with the decoder. Give --cut-before {}.",
        printable(name)
    );
    notes.begin(first, false, &warning);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_layers_of_one_number() {
        let names = [
            "embeddings",
            "0.attention",
            "shared",
            "0.output",
            "1",
            "cls",
        ];
        assert_eq!(blocks(names), [1..4, 4..5]);
        assert_eq!(blocks(["e.0", "e.1", "d.0"]), [0..1, 1..2, 2..3]);
        assert_eq!(blocks(["0@1", "0@2"]), [0..1, 1..2]);
        assert_eq!(blocks(["_0", "_1", "pooler"]), [0..1, 1..2]);
        assert_eq!(blocks(["stem", "head1"]), [0..1, 1..2]);
    }

    #[test]
    fn blocks_that_share_a_beginning_have_the_names_of_their_first_layers() {
        let firsts = [
            "down.0.resnets.0",
            "mid.0",
            "down.0.resnets.1",
            "up.1.attention",
        ];
        let names = ["down.0.resnets.0", "mid.0", "down.0.resnets.1", "up.1"];
        assert_eq!(unique_names(&firsts), names);
    }
}
