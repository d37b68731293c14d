//! Pipelined profiles asked for by options.

use std::fs;

use rusqlite::{Connection, types::FromSql};

const MODEL: &str = "--framework popart --mode training --layers 4 --tiles 8 \
                     --vars-per-layer-tile 6 --page-size 1024";

fn column<T: FromSql>(connection: &Connection, sql: &str) -> Vec<T> {
    let mut rows = connection.prepare(sql).expect("a query");
    let rows = rows.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("values")
}

#[test]
fn options_ask_for_a_pipelined_profile() {
    let [one, several] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    crate::write(one.path(), MODEL.split_whitespace()).expect("a profile");
    let options = format!(
        "{MODEL} --pipelined 2,4 --schedule popart --recompute stage --planted-codes --execution"
    );
    let truth = crate::write_pipelined(several.path(), options.split_whitespace());
    let truth = truth.expect("a profile");
    let debug = |folder: &tempfile::TempDir| fs::read(folder.path().join("debug.cbor"));
    assert_eq!(
        debug(&one).expect("contexts"),
        debug(&several).expect("contexts")
    );
    let profile = Connection::open(several.path().join("profile.pop")).expect("the profile");
    let totals: Vec<u64> = truth
        .stages
        .iter()
        .flat_map(|stage| stage.tiles.clone())
        .collect();
    let total = "SELECT total FROM memory_by_tile ORDER BY tile";
    assert_eq!(column::<u64>(&profile, total), totals);
    assert_eq!(column::<u64>(&profile, "SELECT count(*) FROM runs"), [2]);
    assert_eq!(column::<u64>(&profile, "PRAGMA page_size"), [1024]);
    let planted = truth.stages.iter().map(|stage| stage.planted.bytes(0));
    assert!(planted.clone().all(|bytes| bytes > 600), "{planted:?}");
}

/// Equal options make equal bytes.
#[test]
fn pipelined_profiles_can_be_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = format!("{MODEL} --pipelined 2,4 --recompute layer --execution");
    let profile = || {
        crate::write(folder.path(), options.split_whitespace()).expect("a profile");
        fs::read(folder.path().join("profile.pop")).expect("the profile")
    };
    assert!(profile() == profile());
}

#[test]
fn cuts_that_are_no_position_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = format!("{MODEL} --pipelined 2,6");
    let error = crate::write(folder.path(), options.split_whitespace()).expect_err("no position");
    assert!(error.to_string().contains("position 6"), "{error}");
}
