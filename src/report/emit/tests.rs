//! Tests of the configurations of `--emit` as text; `tests/it/report/emit` tests that Python and
//! YAML read them. Golden files have the configurations of splits in which In and Out (the
//! operations before and after the layers) are stages of their own, or are on one IPU.

use super::*;
use crate::{
    model::{Framework, Layering, ModuleCalls, Positions, PseudoLayers},
    report::testing::report,
    report::{Split, Stage},
};
use clap::ValueEnum;

fn order(layers: &[&str], pseudo_layers: PseudoLayers) -> Positions {
    let names = [""].iter().chain(layers).map(|name| name.to_string());
    let layering = Layering::of(names.collect(), Vec::new());
    Positions::new(&layering, pseudo_layers)
}

/// Makes a report of a split that fits; `stages` has the layers of each stage. In is in the first
/// stage, and Out in the first or the last one, depending on `pseudo_layers`.
fn report_of(pseudo_layers: PseudoLayers, stages: &[&[&str]], max_stages: u32) -> Report {
    let positions = order(&stages.concat(), pseudo_layers);
    let mut from = 0;
    let numbered = (1..).zip(stages).map(|(number, layers)| {
        let mut to = from + layers.len() + usize::from(from == 0);
        if number == stages.len() {
            to = positions.len();
        }
        let stage = Stage {
            stage: number as u32 - 1,
            layer_from: positions.layer_name(from),
            layer_to: positions.layer_name(to - 1),
            layers: positions.layer_names(from..to),
            positions: from as u32..to as u32,
            has_out: match positions.out() {
                Some(out) => (from..to).contains(&out),
                None => positions.out_is_first() && from == 0,
            },
            ..Stage::default()
        };
        from = to;
        stage
    });
    Report {
        pseudo_layers,
        pipeline: None,
        given: None,
        split: Some(Split {
            fits: true,
            limit: 638_976,
            max_stages,
            replicas: 1,
            stages: numbered.collect(),
            ..Split::default()
        }),
        ..report()
    }
}

fn split(stages: &[&[&str]], max_stages: u32) -> Report {
    report_of(PseudoLayers::InAndOut, stages, max_stages)
}

/// Returns a configuration as `--emit` prints it, with its notes.
fn written(form: EmitForm, report: &Report) -> String {
    let emitted = emit(form, report, MODEL, None);
    emitted.notes + &emitted.text
}

fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part} in {text}");
}

/// Returns the lines of `text`, a configuration, that are not comments.
fn code(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn an_entry_for_each_ipu_and_a_word_on_what_is_missing() {
    let text = written(EmitForm::Examples, &split(&[&["0"], &["2", "3"]], 4));
    assert_eq!(code(&text), "layers_per_ipu: [1, 2]\nipus_per_replica: 2\n");
    for part in [
        "Layers between 0 and 3 are missing from the profile.",
        "Unused IPUs: 2",
        "Set matmul_proportion to the profile's value on each IPU",
        "belongs on IPU 0, Out (head, loss) on IPU 1:",
    ] {
        has(&text, part);
    }
    let text = written(EmitForm::Examples, &split(&[&["1"], &["2"]], 2));
    assert!(
        !text.contains("missing") && !text.contains("Unused"),
        "{text}"
    );
}

/// Some configurations only state the number of blocks (numbered layers) on each IPU. The user's
/// code then puts layers before the first block on the first IPU, and layers after the last block,
/// and Out, on the last IPU. A configuration warns of stages that it cannot express.
#[test]
fn counts_cannot_cut_outside_blocks() {
    let warned = |stages: &[&[&str]]| {
        let report = split(stages, stages.len() as u32);
        let text = written(EmitForm::Optimum, &report);
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("WARNING: counts cannot begin "));
        let lines = lines.filter_map(|line| line.split_once(','));
        Vec::from_iter(lines.map(|(place, _)| place.to_string()))
    };
    assert_eq!(
        warned(&[&["emb"], &["0"], &["1"], &["pool", "cls"]]),
        [""; 0]
    );
    let apart = [&["emb"][..], &["norm", "0"], &["1", "pool"], &["cls"], &[]];
    assert_eq!(
        warned(&apart),
        ["IPU 1 at norm", "IPU 3 at cls", "IPU 4 at Out"]
    );
}

