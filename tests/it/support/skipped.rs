//! Tests that cannot run here: each is listed, and `tests/skipped.rs` says at
//! the end how many there were and why.

use std::path::PathBuf;

/// The list of this run of cargo, which starts all test programs. `.ci/run`
/// gives a list of its own.
pub fn list() -> PathBuf {
    std::env::var_os("SKIPPED_LIST").map_or_else(
        || {
            let name = format!("skipped-{}", std::os::unix::process::parent_id());
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
        },
        PathBuf::from,
    )
}
