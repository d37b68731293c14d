//! Damaged rows: an error that names the table, the column and the row.

use super::cases::{Case, FIXTURE, cells, each_sql, hex, in_last_row, run_of, tables};
use crate::support::each;

/// Tables that every analysis needs, each with its required columns.
const NEEDED: &str = "
    version_info major minor point
    target_info tiles_per_ipu num_tiles bytes_per_tile num_ipus num_replicas
    programs id variant variant_index children debug_id name
    program_types id name
    control_programs id program
    program_type_on_tile_execute id compute_set
    program_type_do_exchange id code_bytes_by_tile_rle source_regions_id
    compute_sets compute_set name var_ids_diff_rle
    vertex_types id name size
    vertex_instances compute_set vertex_type instances_by_tile
    memory_by_vertex_type vertex_type code_bytes
    depth_first_steps id program_id parent_step_id
    eq_classes id is_always_live
    eq_class_step eq_class_id step_id_from step_id_to
    var_categories id name
    exchange_regions id var_id
";

#[test]
fn missing_tables_and_columns() {
    each(&tables(NEEDED), |(table, columns)| {
        let named = format!("`{table}`");
        let case = Case::loose().sql(&format!("DROP TABLE {table}"));
        case.refused(&["profile.pop: ", &named]);
        for column in columns {
            let sql = format!("ALTER TABLE {table} RENAME COLUMN {column} TO other");
            let case = Case::loose().sql(&sql);
            case.refused(&[&named, &format!("`{column}`")]);
        }
    });
}

/// May a needed column have this value? Some may be NULL, and names may be other values than texts,
/// since SQLite converts numbers in a column of text to text.
fn is_tolerated(table: &str, column: &str, value: &str) -> bool {
    let optional = "debug_id parent_step_id source_regions_id children var_ids_diff_rle \
                    instances_by_tile code_bytes code_bytes_by_tile_rle";
    match (column, value) {
        ("name", "NULL") => table != "program_types",
        ("name", value) => value != "x'00'",
        (column, value) => value == "NULL" && optional.split(' ').any(|name| name == column),
    }
}

#[test]
fn cells_of_another_type() {
    let values = "NULL 'text' 1.5 x'00' -1";
    each(&cells(NEEDED, values, 3), |&(table, column, value)| {
        // Some programs have no row in the table of their type.
        let sql = match column {
            "variant_index" => format!("{EXECUTE} SET variant_index = {value} {LAST}"),
            _ => in_last_row(&format!("{table} {column} = {value}")),
        };
        let run = Case::loose().sql(&sql).run("--operation-breakdown");
        if is_tolerated(table, column, value) {
            assert!([0, 3].contains(&run.code), "{sql}: {run:?}");
            return;
        }
        run.refuses(3, &[]);
        // A number that no row has is noticed where it is looked up.
        let is_named = run.err.contains("table `") || run.err.contains("IPUs");
        assert!(is_named, "{sql}: {run:?}");
    });
}

const EXECUTE: &str = "UPDATE programs";
const LAST: &str = "WHERE id = (SELECT max(p.id) FROM programs p JOIN program_types t
                    ON t.id = p.variant WHERE t.name = 'OnTileExecute')";

#[test]
fn rows_that_lead_nowhere() {
    let list = "
        programs variant = 99999
        programs children = x'7fff'
        control_programs program = 99999
        program_type_on_tile_execute compute_set = 99999
        compute_sets var_ids_diff_rle = x'83007f7fff'
        vertex_instances compute_set = 99999
        vertex_instances vertex_type = 99999
        memory_by_vertex_type vertex_type = 99999
        depth_first_steps program_id = 99999
        depth_first_steps parent_step_id = 99999
        eq_class_step eq_class_id = 99999
        vars_info category = 99999
        exchange_regions var_id = 99999
        memory_by_compute_set compute_set = 99999
    ";
    each(&list.trim().lines().collect::<Vec<_>>(), |change| {
        let words: Vec<&str> = change.split_whitespace().collect();
        let parts = [format!("table `{}`", words[0]), format!("`{}`", words[1])];
        let case = Case::loose().sql(&in_last_row(change.trim()));
        case.refused(&[&parts[0], &parts[1], "row "]);
    });
    let case = Case::new().sql(&format!("{EXECUTE} SET variant_index = 99999 {LAST}"));
    let nowhere = "`program_type_on_tile_execute` has no such row";
    case.refused(&["`variant_index`", nowhere]);
}

#[test]
fn ids_that_stand_twice() {
    let tables = "programs program_types control_programs program_type_on_tile_execute \
                  program_type_do_exchange compute_sets vertex_types vertex_instances \
                  memory_by_vertex_type memory_by_compute_set memory_by_category memory_by_tile \
                  depth_first_steps eq_classes var_categories vars_info";
    let twice = tables.split(' ').map(|table| (table, "duplicate id"));
    let several = ["target_info", "version_info"].map(|table| (table, "several rows"));
    let all: Vec<_> = twice.chain(several).collect();
    each(&all, |(table, part)| {
        let sql = format!("INSERT INTO {table} SELECT * FROM {table} LIMIT 1");
        let case = Case::loose().sql(&sql);
        case.refused(&[&format!("`{table}`"), part]);
    });
}