#[test]
fn layers_without_numbers_are_counted_in_their_order() {
    let text = written(EmitForm::Examples, &split(&[&["10"], &["9"]], 2));
    has(&text, "order: 10 9\n");
    let split = split(&[&["encoder0"], &["decoder0\n", "decoder1"]], 2);
    let text = written(EmitForm::Examples, &split);
    assert_eq!(code(&text), "layers_per_ipu: [1, 2]\nipus_per_replica: 2\n");
    has(&text, "order: encoder0 decoder0\\n decoder1\n");
}

/// With a single stage, Out (the operations after the last layer) is on the first IPU anyway, so
/// the configuration has no note that Out runs there.
#[test]
fn out_on_the_only_ipu_needs_no_word() {
    let one = report_of(PseudoLayers::OutWithIn, &[&["0", "1"]], 1);
    for &form in EmitForm::value_variants() {
        let text = written(form, &one);
        let out = "Out (the operations after the layers) runs";
        assert!(
            !text.contains(out) && !text.contains("nothing to paste"),
            "{text}"
        );
    }
}

#[test]
fn the_classic_model_knows_no_out() {
    let split = report_of(PseudoLayers::NoneFirst, &[&[], &["0"], &["1"]], 3);
    let text = written(EmitForm::Examples, &split);
    assert_eq!(
        code(&text),
        "layers_per_ipu: [0, 1, 1]\nipus_per_replica: 3\n"
    );
    for &form in EmitForm::value_variants() {
        let text = written(form, &split);
        assert!(!text.contains("None") && !text.contains("Out"), "{text}");
    }
}

#[test]
fn one_stage_is_no_pipeline() {
    let split = split(&[&["0", "1"]], 1);
    let text = |form| written(form, &split);
    assert!(text(EmitForm::Popart).contains("enablePipelining = False\n"));
    assert_eq!(
        code(&text(EmitForm::PipelineSplits)),
        "pipeline_splits: []\n"
    );
    for &form in EmitForm::value_variants() {
        assert!(!text(form).contains("at least"), "{}", text(form));
    }
}

#[test]
fn what_does_not_fit_says_so_first() {
    let mut split = split(&[&["0"], &["1"], &["2"]], 2);
    split.split.as_mut().unwrap().fits = false;
    for &form in EmitForm::value_variants() {
        let text = written(form, &split);
        let text = text.trim_start_matches("# ");
        let warning = "WARNING: the model does not fit. This split has 3 stages for 2 IPUs.\n";
        assert!(text.starts_with(warning), "{text}");
    }
    split.split.as_mut().unwrap().unplaced = vec![Some("3".into())];
    for &form in EmitForm::value_variants() {
        let emitted = emit(form, &split, MODEL, None);
        let all = emitted.notes + &emitted.text;
        assert!(
            all.trim_start_matches("# ").starts_with("WARNING: "),
            "{all}"
        );
        assert_eq!(code(&emitted.text), "");
    }
}

#[test]
fn notes_are_below_the_configuration() {
    for report in [split(&[&["0"], &["1"]], 3), with_modules()] {
        for &form in EmitForm::value_variants() {
            let text = emit(form, &report, MODEL, None).text;
            let mut lines = text.lines().skip_while(|line| !line.starts_with("# "));
            assert!(lines.all(|line| line.starts_with("# ")), "{text}");
        }
    }
}

#[test]
fn a_comment_is_no_name_of_a_section() {
    for split in [split(&[&["0"], &["x"]], 3), split(&[&["7"]], 1)] {
        for &form in EmitForm::value_variants() {
            let text = emit(form, &split, MODEL, None).text;
            let mut comments = text.lines().filter_map(|line| line.strip_prefix("# "));
            assert!(comments.all(|comment| comment.contains(' ')), "{text}");
        }
    }
}

/// Makes a report with module names and a split into three stages. Two operations outside any
/// module come before the first module of the second stage, and no module begins where the third
/// stage does.
fn with_modules() -> Report {
    let mut report = split(&[&["0"], &["1"], &["2"]], 3);
    let calls = |begin: Option<&str>, before: u32, output: &str| ModuleCalls {
        begin: begin.map(String::from),
        leaf: begin.map(|begin| format!("{begin}.a")),
        operations_before: before,
        inside: Some("net".into()),
        output: Some(output.into()),
        top: Vec::new(),
    };
    report.split.as_mut().unwrap().modules = vec![
        calls(Some("net.embed"), 1, ""),
        calls(Some("net.h.0"), 0, "net.h.0"),
        calls(Some("net.h.1"), 2, "net.h.1"),
        calls(None, 0, "net.h.2"),
        calls(Some("head"), 0, ""),
    ];
    report
}

