//! A model for each rule of placement that fails without the rule. Each rule was switched off once,
//! and the model or test named here failed. A rule without a failing model can be removed.

use std::collections::BTreeSet;

use super::planted::Planted;
use super::{Errors, drawn};
use crate::support::cases;

/// Largest relative error by which the fullest tile of a range may be predicted too high.
const MOST_OVER: f64 = 0.40;

/// The rules, in the words of docs/model.md, each with its model: options of the generator, or the
/// name of a test with a small model made by hand. Contexts of plain Poplar identify neither
/// weights nor passes; a fused optimiser has one compute set over all weights.
const RULES: &str = "
    the variable on the same tile with as many elements
        --framework popart --mode training --optimiser adam-fused --names variable --outlined once
        --outline-backward
    with as many elements, as wide
        --mode training --framework tensorflow --optimiser adam-fused --moment-width 1
    or is one of eight of its operation
        --framework poplar --mode training --gradient-norm --names none
    A call of a function that is called from several places is one node
        --framework popart --mode training --optimiser adam-fused --names variable --outlined once
        --outline-backward
    A range that the host begins to use
        --framework poplar --mode training --gradient-norm --names none
    the range may begin with the parents of that step
        --framework poplar --mode training --gradient-norm --names none
    After it, a node that nothing uses later is late
        --framework poplar --mode training --gradient-norm --names none
    Operations whose names give a layer
        --framework poplar --mode training --gradient-norm --names none
    (or whose inputs do, if no name gives any)
        inputs_tell_the_layer_where_no_name_does
    in the order in which these run first
        layers_are_passed_in_the_order_in_which_they_run
    unless that is above its sources
        a_weight_above_what_leads_to_a_gradient_does_not_place_it
    from the highest level that leads to a node
        what_joins_two_layers_is_not_before_the_later_one
    where most nodes without a layer lie between two of the highest layer
        without_contexts_the_return_of_the_layers_tells_where_the_head_ends
    where its parameters and
        an_update_of_one_weight_is_where_the_weight_is
    and its forward variables are
        a_gradient_is_where_the_activation_is_that_it_uses
    by the name of a weight
        what_has_no_name_is_at_the_layer_that_its_weight_is_named_after
    a head between layers, at *before*
        a_head_between_layers_is_at_the_layer_before_it
    or else where it uses and makes the most bytes
        what_sums_gradients_between_two_layers_is_of_the_one_before_it
    A tensor made only of weights, such as a cast, joins its consumers
        a_weight_that_is_cast_for_a_layer_and_used_by_another_is_shared
    A tensor made only of weights
        what_is_made_of_an_input_is_not_of_the_layer_that_uses_it
    the levels share the parameter
        a_gradient_with_a_shared_weight_is_where_that_is
    a node between two levels that uses it is at one of them
        a_gradient_with_a_shared_weight_is_where_that_is
    the backward pass of Out or of a head
        what_begins_the_backward_pass_without_weights_is_of_out
    from *after* up to Out where most bytes are, else Out
        the_first_gradient_of_a_head_between_layers_is_not_of_out
    In, and the node uses a variable of In's forward pass
        a_gradient_next_to_in_that_uses_what_in_keeps_is_of_in
    whose forward pass makes or uses every forward variable of the node
        a_gradient_is_where_the_forward_variables_are_that_it_uses
    A sum of gradients that nothing uses later
        a_sum_of_gradients_is_where_the_last_of_them_is_made
    over later nodes that share a variable with it
        what_changes_a_gradient_in_place_is_where_its_update_is
    A number of less than 16 bytes on each tile
        a_number_that_scales_all_gradients_does_not_join_them
    a late node is at the sharing levels, unless other parameters are elsewhere
        what_leads_to_updates_of_a_shared_weight_and_of_one_there_is_at_all_that_share_it
    A name only counts if it gives one of these levels
        the_name_of_an_update_is_that_of_one_level_of_a_shared_weight
    A backward node is where its parameters are
        a_gradient_is_where_its_weight_is_and_not_where_its_update_is
    unless other parameters are elsewhere
        what_scales_a_shared_gradient_and_another_is_nowhere
    A node that changes no parameter is between In and the nearest gradient that it uses
        a_gradient_that_only_the_host_reads_is_where_it_is_made
    Variables that only updates use, such as a learning rate
        a_rate_that_a_named_update_uses_tells_nothing_of_others
    *State.* A node without data of a layer
        what_advances_the_state_of_several_layers_is_on_every_ipu
    and otherwise only its own is on every IPU
        what_advances_the_state_of_several_layers_is_on_every_ipu
    Any other node is where the other users of its variables are, if they agree
        others_go_with_what_they_use_or_with_the_operation_before
    where their forward nodes are, or if there are none, their later nodes
        what_is_recomputed_is_where_it_ran_first
    If it uses nothing that others compute with, it is in every stage
        what_only_the_compiler_uses_is_in_every_stage
    In functions this only holds for anonymous operations
        a_named_operation_of_a_function_goes_with_the_operation_before
    In a function, or between the first and the last operation of a layer
        a_function_and_its_arguments_are_where_its_calls_are
    If it computes before the layers it is in In, after them in Out
        without_flow_to_a_layer_the_order_of_the_program_tells
    in the layer that its own name or tensor gives
        a_name_decides_before_what_a_variable_is_used_with
    or the place of the weight that it is named after
        state_is_where_the_weight_is_that_it_is_named_after
    in the one place of the other variables of an operation that uses it
        what_has_no_place_goes_with_an_operation_that_touches_one
    or else of one of its programs
        what_reaches_over_the_model_adds_no_place
    in the place of its partner
        --framework popart --mode training --optimiser adam-fused --names variable --outlined once
        --outline-backward
    in all places that its operations touch
        moving_weights_in_and_out_adds_no_place
    Rules 1 to 3 run twice
        what_is_used_with_what_has_got_a_place_gets_it_too
    the places of its variables with the fewest places
        what_works_on_a_tied_weight_is_where_that_is
    One of less than 16 bytes on each tile adds nothing beside larger variables
        a_small_number_adds_no_place_to_what_uses_it
    also if they share it through a cast in the forward pass
        a_weight_that_is_cast_for_a_layer_and_used_by_another_is_shared
    or that no update uses and that the host both gives and takes
        what_the_host_gives_and_takes_is_a_weight_too
    a state that something advances exists on each IPU
        what_advances_the_state_of_several_layers_is_on_every_ipu
    less than 16 bytes for each tile do not count
        what_the_host_gives_and_takes_is_a_weight_too
    A later destination of an exchange in the range begins a new version
        what_follows_a_later_destination_depends_on_it_too
