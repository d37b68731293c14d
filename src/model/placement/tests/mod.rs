//! Tests of the rules for places (In, layers, Out), one by one, on small models.

mod case;
mod levels;
mod rules;

use super::*;
use crate::model::Operation;
use case::{Case, LASTING, Training};

const PLACES: [&str; 5] = ["In", "1", "2", "3", "Out"];

#[test]
fn what_runs_around_the_layers_is_in_and_out() {
    let training = Training::new();
    let placed = training.placed();
    assert_eq!(
        placed.operation(training.embedding),
        ("In".into(), Reason::BeforeLayers)
    );
    assert_eq!(
        placed.operation(training.head),
        ("Out".into(), Reason::AfterLayers)
    );
    // The backward pass of the head is in Out and that of the embedding is in In, like their
    // forward passes.
    assert_eq!(placed.operation(5), ("Out".into(), Reason::AfterLayers));
    assert_eq!(placed.operation(9), ("In".into(), Reason::BeforeLayers));
    for (place, name) in PLACES.into_iter().enumerate() {
        assert_eq!(placed.variable(training.weights[place]), name);
        assert_eq!(placed.variable(training.gradients[place]), name);
    }
}

#[test]
fn without_contexts_the_return_of_the_layers_tells_where_the_head_ends() {
    let mut training = Training::new();
    for operation in &mut training.case.operations {
        operation.is_backward = false;
    }
    let placed = training.placed();
    assert_eq!(placed.operation(training.head).0, "Out");
    assert_eq!(placed.operation(5).0, "Out");
    assert_eq!(placed.operation(9).0, "In");
}

#[test]
fn a_model_without_a_backward_pass_ends_with_its_head() {
    let mut case = Case::default();
    let [mask, _, first, second, head] =
        case.operations(["mask", "move in", "layer/0/x", "layer/1/x", "head"]);
    let shared = case.passing(&[mask, first, second], "");
    let own = case.passing(&[mask], "");
    let result = case.passing(&[second, head], "");
    let placed = case.placed(&PlacementOptions::default());
    assert_eq!(placed.operation(mask).0, "In");
    assert_eq!(placed.operation(head).0, "Out");
    assert_eq!(placed.variable(shared), "In 0 1");
    assert_eq!(placed.variable(own), "In");
    assert_eq!(placed.variable(result), "1 Out");
}

#[test]
fn an_update_of_one_weight_is_where_the_weight_is() {
    let mut training = Training::new();
    let mut moments = Vec::new();
    for place in 0..5 {
        let step = training.case.operation("update");
        let used = [training.weights[place], training.gradients[place]];
        training.uses(step, &used);
        moments.push(training.case.variable(&[step], LASTING, 1000, "moment"));
    }
    let placed = training.placed();
    for (place, moment) in moments.into_iter().enumerate() {
        assert_eq!(placed.variable(moment), PLACES[place]);
        assert_eq!(placed.variable(training.weights[place]), PLACES[place]);
    }
}

#[test]
fn what_reaches_over_the_model_adds_no_place() {
    let mut training = Training::new();
    let norm = training.case.operation("global_norm");
    let gradients = training.gradients.clone();
    training.uses(norm, &gradients);
    let partial = training.case.passing(&[norm], "");
    let other = training.case.passing(&[norm], "");
    let sum = training.case.passing(&[norm], "");
    training.case.programs.push((
        norm,
        vec![
            vec![gradients[2], partial],
            vec![gradients[3], other],
            vec![partial, other, sum],
            gradients.clone(),
        ],
    ));
    let placed = training.placed();
    assert_eq!(placed.operation(norm).1, Reason::Touched);
    for (place, gradient) in gradients.into_iter().enumerate() {
        assert_eq!(placed.variable(gradient), PLACES[place]);
    }
    assert_eq!(placed.variable(partial), "2");
    assert_eq!(placed.variable(other), "3");
    assert_eq!(placed.variable(sum), "In 1 2 3 Out");
    assert_eq!(placed.programs(norm), ["2", "3", "2 3", "In 1 2 3 Out"]);
    let by_touch = &placed.placement.by_touch;
    assert!(by_touch[placed.set_of[sum] as usize] && !by_touch[placed.set_of[partial] as usize]);
}

