//! Tests that the reader copes with any debug file, also if it is cut off or altered at any byte.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// Generates a random CBOR value of any type, also one that is wrong for a debug file, with a few
/// levels of nesting.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(int),
        any::<i64>().prop_map(|value| Value::Integer(value.into())),
        any::<f64>().prop_map(Value::Float),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
        ".{0,40}".prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((".{0,4}".prop_map(Value::Text), inner.clone()), 0..4)
                .prop_map(Value::Map),
            inner.prop_map(|value| Value::Tag(5, Box::new(value))),
        ]
    })
}

/// Generates a debug context with known and unknown keys in any order, and with values of expected
/// and unexpected types.
fn any_context(id: u64) -> impl Strategy<Value = Value> {
    let known = prop::sample::select(vec![
        "api",
        "opName",
        "op_name",
        "hlo_name",
        "opid",
        "instanceId",
        "tensorId",
        "inputs",
        "input",
        "outlinedDebugContextIds",
        "replacedDebugContextIds",
        "parentId",
        "name",
        "x",
    ]);
    let value = prop_oneof![
        ".{0,6}".prop_map(Value::Text),
        (0u64..12).prop_map(int),
        prop::collection::vec("[a-z]{0,3}".prop_map(Value::Text), 0..3).prop_map(Value::Array),
        any_value(),
    ];
    let layer = prop::sample::select(vec![
        "poplar", "poplibs", "onnx", "popart", "popxl", "xla_op",
    ]);
    (
        prop::collection::vec((known, value), 0..6),
        layer,
        any::<prop::sample::Index>(),
    )
        .prop_map(move |(entries, layer, place)| {
            let mut entries: Vec<(&str, Value)> = entries;
            let place = place.index(entries.len() + 1);
            entries.insert(place, ("layer", text(layer)));
            entries.insert(place, ("id", int(id)));
            map(&entries)
        })
}

fn any_contexts() -> impl Strategy<Value = Vec<Value>> {
    (0u64..8).prop_flat_map(|count| (1..=count).map(any_context).collect::<Vec<_>>())
}

proptest! {
    // Each case cuts the file off at hundreds of places, so there are fewer cases than by default.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_cut_gives_a_prefix(contexts in any_contexts()) {
        let whole = document(&contexts, &["a", "b"]);
        let all = everything(&read(&whole).unwrap());
        let mut before = 0;
        for len in 1..whole.len() {
            let info = read(&whole[..len]).unwrap();
            let truncation = info.truncation().unwrap();
            prop_assert_eq!((truncation.offset, truncation.damaged), (len as u64, false));
            prop_assert_eq!(truncation.contexts, info.len());
            prop_assert!(info.len() >= before);
            before = info.len();
            prop_assert_eq!(everything(&info), &all[..before]);
        }
        prop_assert_eq!(before, all.len());
    }
}

proptest! {
    #[test]
    fn changed_bytes_are_survived(
        contexts in any_contexts(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut whole = document(&contexts, &["a", "b"]);
        for (place, byte) in changes {
            let place = place.index(whole.len());
            whole[place] = byte;
        }
        if let Ok(info) = read(&whole) {
            for (id, _, _) in everything(&info) {
                prop_assert!(info.chain(id).count() <= info.len());
            }
        }
    }

    #[test]
    fn chains_end_and_repeat_nothing(
        parents in prop::collection::vec(0u64..40, 1..40),
        spacing in prop::sample::select(vec![1u64, 1 << 40]),
    ) {
        let contexts: Vec<Value> = (1..)
            .zip(&parents)
            .map(|(id, parent)| context(id * spacing, parent * spacing, "poplar", &[]))
            .collect();
        let info = read_sound(&document(&contexts, &[]));
        for start in 0..=41 {
            let mut expected = Vec::new();
            let mut seen = HashSet::new();
            let mut here = start;
            while (1..=parents.len() as u64).contains(&here) && seen.insert(here) {
                expected.push(here * spacing);
                here = parents[here as usize - 1];
            }
            prop_assert_eq!(chain_ids(&info, start * spacing), expected);
        }
    }
}
