//! Recorded memory against the variables, code against programs and vertices.

use std::collections::HashMap;

use popliner::profile::encoding::{decode_list, decode_rle};
use rusqlite::Connection;

use super::{TILES, number, pairs, rows, with_each};

#[test]
fn control_code_includes_that_of_the_children() {
    with_each(|case, profile| {
        let programs: HashMap<i64, (Vec<u64>, Vec<u64>)> = rows(
            profile,
            "SELECT id, children, control_code_bytes_by_tile FROM programs",
            |row| {
                let children = decode_list(&row.get::<_, Vec<u8>>(1)?, 1 << 20).unwrap();
                let code = decode_rle(&row.get::<_, Vec<u8>>(2)?, TILES).unwrap();
                Ok((row.get(0)?, (children, code)))
            },
        )
        .into_iter()
        .collect();
        let mut parents = 0;
        for (children, code) in programs.values().filter(|program| !program.0.is_empty()) {
            parents += 1;
            for (tile, &bytes) in code.iter().enumerate() {
                let inside = children.iter().map(|id| programs[&(*id as i64)].1[tile]);
                assert!(bytes >= inside.sum(), "{case}");
            }
        }
        assert!(parents > 3, "{case}");
        let roots = "SELECT program FROM control_programs UNION ALL
                     SELECT program FROM function_programs";
        let in_trees: u64 = rows(profile, roots, |row| row.get::<_, i64>(0))
            .iter()
            .map(|root| programs[root].1.iter().sum::<u64>())
            .sum();
        let recorded = category_bytes(profile, "controlCode");
        assert!(
            recorded as u64 > in_trees,
            "{case}: start-up code comes on top"
        );
    });
}

fn category_bytes(profile: &Connection, category: &str) -> i64 {
    number(
        profile,
        &format!(
            "SELECT coalesce(sum(size_bytes), 0) FROM vars_info
             WHERE category = (SELECT id FROM var_categories WHERE name = '{category}')"
        ),
    )
}

/// Live bytes by step and tile of what is not always live, the slow way.
fn live_bytes(profile: &Connection) -> Vec<Vec<i64>> {
    let steps = number(profile, "SELECT count(*) FROM depth_first_steps") as usize;
    let mut live = vec![vec![0; TILES]; steps];
    let ranges = "SELECT v.tile, v.size_bytes, s.step_id_from, s.step_id_to
                  FROM vars_info v
                  JOIN eq_classes c ON c.id = v.equivalence_class AND c.is_always_live = 0
                  JOIN eq_class_step s ON s.eq_class_id = c.id";
    let read = |row: &rusqlite::Row| -> rusqlite::Result<[i64; 4]> {
        Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
    };
    for [tile, bytes, from, to] in rows(profile, ranges, read) {
        assert!(from < to && to as usize <= steps);
        for step in &mut live[from as usize..to as usize] {
            step[tile as usize] += bytes;
        }
    }
    live
}

#[test]
fn step_totals_are_those_of_the_variables() {
    with_each(|case, profile| {
        let live = live_bytes(profile);
        for ipu in ["IS NULL", "= 0"] {
            let deltas: HashMap<i64, i64> = pairs(
                profile,
                &format!(
                    "SELECT step_id, delta_bytes FROM memory_not_always_live_by_step_and_ipu
                     WHERE ipu {ipu}"
                ),
            )
            .into_iter()
            .collect();
            assert!(deltas.values().all(|&delta| delta != 0), "{case}");
            let mut total = 0;
            for (step, tiles) in live.iter().enumerate() {
                total += deltas.get(&(step as i64)).unwrap_or(&0);
                assert_eq!(total, tiles.iter().sum::<i64>(), "{case}, step {step}");
            }
        }
    });
}