#[test]
fn a_name_decides_before_what_a_variable_is_used_with() {
    let mut training = Training::new();
    let fused = training.case.operation("update");
    let weights = training.weights.clone();
    training.uses(fused, &weights);
    let named = training.case.lasting(&[fused], "Accl1___layer/2/kernel");
    let paired = training.case.lasting(&[fused], "moment");
    let alone = training.case.lasting(&[fused], "step");
    training.case.partners.push((paired, weights[3]));
    let placed = training.placed();
    assert_eq!(placed.variable(named), "2");
    assert_eq!(placed.variable(paired), "3");
    assert_eq!(placed.variable(alone), "In 1 2 3 Out");
}

#[test]
fn moving_weights_in_and_out_adds_no_place() {
    let mut training = Training::new();
    // The upload copies weights from the host before all other operations. It uses the weights of
    // all places (In, layers, Out), but must not add a place to any of them.
    let upload = training.case.operation_at(0, "move up");
    let weights = training.weights.clone();
    training.uses(upload, &weights);
    let buffer = training.case.passing(&[upload], "");
    let placed = training.placed();
    assert_eq!(placed.operation(0).1, Reason::Touched);
    for (place, weight) in weights.into_iter().enumerate() {
        assert_eq!(placed.variable(weight), PLACES[place]);
    }
    assert_eq!(placed.variable(buffer), "In 1 2 3 Out");
}

#[test]
fn what_only_the_compiler_uses_is_in_every_stage() {
    let mut training = Training::new();
    let [made, fix] = training.case.operations(["made", "made fix"]);
    let counter = training.case.lasting(&[made], "");
    let weight = training.weights[2];
    training.uses(fix, &[weight]);
    let placed = training.placed();
    assert_eq!(
        placed.operation(made),
        ("every stage".into(), Reason::EveryStage)
    );
    assert_eq!(placed.variable(counter), "every stage");
    assert_eq!(placed.operation(fix).0, "2");
    assert_eq!(placed.variable(weight), "2");
}

#[test]
fn what_nobody_uses_is_in_every_stage() {
    let mut training = Training::new();
    let stack = training.case.lasting(&[], "");
    assert_eq!(training.placed().variable(stack), "every stage");
}

#[test]
fn others_go_with_what_they_use_or_with_the_operation_before() {
    let mut case = Case::default();
    let [first, dropout, cast, more, second] =
        case.operations(["layer/1/x", "dropout", "cast", "cast more", "layer/2/x"]);
    let weight = case.lasting(&[second, dropout], "");
    let own = case.passing(&[dropout], "");
    let alone = case.passing(&[cast, more], "");
    case.passing(&[first], "");
    let placed = case.placed(&PlacementOptions::default());
    assert_eq!(placed.operation(dropout), ("2".into(), Reason::Variables));
    assert_eq!(placed.variable(own), "2");
    assert_eq!(placed.variable(weight), "2");
    assert_eq!(placed.operation(cast), ("2".into(), Reason::Neighbour));
    assert_eq!(placed.variable(alone), "2");
}

#[test]
fn a_cast_of_a_layers_weight_before_the_layers_is_not_of_in() {
    let mut training = Training::new();
    let cast = training.case.operation_at(0, "cast");
    let weight = training.weights[2];
    training.uses(cast, &[weight]);
    let copy = training.case.lasting(&[cast], "");
    let placed = training.placed();
    assert_eq!(placed.variable(weight), "2");
    assert_eq!(placed.variable(copy), "2");
}

