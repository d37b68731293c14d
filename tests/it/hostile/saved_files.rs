//! Saved files that were made to do harm. `src/saved/tests` alters such files.

use std::ffi::OsStr;
use std::fs;

use popliner::model::{
    Model, NO_CALL, NO_USERS, Operation, OperationGroup, VariableGroup, VariableGroups,
};
use popliner::profile::TileBytes;
use popliner::saved::to_bytes;

use super::cases::{Case, limited};
use crate::support::models::share;
use crate::support::{Run, Words, finish, model};

/// Loads a saved model of a fixture after `change`, within limits of time and memory.
fn changed(change: impl FnOnce(&mut Model)) -> Run {
    let case = Case::new();
    let mut model = model(&case.profile, &case.debug);
    model.cycles = None;
    change(&mut model);
    let bytes = to_bytes(&model).unwrap();
    assert!(bytes.len() < 2 << 20, "{}", bytes.len());
    let path = case.folder.path().join("model");
    fs::write(&path, &bytes).unwrap();
    let options = r"--load-from-file --solve --layer-name-regex=(?:Layer|layer)(\d+)";
    let mut arguments = vec![path.as_os_str()];
    arguments.extend(options.words().into_iter().map(OsStr::new));
    let run = finish(&mut limited("", &arguments));
    assert_eq!(fs::read(&path).unwrap(), bytes);
    run
}

/// Adds an operation group and one operation in it with this name.
fn add(model: &mut Model, name: &str) -> u32 {
    let group = model.operation_groups.len() as u32;
    model.operation_groups.push(OperationGroup {
        uid: 1 << 40 | u64::from(group),
        window: None,
        code: Default::default(),
        host_copies: Vec::new(),
        clusters: Vec::new(),
    });
    add_to(model, group, name);
    group
}

/// Adds an operation with this name to a group.
fn add_to(model: &mut Model, group: u32, name: &str) {
    let operation = Operation {
        group,
        name: name.into(),
        inputs: "".into(),
        window: None,
        call: NO_CALL,
        ..model.operations[0].clone()
    };
    model.operations.push(operation);
}

/// Puts variables on the first tile only, one for each (class, set).
fn on_first_tile(model: &mut Model, uses: impl Iterator<Item = (u32, u32)>) {
    let group = |(class, set)| VariableGroup {
        class,
        set,
        bytes: 1,
    };
    let groups = uses.map(|used| (0, group(used)));
    model.variables = VariableGroups::new(model.target.num_tiles, groups);
}

#[test]
fn saved_sets_that_contain_each_other() {
    let run = changed(|model| {
        let mut set = NO_USERS;
        let mut sets = Vec::new();
        for _ in 0..24_000 {
            let group = add(model, "other");
            set = model.use_sets.push(set, group);
            sets.push((0, set));
        }
        on_first_tile(model, sets.into_iter());
    });
    run.exits(3).says("groups of layers");
}

#[test]
fn saved_code_of_many_groups_on_many_tiles() {
    let (layers, tiles) = (100 / share(2), 1000);
    let run = changed(|model| {
        model.target.num_tiles = tiles;
        model.target.tiles_per_ipu = tiles;
        model.recorded.tiles.clear();
        model.code_variables = VariableGroups::new(tiles, std::iter::empty());
        on_first_tile(model, std::iter::empty());
        for first in 0..layers {
            for second in first + 1..layers {
                let group = add(model, &format!("layer{}", 1000 + first));
                add_to(model, group, &format!("layer{}", 1000 + second));
                let everywhere: TileBytes = (0..tiles).map(|_| 1).collect();
                let code = &mut model.operation_groups[group as usize].code;
                code.vertex_memory = everywhere.clone();
                code.exchange_code = everywhere.clone();
                code.control_code = everywhere;
            }
        }
    });
    assert!(run.code < 2, "{run:?}");
}