#[test]
fn tiles_and_categories_are_those_of_the_variables() {
    with_each(|case, profile| {
        let live = live_bytes(profile);
        let always: HashMap<i64, i64> = pairs(
            profile,
            "SELECT v.tile, sum(v.size_bytes) FROM vars_info v
             JOIN eq_classes c ON c.id = v.equivalence_class
             WHERE c.is_always_live = 1 GROUP BY v.tile",
        )
        .into_iter()
        .collect();
        let sums = "SELECT sum(size_bytes) FROM vars_info GROUP BY tile ORDER BY tile";
        let sums: Vec<u64> = rows(profile, sums, |row| row.get(0));
        assert_eq!(category_sums(profile), sums, "{case}");
        let sql = "SELECT tile, total, always_live_bytes, not_always_live_max_bytes,
                   interleaved + non_interleaved + overflowed, overflowed FROM memory_by_tile";
        let read = |row: &rusqlite::Row| -> rusqlite::Result<Vec<i64>> {
            (0..6).map(|column| row.get(column)).collect()
        };
        let limit = number(profile, "SELECT bytes_per_tile FROM target_info");
        let recorded = rows(profile, sql, read);
        assert_eq!(recorded.len(), TILES);
        for row in recorded {
            let tile = row[0] as usize;
            let peak = live.iter().map(|step| step[tile]).max().unwrap();
            assert_eq!(row[2], always[&row[0]], "{case}, tile {tile}");
            assert_eq!(row[3], peak, "{case}, tile {tile}");
            let gap = row[1] - row[2] - row[3];
            assert_eq!(gap > 0, case.contains("--gaps"), "{case}, tile {tile}");
            assert_eq!(row[4], row[1], "{case}, tile {tile}");
            assert_eq!(row[5], (row[1] - limit).max(0), "{case}, tile {tile}");
            assert_eq!(row[5] > 0, case.contains("overflow"), "{case}, tile {tile}");
        }
    });
}

/// Sum of `memory_by_category` over categories and columns, by tile.
fn category_sums(profile: &Connection) -> Vec<u64> {
    let mut sums = vec![0; TILES];
    let blobs = rows(profile, "SELECT * FROM memory_by_category", |row| {
        (1..7)
            .map(|column| row.get(column))
            .collect::<Result<Vec<Vec<u8>>, _>>()
    });
    assert_eq!(blobs.len(), 27);
    for blob in blobs.iter().flatten() {
        let values = decode_list(blob, TILES).unwrap();
        assert_eq!(values.len(), TILES);
        sums.iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum += value);
    }
    sums
}

#[test]
fn code_of_the_categories_is_that_of_programs_and_vertices() {
    with_each(|case, profile| {
        let sum = |sql: &str, list: bool| -> i64 {
            let blobs: Vec<Vec<u8>> = rows(profile, sql, |row| row.get(0));
            let decode = if list { decode_list } else { decode_rle };
            let totals = blobs
                .iter()
                .map(|blob| decode(blob, TILES).unwrap().iter().sum::<u64>());
            totals.sum::<u64>() as i64
        };
        let state: i64 = ["vertex_data_bytes", "edge_ptr_bytes", "copy_ptr_bytes"]
            .map(|column| {
                sum(
                    &format!("SELECT {column} FROM memory_by_compute_set"),
                    false,
                )
            })
            .iter()
            .sum();
        let recorded =
            ["vertexInstanceState", "vertexFieldData"].map(|c| category_bytes(profile, c));
        assert_eq!(state, recorded.iter().sum::<i64>(), "{case}");
        let descriptors = sum("SELECT descriptor_bytes FROM memory_by_compute_set", false);
        assert_eq!(
            descriptors,
            category_bytes(profile, "copyDescriptor"),
            "{case}"
        );
        let types = sum("SELECT code_bytes FROM memory_by_vertex_type", true);
        assert!(category_bytes(profile, "vertexCode") > types, "{case}");
        for category in [
            "stack",
            "hostMessage",
            "hostExchangeCode",
            "instrumentationResults",
        ] {
            assert!(category_bytes(profile, category) > 0, "{case}, {category}");
        }
    });
}
