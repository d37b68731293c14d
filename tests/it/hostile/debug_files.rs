//! Damaged debug files: the readable part, and the lost part. `src/debug_info/tests` cuts and
//! damages documents at every place, and has lengths of 2^63 and deep nesting.

use ciborium::Value;

use super::cases::Case;
use crate::support::contexts::set;

type Change = fn(&mut Vec<Value>, &mut Vec<Value>);

/// Damage that leaves a whole document, with its message.
const DAMAGES: [(Change, &str); 8] = [
    (
        |_, strings| strings.truncate(strings.len() / 2),
        "contexts whose name lies outside the string table: ",
    ),
    (
        |_, strings| drop(strings.remove(130)),
        "compute sets whose context has another name or none: ",
    ),
    (
        |contexts, strings| {
            strings.push("".into());
            let context = last(contexts, "computeSet");
            set(&mut contexts[context], "name", strings.len() as u64 - 1);
        },
        "compute sets whose context has another name or none: 1 of ",
    ),
    (
        |contexts, _| drop(contexts.remove(last(contexts, "\"program\""))),
        "programs and compute sets refer to and that are missing: 1 of ",
    ),
    (
        |contexts, _| contexts.push(contexts[0].clone()),
        "contexts with the id of an earlier one: 1,",
    ),
    (
        |contexts, _| contexts.push(Value::Map(Vec::new())),
        "contexts without an id: 1,",
    ),
    (
        |contexts, _| set(&mut contexts[0], "parentId", "1"),
        "keys, ids, layers, categories and names of another type: 1,",
    ),
    (
        |contexts, _| contexts.push(Value::Bool(true)),
        "entries of `contexts` that are not maps: 1,",
    ),
];

fn last(contexts: &[Value], text: &str) -> usize {
    let has = |context: &Value| format!("{context:?}").contains(text);
    contexts.iter().rposition(has).expect("a context")
}

#[test]
fn damage_that_is_found_is_refused_or_leaves_no_verdict() {
    // Within one byte of the limit, whatever could move turns the verdict.
    let needs = Case::new().run("--solve --num-ipus=4 --format=json").peak();
    let options = format!("--solve --num-ipus=4 --mem-per-tile={needs}");
    for (change, text) in DAMAGES {
        let mut case = Case::new().cbor(change);
        let accepted = case.run(&options).exits(3).clone();
        accepted.warns(&["debug.cbor: ", text, "so there is no verdict"]);
        case.trusts = false;
        let parts = ["debug.cbor: the debug file cannot be trusted: ", text];
        case.run(&options).refuses(3, &parts);
    }
}
