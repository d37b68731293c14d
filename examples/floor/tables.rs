//! Lists the tables and columns of a profile that the analysis reads: each table once, with every
//! column that any scan of it needs. `tests/it/documents/floor_tables.rs` compares this list with
//! the columns that the library reads, in both directions.

/// Tables that every profile must have, and their columns, the key first.
pub const TABLES: &[(&str, &[&str])] = &[
    ("version_info", &["major", "minor", "point"]),
    (
        "target_info",
        &[
            "tiles_per_ipu",
            "num_tiles",
            "bytes_per_tile",
            "num_ipus",
            "num_replicas",
            "architecture",
        ],
    ),
    ("vertex_types", &["id", "name", "size"]),
    ("memory_by_vertex_type", &["vertex_type", "code_bytes"]),
    (
        "memory_by_compute_set",
        &[
            "compute_set",
            "copy_ptr_bytes",
            "descriptor_bytes",
            "edge_ptr_bytes",
            "padding_bytes",
            "vertex_data_bytes",
        ],
    ),
    ("compute_sets", &["compute_set", "name", "var_ids_diff_rle"]),
    (
        "vertex_instances",
        &["compute_set", "vertex_type", "instances_by_tile"],
    ),
    ("program_types", &["id", "name"]),
    (
        "programs",
        &[
            "id",
            "variant",
            "variant_index",
            "children",
            "debug_id",
            "control_code_bytes_by_tile",
            "compilation_step_id",
            "name",
        ],
    ),
    ("program_type_on_tile_execute", &["id", "compute_set"]),
    (
        "program_type_do_exchange",
        &[
            "id",
            "code_bytes_by_tile_rle",
            "source_regions_id",
            "destination_regions_id",
        ],
    ),
    (
        "program_type_global_exchange",
        &["id", "source_regions_id", "destination_regions_id"],
    ),
    ("program_type_code_copy", &["id", "destination_regions_id"]),
    ("program_type_stream_copy_mid", &["id"]),
    ("program_type_call", &["id", "function_id"]),
    ("function_programs", &["id", "program"]),
    (
        "host_exchange_from_host",
        &["stream_copy_mid_id", "regions_id"],
    ),
    (
        "host_exchange_to_host",
        &["stream_copy_mid_id", "regions_id"],
    ),
    ("control_programs", &["id", "program"]),
    ("depth_first_steps", &["id", "program_id", "parent_step_id"]),
    ("eq_classes", &["id", "is_always_live"]),
    (
        "eq_class_step",
        &["eq_class_id", "step_id_from", "step_id_to"],
    ),
    ("var_categories", &["id", "name"]),
    (
        "vars_info",
        &[
            "var_id",
            "tile",
            "size_bytes",
            "category",
            "equivalence_class",
            "name_base_id",
            "unlowered_var_id",
        ],
    ),
    ("vars_string_table", &["id", "string"]),
    ("debug_ids", &["variable_id", "ids"]),
    ("exchange_regions", &["id", "var_id"]),
    (
        "memory_by_tile",
        &[
            "tile",
            "total",
            "always_live_bytes",
            "not_always_live_max_bytes",
        ],
    ),
    (
        "memory_by_category",
        &[
            "category_id",
            "interleaved_non_overlapped",
            "interleaved_overlapped",
            "non_interleaved_non_overlapped",
            "non_interleaved_overlapped",
            "overflowed_non_overlapped",
            "overflowed_overlapped",
        ],
    ),
];

/// Tables and columns that are read if the profile has them; some are further columns of
/// [`TABLES`].
pub const OPTIONAL: &[(&str, &[&str])] = &[
    ("poplar_version", &["string"]),
    ("date_time", &["string"]),
    ("target_info", &["type_", "clock_frequency"]),
    ("compilation_parameters", &["name", "value", "is_default"]),
    ("target_parameters", &["name", "value", "is_default"]),
    (
        "compute_sets",
        &["debug_id", "vertex_counts", "cycles_by_tile_ids"],
    ),
    ("program_type_do_exchange", &["cycles_by_tile_ids"]),
    ("compilation_cycles_by_tile", &["id", "cycles_by_tile_rle"]),
    ("program_type_repeat", &["id", "repeat_count"]),
    ("steps", &["id", "program"]),
    ("steps_by_ipu", &["step_id", "ipu", "cycles"]),
    ("runs", &["id"]),
    ("memory_by_tile", &["total_including_gaps"]),
];

/// Tables of which `--fit` reads other columns than the analysis, and the columns that it reads.
pub const FIT: &[(&str, &[&str])] = &[
    (
        "compute_sets",
        &["compute_set", "name", "debug_id", "vertex_counts"],
    ),
    ("depth_first_steps", &["id"]),
    (
        "vars_info",
        &[
            "tile",
            "size_bytes",
            "category",
            "equivalence_class",
            "name_base_id",
        ],
    ),
    (
        "memory_by_tile",
        &[
            "tile",
            "total",
            "always_live_bytes",
            "not_always_live_max_bytes",
            "total_including_gaps",
            "interleaved",
            "non_interleaved",
            "overflowed",
            "overflowed_including_gaps",
        ],
    ),
    (
        "memory_not_always_live_by_step_and_ipu",
        &["step_id", "ipu", "delta_bytes"],
    ),
    ("steps_by_ipu", &["step_id", "ipu", "cycles"]),
];

/// Tables that `--fit` does not read.
const NOT_FOR_FIT: [&str; 6] = [
    "debug_ids",
    "exchange_regions",
    "compilation_cycles_by_tile",
    "program_type_repeat",
    "steps",
    "runs",
];

/// Returns each table that `--fit` reads once, with its columns.
pub fn of_fit() -> Vec<(&'static str, Vec<&'static str>)> {
    let own = FIT
        .iter()
        .map(|&(table, columns)| (table, columns.to_vec()));
    let is_other = |table: &str| FIT.iter().all(|own| own.0 != table);
    let others = all().into_iter();
    let others = others.filter(|(table, _)| is_other(table) && !NOT_FOR_FIT.contains(table));
    own.chain(others).collect()
}

/// Returns each table of [`TABLES`] and [`OPTIONAL`] once, with all its columns.
pub fn all() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for &(table, columns) in TABLES.iter().chain(OPTIONAL) {
        match all.iter_mut().find(|(known, _)| *known == table) {
            Some((_, known)) => known.extend(columns),
            None => all.push((table, columns.to_vec())),
        }
    }
    all
}
