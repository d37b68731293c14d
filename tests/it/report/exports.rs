//! Files of the report: complete or absent, several in one run, and refusals with the reason.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::{
    FIXTURES, command, copy, finish, popliner, profile, root, run_fixture, sections,
};
use serde_json::Value;
use tempfile::TempDir;

const FIXTURE: &str = "popart-bert-inference";
const FORMS: [&str; 4] = ["csv", "html", "json", "markdown"];

/// A folder for files of a run.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// Makes a folder with an invalid profile: wrong options must be refused before it is read.
    /// Returns the path of the profile.
    fn unread() -> (Self, String) {
        let folder = Self::new();
        fs::write(folder.path("profile.pop"), "no profile").expect("a file");
        fs::write(folder.path("debug.cbor"), "no contexts").expect("a file");
        let profile = folder.at("profile.pop");
        (folder, profile)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn at(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    /// Returns the names of its files in order.
    fn names(&self) -> Vec<String> {
        names(self.0.path())
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.display().to_string()).collect();
    names.sort();
    names
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn all_forms_in_one_run_are_what_each_is_alone() {
    let folder = Folder::new();
    let options = FORMS.map(|form| format!("--export-{form}={}", folder.at(form)));
    let run = run_fixture(FIXTURE, &format!("-q {}", options.join(" ")));
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
        let alone = run_fixture(FIXTURE, &format!("--export-{form}=- -q")).out;
        match form {
            "json" => assert_eq!(without_arguments(&text), without_arguments(&alone)),
            _ => assert_eq!(without(&text), without(&alone), "{form}"),
        }
        assert!(text.len() > 500, "{form}");
    }
}

/// Returns the document without its arguments. It has the data for the tools of a page.
fn without_arguments(json: &str) -> Value {
    let mut report = parsed(json);
    assert!(!report["provenance"]["arguments"].take().is_null());
    assert!(report["live_steps"].is_object() && report["memory"]["tile_map"].is_object());
    report
}

#[test]
fn standard_output_takes_several_with_names() {
    let options = FORMS.map(|form| format!("--export-{form}=-")).join(" ");
    let run = run_fixture(FIXTURE, &format!("--layer-breakdown {options}"));
    let sections = sections(&run.exits(0).out).into_iter().map(|one| one.0);
    // The CSV form has a section of its own inside.
    let expected = "layer-breakdown export-json export-csv layers export-markdown export-html";
    assert_eq!(sections.collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn a_file_that_stands_there_is_replaced_as_a_whole_or_stays() {
    let folder = Folder::new();
    let file = "report.json";
    fs::write(folder.path(file), "old").expect("a file");
    let export = |options: &str| {
        run_fixture(
            FIXTURE,
            &format!("--solve {options} --export-json={}", folder.at(file)),
        )
    };
    // Wrong usage that is noticed only after the analysis.
    export("--layer-name-regex=nowhere").exits(2);
    assert_eq!(folder.read(file), "old");
    // It does not fit, and is written.
    export("--num-ipus=1").exits(1);
    assert_eq!(parsed(&folder.read(file))["split"]["fits"], false);
    assert_eq!(folder.names(), [file]);
}

#[test]
fn a_file_that_is_another_already_is_refused() {
    let folder = Folder::new();
    let [profile, debug] = copy(FIXTURE, folder.0.path()).map(|path| path.display().to_string());
    let before = fs::read(&profile).expect("a profile");
    let (file, other) = (folder.at("report"), folder.at("./report"));
    for (options, part) in [
        (
            format!("--export-csv={file} --export-json={other}"),
            "--export-csv",
        ),
        (format!("--export-html={profile}"), "PROFILE"),
        (format!("--export-html={debug}"), "DEBUG"),
        (
            format!("--save-to-file={file} --export-html={file}"),
            "--save-to-file",
        ),
    ] {
        let run = popliner([&*profile].into_iter().chain(options.split(' ')));
        run.refuses(2, &[part, "the same file", "--export-"]);
    }
    let run = popliner([&*profile, &format!("--save-to-file={profile}")]);
    run.refuses(2, &["PROFILE and --save-to-file name the same file"]);
    assert_eq!(fs::read(&profile).expect("a profile"), before);
    assert_eq!(folder.names(), ["debug.cbor", "profile.pop"]);
}

#[test]
fn two_paths_to_one_file_are_refused_before_anything_is_read() {
    let (folder, profile) = Folder::unread();
    fs::create_dir_all(folder.path("o/sub")).expect("folders");
    symlink("o", folder.path("linked")).expect("a link");
    symlink("linked/a", folder.path("dangling")).expect("a link");
    let json = format!("--export-json={}", folder.at("o/a"));
    for other in ["o/sub/../a", "linked/a", "dangling", "linked/sub/.././a"] {
        let csv = format!("--export-csv={}", folder.at(other));
        let run = popliner([&profile, &json, &csv]);
        run.refuses(
            2,
            &["error: --export-json and --export-csv name the same file, "],
        );
    }
    popliner([&profile, &json]).refuses(3, &[]);
}

#[test]
fn no_input_is_written_over() {
    let (folder, profile) = Folder::unread();
    let input = folder.at("input");
    for (file, option, name) in [
        ("framework.json", "-q".to_owned(), "framework.json"),
        ("app.json", "-q".to_owned(), "app.json"),
        ("input", format!("--compare={input}"), "--compare"),
        ("input", format!("--fit --against={input}"), "--against"),
    ] {
        let export = format!("--export-json={}", folder.at(file));
        let run = popliner([&*profile, &*export].into_iter().chain(option.split(' ')));
        run.refuses(
            2,
            &[&format!(
                "error: {name} and --export-json name the same file, "
            )],
        );
    }
    assert_eq!(folder.names(), ["debug.cbor", "profile.pop"]);
}

#[test]
fn what_is_printed_to_a_file_is_not_lost_there() {
    let (folder, profile) = Folder::unread();
    let out = fs::File::create(folder.path("out")).expect("a file");
    let export = format!("--export-json={}", folder.at("out"));
    let run = finish(command([&profile, &export]).stdout(out));
    run.refuses(
        2,
        &["error: standard output and --export-json name the same file, "],
    );
}

/// `-` is standard output, and never the name of a file.
#[test]
fn a_dash_is_no_file() {
    let folder = Folder::new();
    let profile = root().join(profile(FIXTURE));
    let run = |option: &str| {
        let mut command = command([profile.as_os_str(), "-q".as_ref(), option.as_ref()]);
        finish(command.current_dir(folder.0.path()))
    };
    let printed = run("--export-markdown=-");
    assert!(printed.exits(0).out.starts_with('#'), "{printed:?}");
    run("--save-to-file=-").refuses(2, &[" - would mix with results on"]);
    assert_eq!(folder.names(), [""; 0]);
}

/// Writes a form of the report, or a saved model.
fn write(option: &str, file: &Path) {
    run_fixture(FIXTURE, &format!("-q {option}={}", file.display())).exits(0);
}

#[test]
fn permissions_of_what_is_replaced_stay() {
    let folder = Folder::new();
    let mode = |name: &str| {
        let metadata = fs::metadata(folder.path(name)).expect("a file");
        metadata.permissions().mode() & 0o777
    };
    let file = folder.path("report");
    write("--export-csv", &file);
    fs::write(folder.path("usual"), "").expect("a file");
    assert_eq!(mode("report"), mode("usual"), "of a new file");
    for wanted in [0o600, 0o640, 0o666] {
        let permissions = fs::Permissions::from_mode(wanted);
        fs::set_permissions(&file, permissions).expect("permissions");
        for option in ["--export-csv", "--save-to-file"] {
            write(option, &file);
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
    for option in ["--export-csv", "--export-csv", "--save-to-file"] {
        write(option, &link);
        assert_eq!(fs::read_link(&link).expect("a link"), file, "{option}");
        assert!(fs::metadata(&file).expect("a file").len() > 500, "{option}");
    }
    assert_eq!(folder.names(), ["link"]);
    assert_eq!(names(disk.path()), ["report"]);
}

#[test]
fn a_saved_model_gives_the_same_report_but_for_names_of_variables() {
    let folder = Folder::new();
    let saved = folder.path("model.saved");
    for fixture in FIXTURES {
        run_fixture(fixture, &format!("-q --save-to-file={}", saved.display())).exits(0);
        let mut fresh = run_fixture(fixture, "-q --export-json=-").report();
        let mut loaded =
            popliner([saved.as_os_str(), "-q".as_ref(), "--export-json=-".as_ref()]).report();
        let peak = "/liveness/peak_variables";
        let [of_fresh, of_loaded] = [&mut fresh, &mut loaded].map(|report| {
            report["provenance"]["files"].take();
            report["provenance"]["arguments"].take();
            report.pointer_mut(peak).expect("a section").take()
        });
        assert_eq!(of_loaded["bytes"], of_fresh["bytes"], "{fixture}");
        // Sections that need names of variables.
        for (place, section) in [("", "live_steps"), ("/memory/tile_map", "variables")] {
            let fields = fresh.pointer_mut(place).and_then(Value::as_object_mut);
            assert!(
                fields.expect("an object").remove(section).is_some(),
                "{section}"
            );
        }
        assert_eq!(fresh, loaded, "{fixture}");
    }
}

#[test]
fn files_beside_the_profile_are_in_the_report_or_said_to_be_left_out() {
    let folder = Folder::new();
    let [profile, _] = copy("poplar-mlp", folder.0.path());
    let framework = serde_json::json!({"name": "PopART", "version": {"major": 3}});
    fs::write(folder.path("framework.json"), framework.to_string()).expect("a file");
    fs::write(folder.path("app.json"), "{\"cut").expect("a file");
    let run = popliner([profile.as_os_str(), "--export-json=-".as_ref()]);
    let report = run.exits(0).report();
    assert_eq!(report["provenance"]["framework"], framework);
    assert_eq!(report["provenance"]["app"], Value::Null);
    let warning = report["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.starts_with("app.json beside the profile is ignored: "),
        "{warning}"
    );
    run.warns(&[warning]);
}
