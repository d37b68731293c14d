//! Writes a split as the number of blocks on each IPU, as `layers_per_ipu` takes it. A block is a
//! group of layers, such as a block of a transformer; the model's code places operations before and
//! after. `--layers-per-ipu` reads the same numbers. The forms `examples` and `optimum` have them.

use super::form_source::FormSource;
use super::lines::{Draft, Lines, STAGE};
use super::template::OF_COUNTS;
use crate::escape::{is_digits, printable};
use crate::model::PseudoLayers;
use crate::report::join;
use std::ops::Range;

/// Groups consecutive layers with the names `names` into blocks, such as the blocks of a
/// transformer. Returns a range of indices into `names` for each block. Layers are in one block if
/// their names begin with the same text up to the first number; layers without a number are in a
/// block only if they are inside it. If no name has a number, each layer is a block.
pub(crate) fn blocks<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Vec<Range<usize>> {
    let names: Vec<S> = names.into_iter().collect();
    let mut blocks: Vec<(&str, Range<usize>)> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        match (block(name.as_ref()), blocks.last_mut()) {
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
/// number, such as `encoder.3` of `encoder.3.attention`; `None` without such a part. `3@1`, in the
/// name of a repeated call of a module, and `_3`, in names by Keras, are numbers too.
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

impl<'a> FormSource<'a> {
    /// Returns the layers of each block, each with its position in the layer order.
    fn blocks(self) -> Vec<Vec<(u32, &'a str)>> {
        let layers: Vec<_> = self.layers().collect();
        let blocks = blocks(layers.iter().map(|&(_, name)| name)).into_iter();
        blocks.map(|block| layers[block].to_vec()).collect()
    }

    /// Returns whether each stage of the split begins with a whole block (or with Out), so that
    /// numbers of blocks can express the split.
    pub fn begins_with_blocks(self) -> bool {
        let blocks = self.blocks();
        let mut inner = blocks.iter().flat_map(|block| &block[1..]);
        !inner.any(|&(position, _)| self.split.begins_at(position))
    }

    /// Returns whether the model is a vision transformer, which has a module named `vit`.
    pub fn is_vit(self) -> bool {
        let mut modules = self.split.modules.iter();
        modules.any(|own| own.begin.iter().any(|module| has_part(module, "vit")))
    }
}

impl Draft<'_> {
    /// Sets the item of the first layer of each block to `item`, and that of any other position
    /// before Out to an empty string. Adds notes on layers outside blocks, on In and Out and on
    /// unused IPUs, and warns of stages that begin inside a block.
    pub fn count(&mut self, item: &str) {
        let (source, blocks) = (self.source, self.source.blocks());
        note_numbers(&blocks, &mut self.notes);
        let end = source
            .layers()
            .last()
            .map_or(1, |(position, _)| position + 1);
        let mut items = vec![String::new(); end as usize];
        for block in &blocks {
            items[block[0].0 as usize] = item.to_string();
            for &(position, name) in &block[1..] {
                let warning = format!(
                    "WARNING: blocks are counted as a whole, but IPU {STAGE} would begin inside one, \
                     at {}. Give --emit poptorch, or --together to keep the block in one stage.",
                    printable(name)
                );
                self.notes.begin(position, true, &warning);
            }
        }
        let is_outside = |layer: &(u32, &str)| !blocks.iter().any(|block| block.contains(layer));
        let others = join(
            source.layers().filter(is_outside).map(|(_, name)| name),
            " ",
        );
        if !others.is_empty() {
            self.notes.add(format!(
                "Not counted, since most code places layers outside blocks itself (add those that yours counts): {}",
                printable(&others)
            ));
        }
        OF_COUNTS.lines().for_each(|line| self.add(line));
        // Numbers of blocks put layers before the first block on the first IPU, and layers after
        // the last block on the last IPU, as `--layers-per-ipu` does. They cannot express that
        // another stage begins with such a layer, or with Out alone.
        let last = blocks.last().and_then(|block| block.last());
        let after = last.map_or(1, |&(position, _)| position + 1);
        for (position, name) in source.layers_and_out().filter(is_outside) {
            let judge = match source.other {
                Some(_) => "Give",
                None => "Judge the split that they make with --layers-per-ipu, or give",
            };
            let warning = format!(
                "WARNING: counts cannot begin IPU {STAGE} at {}, which is outside blocks. {judge} \
                 --emit poptorch.",
                printable(name)
            );
            if position != after {
                self.notes.begin(position, true, &warning);
            }
        }
        (self.notes.items, self.text.items) = (items.clone(), items);
    }

    /// Sets the items of `pipeline_stages` in Graphcore's BERT for TensorFlow 2, such as `"emb"`
    /// for In and `"hid"` for a block. Adds the notes of [`count`](Self::count).
    pub fn parts_of_bert(&mut self) {
        const OUT: &str = "\"enc_out\", \"pool\", \"heads\"";
        self.count("\"hid\"");
        let items = &mut self.text.items;
        items[0] = "\"emb\"".to_string();
        match (self.source.report.pseudo_layers, items.last_mut()) {
            // Operations after the layers run in the stage of the last layer.
            (PseudoLayers::NoneFirst, Some(last)) => {
                *last += if last.is_empty() { "" } else { ", " };
                *last += OUT;
            }
            _ => items.push(OUT.to_string()),
        }
    }

    /// Adds notes on text generation, which compiles the encoder and the decoder separately, so that
    /// no stage may contain layers of both. No notes for models without an encoder and a decoder.
    pub fn generation(&mut self) {
        let of = |part| {
            let layers = self.source.layers();
            layers.filter(move |(_, name)| has_part(name, part))
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
        self.notes.at(last, &note);
        let warning = format!(
            "WARNING: generation needs a stage that begins with the decoder. Give --cut-before {}.",
            printable(name)
        );
        self.notes.begin(first, false, &warning);
    }
}

/// Adds a note on the order in which `blocks` are counted, unless their names show it, or on
/// numbers that are missing between blocks. Each block has its layers with their positions.
fn note_numbers(blocks: &[Vec<(u32, &str)>], notes: &mut Lines<'_>) {
    let names = unique_names(&Vec::from_iter(blocks.iter().map(|block| block[0].1)));
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

/// Returns a name for each block, given the name of its first layer: that name up to its first
/// number, or all of it if several blocks have the same beginning.
fn unique_names<'a>(firsts: &[&'a str]) -> Vec<&'a str> {
    let short = |&name: &&'a str| block(name).unwrap_or(name);
    let unique = |first| {
        let alike = firsts.iter().filter(|other| short(other) == short(first));
        match alike.count() {
            1 => short(first),
            _ => *first,
        }
    };
    firsts.iter().map(unique).collect()
}

/// Returns whether a module's or layer's name has `part` between its dots and slashes.
fn has_part(name: &str, part: &str) -> bool {
    name.split(['.', '/']).any(|own| own == part)
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
