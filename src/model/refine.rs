//! Divides use sets (the operation groups that use each variable) by the labels (names of tensors)
//! and the partners of their variables (docs/model.md, "Variables"). A partner is, for example, the
//! weight that an optimizer's moment belongs to. All variables of a use set are assigned to the
//! same places, but a label or a partner may decide the places, so it must be the same in the whole
//! set.

use super::{
    GroupCode,
    operations::UnnamedGroup,
    use_sets::{NO_USERS, UseSetIndex, UseSets, Users},
};
use crate::profile::{Profile, Variables};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// Divides use sets (the operation groups that use each variable) so that all variables of a set
/// have the same label (the framework's name of the tensor) and the same partner, such as the
/// weight of an optimizer's moment ([`UseSets::partner`]). Updates `set_of`, which has the use set
/// of each variable, and `sets`, which has all use sets. Returns the new use sets of the variables
/// of each compute set and memory region.
pub fn refine(
    profile: &Profile,
    groups: &[UnnamedGroup],
    codes: &[GroupCode],
    (set_of, sets): &mut Users,
) -> UseSetIndex {
    let labels = set_of
        .par_iter()
        .enumerate()
        .filter_map(|(variable, &set)| {
            let label = profile.variables.label(variable as u32);
            // A variable that no operation uses is in every stage. Its label (the name of its
            // tensor) changes nothing, so it is ignored.
            (set != NO_USERS && label != 0).then_some((variable as u32, label))
        })
        .collect();
    split_sets(labels, set_of, sets, |_, label| (label, NO_USERS));
    let pairing = Pairing {
        profile,
        set_of,
        users: sets.fold(0, |users: u8, group| {
            users.saturating_add(codes[group].computes().into())
        }),
        use_set_index: UseSetIndex::new(profile, set_of, sets.len()),
    };
    let partners = pairing.partners(groups);
    let mut index = pairing.use_set_index;
    let divided = split_sets(partners, set_of, sets, |label, partner| (label, partner));
    index.update(profile, set_of, sets.len(), |used| {
        used.iter().any(|set| divided.contains(set))
    });
    index
}

/// Divides use sets (variables with the same users) so that all variables of a set also have the
/// same value. The value is the index of a label (name of the tensor), or the use set of a partner,
/// such as the weight to which an optimizer's moment belongs. `values` has pairs of a variable and
/// its value; other variables stay in their sets. A new set gets the label and the partner that
/// `mark` computes from the label of the old set and the value. Returns the sets that were divided.
fn split_sets(
    values: Vec<(u32, u32)>,
    set_of: &mut [u32],
    sets: &mut UseSets,
    mark: impl Fn(u32, u32) -> (u32, u32),
) -> FxHashSet<u32> {
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (variable, value) in values {
        let set = &mut set_of[variable as usize];
        *set = *known.entry((*set, value)).or_insert_with(|| {
            let (label, partner) = mark(sets.label(*set), value);
            sets.push_alike(*set, label, partner)
        });
    }
    known.into_keys().map(|(set, _)| set).collect()
}

/// A variable and the use set of its partner, such as an optimizer's moment and the use set of the
/// weight that the moment belongs to.
type VariablePartner = (u32, u32);

/// A compute set is taken to work on the whole model, as in an optimizer, if the variables that it
/// shares with other operations are in at least this many use sets (variables of one tensor with
/// the same users). A compute set of a layer mostly has fewer.
const MIN_PARTNERS: usize = 8;

/// An operation is taken to work on the whole model, with one compute set for each weight, if it
/// has at least this many compute sets. An operation of a layer has fewer.
const MIN_COMPUTE_SETS: usize = 8;

/// The data from which the partners of variables are found. The partner of an optimizer's moment,
/// for example, is the weight that the moment belongs to.
struct Pairing<'a> {
    profile: &'a Profile,
    set_of: &'a [u32],
    /// One entry per use set (variables that the same operations use): how many operation groups
    /// compute with its variables.
    users: Vec<u8>,
    use_set_index: UseSetIndex,
}

