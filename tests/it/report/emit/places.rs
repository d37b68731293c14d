//! The place of each layer in the forms that are programs, which Python runs.

use super::{
    CASES, accumulation, emitted, ipu_of_out, mapping, numbered, parsed, placed, popart_parts,
    stage_of_out, trains,
};
use crate::support::models::share;
use serde_json::{Value, json};

const MODULES: [&str; 2] = ["--module-in=model.embedding", "--module-out=model.head"];

#[test]
fn poptorch_places_everything_as_the_split_does() {
    for (fixture, ipus) in CASES {
        let module = "--module=model.bert.encoder.layer[{}]";
        let options = [&[ipus, module], &MODULES[..]].concat();
        let (stages, text) = emitted(fixture, &options, "poptorch");
        let Some(found) = parsed("poptorch", &text) else {
            return;
        };
        let blocks = numbered(&found["blocks"]);
        assert_eq!(blocks[0], ("model.embedding".to_string(), 0), "{text}");
        assert_eq!(blocks.len(), mapping(&stages).len(), "{text}");
        // A block continues until the next one begins.
        let mut ipu = 0;
        let layers = placed(&stages).into_iter();
        let path = |layer| format!("model.bert.encoder.layer[{layer}]");
        let layers = layers.map(|(layer, stage)| (path(layer), stage));
        let out = ("model.head".to_string(), ipu_of_out(&stages));
        for (module, stage) in layers.chain([out]) {
            let block = blocks.iter().find(|(begun, _)| *begun == module);
            ipu = block.map_or(ipu, |&(_, ipu)| ipu);
            assert_eq!(ipu, stage, "{module} in {text}");
        }
    }
}

#[test]
fn popart_places_everything_as_the_split_does() {
    for (fixture, ipus) in CASES {
        let (stages, text) = emitted(fixture, &[ipus], "popart");
        let Some(found) = parsed("popart", &text) else {
            return;
        };
        let mut options = json!({ "virtualGraphMode": "manual", "enablePipelining": true });
        if trains(fixture) {
            options["enableGradientAccumulation"] = json!(true);
            options["accumulationFactor"] = json!(accumulation(fixture, &stages));
            options["autoRecomputation"] = json!("pipeline");
        }
        let expected = json!({ "options": options, "parts": popart_parts(&stages) });
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn keras_places_everything_as_the_split_does() {
    // By default each case has one of the names.
    let modules = ["block{}", "{}", r#"it's "{}"#];
    for (number, (fixture, ipus)) in CASES.into_iter().enumerate() {
        let names = modules.into_iter().cycle().skip(number).take(3);
        for module in names.step_by(share(3)) {
            let option = format!("--module={module}");
            let options = [ipus, &option, "--module-in=embedding", "--module-out=head"];
            let (stages, text) = emitted(fixture, &options, "keras");
            let Some(found) = parsed("keras", &text) else {
                return;
            };
            let layers = placed(&stages).into_iter();
            let layers = layers.map(|(layer, stage)| (module.replace("{}", layer), stage));
            let layers: Vec<_> = layers.collect();
            let mut entries = vec![("embedding".to_string(), 0)];
            entries.extend(layers.clone());
            entries.push(("head".to_string(), stage_of_out(&stages)));
            assert_eq!(found["entries"], json!(entries), "{text}");
            assert_eq!(found["mapping"], json!(mapping(&stages)), "{text}");
            let model = keras_model(&layers, stage_of_out(&stages));
            assert_eq!(found["model"], model, "{text}");
        }
    }
}

/// Returns a model in which operations before the first layer are in the first stage, and
/// operations after the last one in the stage of Out.
fn keras_model(layers: &[(String, usize)], stage_of_out: usize) -> Value {
    let mut model = vec![("embedding".to_string(), 0)];
    for (layer, stage) in layers {
        model.push((format!("{layer}_dense"), *stage));
        model.push((format!("{layer}/norm"), *stage));
    }
    model.push(("head".to_string(), stage_of_out));
    json!(model)
}
