//! Sets of places (In, layers, Out). Equal sets are stored only once.

use crate::{limits, model::ascending};
use rustc_hash::FxHashMap;
use std::{ops::Range, sync::Arc};

/// Index of the place In, which stands for the operations before the first layer.
pub const IN: u32 = 0;

/// A set of places (In, layers, Out), as an index into [`PlaceSets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceSet(pub(crate) u32);

impl PlaceSet {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns this set of places (In, layers, Out) unless it is [`NOWHERE`] (no stage), and
    /// `other` otherwise.
    pub(super) fn or(self, other: Self) -> Self {
        if self == NOWHERE { other } else { self }
    }
}

/// The empty set of places (In, layers, Out), for variables, code and operations that are in no
/// stage.
pub const NOWHERE: PlaceSet = PlaceSet(0);

/// The set of all places (In, layers, Out), for variables, code and operations that are in every
/// stage. The places are not listed, so its list is empty, like that of [`NOWHERE`]: compare the
/// sets, not their lists.
pub const EVERYWHERE: PlaceSet = PlaceSet(1);

/// Returns whether any of `places` (ascending positions: In, layers, Out) lies in `range`, such as
/// the positions of a stage.
pub fn meets(places: &[u32], range: &Range<usize>) -> bool {
    places
        .iter()
        .any(|&place| range.contains(&(place as usize)))
}

/// All sets of places (In, layers, Out) that a placement refers to. Equal sets are stored only
/// once, and the places of a set are in ascending order.
///
/// If all sets together list more places than those of any real model, every further set becomes
/// [`EVERYWHERE`], and [`PlaceSets::check`] returns an error.
#[derive(Debug, Clone)]
pub struct PlaceSets {
    sets: Vec<Arc<[u32]>>,
    ids: FxHashMap<Arc<[u32]>, PlaceSet>,
    /// How many more places (In, layers, Out) new sets may list before all sets together exceed
    /// [`limits::PLACES`] places; `None` once no more sets are stored.
    left: Option<usize>,
}

/// Error: variables or code are shared by more distinct sets of places (In, layers, Out) than in
/// any real model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "variables are shared by more different groups of layers than in any real model; set \
     --layer-name-regex to a regex that finds fewer layers, or copy the profile again"
)]
pub struct TooManyPlaces;

impl Default for PlaceSets {
    fn default() -> Self {
        let nowhere: Arc<[u32]> = [].into();
        // The sets [`NOWHERE`] and [`EVERYWHERE`] both have an empty list of places, since no list
        // can mean that every stage needs something. Only their indices distinguish them.
        Self {
            sets: vec![nowhere.clone(), nowhere.clone()],
            ids: [(nowhere, NOWHERE)].into_iter().collect(),
            left: Some(limits::PLACES),
        }
    }
}

impl PlaceSets {
    /// Checks that all sets of places (In, layers, Out) could be stored.
    ///
    /// # Errors
    /// If all distinct sets together list more places than in any real model.
    pub fn check(&self) -> Result<(), TooManyPlaces> {
        self.left.map(drop).ok_or(TooManyPlaces)
    }

    /// Stops storing sets of places and makes [`PlaceSets::check`] fail. This is for a profile for
    /// which finding the sets takes more work than for any real model.
    pub(super) fn give_up(&mut self) {
        self.left = None;
    }

    /// Stores a set of places if it is new, and returns its index. The places must be ascending.
    /// Returns [`EVERYWHERE`] if all sets together would have more places than in any real model.
    pub fn intern(&mut self, places: &[u32]) -> PlaceSet {
        if let Some(&id) = self.ids.get(places) {
            return id;
        }
        self.left = self.left.and_then(|left| left.checked_sub(places.len()));
        if self.left.is_none() {
            return EVERYWHERE;
        }
        let id = PlaceSet(self.sets.len() as u32);
        let places: Arc<[u32]> = places.into();
        self.sets.push(places.clone());
        self.ids.insert(places, id);
        id
    }