#[test]
fn a_tied_weight_brings_the_head_to_the_embedding() {
    let mut training = Training::new();
    let users = [training.embedding, training.head];
    let tied = training.case.lasting(&users, "weight of words");
    let constant = training.case.lasting(&training.forward.clone(), "mask");
    let placed = training.placed();
    assert!(placed.placement.positions.out_is_first());
    assert_eq!(placed.variable(tied), "In Out");
    assert_eq!(placed.operation(training.head).0, "In Out");
    assert_eq!(placed.variable(constant), "In Out 1 2 3");
    let tie = WeightTie {
        weight: "weight of words".into(),
        bytes: 100,
        places: vec![0, 4],
        layers: vec![None, Some("Out".into())],
        ..WeightTie::default()
    };
    assert_eq!(placed.placement.ties, std::slice::from_ref(&tie));
    assert_eq!(tie.binds(&placed.placement.positions), None);
    let options = PlacementOptions {
        out_on: OutOn::Last,
        ..PlacementOptions::default()
    };
    let placed = training.case.placed(&options).placement;
    assert_eq!(placed.positions.out(), Some(4));
    assert_eq!(tie.binds(&placed.positions), Some((0, 4)));
    assert_eq!(placed.ties, [tie]);
}

#[test]
fn without_kinds_a_weight_is_what_one_update_uses() {
    let mut training = Training::new();
    let step = training.case.operation("update");
    let layers = training.forward[1..4].to_vec();
    let tied = training.case.lasting(&layers, "shared");
    training.uses(step, &[tied]);
    let placed = training.placed();
    let ties = &placed.placement.ties;
    assert_eq!(ties.len(), 1);
    assert_eq!(ties[0].places, [1, 2, 3]);
    // A variable that several updates use is a learning rate and not a weight, so it ties no
    // layers.
    let other = training.case.operation("update");
    training.uses(other, &[tied]);
    assert_eq!(training.placed().placement.ties, []);
}

#[test]
fn what_works_on_a_tied_weight_is_where_that_is() {
    let mut training = Training::new();
    let users = [training.embedding, training.head];
    let tied = training.case.lasting(&users, "weight of words");
    let rate = training.case.lasting(&training.forward.clone(), "rate");
    let step = training.case.operation("update");
    training.uses(step, &[tied, rate]);
    let moment = training.case.lasting(&[step], "moment");
    let placed = training.placed();
    assert_eq!(placed.variable(moment), "In Out");
}

#[test]
fn what_sums_gradients_between_two_layers_is_of_the_one_before_it() {
    let mut training = Training::new();
    let sum = training.case.operation("grad sum");
    // The operation `sum` adds up gradients. It runs after the gradients of layer 2 and before
    // those of layer 1, so it is at layer 2.
    let at = training.forward.len() + 3;
    let operation = training.case.operations.remove(sum);
    training.case.operations.insert(at, operation);
    let derivative = training.case.passing(&[sum, 7], "");
    let result = training.case.passing(&[sum, 8], "");
    let placed = training.placed();
    assert_eq!(placed.operation(at), ("2".into(), Reason::Variables));
    assert_eq!(placed.variable(derivative), "2");
    assert_eq!(placed.variable(result), "1 2");
}

#[test]
fn a_function_and_its_arguments_are_where_its_calls_are() {
    let mut training = Training::new();
    let body = training.case.operation("grad of a function");
    let inner = training.case.operations.remove(body);
    let argument = training.case.passing(&[body, 6], "");
    let own = training.case.passing(&[body], "");
    for place in [8, 7] {
        let nested = Operation {
            is_nested: true,
            ..inner.clone()
        };
        training.case.operations.insert(place, nested);
    }
    let placed = training.placed();
    // The gradients of layers 3 and 2 call one function, whose body is operation 7 in the call of
    // layer 3 and operation 9 in that of layer 2. The flow of data is known for the first call
    // only. So operation 9 has the place of the operation before it, layer 2.
    assert_eq!(placed.operation(7), ("3".into(), Reason::Variables));
    assert_eq!(placed.operation(9), ("2".into(), Reason::Neighbour));
    assert_eq!(placed.variable(argument), "2 3");
    assert_eq!(placed.variable(own), "2 3");
}
