//! The notes of a release come from the changelog.

use super::action::Job;
use super::read;
use crate::support::Run;

/// Writes a changelog, and returns the notes of a tag.
fn notes(job: &Job, changelog: &str, tag: &str) -> Run {
    job.write("CHANGELOG.md", changelog);
    job.write("Cargo.toml", "[package]\nversion = \"1.2.3\"\n");
    job.write(".ci/release_notes", &read(".ci/release_notes"));
    let line = format!("bash .ci/release_notes {tag}");
    job.bash(&line, &Default::default())
}

#[test]
fn the_notes_are_the_section_of_the_version() {
    let job = or_skip!(Job::new());
    let changelog = "# Changelog\n\n## [Unreleased]\n\n- Later\n\n## [1.2.3] - 2026-01-01\n\n\
                     ### Added\n\n- This\n\n## [1.2.2] - 2025-01-01\n\n- Before\n";
    let run = notes(&job, changelog, "v1.2.3");
    assert_eq!((run.code, &*run.out), (0, "### Added\n\n- This\n"));
    let empty = "## [1.2.3]\n\n## [1.2.2]\n\n- Before\n";
    for (changelog, tag, message) in [
        (changelog, "v1.2.2", "the version in Cargo.toml is 1.2.3"),
        (empty, "v1.2.3", "has no section [1.2.3]"),
    ] {
        let run = notes(&job, changelog, tag);
        assert_eq!(run.exits(1).says(message).out, "");
    }
}