#[test]
fn modules_of_the_profile_begin_blocks() {
    let report = with_modules();
    let text = written(EmitForm::Poptorch, &report);
    for part in [
        "poptorch.BeginBlock(model.net.embed, ipu_id=0)\npoptorch.BeginBlock(model.net.h[1], ipu_id=1)\n",
        "# WARNING: 2 operations before model.net.h[1] in its stage belong to no module that begins there",
        "call poptorch.Block.start(ipu_id=1) in the forward of model.net.\n",
        "# WARNING: no module begins where IPU 2 does, or it runs several times.",
        "poptorch.BeginBlock(..., ipu_id=2)",
    ] {
        has(&text, part);
    }
    let text = emit(EmitForm::Poptorch, &report, "bert", None).text;
    has(&text, "BeginBlock(bert.net.h[1], ipu_id=1)");
    let text = written(EmitForm::PipelineSplits, &report);
    let expected = "pipeline_splits:\n- \"net/h/1/a\"\n- \"<2>\"  # write";
    assert!(code(&text).starts_with(expected), "{text}");
    let text = written(EmitForm::Mmcv, &report);
    let expected = "    dict(layer_to_call=\"net.h.1\", ipu_id=1),\n    \
                    dict(layer_to_call=\"<2>\", ipu_id=2),  # write its first module\n";
    has(&text, expected);
}

/// For a profile of TensorFlow, a Keras configuration names the Keras layer at which a stage
/// begins, or has a placeholder if this Keras layer is unknown. The form `pipeline-splits` names
/// the Keras layer or scope at which a stage begins. If it is unknown, the form has the name of the
/// first layer of the stage instead.
#[test]
fn tensorflow_names_keras_layers_or_scopes() {
    let mut pipeline = report().pipeline.unwrap();
    pipeline.recording.framework = Framework::Tensorflow;
    let mut report = with_modules();
    report.pipeline = Some(pipeline);
    assert_eq!(EmitForm::of_report(&report), Some(EmitForm::TfStages));
    let modules = &mut report.split.as_mut().unwrap().modules;
    for (at, layers) in [["a", "b"], ["b", "c"], ["b", "d"], ["e", "e"], ["f", "f"]]
        .iter()
        .enumerate()
    {
        modules[at].top = layers.map(String::from).to_vec();
        modules[at].leaf = Some(format!("model.{}.dense", layers[0]));
    }
    assert_eq!(EmitForm::of_report(&report), Some(EmitForm::Keras));
    let text = written(EmitForm::Keras, &report);
    has(
        &text,
        "pipeline_stages = {\n    \"d\": 1,\n    \"e\": 2,\n}\n",
    );
    has(&text, "WARNING: layer b runs before stage 1, too");
    // The third stage now begins with the module `shared`, whose name does not begin with the
    // model's name. So no Keras layer is known to call it, and the configuration has a placeholder
    // in the place of the layer's name.
    let leaf = report.split.as_mut().unwrap().modules[3]
        .leaf
        .replace("shared".into());
    let unknown = "    \"<2>\": 2,  # write its first Keras layer\n";
    has(&written(EmitForm::Keras, &report), unknown);
    let modules = &mut report.split.as_mut().unwrap().modules;
    modules[3].leaf = leaf;
    modules[3].top.clear();
    has(&written(EmitForm::Keras, &report), unknown);
    let text = written(EmitForm::PipelineSplits, &report);
    has(&text, "pipeline_splits:\n- \"h/1\"\n- \"2\"\n");
}

/// Optimum generates text only if the encoder is on 1, 2, 4, ... IPUs without layers of the
/// decoder. So a stage must begin with the decoder; otherwise, the configuration has a warning.
#[test]
fn generation_cuts_before_the_decoder() {
    let text = |stages: &[&[&str]]| {
        let report = split(stages, stages.len() as u32);
        written(EmitForm::Optimum, &report)
    };
    let [e0, e1, d0, d1] = ["encoder.0", "encoder.1", "decoder.0", "decoder.1"];
    let right = text(&[&[e0], &[e1], &[d0, d1]]);
    assert!(
        right.contains("its last layer is on IPU 1.") && !right.contains("--cut-before"),
        "{right}"
    );
    let wrong = text(&[&[e0], &[e1, d0], &[d1]]);
    assert!(wrong.contains("--cut-before decoder.0."), "{wrong}");
}