#[test]
fn blobs() {
    let runs = [run_of(15, 3), run_of(17, 3), run_of(1 << 60, 3), vec![0x86]];
    let lists = [vec![0x81; 15], vec![0x81; 17]];
    let broken = [vec![0x05], vec![0x7f; 12]];
    let columns: [(&str, &[Vec<u8>]); 8] = [
        ("programs control_code_bytes_by_tile", &runs),
        ("program_type_do_exchange code_bytes_by_tile_rle", &runs),
        ("vertex_instances instances_by_tile", &runs),
        ("memory_by_compute_set vertex_data_bytes", &runs),
        // Any list of variables that exist is valid.
        ("compute_sets var_ids_diff_rle", &runs[2..]),
        ("memory_by_vertex_type code_bytes", &lists),
        ("memory_by_category interleaved_overlapped", &lists),
        ("programs children", &[]),
    ];
    let cases = columns.iter().flat_map(|(place, blobs)| {
        let blobs = blobs.iter().chain(&broken);
        blobs.map(move |blob| (*place, hex(blob)))
    });
    each(&cases.collect::<Vec<_>>(), |(place, blob)| {
        let (table, column) = place.split_once(' ').expect("a column");
        let case = Case::loose().sql(&in_last_row(&format!("{place} = {blob}")));
        let [table, column] = [format!("table `{table}`"), format!("column `{column}`")];
        case.refused(&[&table, &column, "row "]);
    });
}

/// Changes that make numbers impossible, with parts of their messages.
const IMPOSSIBLE: &str = "
    eq_class_step step_id_from = step_id_to + 1 => table `eq_class_step` ... is reversed
    eq_class_step step_id_to = (SELECT max(id) FROM depth_first_steps) + 2
        table `eq_class_step` ... behind the last step
    vars_info tile = 16 => table `vars_info` ... there is no tile 16
    vars_info tile = 65552 => there is no tile 65552
    vars_info tile = -1 => is negative
    vars_info size_bytes = -1 => is negative
    vars_info size_bytes = 4294967296 => is too large
    vars_info size_bytes = 9223372036854775807 => is too large
    memory_by_tile tile = 16 => table `memory_by_tile` ... there is no tile 16
    memory_by_tile total = 9223372036854775807 => is too large
    memory_by_tile always_live_bytes = -5 => is negative
    vertex_types size = -5 => table `vertex_types` ... is negative
    target_info tiles_per_ipu = 0 => table `target_info` ... no machine has that many tiles
    target_info num_tiles = 9223372036854775807 => no machine has that many tiles
    target_info bytes_per_tile = 0 => tiles of that size
    target_info bytes_per_tile = 9223372036854775807 => tiles of that size
    UPDATE target_info SET num_tiles = 5000, tiles_per_ipu = 5000 => IPUs of that many tiles
    DELETE FROM memory_by_tile WHERE tile = 7 => `memory_by_tile` ... row 7 ... no such row
    UPDATE vertex_types SET size = 4294967295 => vertex state ... more than 4 GiB
    UPDATE vars_info SET size_bytes = 4294967295
        table `vars_info` ... Code ... more than 4 GiB on tile
    UPDATE programs SET children = x'80' WHERE id = (SELECT max(id) FROM programs)
        program 0 leads to itself
";

#[test]
fn numbers_that_cannot_be() {
    each_sql(FIXTURE, IMPOSSIBLE, |case, parts| case.refused(parts));
    // All variables but code have the largest size: sums beyond 32 bits are valid.
    let code = "'vertexCode', 'vertexInstanceState', 'vertexFieldData', 'copyDescriptor', \
                'vectorListDescriptor', 'internalExchangeCode', 'controlCode'";
    let case = Case::new().sql(&format!(
        "UPDATE vars_info SET size_bytes = 4294967295
         WHERE category NOT IN (SELECT id FROM var_categories WHERE name IN ({code}))"
    ));
    for (options, code) in [
        ("--memory-totals --layer-breakdown --memory-affinity", 0),
        ("--solve --solver=greedy", 3),
    ] {
        let run = case.run(&format!("{options} --allow-incomplete"));
        run.exits(code).says("contradicts itself");
        assert!(!run.out.is_empty(), "{run:?}");
    }
}

#[test]
fn variables_without_names_say_so() {
    let case = Case::new().sql("DELETE FROM vars_string_table");
    let run = case.run("--explain --num-ipus=4");
    run.exits(0).says(" (no name in the profile) ");
}
