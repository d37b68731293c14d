//! Files of the report: complete or absent, several in one run, and refusals with the reason.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::{Run, Words, cases, profile, read_json, root, typed};
use serde_json::Value;
use tempfile::TempDir;

const FIXTURE: &str = "popart-bert-inference";
const FORMS: [&str; 3] = ["html", "json", "markdown"];

/// A folder in which the tool runs.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// Makes a folder with an invalid profile: wrong options must be refused before it is read.
    fn unread() -> Self {
        let folder = Self::new();
        fs::write(folder.path("profile.pop"), "no profile").expect("a file");
        fs::write(folder.path("debug.cbor"), "no contexts").expect("a file");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    fn names(&self) -> Vec<String> {
        names(self.0.path())
    }

    fn popliner(&self, line: &str) -> Run {
        typed(&format!("popliner {line}"), self.0.path())
    }

    fn run(&self, options: &str) -> Run {
        let profile = root().join(profile(FIXTURE));
        self.popliner(&format!("'{}' {options}", profile.display()))
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.display().to_string()).collect();
    names.sort();
    names
}

#[test]
fn all_forms_in_one_run_are_what_each_is_alone() {
    let folder = Folder::new();
    let options = FORMS.map(|form| format!("--export-{form}={form} "));
    let run = folder.run(&format!("-q {}", options.concat()));
    assert_eq!((run.code, &*run.out, &*run.err), (0, "", ""), "{run:?}");
    assert_eq!(folder.names(), FORMS);
    // Some forms have the arguments, and nothing else differs. The page contains the JSON form.
    let is_data = |line: &str| line.contains("--export-") || line.starts_with("<script type=");
    let without = |text: &str| {
        let lines = text.lines().filter(|line| !is_data(line));
        lines.map(String::from).collect::<Vec<_>>()
    };
    for form in FORMS {
        let text = folder.read(form);
        let alone = folder.run(&format!("--export-{form}=- -q")).out;
        match form {
            "json" => assert_eq!(without_arguments(&text), without_arguments(&alone)),
            _ => assert_eq!(without(&text), without(&alone), "{form}"),
        }
        assert!(text.len() > 500, "{form}");
    }
}

/// Returns the document without its arguments. It has the data for the tools of a page.
fn without_arguments(json: &str) -> Value {
    let mut report = read_json(json);
    assert!(!report["provenance"]["arguments"].take().is_null());
    assert!(report["live_steps"].is_object() && report["memory"]["tile_map"].is_object());
    report
}

#[test]
fn a_file_that_stands_there_is_replaced_as_a_whole_or_stays() {
    let folder = Folder::new();
    fs::write(folder.path("report"), "old").expect("a file");
    let export = |options: &str| folder.run(&format!("--solve {options} --export-json=report"));
    // A mistake in the options that is noticed only after the analysis.
    export("--layer-name-regex=nowhere").exits(2);
    assert_eq!(folder.read("report"), "old");
    // The report is written although the split does not fit.
    export("--num-ipus=1").exits(1);
    assert_eq!(read_json(&folder.read("report"))["split"]["fits"], false);
    assert_eq!(folder.names(), ["report"]);
}

/// Inputs, outputs and standard output that are one file.
#[test]
fn a_file_that_is_another_already_is_refused_before_anything_is_read() {
    let folder = Folder::unread();
    fs::create_dir_all(folder.path("o/sub")).expect("folders");
    symlink("o", folder.path("linked")).expect("a link");
    symlink("linked/a", folder.path("dangling")).expect("a link");
    let list = "
        --export-json=o/a --export-markdown=o/sub/../a => --export-json and --export-markdown
        --export-json=o/a --export-markdown=linked/a => --export-json and --export-markdown
        --export-json=o/a --export-markdown=dangling => --export-json and --export-markdown
        --export-json=o/a --export-markdown=linked/sub/.././a => --export-json and --export-markdown
        --export-html=profile.pop => PROFILE and --export-html
        --export-html=debug.cbor => DEBUG and --export-html
        --save-to-file=profile.pop => PROFILE and --save-to-file
        --save-to-file=a --export-html=./a => --save-to-file and --export-html
        --export-json=app.json => app.json and --export-json
        --export-json=framework.json => framework.json and --export-json
        --export-json=a --compare=a => --compare and --export-json
        --export-json=a --compare=a --fit => --compare and --export-json
        --export-json=out > out => standard output and --export-json
    ";
    for (options, names) in cases(list) {
        let run = folder.popliner(&format!("profile.pop {options}"));
        run.refuses(2, &[&format!("error: {} name the same file, ", names[0])]);
    }
    let alone = folder.popliner("profile.pop --export-json=o/a");
    alone.refuses(3, &[]);
    let files = "dangling debug.cbor linked o out profile.pop".words();
    assert_eq!(folder.names(), files);
    assert_eq!(names(&folder.path("o")), ["sub"]);
    assert_eq!(folder.read("profile.pop"), "no profile");
}

/// `-` is standard output, and never the name of a file.
#[test]
fn a_dash_is_no_file() {
    let folder = Folder::new();
    let printed = folder.run("-q --export-markdown=-");
    assert!(printed.exits(0).out.starts_with('#'), "{printed:?}");
    let saved = folder.run("--save-to-file=-");
    saved.refuses(2, &[" - would mix with results on"]);
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn permissions_of_what_is_replaced_stay() {
    let folder = Folder::new();
    let mode = |name: &str| {
        let metadata = fs::metadata(folder.path(name)).expect("a file");
        metadata.permissions().mode() & 0o777
    };
    folder.run("-q --export-markdown=report").exits(0);
    fs::write(folder.path("usual"), "").expect("a file");
    assert_eq!(mode("report"), mode("usual"), "of a new file");
    for wanted in [0o600, 0o640, 0o666] {
        let permissions = fs::Permissions::from_mode(wanted);
        fs::set_permissions(folder.path("report"), permissions).expect("permissions");
        for option in ["--export-markdown", "--save-to-file"] {
            folder.run(&format!("-q {option}=report")).exits(0);
            assert_eq!(mode("report"), wanted, "{option}");
        }
    }
}

/// The target of a link is written. The temporary file is beside the target, since it cannot be
/// renamed to another disk.
#[test]
fn a_link_is_followed_also_to_what_is_not_there() {
    let folder = Folder::new();
    let disk = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let disk = disk.expect("a folder");
    let (link, file) = (folder.path("link"), disk.path().join("report"));
    symlink(&file, &link).expect("a link");
    for option in ["--export-markdown", "--export-markdown", "--save-to-file"] {
        folder.run(&format!("-q {option}=link")).exits(0);
        assert_eq!(fs::read_link(&link).expect("a link"), file, "{option}");
        assert!(fs::metadata(&file).expect("a file").len() > 500, "{option}");
    }
    assert_eq!(folder.names(), ["link"]);
    assert_eq!(names(disk.path()), ["report"]);
}
