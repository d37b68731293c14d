//! A form of models for each rule of placement that fails without it: each was switched
//! off once, and the form or test named here failed. A rule that needs none can go.

use std::collections::BTreeSet;

use super::operations::Wrong;
use super::planted::Planted;
use super::{Drawn, Errors, drawn, forms};

/// What fails without a rule.
enum Needs {
    /// Operations, ranges or splits of the model with forms of this seed.
    Form(u64),
    /// The same of a small model with these options of the generator.
    Options(&'static str),
    /// A small model made by hand, in `src/model/placement/tests`.
    Test(&'static str),
}

use Needs::{Form, Options, Test};

/// The rules, in the words of docs/model.md.
const RULES: [(&str, Needs); 57] = [
    (
        "the variable on the same tile with as many elements",
        Form(18),
    ),
    (
        "with as many elements, as wide",
        Options("--mode training --framework tensorflow --optimiser adam-fused --moment-width 1"),
    ),
    ("or is one of eight or more of its operation", Form(9)),
    (
        "A call of a function that is called from several places is one node",
        Form(1),
    ),
    ("A range that the host begins to use", Form(10)),
    ("the range may begin with the parents of that step", Form(0)),
    ("After it a node that nothing uses later is late", Form(47)),
    ("Operations whose names say a layer", Form(9)),
    (
        "(or whose inputs do, where no name says any)",
        Test("inputs_tell_the_layer_where_no_name_does"),
    ),
    (
        "in the order in which these run first",
        Test("layers_are_passed_in_the_order_in_which_they_run"),
    ),
    ("unless that is above what leads to it", Form(3)),
    ("from the highest level that leads to a node", Form(31)),
    (
        "where most nodes without a layer stand between two of the highest layer",
        Form(3),
    ),
    ("where the parameters and", Form(4)),
    ("and the forward variables are that it uses", Form(56)),
    (
        "where the name of a weight says",
        Test("what_has_no_name_is_at_the_layer_that_its_weight_is_named_after"),
    ),
    ("a head between layers: at *before*", Form(24)),
    (
        "else where most bytes are that it uses and makes",
        Test("what_sums_gradients_between_two_layers_is_of_the_one_before_it"),
    ),
    (
        "What is made of weights alone, such as a cast, goes with its consumers",
        Form(16),
    ),
    (
        "What is made of weights alone",
        Test("what_is_made_of_an_input_is_not_of_the_layer_that_uses_it"),
    ),
    ("of several, they are shared by these", Form(42)),
    (
        "what uses them between two levels is at one of these",
        Form(157),
    ),
    (
        "the backward pass of Out or of a head",
        Test("what_begins_the_backward_pass_without_weights_is_of_out"),
    ),
    (
        "from *after* up to Out where most bytes are, else Out",
        Test("the_first_gradient_of_a_head_between_layers_is_not_of_out"),
    ),
    (
        "In, and the node uses what In's forward pass does",
        Form(66),
    ),
    (
        "whose forward pass makes or uses each of the forward variables that it uses",
        Test("a_gradient_is_where_the_forward_variables_are_that_it_uses"),
    ),
    ("A sum of gradients, which nothing uses later", Form(0)),
    ("over later nodes that use what it uses", Form(56)),
    ("beside a number of less than 16 bytes", Form(17)),
    (
        "a late node is at the levels that share it, unless others are elsewhere",
        Form(24),
    ),
    ("A name is that of one of these levels", Form(438)),
    (
        "A node of the backward pass is where the parameters are that it uses",
        Form(472),
    ),
    (
        "unless others are elsewhere",
        Test("what_scales_a_shared_gradient_and_another_is_nowhere"),
    ),
    (
        "What changes no parameter is between In and the nearest gradient that it uses",
        Test("a_gradient_that_only_the_host_reads_is_where_it_is_made"),
    ),
    (
        "What updates alone use, such as a learning rate",
        Test("a_rate_that_a_named_update_uses_tells_nothing_of_others"),
    ),
    ("*State.* What no data of a layer flows through", Form(30)),
    ("and else only its own, is on every IPU", Form(55)),
    (
        "What is left is where the other users of its variables are, if they agree",
        Test("others_go_with_what_they_use_or_with_the_operation_before"),
    ),
    (
        "where their nodes of the forward pass are, or without any there, those after it",
        Test("what_is_recomputed_is_where_it_ran_first"),
    ),
    (
        "An operation that uses nothing that others compute with is in every stage",
        Form(3),
    ),
    ("In functions only an anonymous one is", Form(12)),
    (
        "In a function, or from the first operation of a layer",
        Form(24),
    ),
    (
        "What computes before the layers is in In, and after them in Out",
        Test("without_flow_to_a_layer_the_order_of_the_program_tells"),
    ),
    (
        "to the layer that its own name or tensor gives",
        Test("a_name_decides_before_what_a_variable_is_used_with"),
    ),
    (
        "or the place of the weight that it is named after",
        Form(66),
    ),
    (
        "to the place of the other variables of an operation that uses it",
        Form(56),
    ),
    (
        "or else of one of its programs",
        Test("what_reaches_over_the_model_adds_no_place"),
    ),
    ("to that of its partner", Form(18)),
    (
        "to all places that the operations which use it touch",
        Test("moving_weights_in_and_out_adds_no_place"),
    ),
    ("Rules 1 to 3 are gone through twice", Form(277)),
    (
        "are those of the variables with the fewest places",
        Form(56),
    ),
    (
        "One of less than 16 bytes on each tile adds nothing beside larger variables",
        Form(116),
    ),
    ("also through a cast in the forward pass", Form(16)),
    (
        "or that none does and that the host both gives and takes",
        Form(494),
    ),
    ("what advances a state makes it one of each IPU", Form(42)),
    ("those of 16 bytes or more for each tile", Form(3)),
    (
        "A later destination of an exchange in the range begins a new version",
        Test("what_follows_a_later_destination_depends_on_it_too"),
    ),
];

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_as_planted(rule: &str, seed: u64, drawn: Drawn) {
    let model = Errors::new(seed, Planted::with(drawn));
    let misplaced = model.operations.wrong.iter().map(Wrong::to_string);
    let misses = model.misses().into_iter().chain(misplaced);
    let misses: Vec<String> = misses.chain(forms::too_high(&model)).collect();
    assert!(misses.is_empty(), "{rule}: {}", misses.join("\n"));
}

#[test]
fn each_rule_of_placement_has_a_form() {
    let document = words(include_str!("../../../../docs/model.md"));
    let by_hand = [
        include_str!("../../../../src/model/placement/tests/mod.rs"),
        include_str!("../../../../src/model/placement/tests/rules.rs"),
        include_str!("../../../../src/model/flow.rs"),
    ];
    let mut checked = BTreeSet::new();
    for (rule, needs) in &RULES {
        assert!(document.contains(rule), "no rule: {rule}");
        match needs {
            Test(name) => {
                let test = format!("#[test]\nfn {name}() {{");
                let has_test = |file: &&str| words(file).contains(&words(&test));
                assert!(by_hand.iter().any(has_test), "{name}");
            }
            // The first ones are those of `forms_are_placed_as_planted`.
            Form(seed) if *seed < forms::MODELS || !checked.insert(*seed) => {}
            Form(seed) => is_as_planted(rule, *seed, drawn::with_forms(*seed)),
            Options(options) => is_as_planted(rule, 0, drawn::with_options(options)),
        }
    }
}