impl Pairing<'_> {
    /// Finds the weights to which variables such as an optimizer's moments belong (their partners).
    /// Only operations that work on the weights of the whole model, such as an optimizer, are
    /// searched. If no other operation computes with a variable of such an operation, its partner
    /// is a variable of the same compute set with which other operations compute too. Returns the
    /// variables with exactly one partner, ascending, and the use sets of the partners.
    fn partners(&self, groups: &[UnnamedGroup]) -> Vec<VariablePartner> {
        let runs_vertices = |program: &u32| self.profile.programs.compute_set(*program).is_some();
        let of_group = |group: &UnnamedGroup| {
            let mut own = group.programs.clone();
            own.retain(runs_vertices);
            let count = own.len();
            own.into_par_iter()
                .flat_map_iter(move |program| self.of_compute_set(program, count))
        };
        let mut pairs: Vec<VariablePartner> = groups.par_iter().flat_map(of_group).collect();
        pairs.par_sort_unstable();
        pairs.dedup();
        // The partner of a variable is the weight that it belongs to, as an optimizer's moment
        // does. A variable with different partners in several compute sets, such as a norm of all
        // gradients, belongs to no single weight, so it gets none.
        pairs
            .chunk_by(|a, b| a.0 == b.0)
            .filter_map(|pairs| <[VariablePartner; 1]>::try_from(pairs).ok())
            .flatten()
            .collect()
    }

    fn of_compute_set(&self, program: u32, compute_sets: usize) -> Vec<VariablePartner> {
        let sets = self.use_set_index.of_program(self.profile, program);
        let (others, unshared): (Vec<u32>, Vec<u32>) =
            sets.into_iter().partition(|&set| self.is_shared(set));
        let Some(&partner) = others.first().filter(|_| !unshared.is_empty()) else {
            return Vec::new();
        };
        if others.len() >= MIN_PARTNERS {
            self.pair(program)
        } else if compute_sets >= MIN_COMPUTE_SETS {
            self.used(program)
                .filter(|&v| !self.has_shared_set(v))
                .map(|variable| (variable, partner))
                .collect()
        } else {
            Vec::new()
        }
    }

    fn is_shared(&self, set: u32) -> bool {
        self.users[set as usize] > 1
    }

    fn has_shared_set(&self, variable: u32) -> bool {
        self.is_shared(self.set_of[variable as usize])
    }

    fn used(&self, program: u32) -> impl Iterator<Item = u32> {
        self.profile
            .variables_of(&[program])
            .into_iter()
            .flatten()
            .copied()
    }

    /// Finds the weights (partners) to which variables of `program` belong, such as the moments of
    /// an optimizer. A variable gets a partner if no other operation computes with it. Candidates
    /// are variables of the program on the same tile, with equally many elements, with which other
    /// operations compute too. If several variables have the same tile and size, only their order
    /// shows which is whose: the first gets the first candidate, the second the second, and so on.
    /// State (variables with a label, the name of a tensor) and temporaries (without one) are
    /// paired separately.
    fn pair(&self, program: u32) -> Vec<VariablePartner> {
        let Variables { tiles, bytes, .. } = &self.profile.variables;
        let place = |variable: u32| (tiles[variable as usize], bytes[variable as usize]);
        let (mut others, unshared): (Vec<PlacedVariable>, Vec<PlacedVariable>) = self
            .used(program)
            .map(|variable| (place(variable), variable))
            .partition(|&(_, variable)| self.has_shared_set(variable));
        let set_of = |variable: u32| self.set_of[variable as usize];
        others.sort_by_cached_key(|&(place, variable)| (place, set_of(variable)));
        let is_state =
            |&(_, variable): &PlacedVariable| self.profile.variables.label(variable) != 0;
        let (state, temporaries): (Vec<_>, Vec<_>) = unshared.into_iter().partition(is_state);
        let mut pairs = Vec::new();
        for unshared in [state, temporaries] {
            let widths = widths(&unshared, &others);
            let mut next: FxHashMap<TileAndBytes, usize> = FxHashMap::default();
            for (place, variable) in unshared {
                let mut candidates = widths
                    .iter()
                    .map(|&width| of_elements(&others, place, width));
                if let Some(partners) = candidates.find(|found| !found.is_empty()) {
                    let turn = next.entry(place).or_default();
                    let (_, partner) = partners[*turn % partners.len()];
                    pairs.push((variable, set_of(partner)));
                    *turn += 1;
                }
            }
        }
        pairs
    }
}

/// The tile and the size in bytes of a variable.
type TileAndBytes = (u16, u32);

/// The tile and the size in bytes of a variable, and the index of the variable.
type PlacedVariable = (TileAndBytes, u32);

/// Possible ratios of the element size of a variable to that of its partner, as fractions: an
/// element of an optimizer's moment is as wide as an element of its weight, or twice or half as
/// wide.
const WIDTHS: [(u32, u32); 3] = [(1, 1), (2, 1), (1, 2)];

/// Returns [`WIDTHS`], the possible ratios of the element size of a variable, such as an
/// optimizer's moment, to that of the weight to which it belongs; the likeliest first. `unshared`
/// has the variables whose weights are wanted, and `others` (sorted) the possible weights. A ratio
/// is likely if many of `unshared` find a weight with equally many elements on their tile. With a
/// wrong ratio, some may find one by chance.
fn widths(unshared: &[PlacedVariable], others: &[PlacedVariable]) -> [(u32, u32); 3] {
    let mut widths = WIDTHS;
    widths.sort_by_cached_key(|&width| {
        unshared
            .iter()
            .filter(|&&(place, _)| of_elements(others, place, width).is_empty())
            .count()
    });
    widths
}

/// Finds the candidates for the partner of a variable that has `bytes` bytes on `tile`. Returns the
/// variables in `others` (sorted) on this tile that have the same number of elements as the
/// variable. An element of the variable has `times / parts` times the bytes of an element of its
/// partner, such as 2 if a moment of 4-byte elements belongs to a weight of 2-byte elements.
fn of_elements(
    others: &[PlacedVariable],
    (tile, bytes): TileAndBytes,
    (times, parts): (u32, u32),
) -> &[PlacedVariable] {
    let width = bytes.checked_mul(parts);
    let Some(width) = width.filter(|width| width.is_multiple_of(times)) else {
        return &[];
    };
    let wanted = (tile, width / times);
    let rest = &others[others.partition_point(|&(place, _)| place < wanted)..];
    &rest[..rest.partition_point(|&(place, _)| place == wanted)]
}
