//! Finds the places (In, layers, Out) of all operations, variables and code, by the rules of the
//! full model or of the classic model. The classic model places only operations with layers.

use super::{
    EVERYWHERE, IN, NOWHERE, OperationPlace, PassPlaces, PlaceSet, PlaceSets, Placement,
    PlacementOptions, Positions, PseudoLayers, Reason, Rules, TooManyPlaces,
    levels::{Level, Levels, Reach},
    variables::{VariablePlaces, isolated, of_users},
    weights,
};
use crate::model::{Layering, Model, NO_CALL, NO_LAYER, Note, Operation, Pass, ascending};
use rustc_hash::FxHashMap;

impl Placement {
    /// Finds the places (In, layers, Out) of all operations, variables and code by [`Rules::Full`],
    /// which counts all memory that the compiler recorded.
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of layers than in any real model.
    pub fn full(
        model: &Model,
        layering: &Layering,
        options: &PlacementOptions,
    ) -> Result<Self, TooManyPlaces> {
        let out = layering.names.len() as u32;
        let mut sets = PlaceSets::default();
        let bytes = model.bytes_of_sets();
        let mut operations = FoundPlaces::new(model, layering).operations(&mut sets);
        let modules = layering.tree(model);
        if modules.run_several_times() {
            join_runs(model, &mut operations);
        }
        // All places (In, layers, Out) that use the same weight must be on one IPU. Some operations
        // do not count as users of a weight:
        // - operations without a place of their own, such as a norm of all gradients
        // - outside the forward pass, operations whose layer follows only from their variables
        //
        // A variable that an operation on every IPU uses, such as a random state, need not be on
        // one IPU.
        let uses_weight = |operation: &Operation, reason| match reason {
            Reason::Touched => false,
            Reason::Variables => operation.pass == Pass::Forward,
            _ => true,
        };
        let (_, tied) = of_users(model, &operations, &mut sets, uses_weight);
        let variables = VariablePlaces::new(model, layering, &operations, &bytes, &mut sets);
        let (of_group, of_cluster) = variables.of_code(&mut sets);
        for (operation, place) in model.operations.iter().zip(&mut operations) {
            if place.is_open() {
                place.places = of_group[operation.group as usize];
            }
        }
        let mut ties = weights::ties(model, &bytes, &sets, &tied, options);
        let out_is_first = options.out_on.is_first(&ties, out);
        let positions = Positions::new(layering, PseudoLayers::full(out_is_first));
        for tie in &mut ties {
            let name = |&place| (place != IN).then(|| positions.name_of_place(place).to_string());
            tie.layers = tie.places.iter().map(name).collect();
        }
        let by_pass = PassPlaces::new(model, &operations, sets.clone())?;
        let repeats = modules.repeats(|operation| {
            let own = operations[operation];
            let place = sets.only(own.places).filter(|_| own.reason.is_own())?;
            Some(positions.of_place(place))
        });
        if out_is_first {
            sets = sets.moved(out, IN);
        }
        Ok(Self {
            rules: Rules::Full,
            positions,
            operations,
            ties,
            repeats,
            sharing: variables.counted.clone(),
            counted: variables.counted,
            of_group,
            of_cluster,
            layered_groups: layered_groups(model, layering),
            by_touch: variables.by_touch,
            sets,
            by_pass,
        })
    }

    /// Finds the places of all operations, variables and code by the rules of the classic model: an
    /// operation is in its layer, and a variable is in the layers of all operations that use it.
    /// All operations without a layer have one place, before the layers. Variables that no layer
    /// uses count in no stage.
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of layers than in any real model.
    pub fn classic(model: &Model, layering: &Layering) -> Result<Self, TooManyPlaces> {
        let mut sets = PlaceSets::default();
        let place = |&layer: &u32| OperationPlace {
            places: sets.one(layer),
            reason: match layer {
                NO_LAYER => Reason::Pseudo,
                _ => Reason::Layer,
            },
        };
        let operations: Vec<OperationPlace> = layering.layers.iter().map(place).collect();
        let (of_group, sharing) = of_users(model, &operations, &mut sets, |_, _| true);
        let (_, counted) = of_users(model, &operations, &mut sets, |_, reason| {
            reason != Reason::Pseudo
        });
        let by_pass = PassPlaces::new(model, &operations, sets.clone())?;
        Ok(Self {
            rules: Rules::Classic,
            positions: Positions::new(layering, PseudoLayers::NoneFirst),
            operations,
            ties: Vec::new(),
            sharing,
            repeats: Vec::new(),
            of_cluster: vec![Vec::new(); of_group.len()],
            of_group,
            layered_groups: layered_groups(model, layering),
            counted,
            by_touch: vec![false; model.use_sets.len()],
            sets,
            by_pass,
        })
    }
}

