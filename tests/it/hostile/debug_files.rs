//! Damaged debug files: the readable part, and the lost part.

use std::fs;

use ciborium::Value;
use popliner::debug_info::DebugInfo;

use crate::hostile::cases::{Case, of_debug, set};
use crate::support::each;
use crate::support::models::share;

#[test]
fn contexts_cut_at_any_byte() {
    let case = Case::new();
    let whole = fs::read(&case.debug).unwrap();
    let all = DebugInfo::from_reader(&*whole).unwrap().len();
    let lengths: Vec<usize> = (1..whole.len()).step_by(share(20)).collect();
    each(&lengths, |&length| {
        let info = DebugInfo::from_reader(&whole[..length]).unwrap();
        let cut = info.truncation().expect("cut off");
        assert_eq!((cut.offset, cut.damaged), (length as u64, false));
        assert!(info.len() <= all);
    });
    for length in [1, 9, 1000, whole.len() / 2, whole.len() - 1] {
        let case = Case::new().bytes(of_debug, |bytes| bytes.truncate(length));
        let text = format!("the debug file is damaged: it is cut off at byte {length}, ");
        case.refused("cut off", &["debug.cbor: ", &text, "--trust-debug-info"]);
        let run = case.run(&["--operation-breakdown", "--trust-debug-info"]);
        assert_eq!(run.code, 0, "{run:?}");
        let text = format!("is used as requested: it is cut off at byte {length}, ");
        assert!(run.err.contains(&text), "{}", run.err);
    }
}

/// Damage that leaves a whole document.
#[test]
fn damage_that_is_found_is_refused_and_said_of_what_is_trusted() {
    type Change = fn(&mut Vec<Value>, &mut Vec<Value>);
    let cases: [(&str, Change, &str); 8] = [
        (
            "a string table that was cut and repaired",
            |_, strings| strings.truncate(strings.len() / 2),
            "contexts whose name lies outside the string table: ",
        ),
        (
            "a string table that lost one entry",
            |_, strings| drop(strings.remove(130)),
            "compute sets whose context has another name or none: ",
        ),
        (
            "a compute set's name that is lost",
            |contexts, strings| {
                strings.push("".into());
                let of_sets = |context: &&mut Value| format!("{context:?}").contains("computeSet");
                let context = contexts.iter_mut().find(of_sets).expect("a compute set");
                set(context, "name", (strings.len() as u64 - 1).into());
            },
            "compute sets whose context has another name or none: 1 of ",
        ),
        (
            "a context that a program refers to",
            |contexts, _| {
                let of_programs = |context: &Value| format!("{context:?}").contains("\"program\"");
                let place = contexts.iter().rposition(of_programs).expect("a program");
                contexts.remove(place);
            },
            "programs and compute sets refer to and that are missing: 1 of ",
        ),
        (
            "a context twice",
            |contexts, _| contexts.push(contexts[0].clone()),
            "contexts with the id of an earlier one: 1,",
        ),
        (
            "a context without an id",
            |contexts, _| contexts.push(Value::Map(Vec::new())),
            "contexts without an id: 1,",
        ),
        (
            "a parent that is a text",
            |contexts, _| set(&mut contexts[0], "parentId", "1".into()),
            "keys, ids, layers, categories and names of another type: 1,",
        ),
        (
            "an entry that is no context",
            |contexts, _| contexts.push(Value::Bool(true)),
            "entries of `contexts` that are not maps: 1,",
        ),
    ];
    for (what, change, text) in cases {
        let mut case = Case::new().cbor(change);
        let run = case.run(&["--solve"]);
        let parts = ["warning: ", "debug.cbor: ", "is used as requested: ", text];
        let is_it = |line: &str| parts.iter().all(|part| line.contains(part));
        assert!(run.err.lines().any(is_it), "{what}: {}", run.err);
        case.trusts = false;
        let parts = ["debug.cbor: the debug file is damaged: ", text];
        case.refused(what, &parts);
    }
}

