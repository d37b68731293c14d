//! How a release is made: the workflow packs the files that `cargo binstall` looks for, and the
//! notes come from the changelog.

use crate::support::{Run, piped, root, skip, try_finish};
use serde_yaml_ng::Value;
use std::path::Path;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
}

/// Returns the value of a line `name = "value"` of Cargo.toml.
fn manifest(name: &str) -> String {
    let text = read("Cargo.toml");
    let start = format!("{name} = \"");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&start));
    let value = lines.next().and_then(|rest| rest.strip_suffix('"'));
    value.unwrap_or_else(|| panic!("{name}")).to_owned()
}

fn workflow() -> Value {
    serde_yaml_ng::from_str(&read(".github/workflows/release.yml")).expect("YAML")
}

#[test]
fn binaries_are_packed_where_they_are_looked_for() {
    let workflow = workflow();
    let steps = workflow["jobs"]["build"]["steps"].as_sequence();
    let mut steps = steps.expect("steps").iter();
    let pack = steps.find(|step| step["name"] == "Pack the binary");
    let pack = pack.expect("a step")["run"].as_str().expect("a script");
    let wanted = manifest("bin-dir").replace("{ version }", "$version");
    let folder = wanted.replace("{ target }", "$TARGET");
    let folder = folder.strip_suffix("/{ bin }{ binary-ext }");
    let folder = folder.expect("the binary is at the top");
    assert!(pack.contains(&format!("folder={folder}\n")), "{pack}");
    let url = manifest("pkg-url");
    let file = url.rsplit('/').next().expect("a name");
    assert_eq!(
        file.replace("{ version }", "$version")
            .replace("{ target }", "$TARGET"),
        format!("{folder}{{ archive-suffix }}")
    );
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

/// Returns the notes of a tag, with this changelog. `None` if the test is skipped.
fn notes(changelog: &str, tag: &str) -> Option<Run> {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write("CHANGELOG.md", changelog);
    write("Cargo.toml", "[package]\nversion = \"1.2.3\"\n");
    write(".ci/release_notes", &read(".ci/release_notes"));
    let mut bash = piped("bash");
    let script: &Path = &folder.path().join(".ci/release_notes");
    let run = try_finish(bash.arg(script).arg(tag));
    if run.is_none() {
        skip("there is no bash");
    }
    run
}

#[test]
fn the_notes_are_the_section_of_the_version() {
    let changelog = "# Changelog\n\n## [Unreleased]\n\n- Later\n\n## [1.2.3] - 2026-01-01\n\n\
                     ### Added\n\n- This\n\n## [1.2.2] - 2025-01-01\n\n- Before\n";
    let Some(run) = notes(changelog, "v1.2.3") else {
        return;
    };
    assert_eq!((run.code, run.out.as_str()), (0, "### Added\n\n- This\n"));
    let run = notes(changelog, "v1.2.2").expect("bash");
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.contains("the version in Cargo.toml is 1.2.3"));
    let empty = "## [1.2.3]\n\n## [1.2.2]\n\n- Before\n";
    let run = notes(empty, "v1.2.3").expect("bash");
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.contains("has no section [1.2.3]"));
}
