//! Planted code and data of a pipelined profile, and the forms that it can
//! have.

use std::path::Path;

use rusqlite::Connection;

use super::super::options::{PipelineOptions, Recompute, Schedule};
use super::super::{
    LoweredVariables, NameKind, PipelineTruth, PlantedBytes, PlantedCode, ProfileForm,
};
use super::categories::{by_category, columns_of_all_live};
use super::planted::models;
use super::profile::column;

const CODE: PlantedCode = PlantedCode {
    global_exchange: PlantedBytes {
        first: 400,
        middle: 800,
        last: 440,
        varying: 64,
    },
    host_exchange: PlantedBytes {
        first: 96,
        middle: 32,
        last: 64,
        varying: 0,
    },
    restore: PlantedBytes {
        first: 120,
        middle: 100,
        last: 80,
        varying: 16,
    },
};

pub(super) const PLANTED: ProfileForm = ProfileForm {
    planted: CODE,
    lowered: LoweredVariables::Listed,
    replicas: 1,
    lists_replicas: false,
    execution: false,
};

/// Profiles of several models in three stages, without a form and in this one.
pub(super) fn with_form(form: &ProfileForm, check: impl Fn([&PipelineTruth; 2], [&Connection; 2])) {
    let folder = tempfile::tempdir().expect("a folder");
    let schedules = [Schedule::Popart, Schedule::TfGrouped];
    for (number, model) in models("training").iter().enumerate() {
        let options = PipelineOptions::new(schedules[number % 2], Recompute::Stage);
        let write = |name: &str, form: &ProfileForm| {
            let path = folder.path().join(format!("{number}{name}.pop"));
            let truth = model.write_profile_as(&path, &[2, 4], &options, form);
            (truth.expect("written"), open(&path))
        };
        let (plain, formed) = (write("", &ProfileForm::default()), write("formed", form));
        check([&plain.0, &formed.0], [&plain.1, &formed.1]);
    }
}

fn open(path: &Path) -> Connection {
    Connection::open(path).expect("the profile")
}

fn totals(connection: &Connection) -> Vec<u64> {
    column(connection, "SELECT total FROM memory_by_tile ORDER BY tile")
}

#[test]
fn planted_code_is_on_its_tiles() {
    with_form(&PLANTED, |[plain, formed], [before, after]| {
        let stages = plain.stages.iter().zip(&formed.stages);
        let added: Vec<u64> = stages
            .flat_map(|(plain, with_forms)| {
                let tiles = plain.tiles.iter().zip(&with_forms.tiles).enumerate();
                let more = tiles.map(|(tile, (plain, all))| {
                    assert_eq!(plain + with_forms.planted.bytes(tile), *all);
                    all - plain
                });
                more.collect::<Vec<_>>()
            })
            .collect();
        let sums = totals(before)
            .iter()
            .zip(&added)
            .map(|(a, b)| a + b)
            .collect::<Vec<u64>>();
        assert_eq!(sums, totals(after));
    });
}

/// Only PopART restores, and not on the last IPU.
#[test]
fn restores_are_planted_where_there_is_a_stash() {
    with_form(&PLANTED, |[_, formed], _| {
        for stage in &formed.stages {
            let planted = &stage.planted;
            assert!(planted.global_exchange.iter().all(|&bytes| bytes >= 400));
            if planted.restore.iter().any(|&bytes| bytes > 0) {
                assert!(stage.slots > 0 && planted.restore.iter().all(|&bytes| bytes >= 100));
            }
        }
        let restore = |ipu: usize| formed.stages[ipu].planted.restore[0];
        assert_eq!(restore(2), 0);
        let is_popart = restore(0) > 0;
        assert_eq!(restore(1) > 0, is_popart);
    });
}

