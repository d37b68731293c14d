//! The debug files of a real Poplar 3.3.0, if they are available.

use std::collections::BTreeSet;

use popliner::debug_info::{Damage, DebugInfo, Field, Position, SoftwareLayer};

use crate::support::sample;

fn at(info: &DebugInfo, id: u64) -> Position {
    info.position(id).expect("a context")
}

fn chain_ids(info: &DebugInfo, id: u64) -> Vec<u64> {
    info.chain(id).map(|position| info.id(position)).collect()
}

#[test]
fn a_complete_file() {
    let Some(path) = sample("firehose.debug.cbor") else {
        return;
    };
    let info = DebugInfo::read(&path).unwrap();
    let names = (1..=107).map(|id| info.name(at(&info, id)));
    let names: BTreeSet<&str> = names.collect();
    assert_eq!((info.len(), names.len()), (107, 29));
    assert_eq!(info.damage(), []);
    assert_eq!(info.warnings(), []);
    assert!(info.has_layer(SoftwareLayer::Poplar) && info.has_layer(SoftwareLayer::Poplibs));
    assert!(!info.has_layer(SoftwareLayer::Popart) && !info.has_layer(SoftwareLayer::Other));
    let name = |id| info.name(at(&info, id));
    assert_eq!(name(1), "Input Tensor 0 of Set 0");
    assert_eq!(name(12), "IO in CS 0");
    assert_eq!(name(15), "IO in CS 1");
    assert_eq!(name(16), "");
    assert_eq!(name(47), "ReduceOnTile/InToOutNoExchange/Reduce");
    assert_eq!(name(78), "poplin::experimental::RowCopy.offset#const");
}

#[test]
fn chains_of_a_complete_file() {
    let Some(path) = sample("firehose.debug.cbor") else {
        return;
    };
    let info = DebugInfo::read(&path).unwrap();
    assert_eq!(chain_ids(&info, 59), [59, 57, 56, 55, 32, 31]);
    assert_eq!(chain_ids(&info, 96), [96, 95, 94, 93, 70, 69]);
    assert_eq!(chain_ids(&info, 47), [47, 46]);
    assert_eq!(chain_ids(&info, 107), [107]);
    let apis: Vec<Option<&str>> = info.chain(59).map(|p| info.text(p, Field::Api)).collect();
    let expected = [
        None,
        Some("mapInPlace"),
        Some("mapInPlace"),
        Some("addInPlace"),
        Some("countedLoop"),
        Some("countedLoop"),
    ];
    assert_eq!(apis, expected);
    assert_eq!(
        info.text(at(&info, 46), Field::Api),
        Some("reduceWithOutput")
    );
}

#[test]
fn a_file_that_was_cut_off() {
    let Some(path) = sample("firehose-truncated.debug.cbor") else {
        return;
    };
    let info = DebugInfo::read(&path).unwrap();
    let truncation = info.truncation().unwrap();
    assert_eq!((info.len(), truncation.contexts), (68, 68));
    assert_eq!((truncation.offset, truncation.damaged), (8193, false));
    assert!(truncation.string_table_lost);
    assert_eq!(info.damage(), [Damage::Truncated(*truncation)]);
    let places: Vec<Position> = (0..1000).filter_map(|id| info.position(id)).collect();
    assert_eq!(places.len(), 68);
    assert!(places.iter().all(|&place| info.name(place).is_empty()));
}
