//! The rules of the full model, one after the other.

use super::by_layer::{of_named, of_sets, places_of_groups};
use super::levels::{Level, Levels, Reach};
use super::place_sets::{EVERYWHERE, IN, NOWHERE, PlaceSet, PlaceSets};
use super::touches::{SetBytes, bytes_of_sets, isolated};
use super::variables::{VariablePlaces, code_places};
use super::{
    OperationPlace, OutOn, Placement, PlacementOptions, Positions, Reason, Rules, WeightTie,
    weights,
};
use crate::model::{Layering, Model, NO_CALL, NO_LAYER, Note, Pass};

/// Gives everything its places.
pub(super) fn assign(model: &Model, layering: &Layering, options: &PlacementOptions) -> Placement {
    let out = layering.names.len() as u32;
    let mut sets = PlaceSets::new(out);
    let bytes = bytes_of_sets(model);
    let found = FoundPlaces::new(model, layering, &bytes);
    let isolated = isolated(model, &bytes, &mut sets);
    let (operations, preceding) = found.operations(&isolated, &mut sets);
    let is_at_end = |reason| matches!(reason, Reason::BeforeLayers | Reason::AfterLayers);
    let is_called = |reason| matches!(reason, Reason::Layer | Reason::Call);
    let is_seeded = |reason| is_called(reason) || is_at_end(reason) || reason == Reason::Variables;
    let tied = found.users(&operations, &mut sets, |own, pass| {
        is_called(own) || is_at_end(own) || own == Reason::Variables && pass == Pass::Forward
    });
    let seeded = found.users(&operations, &mut sets, |own, _| is_seeded(own));
    let variables = VariablePlaces::new(
        model,
        layering,
        &operations,
        (&bytes, &preceding),
        seeded,
        &mut sets,
    );
    let (of_group, of_piece) = code_places(model, &operations, &variables, &bytes, &mut sets);
    let mut operations = operations;
    for (operation, own) in model.operations.iter().zip(&mut operations) {
        if own.is_open() {
            own.places = of_group[operation.group as usize];
        }
    }
    let ties = weights::ties((model, layering), &bytes, (&sets, &tied), &options.untie);
    let out_is_first = out_is_first(options.out_on, &ties, out);
    let named = of_named(model, layering, &mut sets);
    let named_sets = of_sets(&model.use_sets, &named, &mut sets);
    Placement {
        rules: Rules::Full,
        positions: Positions::full(layering, out_is_first),
        operations,
        ties,
        counted: variables.counted,
        sharing: None,
        of_group,
        of_piece,
        named_groups: named.iter().map(|&set| set != NOWHERE).collect(),
        named_sets: named_sets.iter().map(|&set| set != NOWHERE).collect(),
        by_touch: variables.by_touch,
        // Then Out is read as In everywhere.
        sets: if out_is_first {
            sets.moved(out, IN)
        } else {
            sets.clone()
        },
        apart: out_is_first.then_some(sets),
    }
}

/// Does Out run on the first IPU? With `Auto` it does where In and Out share a
/// weight.
fn out_is_first(out_on: OutOn, ties: &[WeightTie], out: u32) -> bool {
    let joins =
        |tie: &WeightTie| !tie.is_untied && tie.places.contains(&IN) && tie.places.contains(&out);
    match out_on {
        OutOn::First => true,
        OutOn::Last => false,
        OutOn::Auto => ties.iter().any(joins),
    }
}

/// The layers that names say, and where the flow of data puts the other operations.
struct FoundPlaces<'a> {
    model: &'a Model,
    layering: &'a Layering,
    /// By operation: where its nodes run.
    of_operation: Vec<Reach>,
    /// By parameter: the levels that share it.
    shared: Vec<Vec<Level>>,
    /// From the first operation of a layer to the last before the backward pass.
    layers: std::ops::RangeInclusive<usize>,
    /// By place: the level.
    levels: Vec<Level>,
    /// By level: the place. In and Out are the first and the last of both.
    places: Vec<u32>,
}

