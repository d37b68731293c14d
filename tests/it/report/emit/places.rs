//! The place of each layer in the forms that are programs, which Python runs.

use super::{
    CASES, accumulation, emitted, filled, ipu_of_out, mapping, named, numbered, parsed, placed,
    popart_parts, trains,
};
use serde_json::json;

#[test]
fn poptorch_places_everything_as_the_split_does() {
    for (fixture, ipus) in CASES {
        let (stages, text) = emitted(fixture, &[ipus], "poptorch");
        let found = or_skip!(parsed("poptorch", &filled(&text)));
        let blocks = numbered(&found["blocks"]);
        // A `BeginBlock` lasts until the next one, and operations before the first one run on IPU 0.
        let mut ipu = 0;
        for (layer, stage) in placed(&stages) {
            // Some profiles have the paths of modules.
            let is_it = |begun: &str| begun == layer || begun.ends_with(&format!("[{layer}]"));
            let block = blocks.iter().find(|(begun, _)| is_it(begun));
            ipu = block.map_or(ipu, |&(_, ipu)| ipu);
            assert_eq!(ipu, stage, "{layer} in {text}");
        }
        let (_, last) = blocks.last().expect("a block");
        assert_eq!(*last, ipu_of_out(&stages), "{text}");
    }
}

#[test]
fn popart_places_everything_as_the_split_does() {
    for (fixture, ipus) in CASES {
        let (stages, text) = emitted(fixture, &[ipus], "popart");
        let found = or_skip!(parsed("popart", &text));
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
    for (fixture, ipus) in CASES {
        let (stages, text) = emitted(fixture, &[ipus], "keras");
        let found = or_skip!(parsed("keras", &text));
        let entries = numbered(&found["entries"]);
        let begun: Vec<usize> = entries.iter().map(|&(_, stage)| stage).collect();
        assert_eq!(begun, Vec::from_iter(1..mapping(&stages).len()), "{text}");
        for ((entry, stage), layers) in entries.iter().zip(named(&stages).into_iter().skip(1)) {
            let first = format!("<{}>", layers.first().unwrap_or(&"Out"));
            let is_its = *entry == first || !entry.starts_with('<');
            assert!(is_its, "{stage} in {text}");
        }
        assert_eq!(found["mapping"], json!(mapping(&stages)), "{text}");
    }
}
