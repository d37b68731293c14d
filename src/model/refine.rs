//! Sets of bodies told apart by what their variables are called and by what
//! they are paired with (pipeline.md, section 11): only then can a variable
//! count where its name or its partner says.

use super::variables::{BodySets, members};
use crate::profile::{Profile, ProgramKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// Gives variables with different labels or companions different sets.
/// `computes` says of a body whether it computes.
pub(super) fn refine(
    profile: &Profile,
    bodies: &[super::operations::FoundBody],
    computes: &[bool],
    set_of: &mut [u32],
    sets: &mut BodySets,
) {
    let label = |variable: usize| profile.variables.label(variable as u32);
    apart(set_of, sets, label);
    let partners = partners(profile, bodies, computes, set_of, sets);
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (variable, companion) in partners.sorted() {
        let set = &mut set_of[variable as usize];
        let label = sets.label(*set);
        *set = *known
            .entry((*set, companion))
            .or_insert_with(|| sets.push_alike(*set, label, companion));
    }
}

/// Splits the sets whose variables have different labels.
fn apart(set_of: &mut [u32], sets: &mut BodySets, label: impl Fn(usize) -> u32) {
    const UNSEEN: u32 = u32::MAX;
    const SEVERAL: u32 = u32::MAX - 1;
    let mut label_of = vec![UNSEEN; sets.len()];
    for (variable, &set) in set_of.iter().enumerate() {
        let known = &mut label_of[set as usize];
        let own = label(variable);
        *known = if *known == UNSEEN || *known == own {
            own
        } else {
            SEVERAL
        };
    }
    // What nobody uses is in every stage, whatever its name.
    label_of[0] = 0;
    let whole = (0u32..).zip(&label_of);
    for (set, &label) in whole.filter(|&(_, &label)| label < SEVERAL) {
        sets.mark(set, label, 0);
    }
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (variable, set) in set_of.iter_mut().enumerate() {
        let own = label(variable);
        if own != 0 && label_of[*set as usize] == SEVERAL {
            *set = *known
                .entry((*set, own))
                .or_insert_with(|| sets.push_alike(*set, own, 0));
        }
    }
}

/// By variable: the set of its partner, or [`NO_PARTNER`] where several are.
#[derive(Default)]
struct Partners(FxHashMap<u32, u32>);

/// The set of no variable that is used.
const NO_PARTNER: u32 = 0;

impl Partners {
    /// What has different partners in several compute sets, such as a norm, has
    /// none.
    fn add(&mut self, variable: u32, partner: u32) {
        let known = self.0.entry(variable).or_insert(partner);
        if *known != partner {
            *known = NO_PARTNER;
        }
    }

    fn sorted(self) -> Vec<(u32, u32)> {
        let found = self.0.into_iter().filter(|&(_, set)| set != NO_PARTNER);
        let mut found: Vec<(u32, u32)> = found.collect();
        found.sort_unstable();
        found
    }
}

/// A compute set over the whole model uses variables of at least so many other
/// sets; that of an operation of a layer has fewer.
const MIN_PARTNERS: usize = 8;

/// For each variable that a compute set over the whole model has for itself,
/// such as a moment: the set of a variable with as many elements on the same
/// tile that others compute with too, such as its weight.
fn partners(
    profile: &Profile,
    bodies: &[super::operations::FoundBody],
    computes: &[bool],
    set_of: &[u32],
    sets: &BodySets,
) -> Partners {
    let mut users = vec![0u8; sets.len()];
    for (set, smaller, body) in sets.iter() {
        let own = u8::from(computes[body as usize]);
        users[set as usize] = users[smaller as usize].saturating_add(own);
    }
    let mut found = Partners::default();
    for body in bodies {
        let is_compute_set = |&&program: &&u32| {
            let kind = &profile.programs.all[program as usize].kind;
            matches!(kind, ProgramKind::OnTileExecute(_))
        };
        let compute_sets: Vec<u32> = body
            .programs
            .iter()
            .filter(is_compute_set)
            .copied()
            .collect();
        for &program in &compute_sets {
            let mut used = Used::new(profile, program, set_of, &users);
            if used.own.is_empty() || used.others.is_empty() {
                continue;
            }
            if used.count_shared(set_of) >= MIN_PARTNERS {
                used.keep_lasting(profile);
                pair(profile, set_of, used.own, used.others, &mut found);
            } else if compute_sets.len() >= MIN_COMPUTE_SETS {
                let others = used
                    .others
                    .iter()
                    .map(|&variable| set_of[variable as usize]);
                let partner = others.min_by_key(|&set| (users[set as usize], set));
                for variable in used.own {
                    found.add(variable, partner.unwrap_or(NO_PARTNER));
                }
            }
        }
    }
    found
}

/// An operation over the whole model has at least so many compute sets, where
/// it has one for each weight; that of a layer has fewer.
const MIN_COMPUTE_SETS: usize = 8;

/// The variables of a compute set.
struct Used {
    /// Those that nothing else computes with.
    own: Vec<u32>,
    /// All others.
    others: Vec<u32>,
}

impl Used {
    fn new(profile: &Profile, program: u32, set_of: &[u32], users: &[u8]) -> Self {
        let used = members(profile, &[program]).into_iter().flatten().copied();
        let is_shared = |&variable: &u32| users[set_of[variable as usize] as usize] > 1;
        let (others, own) = used.partition(is_shared);
        Self { own, others }
    }

    fn count_shared(&self, set_of: &[u32]) -> usize {
        let sets = self
            .others
            .iter()
            .map(|&variable| set_of[variable as usize]);
        sets.collect::<FxHashSet<u32>>().len()
    }

    /// Each weight comes once, but gradients may have copies: where there are
    /// weights, they are the partners.
    fn keep_lasting(&mut self, profile: &Profile) {
        let lasts = |variable: &u32| profile.variables.label(*variable) != 0;
        if self.others.iter().any(lasts) {
            self.others.retain(lasts);
        }
    }
}

/// Bytes of an element against those of its partner's, as (times, parts): a
/// moment is as wide as its weight, or two or four times as wide.
const WIDTHS: [(u32, u32); 4] = [(1, 1), (2, 1), (4, 1), (1, 2)];

/// A tile, and bytes on it.
type Place = (u16, u32);

/// The place of a partner of this width.
fn partner_of((tile, bytes): Place, (times, parts): (u32, u32)) -> Option<Place> {
    let width = bytes.checked_mul(parts)?;
    width.is_multiple_of(times).then_some((tile, width / times))
}

/// Pairs the variables of each tile, those of one size in turn. State and
/// temporaries take turns apart from each other.
fn pair(
    profile: &Profile,
    set_of: &[u32],
    mut own: Vec<u32>,
    mut others: Vec<u32>,
    found: &mut Partners,
) {
    let place = |&variable: &u32| -> Place {
        let (tiles, bytes) = (&profile.variables.tiles, &profile.variables.bytes);
        (tiles[variable as usize], bytes[variable as usize])
    };
    others.sort_unstable_by_key(|variable| (place(variable), set_of[*variable as usize]));
    let mut by_place: FxHashMap<Place, Vec<u32>> = FxHashMap::default();
    for variable in others {
        by_place
            .entry(place(&variable))
            .or_default()
            .push(set_of[variable as usize]);
    }
    own.sort_unstable();
    let lasts = |variable: &u32| profile.variables.label(*variable) != 0;
    let (state, temporaries): (Vec<u32>, Vec<u32>) = own.into_iter().partition(lasts);
    for own in [state, temporaries] {
        let places = own.iter().map(place);
        let widths = widths(places.clone(), &by_place);
        let mut next: FxHashMap<Place, usize> = FxHashMap::default();
        for (variable, place) in own.iter().zip(places) {
            let mut partners = widths.iter().filter_map(|&width| partner_of(place, width));
            if let Some(partners) = partners.find_map(|place| by_place.get(&place)) {
                let turn = next.entry(place).or_default();
                found.add(*variable, partners[*turn % partners.len()]);
                *turn += 1;
            }
        }
    }
}

/// The widths, first those that find a partner for most variables: another
/// weight of the same tile may by chance have the size that is looked for.
fn widths(
    places: impl Iterator<Item = Place> + Clone,
    by_place: &FxHashMap<Place, Vec<u32>>,
) -> [(u32, u32); 4] {
    let mut widths = WIDTHS;
    let found = |&width: &(u32, u32)| {
        let partners = places.clone().filter_map(|place| partner_of(place, width));
        partners
            .filter(|place| by_place.contains_key(place))
            .count()
    };
    widths.sort_by_cached_key(|width| std::cmp::Reverse(found(width)));
    widths
}
