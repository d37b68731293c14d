//! The flow of every use that variables have, in a form that is quick to ask: there
//! are millions of variables, and some hundred thousand uses.

use crate::model::Model;
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The class of a variable and its user set.
pub(super) type Use = (u32, u32);

/// Tiles of which one thread gathers the uses at least.
const TILES_AT_ONCE: usize = 64;

/// Flows by use.
#[derive(Debug, Clone, Default)]
pub(super) struct FlowsOfUses {
    of_class: Arc<[OfClass]>,
    /// By class with several uses, then by user set: the set and the flow.
    several: Arc<[(u32, u32)]>,
}

/// The uses of a class that have a flow.
#[derive(Debug, Clone, Copy)]
enum OfClass {
    None,
    /// Its user set and its flow.
    One(u32, u32),
    /// Where they begin and end.
    Several(u32, u32),
}

impl FlowsOfUses {
    /// Takes `uses`, which are in order, with their flows.
    pub(super) fn new(classes: usize, uses: &[Use], flow: impl Fn(Use) -> u32) -> Self {
        let mut of_class = vec![OfClass::None; classes];
        let mut several = Vec::new();
        for uses in uses.chunk_by(|a, b| a.0 == b.0) {
            let class = uses[0].0 as usize;
            if let &[only] = uses {
                of_class[class] = OfClass::One(only.1, flow(only));
                continue;
            }
            let begin = several.len() as u32;
            several.extend(uses.iter().map(|&own| (own.1, flow(own))));
            of_class[class] = OfClass::Several(begin, several.len() as u32);
        }
        Self {
            of_class: of_class.into(),
            several: several.into(),
        }
    }

    /// The flow of a use; `None` if it has none or no variable has it.
    #[inline]
    pub(super) fn of(&self, (class, set): Use) -> Option<u32> {
        match self.of_class[class as usize] {
            OfClass::None => None,
            OfClass::One(only, flow) => (only == set).then_some(flow),
            OfClass::Several(begin, end) => {
                let own = &self.several[begin as usize..end as usize];
                let found = own.binary_search_by_key(&set, |&(set, _)| set);
                found.ok().map(|found| own[found].1)
            }
        }
    }
}

/// All uses of the variables of `model` that are wanted, in order.
pub(super) fn gather(model: &Model, is_wanted: impl Fn(Use) -> bool + Sync) -> Vec<Use> {
    let classes = model.classes.len();
    let add = |mut met: Met, tile| {
        for item in model.variables.on_tile(tile) {
            if is_wanted((item.class, item.set)) {
                met.add((item.class, item.set));
            }
        }
        met
    };
    let tiles = (0..model.variables.tiles()).into_par_iter();
    let met = tiles
        .with_min_len(TILES_AT_ONCE)
        .fold(|| Met::new(classes), add)
        .reduce(|| Met::new(classes), Met::join);
    met.into_uses()
}

/// The uses that some tiles have.
struct Met {
    /// By class: the set of its use that was met first; `u32::MAX` before that.
    first: Vec<u32>,
    /// All others.
    others: FxHashSet<Use>,
}

impl Met {
    fn new(classes: usize) -> Self {
        Self {
            first: vec![u32::MAX; classes],
            others: FxHashSet::default(),
        }
    }

    fn add(&mut self, (class, set): Use) {
        let first = &mut self.first[class as usize];
        if *first == u32::MAX {
            *first = set;
        } else if *first != set {
            self.others.insert((class, set));
        }
    }

    fn join(mut self, other: Self) -> Self {
        other.uses().for_each(|own| self.add(own));
        self
    }

    fn uses(&self) -> impl Iterator<Item = Use> + '_ {
        let first = (0u32..).zip(&self.first);
        let first = first.map(|(class, &set)| (class, set));
        let first = first.filter(|&(_, set)| set != u32::MAX);
        first.chain(self.others.iter().copied())
    }

    fn into_uses(self) -> Vec<Use> {
        let mut uses: Vec<Use> = self.uses().collect();
        uses.sort_unstable();
        uses
    }
}
