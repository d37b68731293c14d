//! The step that installs popliner: which release it chooses, and that it installs the released
//! files. Here, `gh` is a script, and wheels and sources have a command that prints their origin.

use super::{Job, job::values};
use crate::documents::read;
use crate::support::models::share;
use crate::support::{Run, piped, python, skip, try_finish};
use std::path::Path;

/// A script for `gh` with a repository whose version 1.2.3 was released from its first commit.
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
        mkdir -p "$2" && cp "$RELEASE"/*.whl "$RELEASE"/SHA256SUMS "$2" ;;
    *) exit 1 ;;
esac
"#;

/// A script for `python` that copies one virtual environment, which is faster than making several.
const PYTHON: &str = r#"
PATH=${PATH#*:}
[ "$1 $2" = "-m venv" ] || exec python3 "$@"
[ -d "$RELEASE/venv" ] || python3 -m venv "$RELEASE/venv"
rm -rf "$3" && cp -R "$RELEASE/venv" "$3"
"#;

/// A script that writes a wheel into a folder. The command in the wheel prints its origin.
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
fn prepared() -> Option<Job> {
    let job = Job::new()?;
    job.write("action/action/install.sh", &read("action/install.sh"));
    job.write("action/Cargo.toml", "[package]\nversion = \"1.2.3\"\n");
    let build = "requires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n";
    job.write("action/pyproject.toml", &format!("[build-system]\n{build}"));
    let backend = "def build_wheel(folder, *_, **__):\n    return wheel(folder, 'sources')\n";
    job.write("action/backend.py", &format!("{WHEEL}{backend}"));
    job.write("temporary/README", "");
    job.write("release/SHA256SUMS", "");
    let made = format!(
        "{WHEEL}\nimport hashlib\nfolder = {:?}\nname = wheel(folder, 'release')\n\
         data = open(os.path.join(folder, name), 'rb').read()\n\
         print(hashlib.sha256(data).hexdigest(), name, sep='  ')",
        job.path("release")
    );
    let sums = format!("{}  other.tgz\n{}", "0".repeat(64), python(&made, "")?);
    job.write("release/SHA256SUMS", &sums);
    job.fake("gh", GH);
    job.fake("python3", PYTHON);
    let venv = try_finish(piped("python3").args(["-c", "import ensurepip, venv"]))?;
    if venv.code != 0 {
        skip("python3 has no venv");
        return None;
    }
    Some(job)
}

/// Installs the action with this reference in a workflow.
fn install(job: &Job, reference: &str) -> Run {
    let _ = std::fs::remove_file(job.path("path"));
    let fixed = "{REPOSITORY: o/popliner, PACKAGE: '', PIP_NO_INDEX: 1}";
    let mut variables = values(fixed);
    variables.insert("REF".to_owned(), reference.to_owned());
    for (name, folder) in [
        ("GITHUB_ACTION_PATH", "action"),
        ("RUNNER_TEMP", "temporary"),
        ("GITHUB_PATH", "path"),
        ("RELEASE", "release"),
    ] {
        variables.insert(name.to_owned(), job.path(folder).display().to_string());
    }
    job.bash("bash \"$GITHUB_ACTION_PATH/action/install.sh\"", &variables)
}

/// The tag, the moving tag or the commit of a release installs its wheel, if the wheel has the
/// right checksum; a later commit installs the sources.
#[test]
fn the_wheel_of_the_release_is_found_and_checked() {
    let job = or_skip!(prepared());
    let name = "popliner-1.2.3-py3-none-any.whl";
    let right = job.read("release/SHA256SUMS");
    let cases = [
        format!("{}  {name}\n", "0".repeat(64)),
        right.replace(name, "other.whl"),
        String::new(),
    ];
    for wrong in cases.iter().step_by(share(3)) {
        job.write("release/SHA256SUMS", wrong);
        let error = format!("::error title=popliner::{name} is not what SHA256SUMS of v1.2.3 says");
        install(&job, "v1").exits(1).prints(&error);
        assert!(!job.path("path").exists());
    }
    job.write("release/SHA256SUMS", &right);
    let references = [
        ("v1", "release"),
        ("v1.2.3", "release"),
        ("aaaa", "release"),
        ("nowhere", "sources"),
        ("bbbb", "sources"),
    ];
    for (reference, origin) in references.into_iter().step_by(share(4)) {
        let run = install(&job, reference);
        let last = format!("popliner 1.2.3 of the {origin}");
        let found = run.exits(0).out.lines().last();
        assert_eq!(found, Some(&*last), "{reference} {run:?}");
        let folder = job.read("path");
        assert!(Path::new(folder.trim()).join("popliner").is_file());
    }
}