    /// Returns the set that contains only `place` (In, a layer or Out), and stores the set if it is
    /// new.
    pub fn one(&mut self, place: u32) -> PlaceSet {
        self.intern(&[place])
    }

    /// Returns the places (In, layers, Out) of a set, ascending; empty for [`NOWHERE`] (no stage)
    /// and [`EVERYWHERE`] (every stage).
    pub fn places(&self, set: PlaceSet) -> &[u32] {
        &self.sets[set.index()]
    }

    /// Returns the place (In, a layer or Out) of a set of exactly one place; `None` for any other
    /// set.
    pub fn only(&self, set: PlaceSet) -> Option<u32> {
        match *self.places(set) {
            [place] => Some(place),
            _ => None,
        }
    }

    /// Returns the union of two place sets, and stores it if it is new. The union is [`EVERYWHERE`]
    /// if either set is [`EVERYWHERE`].
    pub fn union(&mut self, a: PlaceSet, b: PlaceSet) -> PlaceSet {
        let (a, b) = (a.min(b), a.max(b));
        if a == NOWHERE || a == b {
            return b;
        }
        self.union_of([a, b])
    }

    /// Returns the union of several sets of places (In, layers, Out). It is [`EVERYWHERE`] if one
    /// of the sets is, and [`NOWHERE`] without sets. Only the union of all sets is stored, and no
    /// unions of some of them, which saves memory.
    pub fn union_of(&mut self, of: impl IntoIterator<Item = PlaceSet>) -> PlaceSet {
        let distinct = ascending(of);
        if distinct.contains(&EVERYWHERE) || self.left.is_none() {
            return EVERYWHERE;
        }
        let places = distinct.iter().flat_map(|&set| self.places(set));
        self.intern(&ascending(places.copied()))
    }

    /// Returns the places (In, layers, Out) of an operation by the variables that it uses, whose
    /// place sets `of` lists. Smaller sets are added first, and a larger set is ignored if it
    /// contains a place that a smaller one has added. So a learning rate, which all places use,
    /// adds no place to that of a weight.
    pub(super) fn used_places(&mut self, of: impl IntoIterator<Item = PlaceSet>) -> PlaceSet {
        let mut distinct: Vec<PlaceSet> = of.into_iter().collect();
        let size = |set: &PlaceSet| match *set {
            EVERYWHERE => usize::MAX,
            set => self.places(set).len(),
        };
        distinct.sort_unstable_by_key(|set| (size(set), *set));
        distinct.dedup();
        let mut places: Box<[u32]> = Box::default();
        for alike in distinct.chunk_by(|a, b| size(a) == size(b)) {
            if alike == [EVERYWHERE] && places.is_empty() {
                return EVERYWHERE;
            }
            let is_known = |place| places.binary_search(place).is_ok();
            let new = alike
                .iter()
                .map(|&set| self.places(set))
                .filter(|more| !more.iter().any(is_known));
            places = ascending(places.iter().chain(new.flatten()).copied());
        }
        self.intern(&places)
    }

    /// Iterates over the lists of places (In, layers, Out) of all sets, in the order of their
    /// indices.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.sets.iter().map(|set| &**set)
    }

    /// Returns a copy of these sets of places (In, layers, Out) in which the place `to` replaces
    /// the place `from`. Each set keeps its index, even if several sets become equal.
    pub(super) fn moved(&self, from: u32, to: u32) -> Self {
        let moved = |places: &[u32]| -> Arc<[u32]> {
            ascending(
                places
                    .iter()
                    .map(|&place| if place == from { to } else { place }),
            )
            .into()
        };
        let sets: Vec<Arc<[u32]>> = self.iter().map(moved).collect();
        // Now that one place replaces another, several sets may list the same places, and
        // [`intern`](Self::intern) must find the first of these sets. An entry that is added to the
        // map replaces an earlier one with the same places, so the first set is added last.
        let ids = (0..sets.len() as u32).map(PlaceSet);
        Self {
            ids: sets.iter().cloned().zip(ids).rev().collect(),
            sets,
            left: self.left,
        }
    }
}
