//! How a release is made: the workflow packs the files that `cargo binstall` looks for, and the
//! notes come from the changelog.

use super::action::{Job, step, yaml};
use super::read;
use crate::support::Run;
use serde_yaml_ng::Value;

/// Returns the value of a line `name = "value"` of Cargo.toml.
fn manifest(name: &str) -> String {
    let text = read("Cargo.toml");
    let start = format!("{name} = \"");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&start));
    let value = lines.next().and_then(|rest| rest.strip_suffix('"'));
    value.unwrap_or_else(|| panic!("{name}")).to_owned()
}

fn workflow() -> Value {
    yaml(".github/workflows/release.yml")
}

#[test]
fn binaries_are_packed_where_they_are_looked_for() {
    let workflow = workflow();
    let pack = step(&workflow, "Pack the binary")["run"].as_str();
    let pack = pack.expect("a script");
    let named = |text: &str| {
        text.replace("{ version }", "$version")
            .replace("{ target }", "$TARGET")
    };
    let folder = named(&manifest("bin-dir"));
    let folder = folder.strip_suffix("/{ bin }{ binary-ext }");
    let folder = folder.expect("the binary is at the top");
    assert!(pack.contains(&format!("folder={folder}\n")), "{pack}");
    let url = manifest("pkg-url");
    let file = url.rsplit('/').next().expect("a name");
    assert_eq!(named(file), format!("{folder}{{ archive-suffix }}"));
    for suffix in [manifest("pkg-fmt"), "zip".to_owned()] {
        assert!(pack.contains(&format!("dist/$folder.{suffix}")), "{suffix}");
    }
}

/// The moving tag makes no release.
#[test]
fn only_tags_of_versions_make_a_release() {
    assert_eq!(workflow()["on"]["push"]["tags"][0], "v*.*.*");
    assert_eq!(manifest("version").split('.').count(), 3);
}

/// Licences are checked for the systems that binaries are made for.
#[test]
fn dependencies_are_checked_for_every_target() {
    let workflow = workflow();
    let targets = &workflow["jobs"]["build"]["strategy"]["matrix"]["include"];
    let checked = read("deny.toml");
    for target in targets.as_sequence().expect("targets") {
        let target = target["target"].as_str().expect("a target");
        assert!(checked.contains(&format!("\"{target}\"")), "{target}");
    }
}

/// Writes a changelog, and returns the notes of a tag.
fn notes(job: &Job, changelog: &str, tag: &str) -> Run {
    job.write("CHANGELOG.md", changelog);
    job.write("Cargo.toml", "[package]\nversion = \"1.2.3\"\n");
    job.write(".ci/release_notes", &read(".ci/release_notes"));
    job.bash(
        &format!("bash .ci/release_notes {tag}"),
        &Default::default(),
    )
}

#[test]
fn the_notes_are_the_section_of_the_version() {
    let Some(job) = Job::new() else { return };
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
