//! Damaged debug files: what could be read, and what is lost.

use std::fs;

use ciborium::Value;
use popliner::debug_info::DebugInfo;

use crate::hostile::cases::{Case, each, of_debug, set};

#[test]
fn contexts_cut_at_any_byte() {
    let case = Case::new();
    let whole = fs::read(&case.debug).unwrap();
    let all = DebugInfo::from_reader(&*whole).unwrap().len();
    let lengths: Vec<usize> = (1..whole.len()).collect();
    each(&lengths, |&length| {
        let info = DebugInfo::from_reader(&whole[..length]).unwrap();
        let cut = info.truncation().expect("cut off");
        assert_eq!((cut.offset, cut.damaged), (length as u64, false));
        assert!(info.len() <= all);
    });
    for length in [1, 9, 1000, whole.len() / 2, whole.len() - 1] {
        fs::write(&case.debug, &whole[..length]).unwrap();
        let run = case.run(&["--operation-breakdown"]);
        assert_eq!(run.code, 0, "{run:?}");
        let expected = format!("debug.cbor: the debug file is cut off at byte {length}");
        assert!(run.err.contains(&expected), "{}", run.err);
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
    let cases: [(&str, Vec<u8>, i32, &str); 12] = [
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
            "`contexts` is no array",
        ),
        (
            "a text of 2^63",
            [&contexts[..], &long(&[0x81, 0xa1, 0x7b], 1 << 63)].concat(),
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
            [&contexts[..], &long(&[0x81, 0xa1, 0x5b], 1 << 63)].concat(),
            0,
            "cut off",
        ),
        ("100,000 deep", deep, 0, "no `stringTable`"),
        (
            "reserved bytes",
            [&contexts[..], &[0x1c]].concat(),
            3,
            "malformed CBOR at byte 10",
        ),
        (
            "a break too many",
            [&one[..], &[0xff]].concat(),
            0,
            "goes on after its document",
        ),
        (
            "trailing bytes",
            [&one[..], b"more"].concat(),
            0,
            "goes on after its document",
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
            "they are no maps: 2",
        ),
    ];
    for (what, bytes, code, part) in cases {
        let case = Case::new().bytes(of_debug, |all| *all = bytes);
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
        let name = bytes
            .windows(5)
            .position(|at| at == b"Layer" || at == b"layer");
        let place = name.expect("a name");
        bytes[place] = 0xff;
    });
    let run = case.run(&["--operation-breakdown"]);
    assert_eq!(run.code, 0, "{run:?}");
}
