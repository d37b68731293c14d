//! The flow of every use that variables have, in a form that is quick to ask: there
//! are millions of variables, and some hundred thousand uses.

use std::sync::Arc;

/// The class of a variable and its user set.
pub(super) type Use = (u32, u32);

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
    /// None do, because its variables are parameters, which last.
    Lasting,
    None,
    /// Its user set and its flow.
    One(u32, u32),
    /// Where they begin and end.
    Several(u32, u32),
}

impl FlowsOfUses {
    /// Takes `uses`, which are in order, with their flows; `lasting` says of each class
    /// whether its variables are parameters, which have none.
    pub(super) fn new(
        lasting: impl Iterator<Item = bool>,
        uses: &[Use],
        flow: impl Fn(Use) -> u32,
    ) -> Self {
        let none = |lasts| {
            if lasts {
                OfClass::Lasting
            } else {
                OfClass::None
            }
        };
        let mut of_class: Vec<_> = lasting.map(none).collect();
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

    /// Are the variables of a class parameters?
    #[inline]
    pub(super) fn is_lasting(&self, class: u32) -> bool {
        matches!(self.of_class[class as usize], OfClass::Lasting)
    }

    /// The flow of a use; `None` if it has none or no variable has it.
    #[inline]
    pub(super) fn of(&self, (class, set): Use) -> Option<u32> {
        match self.of_class[class as usize] {
            OfClass::Lasting | OfClass::None => None,
            OfClass::One(only, flow) => (only == set).then_some(flow),
            OfClass::Several(begin, end) => {
                let own = &self.several[begin as usize..end as usize];
                let found = own.binary_search_by_key(&set, |&(set, _)| set);
                found.ok().map(|found| own[found].1)
            }
        }
    }
}
