//! The uses of variables: their class, and which operations use them.
//!
//! There are millions of variables and some hundred thousand uses, so what depends only on class
//! and use set is looked up once for each use.

use rustc_hash::FxHashMap;

/// A class and a use set that some variables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableUse {
    /// The equivalence class, as a position in the profile's classes.
    pub class: u32,
    /// The operation groups that use the variables, as a set of [`UseSets`](super::UseSets).
    pub set: u32,
    /// Bytes of the variables over all tiles.
    pub bytes: u64,
}

/// The bytes of a use on one tile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TileUse {
    /// The number of the use in [`VariableGroups::uses`](super::VariableGroups::uses).
    pub number: u32,
    /// Bytes of its variables on the tile.
    pub bytes: u32,
}

/// A value for each use. Most classes have only one use set, so that a lookup is one access to a
/// list.
#[derive(Debug, Clone)]
pub(super) struct ByUse<T> {
    /// By class: its first use set ([`NO_SET`] before there is one), and the value of both.
    first: Vec<(u32, T)>,
    /// Values of other sets, by class and set.
    others: FxHashMap<(u32, u32), T>,
}

const NO_SET: u32 = u32::MAX;

impl<T: Copy + Default> ByUse<T> {
    /// Values for classes below `classes`.
    pub(super) fn new(classes: usize) -> Self {
        Self {
            first: vec![(NO_SET, T::default()); classes],
            others: FxHashMap::default(),
        }
    }

    /// The value of a use, which is the default until it is changed.
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

    /// The value of a class and a use set; the default if there is none.
    #[inline]
    pub(super) fn of(&self, class: u32, set: u32) -> T {
        let (first, value) = self.first[class as usize];
        if first == set {
            value
        } else {
            let other = self.others.get(&(class, set));
            other.copied().unwrap_or_default()
        }
    }

    /// All uses with their values, in no order.
    fn into_all(self) -> impl Iterator<Item = ((u32, u32), T)> {
        let first = (0u32..).zip(self.first);
        let first = first.filter(|&(_, (set, _))| set != NO_SET);
        let first = first.map(|(class, (set, value))| ((class, set), value));
        first.chain(self.others)
    }
}

impl ByUse<u64> {
    /// Adds the bytes of `other`.
    pub(super) fn join(mut self, other: Self) -> Self {
        for ((class, set), bytes) in other.into_all() {
            *self.of_mut(class, set) += bytes;
        }
        self
    }

    /// The uses with their bytes, by class, then by set.
    pub(super) fn into_uses(self) -> Vec<VariableUse> {
        let all = self.into_all();
        let all = all.map(|((class, set), bytes)| VariableUse { class, set, bytes });
        let mut uses: Vec<_> = all.collect();
        uses.sort_unstable();
        uses
    }
}

impl ByUse<u32> {
    /// By use: its index in `uses`.
    pub(super) fn numbers(uses: &[VariableUse], classes: usize) -> Self {
        let mut numbers = Self::new(classes);
        for (number, variable_use) in (0u32..).zip(uses) {
            *numbers.of_mut(variable_use.class, variable_use.set) = number;
        }
        numbers
    }
}
