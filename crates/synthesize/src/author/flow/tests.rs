//! Consequences of the forms of a model: gradients, sums, updates, state.

use std::path::Path;

use crate::features::Form;
use crate::groups::{Access, Group};
use crate::model::{Op, Phase};
use crate::places::Places;
use crate::plan::{self, Plan};
use crate::templates::Kind;
use clap::ValueEnum as _;

const FRAMEWORKS: [&str; 4] = ["popart", "poptorch", "tensorflow", "poplar"];

fn planned(options: &str) -> Plan {
    let size = "--layers 6 --tiles 8 --bytes-per-layer-tile 20000";
    let options = size.split(' ').chain(options.split_whitespace());
    let options = crate::parsed(Path::new("."), options);
    plan::build(options.expect("options").settle().expect("settings"))
}

fn of_all_forms(mut check: impl FnMut(&str, &Plan)) {
    for form in Form::value_variants() {
        let form = form.to_possible_value().expect("a name");
        for framework in FRAMEWORKS {
            for mode in ["inference", "training"] {
                let form = form.get_name();
                let options = format!("--framework {framework} --mode {mode} --forms {form}");
                check(&options, &planned(&options));
            }
        }
    }
}

/// The accesses of the first stage that uses a group.
fn first_accesses(plan: &Plan, group: &Group) -> Vec<Access> {
    let step = |stage: usize| {
        let (first, _) = plan.tree.stages[stage].programs;
        plan.tree.listings[first as usize].first().copied()
    };
    let first = group.uses.iter().map(|&(stage, _)| step(stage)).min();
    let uses = group.uses.iter();
    uses.filter(|&&(stage, _)| Some(step(stage)) == first)
        .map(|&(_, access)| access)
        .collect()
}

#[test]
fn a_live_range_begins_where_its_variable_is_made() {
    of_all_forms(|name, plan| {
        for (index, group) in plan.groups.iter().enumerate() {
            let class = plan.classes.of_group[index][0];
            let accesses = first_accesses(plan, group);
            let is_made = accesses.iter().any(|access| *access != Access::Source);
            let always = plan.classes.always[class as usize];
            assert!(is_made || always, "{name}: {}", group.name);
        }
    });
}

#[test]
fn each_output_has_a_user_or_ends_a_pass() {
    of_all_forms(|name, plan| {
        let read = |from: usize, part: usize| {
            let mut ops = plan.model.ops.iter();
            ops.any(|op| {
                op.reads
                    .iter()
                    .any(|read| (read.from, read.part) == (from, part))
            })
        };
        for (index, op) in plan.model.ops.iter().enumerate() {
            // Losses end the forward pass, the gradient of a lookup the backward.
            let of = op.partner.unwrap_or(index);
            let in_layer = plan.model.forward.iter().flatten().any(|&op| op == of);
            let ends = op.kind == Kind::Softmax && !in_layer;
            let is_first = op.phase == Phase::Backward && op.places == Places::IN;
            let has_none = !op.hands_on || ends || is_first || op.function.is_some();
            let is_pass = !matches!(op.phase, Phase::Optimiser | Phase::Compiler);
            for part in (0..op.parts).filter(|_| is_pass && !has_none) {
                assert!(read(index, part), "{name}: {} {part}", op.name);
            }
        }
    });
}

#[test]
fn only_trained_weights_have_gradients_state_and_updates() {
    of_all_forms(|name, plan| {
        let updated = |weight: usize| {
            let ops = plan.model.ops.iter().filter(|op| op.kind == Kind::Update);
            ops.flat_map(|op| op.works_on.iter().flatten())
                .any(|&other| other == weight)
        };
        for (index, weight) in plan.model.weights.iter().enumerate() {
            assert_eq!(weight.is_trained, updated(index), "{name}: {}", weight.name);
            let has_gradient = !weight.gradients.is_empty();
            assert_eq!(weight.is_trained, has_gradient, "{name}: {}", weight.name);
        }
        let all = plan.model.weights.len();
        let trained = plan.model.trained().len();
        let is_part = name.contains("frozen") || name.contains("adapters");
        match name.contains("training") {
            false => assert_eq!(trained, 0, "{name}"),
            true => assert_eq!(trained < all, is_part, "{name}"),
        }
    });
}

fn backward_positions(plan: &Plan) -> Vec<u32> {
    let backward = plan
        .model
        .ops
        .iter()
        .filter(|op| op.phase == Phase::Backward);
    let places = backward.fold(Places::NONE, |all, op| all | op.places);
    places.in_order(plan.settings.layers)
}

#[test]
fn the_backward_pass_ends_where_nothing_is_trained() {
    for framework in FRAMEWORKS {
        let training = format!("--framework {framework} --mode training");
        let frozen = planned(&format!("{training} --forms frozen"));
        assert_eq!(backward_positions(&frozen), [4, 5, 6, 7], "{framework}");
        let adapters = planned(&format!("{training} --forms adapters"));
        assert_eq!(
            backward_positions(&adapters),
            [1, 2, 3, 4, 5, 6, 7],
            "{framework}"
        );
    }
}

/// The operations that add up gradients of several positions.
fn sums(plan: &Plan) -> Vec<&Op> {
    let ops = plan.model.ops.iter();
    ops.filter(|op| op.op_type == "Sum" && op.outputs[0].contains("sum_of"))
        .collect()
}

#[test]
fn gradients_are_added_up_with_the_last_of_them() {
    for framework in FRAMEWORKS {
        let options = format!("--framework {framework} --mode training --forms");
        let skip = planned(&format!("{options} skip-in"));
        let of_skip = sums(&skip);
        assert_eq!(of_skip.len(), 1, "{framework}");
        assert_eq!(of_skip[0].places, Places::layer(0), "{framework}");
        assert_eq!(of_skip[0].reads.len(), 2, "{framework}");
        let all = planned(&format!("{options} skip-in-all"));
        assert_eq!(sums(&all)[0].reads.len(), 7, "{framework}");
        let pyramid = planned(&format!("{options} pyramid"));
        let places: Vec<Places> = sums(&pyramid).iter().map(|op| op.places).collect();
        let layers: Vec<Places> = (1..6).rev().map(Places::layer).collect();
        assert_eq!(places, layers, "{framework}");
    }
}

#[test]
fn positions_follow_each_other_in_both_passes() {
    of_all_forms(|name, plan| {
        let of_phase = |backward: bool| {
            let order = plan.model.order.iter().map(|&op| &plan.model.ops[op]);
            let forward = order.filter(move |op| match op.phase {
                Phase::Embedding | Phase::Forward | Phase::Head => !backward,
                Phase::Backward => backward,
                Phase::Optimiser | Phase::Compiler => false,
            });
            let single = forward.filter(|op| op.places.count() == 1);
            single
                .map(|op| op.places.in_order(plan.settings.layers)[0])
                .collect::<Vec<u32>>()
        };
        assert!(of_phase(false).is_sorted(), "{name}");
        assert!(of_phase(true).iter().rev().is_sorted(), "{name}");
    });
}
