//! The forms of splits that are made up; what Python and YAML read in them is
//! tested in `tests/it/report/emit`.

use super::*;
use crate::memory::StageMemory;
use crate::model::{Layering, Positions};
use crate::report::split::layer_name;

/// A split that fits, with these layers in each stage, the pseudo-layer first.
fn split(stages: &[&[&str]], max_stages: usize) -> Split {
    let mut names = vec![String::new()];
    names.extend(stages.iter().flat_map(|s| s.iter()).map(|s| s.to_string()));
    let memory = StageMemory {
        tiles: vec![Default::default()],
        peak_steps: vec![None],
    };
    let positions = Positions::classic(&Layering::of(names, Vec::new()));
    let mut from = 0;
    let stages = stages.iter().map(|layers| {
        let to = from + layers.len() + usize::from(from == 0);
        let stage = Stage::new(&positions, &(from..to), &memory);
        from = to;
        stage
    });
    Split {
        limit: 638_976,
        max_stages,
        limits: Vec::new(),
        broken: Vec::new(),
        is_given: false,
        stages: stages.collect(),
        unplaced: Vec::new(),
        too_large: Vec::new(),
    }
}

fn template(text: &str) -> ModuleTemplate {
    text.parse().unwrap()
}

/// What is left without comments at the start of a line.
fn code(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn an_entry_for_each_ipu_and_a_word_on_what_is_missing() {
    let text = emit(Form::LayersPerIpu, &split(&[&["0"], &["2", "3"]], 4), None).unwrap();
    assert_eq!(code(&text), "layers_per_ipu: [1, 2, 0, 0]\n");
    for part in [
        "does not have: 1.",
        "IPUs without layers: 2",
        "of the profile.",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let text = emit(Form::LayersPerIpu, &split(&[&["1"], &["2"]], 2), None).unwrap();
    assert!(
        !text.contains("does not have") && !text.contains("without"),
        "{text}"
    );
}

#[test]
fn layers_out_of_order_cannot_be_counted() {
    let split = split(&[&["0", "10"], &["9"]], 2);
    let error = emit(Form::LayersPerIpu, &split, None).unwrap_err();
    let expected = EmitError::NotAscending {
        before: "10".into(),
        after: "9".into(),
    };
    assert_eq!(error, expected);
    assert!(emit(Form::Keras, &split, None).is_ok());
}

#[test]
fn layers_without_numbers_are_counted_in_their_order() {
    let split = split(&[&["encoder0"], &["decoder0\n", "decoder1"]], 2);
    let text = emit(Form::LayersPerIpu, &split, None).unwrap();
    assert_eq!(code(&text), "layers_per_ipu: [1, 2]\n");
    assert!(
        text.contains("order: encoder0 decoder0\\n decoder1\n"),
        "{text}"
    );
}

#[test]
fn a_module_begins_one_block() {
    let module = template("model.layer[{}]");
    let text = emit(
        Form::Poptorch,
        &split(&[&["0"], &["1", "2"]], 2),
        Some(&module),
    );
    let expected = "poptorch.BeginBlock(model.layer[0], ipu_id=0)\n\
                    poptorch.BeginBlock(model.layer[1], ipu_id=1)\n";
    assert_eq!(code(&text.unwrap()), expected);
    let twice = split(&[&["1"], &["01"]], 2);
    let error = emit(Form::Poptorch, &twice, Some(&module)).unwrap_err();
    assert_eq!(error, EmitError::SameModule("model.layer[1]".into()));
}

#[test]
fn operations_without_a_layer_are_no_module() {
    let mut split = split(&[&["0"], &["1"]], 2);
    split.stages[0].layers.pop();
    split.stages[0].layer_to = None;
    let module = template("model.layer[{}]");
    for form in Form::ALL {
        let text = code(&emit(form, &split, Some(&module)).unwrap());
        assert!(!text.contains("None") && text.contains('1'), "{text}");
    }
    let text = emit(Form::LayersPerIpu, &split, None).unwrap();
    assert_eq!(code(&text), "layers_per_ipu: [0, 1]\n");
}

#[test]
fn one_stage_is_no_pipeline() {
    let split = split(&[&["0", "1"]], 1);
    let module = template("layer{}");
    let text = |form| emit(form, &split, Some(&module)).unwrap();
    assert!(text(Form::Popart).contains("enablePipelining = False\n"));
    assert_eq!(code(&text(Form::PipelineSplits)), "pipeline_splits: []\n");
    for form in Form::ALL {
        assert!(!text(form).contains("at least"), "{}", text(form));
    }
}

#[test]
fn what_does_not_fit_says_so_first() {
    let module = template("model.layer{}");
    let mut split = split(&[&["0"], &["1"], &["2"]], 2);
    for form in Form::ALL {
        let text = emit(form, &split, Some(&module)).unwrap();
        let warning = "# WARNING: the model does not fit. This split has 3 stages for 2 IPUs.\n";
        assert!(text.starts_with(warning), "{text}");
    }
    split.unplaced = vec![Some("3".into())];
    for form in Form::ALL {
        let text = emit(form, &split, Some(&module)).unwrap();
        assert!(text.starts_with("# WARNING: "), "{text}");
        assert_eq!(code(&text), "");
    }
}

#[test]
fn a_comment_is_no_name_of_a_section() {
    let module = template("model.layer{}");
    for split in [split(&[&["0"], &["x"]], 3), split(&[&["7"]], 1)] {
        for form in Form::ALL {
            let text = emit(form, &split, Some(&module)).unwrap();
            let mut comments = text.lines().filter_map(|line| line.strip_prefix("# "));
            assert!(comments.all(|comment| comment.contains(' ')), "{text}");
        }
    }
}

#[test]
fn forms_that_name_modules_need_a_template() {
    let split = split(&[&["0"]], 1);
    for form in Form::ALL {
        let emitted = emit(form, &split, None).map(|_| ());
        assert_eq!(emitted, form.check(None), "{form:?}");
        assert!(form.section().ends_with(form.name()));
    }
}
