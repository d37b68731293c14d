//! Writes a split as the number of blocks on each IPU, as in the setting `layers_per_ipu`. A block
//! is a group of layers, such as a block of a transformer; the model's code places the operations
//! before and after the blocks. `--emit examples` and `--emit optimum` write these numbers, and
//! `--layers-per-ipu` reads them.

use super::{Draft, FormSource, Lines, STAGE, template::OF_COUNTS};
use crate::{
    escape::{is_digits, printable},
    model::PseudoLayers,
    wording::join,
};
use std::ops::Range;

/// Groups consecutive layers into blocks, such as the blocks of a transformer, and returns each
/// block as a range of indices into `names`. Layers are in one block if their names are equal up to
/// the first number; a layer without a number is in a block only if it is between layers of the
/// block. If no name has a number, each layer is a block.
pub(crate) fn blocks<S: AsRef<str>>(names: &[S]) -> Vec<Range<usize>> {
    let mut blocks: Vec<(&str, Range<usize>)> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        match (block(name.as_ref()), blocks.last_mut()) {
            // This layer continues the block (such as `encoder.3`) of the previous layer with a
            // number. Layers without a number between these two layers belong to the block, too.
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

/// Returns the beginning of a layer's name up to its first number, such as `encoder.3` of
/// `encoder.3.attention`; `None` if it has no number. A number is a whole part between dots or
/// slashes: `3`, `_3` (in names by Keras) or `3@1` (the first of several calls of module 3), but
/// not `layer3`.
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
    /// Returns the layers of each block (of a transformer, for example), each layer as its position
    /// in the layer order and its name.
    fn blocks(self) -> Vec<Vec<(u32, &'a str)>> {
        let layers: Vec<_> = self.layers().collect();
        let names = Vec::from_iter(layers.iter().map(|&(_, name)| name));
        let blocks = blocks(&names).into_iter();
        blocks.map(|block| layers[block].to_vec()).collect()
    }

    /// Returns whether all stages of the split begin at the beginning of a block. If not, the split
    /// cannot be written as the number of blocks on each IPU.
    pub fn begins_with_blocks(self) -> bool {
        let blocks = self.blocks();
        let mut inner = blocks.iter().flat_map(|block| &block[1..]);
        !inner.any(|&(position, _)| self.split.begins_at(position))
    }

    /// Returns whether the model is a vision transformer, which has a module named `vit`.
    pub fn is_vit(self) -> bool {
        let mut modules = self.split.modules.iter().flat_map(|own| &own.begin);
        modules.any(|module| has_part(module, "vit"))
    }
}

impl Draft<'_> {
    /// Adds the lines of a configuration that states how many blocks (of a transformer, for
    /// example) each IPU has. Each block is represented by the text `item`, which is stored at the
    /// position of the block's first layer. Also adds notes on layers outside blocks, on the IPUs
    /// of In and Out (the operations before and after the layers) and on unused IPUs, and warns of
    /// stages that begin inside a block.
    pub fn count(&mut self, item: &str) {
        let (source, blocks) = (self.source, self.source.blocks());
        note_numbers(&blocks, &mut self.notes);
        let last = source.layers().last().map_or(0, |(position, _)| position);
        let mut items = vec![String::new(); last as usize + 1];
        for block in &blocks {
            items[block[0].0 as usize] = item.to_string();
            for &(position, name) in &block[1..] {
                self.notes.begin(position, true, format!(
                    "WARNING: blocks are counted as a whole, but IPU {STAGE} would begin inside one, \
                     at {}. Give --emit poptorch, or --together to keep the block in one stage.",
                    printable(name)
                ));
            }
        }
        let is_outside = |layer: &(u32, &str)| !blocks.iter().any(|block| block.contains(layer));
        let others = source.layers().filter(is_outside).map(|(_, name)| name);
        let others = join(others, " ");
        if !others.is_empty() {
            self.notes.add(format!(
                "Not counted, since most code places layers outside blocks itself (add those that yours counts): {}",
                printable(&others)
            ));
        }
        OF_COUNTS.lines().for_each(|line| self.add(line));
        // A configuration that only counts the blocks on each IPU puts layers before the first
        // block on the first IPU, and layers after the last block, and Out, on the last IPU, as
        // `--layers-per-ipu` does. So the only place outside blocks where a stage can begin is
        // directly after the last block.
        let after = blocks
            .last()
            .map_or(1, |block| block[block.len() - 1].0 + 1);
        let judge = match source.other {
            Some(_) => "Give",
            None => "Judge the split that they make with --layers-per-ipu, or give",
        };
        let outside = source.layers_and_out().filter(is_outside);
        for (position, name) in outside.filter(|&(position, _)| position != after) {
            self.notes.begin(position, true, format!(
                "WARNING: counts cannot begin IPU {STAGE} at {}, which is outside blocks. {judge} \
                 --emit poptorch.",
                printable(name)
            ));
        }
        (self.notes.items, self.text.items) = (items.clone(), items);
    }

    /// Adds the entries of `pipeline_stages` in Graphcore's BERT for TensorFlow 2, which name the
    /// parts of the model at each position: `"emb"` for In, `"hid"` for a block, and three parts
    /// for Out. Also adds the notes of [`count`](Self::count), such as the note on layers outside
    /// blocks.
    pub fn parts_of_bert(&mut self) {
        const OUT: &str = "\"enc_out\", \"pool\", \"heads\"";
        self.count("\"hid\"");
        let items = &mut self.text.items;
        items[0] = "\"emb\"".to_string();
        match (self.source.report.pseudo_layers, items.last_mut()) {
            // The classic memory model has no position for Out (the operations after the layers),
            // so the last layer also gets the names of the parts of BERT that run in Out.
            (PseudoLayers::NoneFirst, Some(last)) => {
                *last += if last.is_empty() { "" } else { ", " };
                *last += OUT;
            }
            _ => items.push(OUT.to_string()),
        }
    }

    /// Adds notes for text generation, which compiles the encoder and the decoder separately, so
    /// that no stage may have layers of both. A model without both gets no notes.
    pub fn generation(&mut self) {
        let of = |part| (self.source.layers()).filter(move |(_, name)| has_part(name, part));
        let (Some((last, _)), Some((first, name))) = (of("encoder").last(), of("decoder").next())
        else {
            return;
        };
        if first < last {
            return;
        }
        self.notes.at(last, format!(
            "Generation needs the encoder on 1, 2, 4, 8, ... IPUs without layers of the decoder; its \
             last layer is on IPU {STAGE}."
        ));
        self.notes.begin(first, false, format!(
            "WARNING: generation needs a stage that begins with the decoder. Give --cut-before {}.",
            printable(name)
        ));
    }
}