#[test]
fn odd_cbor() {
    let long = |head: &[u8], length: u64| [head, &length.to_be_bytes()].concat();
    let contexts = b"\xa1\x68contexts".to_vec();
    let one = b"\xa1\x68contexts\x81\xa1\x62id\x01".to_vec();
    let deep = [
        &contexts[..],
        b"\x81\xa2\x62id\x01\x61x",
        &[0x81; 100_000][..],
        &[0],
    ]
    .concat();
    let cases: [(&str, Vec<u8>, i32, &str); 14] = [
        (
            "a number for the document",
            vec![0x00],
            3,
            "not a debug.cbor",
        ),
        (
            "a number for contexts",
            [&contexts[..], &[0]].concat(),
            3,
            "`contexts` is not an array",
        ),
        (
            "a key of 2^63",
            [&contexts[..], &long(&[0x81, 0xa1, 0x7b], 1 << 63)].concat(),
            3,
            "malformed before byte 21",
        ),
        (
            "a text of 2^63",
            [&contexts[..], &long(b"\x81\xa1\x61x\x7b", 1 << 63)].concat(),
            0,
            "cut off",
        ),
        (
            "an array of 2^63",
            [&contexts[..], &long(&[0x9b], 1 << 63)].concat(),
            0,
            "cut off",
        ),
        (
            "a map of 2^63",
            [&contexts[..], &long(&[0x81, 0xbb], u64::MAX)].concat(),
            0,
            "cut off",
        ),
        (
            "bytes of 2^63",
            [&contexts[..], &long(b"\x81\xa1\x61x\x5b", 1 << 63)].concat(),
            0,
            "cut off",
        ),
        ("100,000 deep", deep, 3, "malformed before byte 272"),
        (
            "reserved bytes",
            [&contexts[..], &[0x1c]].concat(),
            3,
            "malformed before byte 11",
        ),
        (
            "a break too many",
            [&one[..], &[0xff]].concat(),
            0,
            "continues after its document",
        ),
        (
            "trailing bytes",
            [&one[..], b"more"].concat(),
            0,
            "continues after its document",
        ),
        (
            "two documents",
            [&one[..], &one].concat(),
            0,
            "another document follows at byte",
        ),
        (
            "no contexts",
            b"\xa1\x61x\x00".to_vec(),
            3,
            "it has no `contexts`",
        ),
        (
            "numbers as contexts",
            b"\xa1\x68contexts\x82\x01\x02".to_vec(),
            0,
            "that are not maps: 2",
        ),
    ];
    for (what, bytes, code, part) in cases {
        let mut case = Case::new().bytes(of_debug, |all| *all = bytes);
        assert_eq!(case.run(&["--operation-breakdown"]).code, 3, "{what}");
        case.trusts = true;
        let run = case.run(&["--operation-breakdown"]);
        assert_eq!(run.code, code, "{what}: {run:?}");
        assert!(
            run.err.contains("debug.cbor: ") && run.err.contains(part),
            "{what}: {run:?}"
        );
    }
    let case = Case::new().cbor(|contexts, _| {
        contexts
            .iter_mut()
            .for_each(|context| set(context, "name", (1u64 << 40).into()));
    });
    let run = case.run(&["--operation-breakdown"]);
    assert!(
        run.code == 0 && run.err.contains("outside the string table"),
        "{run:?}"
    );
    let case = Case::new().cbor(|contexts, _| {
        for context in contexts {
            set(context, "parentId", Value::Text("1".into()));
            let (key, value) = context.as_map().unwrap()[0].clone();
            context.as_map_mut().unwrap().push((key, value));
        }
    });
    assert_eq!(
        case.run(&["--operation-breakdown"]).code,
        0,
        "wrong types, keys twice"
    );
    let case = Case::new().bytes(of_debug, |bytes| {
        let name = bytes.windows(5).rposition(|at| at == b"Layer");
        let place = name.expect("a name");
        bytes[place] = 0xff;
    });
    case.refused("no UTF-8", &["it is malformed before byte "]);
    let run = case.run(&["--operation-breakdown", "--trust-debug-info"]);
    assert_eq!(run.code, 0, "{run:?}");
}