impl<'a> FoundPlaces<'a> {
    fn new(model: &'a Model, layering: &'a Layering, bytes: &[SetBytes]) -> Self {
        let named = named(model, layering);
        let places = places_by_level(model, layering, &named);
        let mut level_of = vec![0; places.len()];
        for (level, &place) in (0..).zip(&places) {
            level_of[place as usize] = level;
        }
        let level = |layer: u32| level_of[layer as usize];
        let levels: Vec<Option<Level>> = named.iter().map(|own| own.map(level)).collect();
        let parameter = |set: u32| layering.layer_in(model.label_of(set)).map(level);
        let out = places.len() as u32 - 1;
        let (nodes, shared) = Levels::find(model, bytes, (&levels, out), parameter);
        let layered = |own: &Option<u32>| own.is_some();
        let first = named.iter().position(layered).unwrap_or(0);
        let is_forward = |own: &usize| model.operations[*own].pass != Pass::Backward;
        let mut last = (0..named.len()).rev().filter(is_forward);
        let last = last.find(|&own| named[own].is_some()).unwrap_or(0);
        Self {
            model,
            layering,
            layers: first..=last,
            of_operation: of_operations(model, &nodes),
            shared,
            levels: level_of,
            places,
        }
    }

    /// By operation its place, and the place of what precedes it in the program.
    fn operations(
        &self,
        isolated: &[bool],
        sets: &mut PlaceSets,
    ) -> (Vec<OperationPlace>, Vec<PlaceSet>) {
        let mut before = sets.one(IN);
        let mut caller = before;
        let (mut operations, mut preceding) = (Vec::new(), Vec::new());
        for (number, operation) in self.model.operations.iter().enumerate() {
            preceding.push(if operation.is_nested { caller } else { before });
            let own = self.operation(number, isolated, preceding[number], sets);
            if sets.only(own.places).is_some() {
                before = own.places;
            }
            if !operation.is_nested {
                caller = before;
            }
            operations.push(own);
        }
        (operations, preceding)
    }

    fn operation(
        &self,
        number: usize,
        isolated: &[bool],
        preceding: PlaceSet,
        sets: &mut PlaceSets,
    ) -> OperationPlace {
        let own = &self.model.operations[number];
        let only_streams = self.model.operation_groups[own.group as usize].only_streams();
        if own.is_tensor || (only_streams && !own.is_anonymous) {
            return self.outside(number, sets);
        }
        let is_called = own.call != NO_CALL;
        let found = match self.called(number) {
            Reach::Unknown => self.of_operation[number],
            found => found,
        };
        // Inputs of a layer are also those of what comes after it, such as a pooler: the
        // flow of data knows better.
        let is_certain = self.layering.notes[number] == Note::Name || found.is_unknown();
        let layer = self.layering.own_layer(number);
        let layer = layer.filter(|_| !is_called && is_certain);
        let is_compilers =
            isolated[own.group as usize] && (own.is_anonymous || !own.is_nested && !is_called);
        let (places, reason) = match (layer, found) {
            (Some(layer), _) => (sets.one(layer), Reason::Layer),
            (None, Reach::At(level)) => {
                let place = self.places[level as usize];
                let is_last = level as usize + 1 == self.places.len();
                // Updates are of no pass.
                let is_backward = own.is_backward || own.is_nested;
                let is_update = match own.pass {
                    Pass::Update => true,
                    Pass::Backward => !is_backward,
                    Pass::Forward | Pass::Both => false,
                };
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
                let levels = self.shared[parameter as usize].iter();
                let mut places: Vec<u32> = levels.map(|&own| self.places[own as usize]).collect();
                places.sort_unstable();
                places.dedup();
                (sets.intern(&places), Reason::Touched)
            }
            (None, Reach::Everywhere) => (EVERYWHERE, Reason::EveryStage),
            (None, Reach::Several) => (NOWHERE, Reason::Touched),
            (None, Reach::Unknown) if is_compilers => (EVERYWHERE, Reason::EveryStage),
            // A body may be listed for one of its calls alone.
            (None, Reach::Unknown) if own.is_nested || self.layers.contains(&number) => {
                (preceding, Reason::Neighbour)
            }
            (None, Reach::Unknown) if own.is_anonymous => (NOWHERE, Reason::Touched),
            (None, Reach::Unknown) => self.by_order(number, sets),
        };
        OperationPlace { places, reason }
    }

    /// What only makes a tensor, or copies from and to the host, counts with what it
    /// touches, but for what the name of a copy says.
    fn outside(&self, number: usize, sets: &mut PlaceSets) -> OperationPlace {
        let layer = self.layering.own_layer(number);
        match layer.filter(|_| self.model.operations[number].call == NO_CALL) {
            Some(layer) => OperationPlace {
                places: sets.one(layer),
                reason: Reason::Layer,
            },
            None => OperationPlace {
                places: NOWHERE,
                reason: Reason::Touched,
            },
        }
    }

