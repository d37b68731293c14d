//! Short names of layers.

use rustc_hash::{FxHashMap, FxHashSet};

/// The name of each layer with this path, in the order of the program: the shortest end of its
/// path that no other layer has, with the modules in its middle left out where it stays unique.
/// Layers with the same path, the calls of one module, are numbered.
pub(super) fn names(paths: &[String]) -> Vec<String> {
    let distinct: FxHashSet<&str> = paths.iter().map(|path| &**path).collect();
    let mut ends: FxHashMap<&str, u32> = FxHashMap::default();
    for end in distinct.iter().flat_map(|path| ends_of(path)) {
        *ends.entry(end).or_default() += 1;
    }
    let end = |path: &'_ str| -> usize {
        let unique = ends_of(path).find(|end| ends[end] == 1);
        path.len() - unique.unwrap_or(path).len()
    };
    let mut short: FxHashMap<String, u32> = FxHashMap::default();
    for path in &distinct {
        let end = &path[end(path)..];
        for name in FxHashSet::from_iter([end.to_string(), without_middle(end)]) {
            *short.entry(name).or_default() += 1;
        }
    }
    let name = |path: &String| {
        let end = &path[end(path)..];
        let shorter = without_middle(end);
        if short[&shorter] == 1 {
            shorter
        } else {
            end.to_string()
        }
    };
    let named: Vec<String> = paths.iter().map(name).collect();
    numbered(named)
}

/// The ends of a path at the beginnings of its modules, the shortest first.
fn ends_of(path: &str) -> impl Iterator<Item = &str> {
    let inner = path
        .rmatch_indices(['/', '.'])
        .map(|(at, _)| &path[at + 1..]);
    inner.filter(|end| !end.is_empty()).chain([path])
}

/// The first and the last module of a path.
fn without_middle(path: &str) -> String {
    let (first, last) = (path.find(['/', '.']), path.rfind(['/', '.']));
    match (first, last) {
        (Some(first), Some(last)) => [&path[..first], &path[last..]].concat(),
        _ => path.to_string(),
    }
}

/// Adds the number of its call to each name that several layers have.
fn numbered(names: Vec<String>) -> Vec<String> {
    let mut all: FxHashMap<String, u32> = FxHashMap::default();
    for name in &names {
        *all.entry(name.clone()).or_default() += 1;
    }
    let mut calls: FxHashMap<String, u32> = FxHashMap::default();
    let name = |name: String| {
        if all[&name] == 1 {
            return name;
        }
        let call = calls.entry(name.clone()).or_default();
        *call += 1;
        format!("{name}@{call}")
    };
    names.into_iter().map(name).collect()
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
        assert_eq!(of(&paths), ["encoder.0", "1", "decoder.0"]);
        let paths = ["mid.resnets.0", "mid.attentions.0", "mid.resnets.1"];
        assert_eq!(of(&paths), ["resnets.0", "attentions.0", "1"]);
    }

    #[test]
    fn calls_of_one_module_are_numbered() {
        assert_eq!(of(&["m.0", "m.0", "head"]), ["0@1", "0@2", "head"]);
    }
}
