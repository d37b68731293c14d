//! Models with graphs of real models, compared with the file of the graph.

use std::collections::HashMap;

use ciborium::Value;
use tempfile::TempDir;

use super::debug_file::{Context, contexts, uint};
use crate::support::read_graph;

/// An operation of the file: scope, type, module, parameters, inputs, outputs.
type Operation = (String, String, String, Vec<String>, Vec<i64>, Vec<i64>);

fn texts(context: &Context, key: &str) -> Vec<String> {
    let texts = context[key].as_array().unwrap().iter();
    texts
        .map(|text| text.as_text().unwrap().to_string())
        .collect()
}

/// The forward pass has the operations of the file in their order, with their names, parameters and
/// tensors. A tensor whose name another one also has ends with a number.
#[test]
fn operations_are_named_as_in_the_graph() {
    for name in ["bert", "resnet50", "t5"] {
        let path = format!("crates/synthesize/graphs/{name}.json.gz");
        let folder = TempDir::new().unwrap();
        let options = format!("--graph {path} --framework poptorch --mode training --tiles 4");
        synthesize::write(folder.path(), options.split(' ')).unwrap();
        let mut all = contexts(folder.path()).0;
        all.sort_by_key(|context| uint(context, "id"));
        let of = |layer: &str, key: &str| {
            let is_of =
                |own: &&Context| own["layer"] == Value::from(layer) && own.contains_key(key);
            all.iter().filter(is_of).collect::<Vec<_>>()
        };
        let (named, nodes) = (of("poptorch", "op_name"), of("popart", "inputs"));
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut tensors: HashMap<i64, String> = HashMap::new();
        let read: Vec<Operation> = serde_json::from_value(read_graph(&path)["ops"].take()).unwrap();
        for (number, (scope, kind, _, parameters, inputs, outputs)) in read.iter().enumerate() {
            let full = [scope.as_str(), kind].join("/");
            let full = full.trim_start_matches('/');
            assert_eq!(named[number]["op_name"].as_text(), Some(full), "{name}");
            let read = texts(nodes[number], "inputs");
            let inputs = inputs.iter().filter_map(|input| tensors.get(input));
            for wanted in inputs.chain(parameters) {
                assert!(read.contains(wanted), "{name}: {wanted} in {read:?}");
            }
            let count = counts.entry(full.to_string()).or_default();
            let tensor = match *count {
                0 => format!("{full}:0"),
                number => format!("{full}:0/{number}"),
            };
            *count += 1;
            assert_eq!(texts(nodes[number], "outputs"), [tensor.as_str()], "{name}");
            tensors.insert(outputs[0], tensor);
        }
    }
}
