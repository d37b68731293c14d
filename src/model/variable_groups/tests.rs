use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    #[test]
    fn groups_and_uses_have_the_bytes_of_all_variables(
        groups in prop::collection::vec((0u16..9, 0u32..4, 0u32..3, 1u32..1 << 20), 0..90),
    ) {
        let of = |&(tile, class, set, bytes): &(u16, u32, u32, u32)| {
            (tile, VariableGroup { class, set, bytes })
        };
        let found = VariableGroups::new(9, groups.iter().map(of));
        let mut all: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut by_tile: BTreeMap<(u32, u32, u32), u32> = BTreeMap::new();
        for &(tile, class, set, bytes) in &groups {
            *all.entry((class, set)).or_default() += u64::from(bytes);
            *by_tile.entry((tile.into(), class, set)).or_default() += bytes;
        }
        let uses = found.uses().iter().map(|group| ((group.class, group.set), group.bytes));
        prop_assert!(uses.eq(all));
        let on_tiles = (0..9).flat_map(|tile| {
            let group = found.on_tile(tile);
            group.map(move |group| ((tile, group.class, group.set), group.bytes))
        });
        prop_assert!(on_tiles.eq(by_tile));
        for (number, group) in (0u32..).zip(found.uses()) {
            prop_assert_eq!(found.number(group.class, group.set), Some(number));
        }
        prop_assert_eq!(found.number(9, 0), None);
        let counts: Vec<u32> = (0..9).map(|tile| found.on_tile(tile).count() as u32).collect();
        let uses: Vec<_> = found.uses().iter().map(|used| (used.class, used.set)).collect();
        let groups = found.groups.clone();
        prop_assert_eq!(VariableGroups::from_numbered(&uses, &counts, groups), Some(found));
    }
}

#[test]
fn what_would_pass_4_gib_stays_apart() {
    let group = |bytes| VariableGroup {
        class: 1,
        set: 2,
        bytes,
    };
    let groups = [u32::MAX, 1, 2].map(|bytes| (0, group(bytes)));
    let found = VariableGroups::new(1, groups.into_iter());
    let bytes: u64 = found.on_tile(0).map(|group| u64::from(group.bytes)).sum();
    assert_eq!(
        (found.on_tile(0).count(), bytes),
        (2, u64::from(u32::MAX) + 3)
    );
    assert_eq!(found.uses().len(), 1);
    assert_eq!(found.uses()[0].bytes, bytes);
}
