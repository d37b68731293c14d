//! Finds forward operations by the beginnings of their paths.

use super::paths::{bare, components};
use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Upper bound on the components before a path, such as a prefix for gradients.
const COMPONENTS_BEFORE: usize = 8;

/// By hash of the beginning of a path: the first and the last operation whose path begins with it.
#[derive(Debug, Clone, Default)]
pub(super) struct Lookup {
    operations: FxHashMap<u64, (u32, u32)>,
}

impl Lookup {
    /// Adds an operation by its path, a scope or a path of modules. Operations must be added in
    /// ascending order of their numbers.
    pub(super) fn add(&mut self, path: &str, operation: u32) {
        let mut beginning = 0;
        for component in components(path) {
            beginning = longer(beginning, component);
            let found = self.operations.entry(beginning);
            found.or_insert((operation, operation)).1 = operation;
        }
    }

    /// The first and the last operation of the path that `text` contains, at its beginning or after
    /// some components. Of several paths, the one that shares most components decides.
    pub(super) fn find(&self, text: &str) -> Option<(u32, u32)> {
        let components: Vec<&str> = components(text).collect();
        let mut best = (0, None);
        for start in 0..components.len().min(COMPONENTS_BEFORE) {
            let mut beginning = 0;
            for (count, component) in (1..).zip(&components[start..]) {
                beginning = longer(beginning, component);
                let Some(&operations) = self.operations.get(&beginning) else {
                    break;
                };
                if count > best.0 {
                    best = (count, Some(operations));
                }
            }
        }
        best.1
    }
}

/// The hash of a beginning with one more component. Frameworks write the separators of one path in
/// different ways, so they do not count.
fn longer(beginning: u64, component: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((beginning, bare(component)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_decides() {
        let mut lookup = Lookup::default();
        lookup.add("bert/encoder/0/attention", 1);
        lookup.add("bert/encoder/1/attention", 2);
        lookup.add("bert.encoder.layer.1.attention", 2);
        assert_eq!(lookup.find("bert/encoder/1/attention/MatMul"), Some((2, 2)));
        assert_eq!(lookup.find("gradient_tape/bert/encoder/0/x"), Some((1, 1)));
        let state = "Accl1___bert.encoder.layer.1.attention.weight";
        assert_eq!(lookup.find(state), Some((2, 2)));
        assert_eq!(lookup.find("bert/encoder"), Some((1, 2)));
        assert_eq!(lookup.find("loss"), None);
    }
}