/// Returns one entry per operation group (operations with one debug context): whether any of its
/// operations is in a layer.
fn layered_groups(model: &Model, layering: &Layering) -> Vec<bool> {
    model.groups_with(|number, _| layering.layers[number] != NO_LAYER)
}

/// Where the flow of data places each operation: first as a level, then as a place. Both are
/// indices into In, the layers and Out. Levels list the layers in the order in which they run.
/// Places list them in the order of the layering, which may be that of their names.
struct FoundPlaces<'a> {
    model: &'a Model,
    layering: &'a Layering,
    /// One entry per operation: the level (In, a layer or Out) that follows from the flow of data.
    of_operation: Vec<Reach>,
    /// One entry per parameter of the data flow, such as a weight: the levels (In, layers, Out)
    /// that share the parameter, ascending; empty unless several levels share it.
    shared: Vec<Vec<Level>>,
    /// One entry per operation group (operations with one debug context): true if no other group
    /// computes with the variables of this group, as with operations that the compiler adds.
    isolated: Vec<bool>,
    /// The range from the first operation with a layer to the last one outside the backward pass,
    /// both inclusive. Operations before this range may be in In (before the first layer), and
    /// operations after it in Out (after the last layer).
    layers: std::ops::RangeInclusive<usize>,
    /// One entry per level (In, the layers in the order in which they run, Out): the index of its
    /// place (In, the layers in the order of the layering, Out).
    places: Vec<u32>,
}

impl<'a> FoundPlaces<'a> {
    fn new(model: &'a Model, layering: &'a Layering) -> Self {
        let seeds = seed_layers(model, layering);
        let places = places_by_level(model, layering, &seeds);
        let mut level_of = vec![0; places.len()];
        for (level, &place) in (0..).zip(&places) {
            level_of[place as usize] = level;
        }
        let (of_operation, shared) = Levels::find(model, layering, &seeds, &level_of);
        let is_forward = |&number: &usize| model.operations[number].pass != Pass::Backward;
        let layered = (0..seeds.len()).filter(|&number| seeds[number].is_some());
        let last = layered.clone().rev().find(is_forward);
        Self {
            model,
            layering,
            layers: layered.min().unwrap_or(0)..=last.unwrap_or(0),
            of_operation,
            shared,
            isolated: isolated(model),
            places,
        }
    }

    /// Returns the places (In, layers, Out) of each operation, by its layer or else by the flow of
    /// data, and the reason for them.
    fn operations(&self, sets: &mut PlaceSets) -> Vec<OperationPlace> {
        let mut before = sets.one(IN);
        let place = |number| {
            let found = self.operation(number, before, sets);
            if sets.only(found.places).is_some() {
                before = found.places;
            }
            found
        };
        (0..self.model.operations.len()).map(place).collect()
    }

    fn operation(
        &self,
        number: usize,
        preceding: PlaceSet,
        sets: &mut PlaceSets,
    ) -> OperationPlace {
        let operation = &self.model.operations[number];
        let group = operation.group as usize;
        let is_called = operation.call != NO_CALL;
        let found = self.of_operation[number];
        // If only the names of an operation's inputs contain its layer, the flow of data is more
        // reliable: an operation after a layer, such as a pooler, also has inputs that name the
        // layer.
        let is_certain = self.layering.notes[number] == Note::Name || found.is_unknown();
        let layer = self
            .layering
            .own_layer(number)
            .filter(|_| !is_called && is_certain);
        let is_compilers = self.isolated[group] && (operation.is_anonymous || !operation.is_nested);
        let (places, reason) = match (layer, found) {
            // An operation that only copies from or to the host is at no place (In, a layer or Out)
            // itself. Each of its programs is at the places whose operations use the program's
            // variables.
            _ if self.model.operation_groups[group].only_streams() => (NOWHERE, Reason::Touched),
            (Some(layer), _) => (sets.one(layer), Reason::Layer),
            (None, Reach::At(level)) => {
                let place = self.places[level as usize];
                let is_last = level as usize + 1 == self.places.len();
                // An update of weights is at the place (In, a layer or Out) of its weights, but
                // belongs to neither the forward nor the backward pass there.
                let is_update = operation.pass == Pass::Update
                    || operation.pass == Pass::Backward && !operation.is_backward;
                let reason = match level {
                    _ if is_update => Reason::Touched,
                    _ if is_called => Reason::Call,
                    IN => Reason::BeforeLayers,
                    _ if is_last => Reason::AfterLayers,
                    _ => Reason::Variables,
                };
                (sets.one(place), reason)
            }
            (None, Reach::Shared(parameter)) => {
                let levels = self.shared[parameter].iter();
                let places = ascending(levels.map(|&level| self.places[level as usize]));
                (sets.intern(&places), Reason::Touched)
            }
            (None, Reach::Everywhere) => (EVERYWHERE, Reason::EveryStage),
            (None, Reach::Several) => (NOWHERE, Reason::Touched),
            (None, Reach::Unknown) if is_compilers => (EVERYWHERE, Reason::EveryStage),
            // The profile may list the body of a function for only one of several calls. Then no
            // data flow is known for the body's operations in another call. There, an operation has
            // the same place (In, a layer or Out) as the nearest operation before it that has
            // exactly one place.
            (None, Reach::Unknown) if operation.is_nested || self.layers.contains(&number) => {
                (preceding, Reason::Neighbour)
            }
            (None, Reach::Unknown) => self.by_order(number, sets),
        };
        OperationPlace { places, reason }
    }

