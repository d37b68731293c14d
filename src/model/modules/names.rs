//! Finds short names for layers, which users see in results and may give in options.

use crate::model::counts;
use rustc_hash::{FxHashMap, FxHashSet};

/// Returns a short name for each layer from the path of its module: the shortest end of the path
/// that no other layer has. Paths that differ only in numbers are shortened by equally many
/// modules. Layers with equal paths are runs of one module and are numbered from 1: `0@1`, `0@2`.
pub fn names(paths: &[String]) -> Vec<String> {
    let distinct: FxHashSet<&str> = paths.iter().map(|path| &**path).collect();
    let ends = counts(distinct.iter().flat_map(|path| ends_of(path)));
    let mut needed: FxHashMap<String, usize> = FxHashMap::default();
    for path in &distinct {
        let unique = ends_of(path).position(|end| ends[end] == 1);
        let needed = needed.entry(without_numbers(path, "#")).or_default();
        *needed = (*needed).max(unique.unwrap_or(usize::MAX));
    }
    numbered(
        paths
            .iter()
            .map(|path| {
                let needed = needed[&without_numbers(path, "#")];
                ends_of(path).nth(needed).unwrap_or(path).to_string()
            })
            .collect(),
    )
}

pub fn without_numbers(text: &str, mark: &str) -> String {
    let mut marked = String::new();
    for (number, part) in text.split(|c: char| c.is_ascii_digit()).enumerate() {
        if number > 0 && !marked.ends_with(mark) {
            marked.push_str(mark);
        }
        marked.push_str(part);
    }
    marked
}

/// Returns the names of a layer's submodules with the paths `parts`. A name consists of the layer's
/// name, a dot, and the rest of the submodule's path.
pub fn of_parts(layer: &str, path: &str, parts: &[String]) -> Vec<String> {
    let named = parts.iter().map(|part| {
        let below = part
            .strip_prefix(path)
            .map(|below| below.trim_start_matches(['/', '.']));
        let last = part.rsplit(['/', '.']).next().unwrap_or(part);
        format!(
            "{layer}.{}",
            below.filter(|below| !below.is_empty()).unwrap_or(last)
        )
    });
    numbered(named.collect())
}

/// Iterates over the ends of a module path, the shortest first: `c`, `b.c` and `a.b.c` for `a.b.c`.
fn ends_of(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices(['/', '.'])
        .map(|(at, _)| &path[at + 1..])
        .filter(|end| !end.is_empty())
        .chain([path])
}

/// Makes equal names of layers distinct by appending `@` and a number from 1: `0@1`, `0@2`.
pub fn numbered(names: Vec<String>) -> Vec<String> {
    let all = counts(names.iter().cloned());
    let mut runs: FxHashMap<String, u32> = FxHashMap::default();
    names
        .into_iter()
        .map(|name| {
            if all[&name] == 1 {
                return name;
            }
            let run = runs.entry(name.clone()).or_default();
            *run += 1;
            format!("{name}@{run}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Vec<String> {
        let paths: Vec<String> = paths.iter().map(|path| path.to_string()).collect();
        names(&paths)
    }

    #[test]
    fn one_list_has_bare_numbers() {
        let paths = [
            "bert.embeddings",
            "bert.encoder.layer.0",
            "bert.encoder.layer.1",
            "cls",
        ];
        assert_eq!(of(&paths), ["embeddings", "0", "1", "cls"]);
    }

    #[test]
    fn two_lists_have_what_tells_them_apart() {
        let paths = [
            "m.encoder.layers.0",
            "m.encoder.layers.1",
            "m.decoder.layers.0",
        ];
        let expected = ["encoder.layers.0", "encoder.layers.1", "decoder.layers.0"];
        assert_eq!(of(&paths), expected);
        let paths = ["mid.resnets.0", "mid.attentions.0", "mid.resnets.1"];
        assert_eq!(of(&paths), ["resnets.0", "attentions.0", "resnets.1"]);
        let paths = [
            "e.block.0.layer.0",
            "e.block.1.layer.0",
            "d.block.0.layer.0",
        ];
        assert_eq!(of(&paths), paths);
    }

    #[test]
    fn parts_are_named_after_their_layer() {
        let parts = ["m.layer.3.attention", "m.layer.3.output", "other"].map(String::from);
        let expected = ["3.attention", "3.output", "3.other"];
        assert_eq!(of_parts("3", "m.layer.3", &parts), expected);
    }

    #[test]
    fn runs_of_one_module_are_numbered() {
        assert_eq!(of(&["m.0", "m.0", "head"]), ["0@1", "0@2", "head"]);
    }
}