";

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_as_planted(rule: &str, options: &str) {
    let model = Errors::new(0, &Planted::with(drawn::with_options(options)));
    let over: Vec<_> = model
        .ranges
        .iter()
        .filter(|range| range.over > MOST_OVER)
        .collect();
    let misses = model.misses();
    let is_right = misses.is_empty() && model.wrong.is_empty() && over.is_empty();
    assert!(is_right, "{rule}: {misses:#?} {:#?} {over:#?}", model.wrong);
}

#[test]
fn each_rule_of_placement_has_a_model() {
    let document = words(include_str!("../../../../docs/model.md"));
    let by_hand = [
        include_str!("../../../../src/model/placement/tests/mod.rs"),
        include_str!("../../../../src/model/placement/tests/levels.rs"),
        include_str!("../../../../src/model/placement/tests/rules.rs"),
        include_str!("../../../../src/model/flow.rs"),
    ];
    let by_hand = by_hand.map(words);
    let mut checked = BTreeSet::new();
    for (rule, model) in cases(RULES) {
        assert!(document.contains(&rule), "no rule: {rule}");
        let model = model.join(" ");
        if !model.starts_with("--") {
            let test = format!("#[test] fn {model}() {{");
            assert!(by_hand.iter().any(|file| file.contains(&test)), "{model}");
        } else if checked.insert(model.clone()) {
            is_as_planted(&rule, &model);
        }
    }
}
