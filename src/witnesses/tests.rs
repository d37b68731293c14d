use super::contradiction::*;
use crate::profile::{Recorded, RecordedTile, TILES};

fn found(numbers: &[[u64; 2]]) -> Option<Contradiction> {
    let numbers = numbers.iter().copied();
    worst(Witness::OneStage, TILES, 1000, numbers, u64::abs_diff)
}

#[test]
fn bytes_without_a_bound_rule_out_a_verdict_and_others_do_not() {
    assert_eq!(found(&[[7, 7]]), None);
    let bounded = found(&[[1000, 1]]).unwrap();
    assert_eq!((bounded.bytes, bounded.refused), (Some(999), false));
    let unbounded = Contradiction::without_rows("memory_by_tile", 41);
    assert_eq!((unbounded.bytes, unbounded.refused), (None, true));
    let all = [bounded, unbounded];
    let check = |all: &[_], is_allowed| check(all, Default::default(), is_allowed);
    assert!(check(&all[..1], false).is_ok());
    assert!(check(&all, false).is_err() && check(&all, true).is_ok());
}

#[test]
fn the_worst_tile_is_named_and_the_others_are_counted() {
    let contradiction = found(&[[1000, 1000], [1000, 1001], [1000, 400], [0, 600]]).unwrap();
    assert_eq!((contradiction.tile, contradiction.tiles), (Some(2), 3));
    assert_eq!(
        contradiction.to_string(),
        "table `memory_by_tile`, tile 2: the total is 1,000, and its variables and code take \
         400, which could move up to 600 bytes (60.0 % of the fullest tile; 2 more tiles are \
         off)"
    );
}

#[test]
fn differences_that_every_stage_has_room_for_move_nothing() {
    let found = |numbers: &[[u64; 2]]| {
        let computed_is_more = |recorded, computed: u64| computed.saturating_sub(recorded);
        let numbers = numbers.iter().copied();
        worst(Witness::Code, TILES, 1000, numbers, computed_is_more).unwrap()
    };
    assert_eq!(found(&[[900, 0]]).bytes, Some(0));
    // Tile 0 has 900 recorded bytes and no computed ones; tile 1 has 600 recorded and 1,000
    // computed bytes. In this test, only computed bytes beyond the recorded ones may be attributed
    // to the wrong layer. So the contradiction names tile 1, with 400 bytes, although tile 0
    // differs more.
    let found = found(&[[900, 0], [600, 1000]]);
    assert_eq!((found.tile, found.bytes), (Some(1), Some(400)));
}

#[test]
fn a_verdict_that_all_bytes_together_could_turn_is_refused() {
    let two = [[1000, 996], [1000, 1005]];
    let two = two.map(|pair| found(&[pair]).unwrap());
    let is_refused = |free: i64| {
        let mut all = two.clone();
        refuse_close(&mut all, [1000, free]);
        are_refused(&all)
    };
    for (free, refused) in [
        (9, false),
        (8, true),
        (0, true),
        (-1, true),
        (-9, true),
        (-10, false),
    ] {
        assert_eq!(is_refused(free), refused, "{free}");
    }
}

#[test]
fn a_table_without_rows_is_refused() {
    let contradiction = Contradiction::without_rows("memory_by_tile", 41);
    assert!(contradiction.refused);
    assert_eq!(
        contradiction.to_string(),
        "table `memory_by_tile`: its rows are 0, and the rows that it needs are 41 (100.0 % of all)"
    );
}

#[test]
fn lacking_contexts_have_bytes_and_may_have_none() {
    let fullest = RecordedTile {
        total: 1000,
        ..RecordedTile::default()
    };
    let recorded = Recorded {
        tiles: vec![fullest],
        categories: Vec::new(),
    };
    let of = |bytes| {
        let row = "1 of 9 contexts is missing".to_string();
        Contradiction::lacking(Witness::DebugContexts, "debug.cbor", row, bytes, &recorded)
    };
    let found = of(vec![3, 12]);
    assert_eq!(
        found.to_string(),
        "1 of 9 contexts is missing, tile 1, which could move up to 12 bytes (1.2 % of the fullest \
         tile; 1 more tile is off)"
    );
    let mut all = [found, of(vec![0, 0])];
    let files = ["profile.pop", "debug.cbor"].map(String::from);
    let check = |all: &[_]| check(all, files.clone(), false);
    refuse_close(&mut all, [13]);
    assert!(check(&all).is_ok());
    refuse_close(&mut all, [11]);
    let error = format!("{:#}", check(&all).unwrap_err());
    assert!(error.starts_with("debug.cbor: the debug file"), "{error}");
    assert!(error.contains("--allow-incomplete"), "{error}");
    assert_eq!((all[1].bytes, all[1].refused), (Some(0), false));
}
