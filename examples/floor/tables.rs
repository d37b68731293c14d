//! What the analysis reads of a profile: each table once, with every column
//! that any of its scans asks for. `tests/floor.rs` holds this against what the
//! library asks for, in both directions.

/// Tables and their columns, the key first.
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
        ],
    ),
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
