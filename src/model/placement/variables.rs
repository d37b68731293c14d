//! Where variables and code count.

use super::OperationPlace;
use super::by_layer::{of_sets, places_of_groups};
use super::place_sets::{EVERYWHERE, NOWHERE, PlaceSet, PlaceSets};
use super::touches::{SetBytes, touched};
use crate::model::{Label, Layering, Model, NO_USERS};
use rustc_hash::FxHashMap;

/// By use set: where its variables count.
#[derive(Debug)]
pub(super) struct VariablePlaces {
    /// Where it counts.
    pub(super) counted: Vec<PlaceSet>,
    /// Is that only because these places are touched?
    pub(super) by_touch: Vec<bool>,
    /// The operations that reach over the model.
    pub(super) reaching: Reaching,
}

impl VariablePlaces {
    /// The places of all variables. `seeded` has those of the operations that names or the
    /// flow of data place. To these come the places of all other operations that have
    /// one and use it, such as updates. What has none then goes, by the first rule that
    /// applies,
    ///
    /// 1. to the layer that its own name gives, or the place of the weight that
    ///    it is named after;
    /// 2. to the place of the other variables of an operation that uses it,
    ///    when these have one place;
    /// 3. to that of the variables of one program that uses it, when these do;
    /// 4. to that of the variables that a compute set over the model pairs it with;
    /// 5. to all places that operations which use it touch;
    /// 6. to every stage, when the compiler's operations use it;
    /// 7. to the place of what precedes the operations which use it.
    ///
    /// Among other operations, and in rules 2, 5 and 7, those that compute take
    /// precedence over those that only move data.
    pub(super) fn new(
        model: &Model,
        layering: &Layering,
        operations: &[OperationPlace],
        (bytes, preceding): (&[SetBytes], &[PlaceSet]),
        seeded: Vec<PlaceSet>,
        sets: &mut PlaceSets,
    ) -> Self {
        let own = places_of_groups(model, operations, sets);
        let by_operation = by_users(model, |group| own[group], sets);
        let counted = seeded.iter().zip(&by_operation);
        let counted = counted.map(|(&seeded, &others)| sets.union(seeded, others));
        let counted = counted.collect();
        let mut rules = PlaceRules {
            model,
            layering,
            reaching: Reaching::new(model, operations, bytes, &seeded, sets),
            counted,
        };
        rules.decide(sets);
        // What is decided by now tells of what it is used with.
        rules.reaching = Reaching::new(model, operations, bytes, &rules.counted, sets);
        rules.decide(sets);
        let PlaceRules {
            mut counted,
            reaching,
            ..
        } = rules;
        let all_touched = by_users(model, |group| reaching.touched[group], sets);
        let every_stage = of_sets(&model.use_sets, &own, sets);
        let preceding = preceding_groups(model, preceding, &reaching, sets);
        let preceding = by_users(model, |group| preceding[group], sets);
        counted[NO_USERS as usize] = EVERYWHERE;
        let mut by_touch = vec![false; counted.len()];
        for set in 1..counted.len() {
            if counted[set] != NOWHERE {
                continue;
            }
            by_touch[set] = sets.places(all_touched[set]).len() > 1;
            let last = [all_touched[set], every_stage[set], preceding[set]].into_iter();
            let mut last = last.filter(|&places| places != NOWHERE);
            // Nothing that is known uses it or what it is used with.
            counted[set] = last.next().unwrap_or(EVERYWHERE);
        }
        Self {
            counted,
            by_touch,
            reaching,
        }
    }
}

/// Rules 1 to 4.
struct PlaceRules<'a> {
    model: &'a Model,
    layering: &'a Layering,
    reaching: Reaching,
    /// By use set: what is decided.
    counted: Vec<PlaceSet>,
}

impl PlaceRules<'_> {
    /// Decides for the sets that have no place, as far as these rules do.
    fn decide(&mut self, sets: &mut PlaceSets) {
        let model = self.model;
        let one_place = self
            .reaching
            .touched
            .iter()
            .map(|&touched| match sets.only(touched) {
                Some(_) => touched,
                None => NOWHERE,
            });
        let one_place: Vec<PlaceSet> = one_place.collect();
        let by_one_place = by_users(model, |group| one_place[group], sets);
        let by_program = by_program(model, &self.counted, &self.reaching, sets);
        let named_after = named_after(model, &self.counted, sets);
        let known = self.counted.clone();
        for set in (1..known.len()).filter(|&set| known[set] == NOWHERE) {
            let label = model.use_sets.label(set as u32);
            let named = self.layering.layer_in(&model.labels[label as usize]);
            let partner = model.use_sets.partner(set as u32);
            let decided = [
                named.map_or(NOWHERE, |layer| sets.one(layer)),
                named_after[label as usize],
                by_one_place[set],
                by_program[set],
                partner.map_or(NOWHERE, |partner| known[partner as usize]),
            ];
            let mut decided = decided.into_iter().filter(|&places| places != NOWHERE);
            self.counted[set] = decided.next().unwrap_or(NOWHERE);
        }
    }
}

/// The operations without a place of their own: those that reach over the model, and
/// copies from and to the host.
#[derive(Debug)]
pub(super) struct Reaching {
    /// By operation group: is it one of theirs?
    pub(super) is_reaching: Vec<bool>,
    /// By operation group of theirs: all places of the variables that it uses
    /// and that have any; nowhere for other groups.
    pub(super) touched: Vec<PlaceSet>,
}

