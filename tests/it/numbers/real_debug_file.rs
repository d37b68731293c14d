//! The debug file of a real Poplar 3.3.0, if it is available. `cli::input_files` has another one,
//! which was cut off.

use std::collections::BTreeSet;

use popliner::debug_info::{ContextField, DebugInfo, Position, SoftwareLayer};

use crate::support::sample;

fn at(info: &DebugInfo, id: u64) -> Position {
    info.position(id).expect("a context")
}

#[test]
fn a_complete_file() {
    let Some(path) = sample("firehose.debug.cbor") else {
        return;
    };
    let info = DebugInfo::read(&path).unwrap();
    let names: BTreeSet<&str> = (1..=107).map(|id| info.name(at(&info, id))).collect();
    assert_eq!((info.len(), names.len()), (107, 29));
    assert_eq!(info.damage(), []);
    assert_eq!(info.warning(), None);
    assert!(info.has_layer(SoftwareLayer::Poplar) && info.has_layer(SoftwareLayer::Poplibs));
    assert!(!info.has_layer(SoftwareLayer::Popart) && !info.has_layer(SoftwareLayer::Other));
    for (id, name) in [
        (1, "Input Tensor 0 of Set 0"),
        (12, "IO in CS 0"),
        (15, "IO in CS 1"),
        (16, ""),
        (47, "ReduceOnTile/InToOutNoExchange/Reduce"),
        (78, "poplin::experimental::RowCopy.offset#const"),
    ] {
        assert_eq!(info.name(at(&info, id)), name);
    }
    for chain in [
        &[59, 57, 56, 55, 32, 31][..],
        &[96, 95, 94, 93, 70, 69],
        &[47, 46],
        &[107],
    ] {
        let found = info.chain(chain[0]).map(|position| info.id(position));
        assert_eq!(found.collect::<Vec<_>>(), chain);
    }
    let api = |position| info.text(position, ContextField::Api);
    let apis: Vec<&str> = info
        .chain(59)
        .map(|place| api(place).unwrap_or(""))
        .collect();
    let expected = "/mapInPlace/mapInPlace/addInPlace/countedLoop/countedLoop";
    assert_eq!(apis.join("/"), expected);
    assert_eq!(api(at(&info, 46)), Some("reduceWithOutput"));
}
