//! The operations of each IPU in a pipelined profile.

use std::path::Path;

use popliner::profile::encoding::decode_rle;
use rusqlite::Connection;

use super::super::options::{PipelineOptions, Recompute, Schedule};
use super::forms::with_form;
use super::profile::column;
use crate::pipeline::{PipelineModel, ProfileForm};

const TILES: usize = 8;

/// A program with vertices: the compute set's name, the program's context, and
/// vertices by tile.
fn programs(connection: &Connection, tiles: usize) -> Vec<(String, u32, Vec<u64>)> {
    let sql = "SELECT c.name, p.debug_id, v.instances_by_tile FROM programs p
               JOIN program_types t ON t.id = p.variant
               JOIN program_type_on_tile_execute e ON e.id = p.variant_index
               JOIN compute_sets c ON c.compute_set = e.compute_set
               JOIN vertex_instances v ON v.compute_set = c.compute_set
               WHERE t.name = 'OnTileExecute' ORDER BY p.id";
    let mut rows = connection.prepare(sql).expect("a query");
    let rows = rows.query_map([], |row| {
        let blob: Vec<u8> = row.get(2)?;
        Ok((
            row.get(0)?,
            row.get(1)?,
            decode_rle(&blob, tiles).expect("tiles"),
        ))
    });
    let rows = rows.expect("rows");
    rows.collect::<Result<_, _>>().expect("programs")
}

#[test]
fn operations_run_on_one_ipu_each_time() {
    with_form(&ProfileForm::default(), |[truth, _], [connection, _]| {
        let ipus = truth.stages.len();
        let all = programs(connection, ipus * TILES);
        let mut count = vec![0; ipus];
        for (name, context, vertices) in &all {
            assert_eq!(vertices.len(), ipus * TILES, "{name}");
            assert!(*context > 0, "{name}");
            let active = vertices
                .chunks(TILES)
                .map(|of_ipu| of_ipu.iter().any(|&count| count > 0));
            let on: Vec<usize> = (0..ipus)
                .zip(active)
                .filter(|ipu| ipu.1)
                .map(|ipu| ipu.0)
                .collect();
            assert!(on.len() <= 1, "{name} on {on:?}");
            on.iter().for_each(|&ipu| count[ipu] += 1);
        }
        assert!(count.iter().all(|&count| count > 20), "{count:?}");
    });
}

#[test]
fn neighbours_exchange_in_both_directions() {
    with_form(&ProfileForm::default(), |[truth, _], [connection, _]| {
        let sql = "SELECT count(*) FROM programs JOIN program_types t ON t.id = variant
                   JOIN program_type_global_exchange e ON e.id = variant_index
                   WHERE t.name = 'GlobalExchange'";
        let count = 2 * (truth.stages.len() - 1);
        assert_eq!(column::<usize>(connection, sql), [count]);
    });
}

/// Each operation of a layer runs on the IPU of the layer, and has the context
/// that it has in the compilation for one IPU.
#[test]
fn layers_are_found_on_their_ipus() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = "--framework popart --mode training --layers 4 --tiles 8";
    let model = crate::write_with_pipeline(folder.path(), options.split_whitespace());
    let model: PipelineModel = model.expect("a profile");
    let one = Connection::open(folder.path().join("profile.pop")).expect("the profile");
    let path = folder.path().join("pipelined.pop");
    let options = PipelineOptions::new(Schedule::Popart, Recompute::Stage);
    let truth = model.write_profile(&path, &[2, 4], &options);
    assert_eq!(truth.expect("written").stages.len(), 3);
    let pipelined = Connection::open(&path).expect("the profile");
    let of_one = programs(&one, TILES);
    let all = programs(&pipelined, 3 * TILES);
    for layer in 0..4usize {
        let name = format!("Layer{layer}/");
        let ours = |row: &&(String, u32, Vec<u64>)| row.0.starts_with(&name);
        let wanted: Vec<_> = of_one.iter().filter(ours).collect();
        let found: Vec<_> = all.iter().filter(ours).collect();
        assert!(wanted.len() > 4);
        assert_eq!(wanted.len(), found.len());
        for (wanted, found) in wanted.iter().zip(found) {
            assert_eq!((&wanted.0, wanted.1), (&found.0, found.1));
            let first = layer.div_ceil(2) * TILES;
            assert_eq!(wanted.2, found.2[first..first + TILES]);
        }
    }
    contexts_exist(folder.path(), &all);
}

/// The `debug.cbor` beside the compilation for one IPU has all of them.
fn contexts_exist(folder: &Path, programs: &[(String, u32, Vec<u64>)]) {
    let debug = popliner::debug_info::DebugInfo::read(&folder.join("debug.cbor"));
    let debug = debug.expect("contexts");
    for (name, context, _) in programs {
        assert!(debug.position(u64::from(*context)).is_some(), "{name}");
    }
}
