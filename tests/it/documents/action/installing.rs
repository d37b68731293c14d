//! The step that installs popliner: which release it chooses, and that it installs the released
//! files. Here, `gh` is a script, and wheels and sources have a command that prints their origin.

use super::{fake, run_script, values};
use crate::support::models::share;
use crate::support::{Run, piped, python, root, skip, try_finish};
use std::path::Path;

/// A repository whose version 1.2.3 was released from its first commit.
const GH: &str = r#"
case "$1 $2" in
    "api repos/o/popliner/commits/"*)
        case ${2##*/} in
            v1.2.3 | v1 | aaaa) echo aaaa ;;
            main | bbbb) echo bbbb ;;
            *) echo 'HTTP 422' >&2; exit 1 ;;
        esac ;;
    "release download")
        [ "$3 $4 $5" = "v1.2.3 --repo o/popliner" ] || exit 1
        while [ "$1" != --dir ]; do shift; done
        mkdir -p "$2" && cp "$RELEASE"/* "$2" ;;
    *) exit 1 ;;
esac
"#;

/// Writes a wheel into a folder. Its command prints its origin.
const WHEEL: &str = r##"
import os, zipfile
def wheel(folder, origin):
    name = "popliner-1.2.3-py3-none-any.whl"
    info = "popliner-1.2.3.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as file:
        script = f"#!/bin/sh\necho popliner 1.2.3 of the {origin}\n"
        command = zipfile.ZipInfo("popliner-1.2.3.data/scripts/popliner")
        command.external_attr = 0o100755 << 16
        file.writestr(command, script)
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: popliner\nVersion: 1.2.3\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return name
"##;

/// Makes a folder with a release, its checksums, and the sources of the action.
fn prepared() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["release", "action/action", "temporary"] {
        std::fs::create_dir_all(path(name)).expect("a folder");
    }
    let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("a file");
    let script = std::fs::read_to_string(root().join("action/install.sh")).expect("a script");
    write("action/action/install.sh", &script);
    write("action/Cargo.toml", "[package]\nversion = \"1.2.3\"\n");
    let build =
        "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n";
    write("action/pyproject.toml", build);
    let backend = "def build_wheel(folder, *_, **__):\n    return wheel(folder, 'sources')\n";
    write("action/backend.py", &format!("{WHEEL}{backend}"));
    let release = path("release");
    let made = format!(
        "{WHEEL}\nimport hashlib\nfolder = {release:?}\nname = wheel(folder, 'release')\n\
         data = open(os.path.join(folder, name), 'rb').read()\n\
         print(hashlib.sha256(data).hexdigest(), name, sep='  ')"
    );
    let sums = python(&made, "")?;
    write(
        "release/SHA256SUMS",
        &format!("{}  other.tgz\n{sums}", "0".repeat(64)),
    );
    fake(folder.path(), "gh", GH);
    let venv = try_finish(piped("python3").args(["-c", "import ensurepip, venv"]))?;
    if venv.code != 0 {
        skip("python3 has no venv");
        return None;
    }
    Some(folder)
}

/// Installs the action with this reference in a workflow.
fn install(folder: &Path, reference: &str) -> Option<Run> {
    let path = |name: &str| folder.join(name).display().to_string();
    let _ = std::fs::remove_file(folder.join("path"));
    let action = path("action");
    let (release, temporary) = (path("release"), path("temporary"));
    let variables = values(&[
        ("GITHUB_ACTION_PATH", &action),
        ("RUNNER_TEMP", &temporary),
        ("GITHUB_PATH", &path("path")),
        ("RELEASE", &release),
        ("REPOSITORY", "o/popliner"),
        ("REF", reference),
        ("PACKAGE", ""),
        ("PIP_NO_INDEX", "1"),
    ]);
    run_script(
        "bash \"$GITHUB_ACTION_PATH/action/install.sh\"",
        folder,
        &variables,
    )
}

/// Its tag, its moving tag and its commit mean the release; a later commit does not.
#[test]
fn the_wheel_of_the_release_is_found() {
    let Some(folder) = prepared() else {
        return;
    };
    let references = [
        ("v1", "release"),
        ("v1.2.3", "release"),
        ("aaaa", "release"),
        ("nowhere", "sources"),
        ("bbbb", "sources"),
    ];
    for (reference, origin) in references.into_iter().step_by(share(4)) {
        let Some(run) = install(folder.path(), reference) else {
            return;
        };
        assert_eq!(run.code, 0, "{reference} {run:?}");
        let last = format!("popliner 1.2.3 of the {origin}");
        assert_eq!(run.out.lines().last(), Some(&*last), "{reference} {run:?}");
        let scripts = std::fs::read_to_string(folder.path().join("path")).expect("a path");
        assert!(Path::new(scripts.trim()).join("popliner").is_file());
    }
}

#[test]
fn what_has_another_checksum_is_not_installed() {
    let Some(folder) = prepared() else {
        return;
    };
    let sums = folder.path().join("release/SHA256SUMS");
    let right = std::fs::read_to_string(&sums).expect("checksums");
    let (zero, name) = ("0".repeat(64), "popliner-1.2.3-py3-none-any.whl");
    let cases = [
        Some(format!("{zero}  {name}\n")),
        Some(right.replace(name, "other.whl")),
        None,
    ];
    for wrong in cases.into_iter().step_by(share(3)) {
        match &wrong {
            Some(text) => std::fs::write(&sums, text).expect("checksums"),
            None => std::fs::remove_file(&sums).expect("checksums"),
        }
        let Some(run) = install(folder.path(), "v1") else {
            return;
        };
        assert_eq!(run.code, 1, "{wrong:?} {run:?}");
        let error = format!("::error title=popliner::{name} is not what SHA256SUMS of v1.2.3 says");
        assert!(run.out.contains(&error), "{run:?}");
        assert!(!folder.path().join("path").exists());
    }
}
