//! Damaged debug files: the readable part, and the lost part. `src/debug_info/tests` cuts and
//! damages documents at every place, and has lengths of 2^63 and deep nesting.

use ciborium::Value;

use super::cases::Case;
use crate::support::{cases, contexts::set};

/// Damage that leaves a whole document, with its message.
const DAMAGES: &str = "
    half of the names are lost => contexts whose name lies outside the string table:
    a name is lost => compute sets whose context has another name or none:
    a compute set has another name => compute sets whose context has another name or none: 1 of
    a program lacks its context => programs and compute sets refer to and that are missing: 1 of
    a context is there twice => contexts with the id of an earlier one: 1,
    a context is empty => contexts without an id: 1,
    a parent is a text => keys, ids, layers, categories and names of another type: 1,
    an entry is no map => entries of `contexts` that are not maps: 1,
";

fn damage(what: &str, contexts: &mut Vec<Value>, strings: &mut Vec<Value>) {
    match what {
        "half of the names are lost" => strings.truncate(strings.len() / 2),
        "a name is lost" => drop(strings.remove(130)),
        "a compute set has another name" => {
            strings.push("".into());
            let context = last(contexts, "computeSet");
            set(&mut contexts[context], "name", strings.len() as u64 - 1);
        }
        "a program lacks its context" => drop(contexts.remove(last(contexts, "\"program\""))),
        "a context is there twice" => contexts.push(contexts[0].clone()),
        "a context is empty" => contexts.push(Value::Map(Vec::new())),
        "a parent is a text" => set(&mut contexts[0], "parentId", "1"),
        "an entry is no map" => contexts.push(Value::Bool(true)),
        _ => panic!("{what}"),
    }
}

fn last(contexts: &[Value], text: &str) -> usize {
    let has = |context: &Value| format!("{context:?}").contains(text);
    contexts.iter().rposition(has).expect("a context")
}

#[test]
fn damage_that_is_found_is_refused_or_leaves_no_verdict() {
    // The limit is within one byte of the need, so any byte that may be wrong changes the verdict.
    let needs = Case::new().run("--solve --num-ipus=4 --format=json").peak();
    let options = format!("--solve --num-ipus=4 --mem-per-tile={needs}");
    for (what, text) in cases(DAMAGES) {
        let text = text[0];
        let mut case = Case::new().cbor(|contexts, strings| damage(&what, contexts, strings));
        let accepted = case.run(&options).exits(3).clone();
        accepted.warns(&["debug.cbor: ", text, "so there is no verdict"]);
        case.trusts = false;
        let parts = ["debug.cbor: the debug file cannot be trusted: ", text];
        case.run(&options).refuses(3, &parts);
    }
}