impl Reaching {
    fn new(
        model: &Model,
        operations: &[OperationPlace],
        bytes: &[SetBytes],
        seeded: &[PlaceSet],
        sets: &mut PlaceSets,
    ) -> Self {
        let mut is_reaching = vec![false; model.operation_groups.len()];
        for (operation, own) in model.operations.iter().zip(operations) {
            is_reaching[operation.group as usize] |= own.is_open();
        }
        let wanted = |group: u32| is_reaching[group as usize];
        let touched = touched(model, bytes, (sets, seeded), wanted);
        Self {
            is_reaching,
            touched,
        }
    }
}

/// By label: the places of the weight that it is named after. Optimiser state
/// is called `Accl1___weight` by PopART and `weight/Adam` by TensorFlow.
fn named_after(model: &Model, seeded: &[PlaceSet], sets: &mut PlaceSets) -> Vec<PlaceSet> {
    let mut of_label = vec![NOWHERE; model.labels.len()];
    for (set, &places) in (0u32..).zip(seeded) {
        let known = &mut of_label[model.use_sets.label(set) as usize];
        *known = sets.union(*known, places);
    }
    let mut weights: FxHashMap<&str, PlaceSet> = FxHashMap::default();
    for (label, &places) in model.labels.iter().zip(&of_label).skip(1) {
        let name = label.weight_name();
        if places != NOWHERE && !name.is_empty() {
            weights.insert(name, places);
        }
    }
    let places = |label: &Label| {
        let mut owners = owners(label.weight_name());
        owners
            .find_map(|owner| weights.get(owner).copied())
            .unwrap_or(NOWHERE)
    };
    model.labels.iter().map(places).collect()
}

/// The names of weights that a name of state can come from, longer ones first.
fn owners(name: &str) -> impl Iterator<Item = &str> {
    let marked = name
        .match_indices("___")
        .map(|(at, mark)| &name[at + mark.len()..]);
    let nested = name.rmatch_indices('/').map(|(at, _)| &name[..at]);
    marked.chain(nested)
}

/// By operation group whose operations reach over the model: the places that
/// these are near to.
fn preceding_groups(
    model: &Model,
    preceding: &[PlaceSet],
    reaching: &Reaching,
    sets: &mut PlaceSets,
) -> Vec<PlaceSet> {
    let mut of_group = vec![NOWHERE; model.operation_groups.len()];
    for (operation, &preceding) in model.operations.iter().zip(preceding) {
        let group = operation.group as usize;
        if reaching.is_reaching[group] {
            of_group[group] = sets.union(of_group[group], preceding);
        }
    }
    of_group
}

/// By use set: the places that `place` gives those of its groups that compute
/// or, without any, those that only move data.
fn by_users(
    model: &Model,
    place: impl Fn(usize) -> PlaceSet,
    sets: &mut PlaceSets,
) -> Vec<PlaceSet> {
    let computes = |group: usize| model.operation_groups[group].computes();
    let of = |wanted: bool| -> Vec<PlaceSet> {
        let groups = 0..model.operation_groups.len();
        let own = |group: usize| {
            if computes(group) == wanted {
                place(group)
            } else {
                NOWHERE
            }
        };
        groups.map(own).collect()
    };
    let computing = of_sets(&model.use_sets, &of(true), sets);
    let moving = of_sets(&model.use_sets, &of(false), sets);
    let both = computing.into_iter().zip(moving);
    both.map(|(first, second)| if first == NOWHERE { second } else { first })
        .collect()
}

/// By use set: the places of programs of operations that reach over the
/// model, of those whose other variables have one place.
fn by_program(
    model: &Model,
    seeded: &[PlaceSet],
    reaching: &Reaching,
    sets: &mut PlaceSets,
) -> Vec<PlaceSet> {
    let mut places = vec![NOWHERE; seeded.len()];
    let groups = model.operation_groups.iter().zip(&reaching.is_reaching);
    for (group, _) in groups.filter(|&(_, &is_reaching)| is_reaching) {
        for piece in &group.pieces {
            let used = piece.sets.iter().map(|&set| seeded[set as usize]);
            let one = sets.touched(used);
            if sets.only(one).is_none() {
                continue;
            }
            for &set in &piece.sets {
                places[set as usize] = sets.union(places[set as usize], one);
            }
        }
    }
    places
}

/// By operation group where its code counts, and where that of each of its
/// pieces does, if it reaches over the model. Code that nothing places is in
/// every stage: never too little.
pub(super) fn code_places(
    model: &Model,
    operations: &[OperationPlace],
    variables: &VariablePlaces,
    bytes: &[SetBytes],
    sets: &mut PlaceSets,
) -> (Vec<PlaceSet>, Vec<Vec<PlaceSet>>) {
    let mut of_group = places_of_groups(model, operations, sets);
    let mut of_piece = vec![Vec::new(); of_group.len()];
    let is_reaching = &variables.reaching.is_reaching;
    let wanted = |group: u32| is_reaching[group as usize];
    let all = touched(model, bytes, (sets, &variables.counted), wanted);
    for (number, group) in model.operation_groups.iter().enumerate() {
        if !is_reaching[number] {
            continue;
        }
        let own = sets.union(of_group[number], all[number]);
        let whole = if own == NOWHERE { EVERYWHERE } else { own };
        of_group[number] = whole;
        for piece in &group.pieces {
            let used = piece
                .sets
                .iter()
                .map(|&set| variables.counted[set as usize]);
            let touched = sets.touched(used);
            let places = if touched == NOWHERE { whole } else { touched };
            of_piece[number].push(places);
        }
    }
    (of_group, of_piece)
}