/// The content of tiles at their peaks has all always-live bytes of a category, and no
/// more than the file has of it.
#[test]
fn contents_are_of_the_categories_of_the_file() {
    with_form(&PLANTED, |[_, formed], [_, after]| {
        let contents = formed.stages.iter().flat_map(|stage| &stage.contents);
        let contents: Vec<_> = contents.collect();
        let all = by_category(after, contents.len(), |_| true);
        let always = by_category(after, contents.len(), columns_of_all_live);
        let names = column::<String>(
            after,
            "SELECT category_id FROM memory_by_category ORDER BY 1",
        );
        for (tile, content) in contents.iter().enumerate() {
            for (name, (always, all)) in names.iter().zip(always.iter().zip(&all)) {
                let bytes = content.categories.get(name.as_str()).copied();
                let range = always[tile]..=all[tile];
                assert!(
                    range.contains(&bytes.unwrap_or(0)),
                    "{name}: {bytes:?}, {range:?}"
                );
            }
        }
        for stage in &formed.stages {
            for (tile, content) in stage.contents.iter().enumerate() {
                assert_eq!(content.total(), stage.tiles[tile]);
                let kind = |kind| content.kinds.get(&kind).copied().unwrap_or(0);
                assert_eq!(kind(NameKind::Stashed), stage.stash[tile]);
                assert_eq!(kind(NameKind::Accumulator), stage.accumulators[tile]);
            }
        }
    });
}

/// Without lowered variables all else is the same.
#[test]
fn variables_can_be_left_out() {
    for lowered in [LoweredVariables::Empty, LoweredVariables::Missing] {
        let form = ProfileForm {
            lowered,
            ..ProfileForm::default()
        };
        with_form(&form, |[plain, formed], [before, after]| {
            assert_eq!(plain, formed);
            assert_eq!(totals(before), totals(after));
            let tables =
                "SELECT count(*) FROM sqlite_master WHERE name IN ('vars_info', 'eq_classes')";
            let are_there = lowered == LoweredVariables::Empty;
            assert_eq!(column::<u64>(after, tables), [2 * u64::from(are_there)]);
            if are_there {
                let rows = "SELECT count(*) FROM vars_info";
                assert_eq!(column::<u64>(after, rows), [0]);
            }
        });
    }
}

#[test]
fn replicas_repeat_the_tiles_or_do_not() {
    for lists_replicas in [false, true] {
        let form = ProfileForm {
            replicas: 2,
            lists_replicas,
            execution: true,
            ..ProfileForm::default()
        };
        with_form(&form, |_, [before, after]| {
            let times = if lists_replicas { 2 } else { 1 };
            assert_eq!(totals(before).repeat(times), totals(after));
            let target = "SELECT printf('%d %d %d', num_ipus / num_replicas,
                          num_tiles / tiles_per_ipu, ipus_per_replica) FROM target_info";
            assert_eq!(column::<String>(after, target), ["3 6 3"]);
            let ipus = "SELECT count(DISTINCT ipu) FROM memory_not_always_live_by_step_and_ipu";
            assert_eq!(column::<usize>(after, ipus), [3 * times]);
            let sum = "SELECT step_id FROM memory_not_always_live_by_step_and_ipu GROUP BY step_id
                       HAVING sum(delta_bytes * (CASE WHEN ipu IS NULL THEN 1 ELSE -1 END)) <> 0";
            assert!(column::<u64>(after, sum).is_empty());
            let variables = "SELECT count(*) FROM vars_info";
            let count = |connection| column::<usize>(connection, variables)[0];
            assert_eq!(count(after), times * count(before));
            let ipus = "SELECT count(DISTINCT ipu) FROM steps_by_ipu";
            assert_eq!(column::<usize>(after, ipus), [3 * times]);
        });
    }
}

#[test]
fn cycles_are_counted_by_ipu() {
    let form = ProfileForm {
        execution: true,
        ..ProfileForm::default()
    };
    with_form(&form, |[_, formed], [before, after]| {
        let none = "SELECT count(*) FROM steps_by_ipu";
        assert_eq!(column::<u64>(before, none), [0]);
        let cycles = |kind: &str| {
            let sql = format!(
                "SELECT sum(cycles) FROM steps_by_ipu JOIN steps ON id = step_id
                 WHERE type = '{kind}' GROUP BY ipu ORDER BY ipu"
            );
            column::<u64>(after, &sql)
        };
        let stages = formed.stages.iter().map(|stage| stage.cycles);
        assert_eq!(
            cycles("OnTileExecute"),
            stages
                .clone()
                .map(|stage| stage.compute)
                .collect::<Vec<_>>()
        );
        let exchange: Vec<_> = stages.map(|stage| stage.exchange).collect();
        assert_eq!(cycles("GlobalExchange"), exchange);
        let rows = "SELECT count(*) FROM steps_by_ipu GROUP BY step_id HAVING count(*) <> 3";
        assert!(column::<u64>(after, rows).is_empty());
        let runs = "SELECT count(*) FROM runs";
        assert_eq!(column::<u64>(after, runs), [2]);
    });
}
