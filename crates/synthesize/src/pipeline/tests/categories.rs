//! The categories of a pipelined profile.

use std::path::Path;

use rusqlite::Connection;

use super::super::options::{PipelineOptions, Recompute, Schedule};
use super::planted::models;
use super::profile::column;
use crate::place_truth::PlaceTruth;
use crate::truth::COLUMNS;
use popliner::profile::encoding::decode_list;

/// By category, in the order of names: its bytes on each tile in these columns.
pub(super) fn by_category(
    connection: &Connection,
    tiles: usize,
    of: impl Fn(&str) -> bool,
) -> Vec<Vec<u64>> {
    let columns = COLUMNS.iter().filter(|name| of(name));
    let lists = columns.map(|name| {
        let sql = format!("SELECT {name} FROM memory_by_category ORDER BY category_id");
        let blobs = column::<Vec<u8>>(connection, &sql).into_iter();
        let lists = blobs.map(|blob| decode_list(&blob, tiles).expect("a list"));
        lists.collect::<Vec<_>>()
    });
    let add = |mut all: Vec<Vec<u64>>, more: Vec<Vec<u64>>| {
        let sums = all.iter_mut().flatten();
        sums.zip(more.into_iter().flatten())
            .for_each(|(sum, bytes)| *sum += bytes);
        all
    };
    lists.reduce(add).expect("columns")
}

pub(super) fn columns_of_all_live(name: &str) -> bool {
    name.ends_with("non_overlapped")
}

/// The profile of one IPU that is no pipeline.
fn alone(folder: &Path, options: &str) -> (Connection, crate::pipeline::PipelineModel) {
    let options = options.split_whitespace();
    let model = crate::write_with_pipeline(folder, options).expect("a profile");
    let path = folder.join("profile.pop");
    (Connection::open(path).expect("the profile"), model)
}

/// A pipeline of one IPU has what the compilation for one IPU has at all times,
/// category by category.
#[test]
fn one_stage_has_the_categories_of_one_ipu() {
    let rest = [
        "--framework popart --outlined per-call --gaps 4",
        "--framework tensorflow --compiler-made 300 --constants",
    ];
    for rest in rest {
        let folder = tempfile::tempdir().expect("a folder");
        let options = format!("--layers 3 --tiles 8 --vars-per-layer-tile 20 {rest}");
        let (one, model) = alone(folder.path(), &options);
        let path = folder.path().join("pipelined.pop");
        let options = PipelineOptions::new(Schedule::Popart, Recompute::None);
        model.write_profile(&path, &[], &options).expect("written");
        let pipelined = Connection::open(&path).expect("the profile");
        let of_all_live = |connection| by_category(connection, 8, columns_of_all_live);
        assert_eq!(of_all_live(&pipelined), of_all_live(&one));
    }
}

/// The bytes of categories add up to the variables of each tile.
#[test]
fn categories_add_up_to_the_variables() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = PipelineOptions::new(Schedule::Popart, Recompute::Stage);
    for (number, model) in models("training").iter().enumerate() {
        let path = folder.path().join(format!("{number}.pop"));
        model
            .write_profile(&path, &[1, 4], &options)
            .expect("written");
        let connection = Connection::open(&path).expect("the profile");
        let sql = "SELECT sum(size_bytes) FROM vars_info GROUP BY tile ORDER BY tile";
        let sums = column::<u64>(&connection, sql);
        let categories = by_category(&connection, sums.len(), |_| true);
        let found =
            (0..sums.len()).map(|tile| categories.iter().map(|category| category[tile]).sum());
        assert_eq!(found.collect::<Vec<u64>>(), sums);
        assert!(categories.iter().filter(|category| category[0] > 0).count() > 9);
    }
}

/// Always-live bytes by kind are the always-live bytes.
#[test]
fn kinds_add_up_to_what_is_always_live() {
    for model in models("training") {
        let places: &PlaceTruth = model.places();
        let layers = places.layers();
        for last in 0..=layers + 1 {
            let places_here = crate::places::Places::positions(layers, last / 2..=last);
            for tile in 0..8 {
                let kinds = places.kinds(tile, places_here).into_values();
                assert_eq!(kinds.sum::<u64>(), places.fixed(tile, places_here));
            }
        }
    }
}