    /// Places an operation for which the data flow shows no place, and which runs before the first
    /// or after the last layer. If it computes in the forward pass, it is in In (before the first
    /// layer) or in Out (after the last layer). Otherwise, it has no place.
    fn by_order(&self, number: usize, sets: &mut PlaceSets) -> (PlaceSet, Reason) {
        let operation = &self.model.operations[number];
        let computes = self.model.operation_groups[operation.group as usize].computes();
        if !operation.pass.is_forward() || !computes || self.layering.is_empty() {
            (NOWHERE, Reason::Touched)
        } else if number < *self.layers.start() {
            (sets.one(IN), Reason::BeforeLayers)
        } else {
            (sets.one(self.layering.len() as u32), Reason::AfterLayers)
        }
    }
}

/// Gives an operation the same place (In, a layer or Out) in all runs of its module. If a module
/// runs several times, data flows back to an earlier layer between its runs, so in some runs the
/// flow may show no place for the operation ([`Reason::Touched`]). There, the operation takes its
/// place in the other runs, unless these have different places.
fn join_runs(model: &Model, operations: &mut [OperationPlace]) {
    let is_named = |operation: &Operation| operation.pass == Pass::Forward && operation.is_named();
    let mut by_name: FxHashMap<&str, Option<OperationPlace>> = FxHashMap::default();
    for (operation, place) in model.operations.iter().zip(&*operations) {
        if is_named(operation) && place.reason.is_own() {
            let known = by_name.entry(&operation.name).or_insert(Some(*place));
            *known = known.filter(|known| known.places == place.places);
        }
    }
    for (operation, place) in model.operations.iter().zip(operations) {
        if is_named(operation)
            && place.reason == Reason::Touched
            && let Some(&Some(own)) = by_name.get(&*operation.name)
        {
            *place = own;
        }
    }
}

/// Returns the layer in the name of each operation. If no operation has a layer in its name, the
/// names of inputs are used instead. These are less certain, because an operation after a layer,
/// such as a pooler, also has inputs from the layer. Operations in functions with several callers
/// get no layer, because their names are those of the first call.
fn seed_layers(model: &Model, layering: &Layering) -> Vec<Option<u32>> {
    let layers = |wanted: Note| -> Vec<Option<u32>> {
        let layer = |(number, operation): (usize, &Operation)| {
            let is_wanted = operation.call == NO_CALL && layering.notes[number] == wanted;
            layering.own_layer(number).filter(|_| is_wanted)
        };
        model.operations.iter().enumerate().map(layer).collect()
    };
    let by_name = layers(Note::Name);
    if by_name.iter().any(Option::is_some) {
        by_name
    } else {
        layers(Note::InputNames)
    }
}

/// Returns the place of each level. Levels are In, the layers in the order in which they first run,
/// and Out; places are In, the layers in the order of the layering, and Out. `seeds` has the layer
/// in the name of each operation, which shows when each layer first runs.
fn places_by_level(model: &Model, layering: &Layering, seeds: &[Option<u32>]) -> Vec<u32> {
    let out = layering.names.len();
    let mut first = vec![u32::MAX; out];
    for node in model.flow.nodes.iter().rev() {
        for &operation in &node.operations {
            if let Some(layer) = seeds[operation as usize] {
                first[layer as usize] = node.first;
            }
        }
    }
    let mut layers: Vec<u32> = (1..out as u32).collect();
    layers.sort_by_key(|&layer| first[layer as usize]);
    [vec![IN], layers, vec![out as u32]].concat()
}
