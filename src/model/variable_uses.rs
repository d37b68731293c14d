//! A use: the pair of equivalence class and use set that some variables have.
//!
//! There are millions of variables and some hundred thousand uses, so values that only depend on
//! class and use set are computed once for each use.

use rustc_hash::FxHashMap;

/// An equivalence class and a use set that some variables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableUse {
    /// The equivalence class (which determines the steps at which the variables are live), as an
    /// index into the profile's classes.
    pub class: u32,
    /// The operation groups that use the variables, as an index into [`UseSets`](super::UseSets).
    pub set: u32,
    /// Bytes over all tiles of the variables with this class and use set.
    pub bytes: u64,
}

/// The bytes on one tile of the variables with the same class and use set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TileUse {
    /// Index into [`VariableGroups::uses`](super::VariableGroups::uses) of the class and use set.
    pub number: u32,
    /// Bytes on the tile of the variables with this class and use set.
    pub bytes: u32,
}

/// A map with a value for each pair of equivalence class and use set. Most classes have only one
/// use set; then a lookup is one access to a list.
pub(super) struct ByUse<T> {
    /// By class: its first use set ([`NO_SET`] if it has none), and the value of the class with
    /// this set.
    first: Vec<(u32, T)>,
    /// By class and set: the values of all further sets.
    others: FxHashMap<(u32, u32), T>,
}

const NO_SET: u32 = u32::MAX;

impl<T: Copy + Default> ByUse<T> {
    /// Builds an empty map for classes below `classes`.
    pub(super) fn new(classes: usize) -> Self {
        Self {
            first: vec![(NO_SET, T::default()); classes],
            others: FxHashMap::default(),
        }
    }

    /// Returns the value of a class and use set to be changed; adds the pair with the default if it
    /// is new.
    #[inline]
    pub(super) fn of_mut(&mut self, class: u32, set: u32) -> &mut T {
        let (first, value) = &mut self.first[class as usize];
        if *first == NO_SET {
            *first = set;
        }
        if *first == set {
            value
        } else {
            self.others.entry((class, set)).or_default()
        }
    }

    /// Returns the value of a class and use set; the default if the map lacks the pair.
    #[inline]
    pub(super) fn of(&self, class: u32, set: u32) -> T {
        let (first, value) = self.first[class as usize];
        if first == set {
            value
        } else {
            self.others.get(&(class, set)).copied().unwrap_or_default()
        }
    }

    /// Iterates over all pairs of class and use set with their values, in no particular order.
    fn into_all(self) -> impl Iterator<Item = ((u32, u32), T)> {
        (0u32..)
            .zip(self.first)
            .filter(|&(_, (set, _))| set != NO_SET)
            .map(|(class, (set, value))| ((class, set), value))
            .chain(self.others)
    }
}

impl ByUse<u64> {
    /// Adds each value of `other` to the value of the same class and set.
    pub(super) fn join(mut self, other: Self) -> Self {
        for ((class, set), bytes) in other.into_all() {
            *self.of_mut(class, set) += bytes;
        }
        self
    }

    /// Returns all pairs of class and use set with their bytes, ascending by class, then by set.
    pub(super) fn into_uses(self) -> Vec<VariableUse> {
        let mut uses: Vec<_> = self
            .into_all()
            .map(|((class, set), bytes)| VariableUse { class, set, bytes })
            .collect();
        uses.sort_unstable();
        uses
    }
}
