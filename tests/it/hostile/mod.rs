//! Files of processes that died, of machines that vanished, and of strangers. Whatever they
//! contain, the tool gives the right answer, or an error that names the place. It never panics,
//! hangs, takes unbounded memory, gives a wrong number, or changes an input. Every run has 512 MB
//! of address space.
//!
//! | unusual | case |
//! |---|---|
//! | several IPUs, replicas, a pipeline | `machines_of_several_ipus_are_refused`, `one_of_several_replicas_is_analysed` |
//! | compiled pipelines without some tables, overflowed | `tables_that_are_not_there_take_only_what_they_show`, `overflowed_bytes_count_as_over` |
//! | Mk1 and Mk2; one layer, 400, of one operation | `small_and_large_models_are_solved` |
//! | other format versions | `other_format_versions_are_read_with_a_warning` |
//! | several compilation steps | `compilation_steps` |
//! | bodies once or for each call, programs of several parents | `numbers::generated` |
//! | empty, odd and long names | `odd_names` |
//! | layers with gaps | `layers_with_gaps` |
//! | ids above 2^32 | `ids_beyond_32_bits` |
//! | WAL mode, still being written | `write_ahead_logs_and_journals` |
//! | odd paths, read-only | `paths_with_odd_names`, `nothing_is_written_beside_the_inputs` in `cli/input_files.rs` |
//! | links, pipes | `links_pipes_and_devices` |
//!
//! | damaged | case |
//! |---|---|
//! | cut off at any page | `profiles_cut_at_any_page`, `compilations_that_are_cut_off` |
//! | pages overwritten | `numbers::mutated`, `a_wrong_byte_takes_no_row_away_in_silence` |
//! | tables missing, columns renamed | `missing_tables_and_columns` |
//! | columns of another type or NULL | `cells_of_another_type` in `rows.rs` and `compiled.rs` |
//! | foreign keys | `rows_that_lead_nowhere` |
//! | duplicate ids | `ids_that_stand_twice` |
//! | blobs short, long, with runs of 2^60 | `blobs` |
//! | step ranges, tiles, sizes, sums, cycles of programs | `numbers_that_cannot_be` |
//! | several IPUs: tiles that do not divide, IPUs, tiles and replicas that are not there | `ipus_that_do_not_add_up`, `rows_of_ipus_and_tiles_that_are_not_there` |
//! | several IPUs: rows without an IPU, variables and sums that disagree | `sums_that_disagree` |
//! | tables, rows, columns and numbers that other parts of a profile contradict | `what_is_lost_takes_the_verdict_with_it`, `a_compilation_is_held_against_the_same`, `no_verdict_turns_in_silence_where_there_is_a_witness` |
//! | tables of cycles | `blobs_of_cycles`, `executions_that_never_were`, `counts_of_loops` |
//! | reports to compare with, files beside the profile | `comparisons_with_what_is_no_report`, `comparisons_with_reports_that_were_changed`, `files_beside_the_profile` |
//! | CBOR cut at any byte, wrong types, strings, keys, trailing bytes | `src/debug_info/tests` |
//! | lengths of 2^63, deep nesting | `odd_cbor` |
//! | contexts that are missing, orphans or in a circle, empty tables | `a_little_damage_is_a_warning_where_its_bytes_cannot_turn_the_verdict` |
//! | saved files | `src/saved/tests` |
//!
//! | hostile | case |
//! |---|---|
//! | triggers, views, virtual tables, computed columns | `schemas_that_run_code` |
//! | pages that share pages | `pages_that_lead_in_circles` |
//! | small files that ask for much | `few_bytes_that_name_many_variables`, `calls_in_calls`, `too_many_layers`; chains of contexts in `src/debug_info/tests` |
//! | regexes that explode elsewhere | `regexes_that_explode_elsewhere` |
//! | names in every output | `names.rs`, `src/escape.rs` |
//! | saved files | `saved_sets_that_contain_each_other`, `saved_code_of_many_groups_on_many_tiles` |
//!
//! | fault | case |
//! |---|---|
//! | a full disk, a closed pipe | `standard_output_on_a_full_disk_and_in_a_closed_pipe`, `files_on_a_full_disk` |
//! | a kill while a file is written | `a_kill_while_saving`; signals in `src/interrupt.rs` |
//!
//! The fuzzers of `fuzz/` found nothing yet that is not among these; what they
//! find becomes a case here.
#![cfg(target_os = "linux")]

mod cases;
mod compiled;
mod cycle_tables;
mod damaged;
mod debug_files;
mod doubts;
mod earlier_reports;
mod faults;
mod harmful;
mod names;
mod ranges;
mod rows;
mod saved_files;
mod schemas;
mod unusual;
mod verdicts;
mod witnesses;
