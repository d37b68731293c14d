//! Small models for tests of places (In, layers, Out), built operation by operation.

use crate::{
    model::placement::*,
    model::{
        DataFlow, FlowEdge, FlowNode, GroupCode, Label, LayerOptions, LayerOrder, LayerSource,
        Layering, Model, NO_NODE, NO_USERS, Operation, OperationGroup, ProgramCluster, TensorKind,
        UseSets, VariableGroup, VariableGroups, testing,
    },
    profile::{LiveClasses, TileBytes},
};
use regex::Regex;

pub const STEPS: u32 = 10;
/// Equivalence classes of the test models: `LASTING` for always-live variables, `PASSING` for all
/// other variables.
pub const LASTING: u32 = 0;
pub const PASSING: u32 = 1;

/// A small model to which a test adds operations and variables. Each operation has an operation
/// group of its own.
#[derive(Default)]
pub struct Case {
    pub(super) operations: Vec<Operation>,
    pub(super) groups: Vec<OperationGroup>,
    pub(super) variables: Vec<(Vec<usize>, u32, u32, &'static str)>,
    /// One entry per operation with several programs: its operation group, and the variables that
    /// each of its programs uses.
    pub(super) programs: Vec<(usize, Vec<Vec<usize>>)>,
    pub(super) partners: Vec<(usize, usize)>,
    pub(super) order: LayerOrder,
    /// The operation groups of recomputed operations, which run a second time, after all other
    /// operations.
    pub(super) recomputed: Vec<usize>,
}

impl Case {
    /// Adds an operation at the index `place` in program order, and returns its operation group.
    pub(super) fn operation_at(&mut self, place: usize, name: &str) -> usize {
        let number = self.operation(name);
        let operation = self.operations.remove(number);
        self.operations.insert(place, operation);
        number
    }

    /// Adds an operation whose name gives its properties. `layer/1/x` belongs to layer 1. A name
    /// that begins with `move` is that of an operation without vertices, and a name that begins
    /// with `made` is that of an operation of the compiler. A name that contains `grad` is in the
    /// backward pass, and a name that begins with `update` updates weights.
    pub(super) fn operation(&mut self, name: &str) -> usize {
        let computes = !name.starts_with("move");
        let present = [u32::from(computes)].into_iter().collect::<TileBytes>();
        self.groups.push(OperationGroup {
            uid: self.groups.len() as u64,
            window: Some((0, 1)),
            code: GroupCode {
                vertex_types: if computes {
                    vec![(0, present)]
                } else {
                    Vec::new()
                },
                ..GroupCode::default()
            },
            host_copies: Vec::new(),
            clusters: Vec::new(),
        });
        self.operations.push(Operation {
            is_anonymous: name.starts_with("made"),
            is_backward: name.contains("grad"),
            is_update: name.starts_with("update"),
            ..testing::operation(self.groups.len() as u32 - 1, name, "")
        });
        self.operations.len() - 1
    }

    pub(super) fn operations<const N: usize>(&mut self, names: [&str; N]) -> [usize; N] {
        names.map(|name| self.operation(name))
    }

    /// Adds a variable of 100 bytes that the operations `users` use and that is not always live.
    pub(super) fn passing(&mut self, users: &[usize], name: &'static str) -> usize {
        self.variable(users, PASSING, 100, name)
    }

    /// Adds an always-live variable of 100 bytes that the operations `users` use.
    pub(super) fn lasting(&mut self, users: &[usize], name: &'static str) -> usize {
        self.variable(users, LASTING, 100, name)
    }

    pub(super) fn variable(
        &mut self,
        users: &[usize],
        class: u32,
        bytes: u32,
        name: &'static str,
    ) -> usize {
        self.variables.push((users.to_vec(), class, bytes, name));
        self.variables.len() - 1
    }

    pub(super) fn model(&self) -> (Model, Vec<u32>) {
        let mut sets = UseSets::default();
        let mut labels = vec![Label::default()];
        let mut set_of = Vec::new();
        for (users, _, _, name) in &self.variables {
            let mut users = users.clone();
            users.sort_unstable();
            let push = |set, &user: &usize| sets.push(set, user as u32);
            let set = users.iter().fold(NO_USERS, push);
            labels.push(Label {
                name: (*name).into(),
                tensor: "".into(),
                kind: if name.starts_with("weight") {
                    TensorKind::Variable
                } else {
                    TensorKind::Other
                },
                element_bytes: None,
            });
            if set != NO_USERS {
                sets.mark(set, labels.len() as u32 - 1, NO_USERS);
            }
            set_of.push(set);
        }
        for &(variable, partner) in &self.partners {
            let label = sets.label(set_of[variable]);
            sets.mark(set_of[variable], label, set_of[partner]);
        }
        let items = self.variables.iter().zip(&set_of);
        let items =
            items.map(|(&(_, class, bytes, _), &set)| (0, VariableGroup { class, set, bytes }));
        let items: Vec<(u16, VariableGroup)> = items.collect();
        let mut groups = self.groups.clone();
        let cluster = |variables: &Vec<usize>| ProgramCluster {
            sets: variables.iter().map(|&variable| set_of[variable]).collect(),
            code: GroupCode::default(),
        };
        for (operation, programs) in &self.programs {
            groups[*operation].clusters = programs.iter().map(cluster).collect();
        }
        let model = Model {
            operations: self.operations.clone(),
            operation_groups: groups,
            classes: LiveClasses::new(vec![true, false], vec![(PASSING, 3, 5)], STEPS),
            variables: VariableGroups::new(1, items.into_iter()),
            use_sets: sets,
            labels,
            flow: self.flow(&set_of),
            backward_start: (self.operations.iter())
                .position(|own| own.is_backward && !own.is_nested)
                .map(|backward_start| backward_start as u32),
            vertex_code: vec![TileBytes::default()],
            ..testing::model(1, 1 << 20)
        };
        (model, set_of)
    }