    /// Where the body is that a Call runs: that of the next operation with a place, if it is
    /// in a function.
    fn called(&self, number: usize) -> Reach {
        let operations = &self.model.operations;
        if operations[number].is_nested || !operations[number].name.starts_with("Call") {
            return Reach::Unknown;
        }
        let bodies = (number + 1..operations.len()).take_while(|&own| operations[own].is_nested);
        let mut found = bodies.map(|own| match self.layering.own_layer(own) {
            Some(layer) if operations[own].call == NO_CALL => {
                Reach::At(self.levels[layer as usize])
            }
            _ => self.of_operation[own],
        });
        let is_there = |found: &Reach| matches!(found, Reach::At(_));
        found.find(is_there).unwrap_or_default()
    }

    /// Where an operation outside the layers is that no data flows through: before or after
    /// them, if it computes in the forward pass.
    fn by_order(&self, number: usize, sets: &mut PlaceSets) -> (PlaceSet, Reason) {
        let own = &self.model.operations[number];
        let computes = self.model.operation_groups[own.group as usize].computes();
        let is_forward = matches!(own.pass, Pass::Forward | Pass::Both) && computes;
        let out = self.layering.names.len() as u32;
        match number {
            _ if !is_forward || self.layering.is_empty() => (NOWHERE, Reason::Touched),
            _ if number < *self.layers.start() => (sets.one(IN), Reason::BeforeLayers),
            _ => (sets.one(out), Reason::AfterLayers),
        }
    }

    /// By use set: the places of the operations that are there for such reasons.
    fn users(
        &self,
        operations: &[OperationPlace],
        sets: &mut PlaceSets,
        is_wanted: impl Fn(Reason, Pass) -> bool,
    ) -> Vec<PlaceSet> {
        let all = operations.iter().zip(&self.model.operations);
        let wanted = all.map(|(own, operation)| OperationPlace {
            places: if is_wanted(own.reason, operation.pass) {
                own.places
            } else {
                NOWHERE
            },
            reason: own.reason,
        });
        let wanted: Vec<OperationPlace> = wanted.collect();
        let of_group = places_of_groups(self.model, &wanted, sets);
        of_sets(&self.model.use_sets, &of_group, sets)
    }
}

/// By operation: the layer that its own name says. What only has inputs of one layer may
/// as well be what comes after it, such as a pooler; where no names say anything, inputs
/// must do. Names in functions are those of the first call.
fn named(model: &Model, layering: &Layering) -> Vec<Option<u32>> {
    let layers = |wanted: &dyn Fn(Note) -> bool| -> Vec<Option<u32>> {
        let layer = |(number, own): (usize, &crate::model::Operation)| {
            let is_said = own.call == NO_CALL && wanted(layering.notes[number]);
            Some(layering.layers[number]).filter(|&layer| is_said && layer != NO_LAYER)
        };
        model.operations.iter().enumerate().map(layer).collect()
    };
    let by_name = layers(&|note| note == Note::Name);
    if by_name.iter().any(Option::is_some) {
        by_name
    } else {
        layers(&|note| note == Note::InputNames)
    }
}

/// By level its place: layers by their first steps, whatever their order is otherwise.
fn places_by_level(model: &Model, layering: &Layering, named: &[Option<u32>]) -> Vec<u32> {
    let out = layering.names.len();
    let mut first = vec![u32::MAX; out];
    for node in model.flow.nodes.iter().rev() {
        let layers = node
            .operations
            .iter()
            .filter_map(|&own| named[own as usize]);
        for layer in layers {
            first[layer as usize] = node.first;
        }
    }
    let mut layers: Vec<u32> = (1..out as u32).collect();
    layers.sort_by_key(|&layer| first[layer as usize]);
    [vec![IN], layers, vec![out as u32]].concat()
}

/// By operation: where its nodes are in the forward pass or, without any there, after it.
fn of_operations(model: &Model, nodes: &[Reach]) -> Vec<Reach> {
    let backward_start = model.backward_start.unwrap_or(u32::MAX);
    let mut forward = vec![Reach::Unknown; model.operations.len()];
    let mut backward = forward.clone();
    for (node, &found) in model.flow.nodes.iter().zip(nodes) {
        let side = if node.first < backward_start {
            &mut forward
        } else {
            &mut backward
        };
        for &operation in &node.operations {
            let own = &mut side[operation as usize];
            *own = own.join(found);
        }
    }
    let both = forward.into_iter().zip(backward);
    both.map(|(first, second)| {
        if first == Reach::Unknown {
            second
        } else {
            first
        }
    })
    .collect()
}