/// Adds a note if blocks are named by numbers and some number between the first and the last block
/// is missing. Otherwise, if the names of the blocks are not ascending numbers, adds a note that
/// lists these names in order. Each block is a list of its layers (position and name).
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

/// Returns a name for each block of layers. `firsts` has the name of the first layer of each block.
/// A block gets this name up to its first number, or the whole name if several blocks would get the
/// short one.
fn unique_names<'a>(firsts: &[&'a str]) -> Vec<&'a str> {
    let short = |&name: &&'a str| block(name).unwrap_or(name);
    let unique = |first| match firsts
        .iter()
        .filter(|other| short(other) == short(first))
        .count()
    {
        1 => short(first),
        _ => *first,
    };
    firsts.iter().map(unique).collect()
}

/// Returns whether `part` is a whole part of `name`, the name of a module or layer, between dots or
/// slashes.
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
        assert_eq!(blocks(&names), [1..4, 4..5]);
        assert_eq!(blocks(&["e.0", "e.1", "d.0"]), [0..1, 1..2, 2..3]);
        assert_eq!(blocks(&["0@1", "0@2"]), [0..1, 1..2]);
        assert_eq!(blocks(&["_0", "_1", "pooler"]), [0..1, 1..2]);
        assert_eq!(blocks(&["stem", "head1"]), [0..1, 1..2]);
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