    /// Builds the flow of data of this test model, with one node per operation. The test model is
    /// simpler than a real one: always-live variables are parameters, the first user of any other
    /// variable writes it (unless the test says that the host does), and only the operations in the
    /// first call of a function use variables.
    pub(super) fn flow(&self, set_of: &[u32]) -> DataFlow {
        let mut flow = DataFlow {
            nodes: (0u32..)
                .zip(self.in_order())
                .map(|(first, operation)| FlowNode {
                    first,
                    operations: [operation].into(),
                })
                .collect(),
            ..DataFlow::default()
        };
        for (variable, (users, class, bytes, name)) in self.variables.iter().enumerate() {
            let all = self.in_order().into_iter();
            let all = all.map(|own| &self.operations[own as usize]);
            let numbered = (0u32..).zip(all);
            let mut bodies = Vec::new();
            let mut is_user = |own: &Operation| {
                let is_again = own.is_nested && bodies.contains(&own.group);
                bodies.push(own.group);
                users.contains(&(own.group as usize)) && !is_again
            };
            let nodes = numbered.filter(|(_, own)| is_user(own));
            let nodes: Vec<u32> = nodes.map(|(node, _)| node).collect();
            match &nodes[..] {
                [] => {}
                _ if *name == "ids" => flow.edges.push(FlowEdge {
                    from: NO_NODE,
                    to: nodes.into(),
                    bytes: u64::from(*bytes),
                }),
                _ if *class == LASTING => flow.parameters.push((set_of[variable], nodes.into())),
                [_] => {}
                [from, to @ ..] => flow.edges.push(FlowEdge {
                    from: *from,
                    to: to.into(),
                    bytes: u64::from(*bytes),
                }),
            }
        }
        flow.edges.sort_by_key(|edge| edge.from);
        flow.parameters.sort_by_key(|own| own.0);
        flow
    }

    fn in_order(&self) -> Vec<u32> {
        let position = |group: &usize| {
            let mut operations = self.operations.iter();
            operations.position(|own| own.group as usize == *group)
        };
        let all = (0..self.operations.len()).chain(self.recomputed.iter().filter_map(position));
        all.map(|operation| operation as u32).collect()
    }

    pub(super) fn placed(&self, options: &PlacementOptions) -> Placed {
        let (model, set_of) = self.model();
        let layers = LayerOptions {
            source: LayerSource::Regex(Regex::new(r"layer/(\d+)").unwrap()),
            inputs_regex: Regex::new("embeddings").unwrap(),
            order: self.order,
            ..LayerOptions::default()
        };
        let layering = Layering::of_names(&model.operations, &layers);
        let placement = Placement::full(&model, &layering, options).unwrap();
        Placed { placement, set_of }
    }
}

/// The places that were found for a test model. `set_of` maps each variable of the test model to
/// its entry in [`Placement::counted`].
pub struct Placed {
    pub(super) placement: Placement,
    pub(super) set_of: Vec<u32>,
}

impl Placed {
    pub(super) fn names(&self, set: PlaceSet) -> String {
        if set == EVERYWHERE {
            return "every stage".to_string();
        }
        let places = self.placement.sets.places(set).iter();
        let names = places.map(|&place| self.placement.positions.name(place as usize).to_string());
        names.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn variable(&self, variable: usize) -> String {
        self.names(self.placement.counted[self.set_of[variable] as usize])
    }

    pub(super) fn operation(&self, operation: usize) -> (String, Reason) {
        let own = self.placement.operations[operation];
        (self.names(own.places), own.reason)
    }

    pub(super) fn programs(&self, operation: usize) -> Vec<String> {
        let of_cluster = self.placement.of_cluster[operation].iter();
        of_cluster.map(|&set| self.names(set)).collect()
    }
}

/// A model of a training step with embedding, three layers and head, to which tests add operations.
/// `weights` and `gradients` have one variable for each place (In, layers, Out).
pub struct Training {
    pub(super) case: Case,
    pub(super) embedding: usize,
    pub(super) head: usize,
    pub(super) forward: Vec<usize>,
    pub(super) weights: Vec<usize>,
    pub(super) gradients: Vec<usize>,
}

impl Training {
    pub(super) fn new() -> Self {
        let mut case = Case::default();
        let forward = case.operations(["embedding", "layer/1/x", "layer/2/x", "layer/3/x", "head"]);
        let backward = case.operations([
            "head_grad",
            "layer/3/x_grad",
            "layer/2/x_grad",
            "layer/1/x_grad",
            "embedding_grad",
        ]);
        let (mut weights, mut gradients) = (Vec::new(), Vec::new());
        case.passing(&forward[..1], "ids");
        case.passing(&[forward[4], backward[0]], "loss");
        for place in 0..5 {
            let users = [forward[place], backward[4 - place]];
            weights.push(case.lasting(&users, "kernel"));
            gradients.push(case.passing(&[backward[4 - place]], ""));
        }
        for place in 0..4 {
            case.passing(&[forward[place], forward[place + 1]], "activation");
            case.passing(&[backward[place], backward[place + 1]], "derivative");
        }
        Self {
            case,
            embedding: forward[0],
            head: forward[4],
            forward: forward.to_vec(),
            weights,
            gradients,
        }
    }

    pub(super) fn uses(&mut self, operation: usize, variables: &[usize]) {
        for &variable in variables {
            self.case.variables[variable].0.push(operation);
        }
    }

    pub(super) fn placed(&self) -> Placed {
        self.case.placed(&PlacementOptions::default())
    }
}
