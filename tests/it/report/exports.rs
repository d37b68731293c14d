//! Files of the report: complete or absent, several in one run, and refusals with the reason.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::support::{self, FIXTURES, finish, one_line, popliner, profile, run_fixture, sections};
use serde_json::Value;

const FIXTURE: &str = "popart-bert-inference";
const FORMS: [&str; 4] = ["json", "csv", "markdown", "html"];

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries
        .map(|entry| name(entry.expect("an entry")))
        .collect();
    names.sort();
    names
}

#[test]
fn all_forms_in_one_run_are_what_each_is_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |form: &str| folder.path().join(form);
    let options = FORMS.map(|form| format!("--export-{form}={}", file(form).display()));
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.push("-q");
    let run = run_fixture(FIXTURE, &options);
    assert_eq!((run.code, &*run.out, &*run.err), (0, "", ""), "{run:?}");
    let mut expected = FORMS.map(String::from);
    expected.sort();
    assert_eq!(names(folder.path()), expected);
    for form in FORMS {
        let text = fs::read_to_string(file(form)).expect("a file");
        // Some forms have the arguments, and nothing else differs.
        let alone = run_fixture(FIXTURE, &[&format!("--export-{form}=-"), "-q"]);
        let without = |text: &str| {
            let lines = text.lines();
            // The page contains the JSON form.
            let is_data = |line: &str| line.starts_with("<script type=");
            let lines = lines.filter(|line| !line.contains("--export-") && !is_data(line));
            lines.map(String::from).collect::<Vec<_>>()
        };
        if form == "json" {
            assert_eq!(alone_document(&text), alone_document(&alone.out));
        } else {
            assert_eq!(without(&text), without(&alone.out), "{form}");
        }
        assert!(text.len() > 500, "{form}");
    }
}

/// Returns the document without its arguments. It has the data for the tools of a page.
fn alone_document(json: &str) -> Value {
    let mut report: Value = serde_json::from_str(json).expect("JSON");
    let provenance = report["provenance"].as_object_mut().expect("an object");
    assert!(provenance.remove("arguments").is_some());
    assert!(report["live_steps"].is_object() && report["memory"]["tile_map"].is_object());
    report
}

#[test]
fn standard_output_takes_several_with_names() {
    let options = FORMS.map(|form| format!("--export-{form}=-"));
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.push("--layer-breakdown");
    let run = run_fixture(FIXTURE, &options);
    assert_eq!(run.code, 0, "{run:?}");
    let sections: Vec<String> = sections(&run.out).into_iter().map(|one| one.0).collect();
    // The CSV form has a section of its own inside.
    let expected = [
        "layer-breakdown",
        "export-json",
        "export-csv",
        "layers",
        "export-markdown",
        "export-html",
    ];
    assert_eq!(sections, expected);
}

#[test]
fn a_file_that_stands_there_is_replaced_as_a_whole_or_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    fs::write(&file, "old").expect("a file");
    let export = format!("--export-json={}", file.display());
    // Wrong usage that is noticed only after the analysis.
    let run = run_fixture(FIXTURE, &["--solve", "--layer-name-regex=nowhere", &export]);
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "old");
    let run = run_fixture(FIXTURE, &["--solve", "--num-ipus=1", &export]);
    assert_eq!(run.code, 1, "it does not fit, and is written: {run:?}");
    let report: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    assert_eq!(report["split"]["fits"], Value::Bool(false));
    assert_eq!(names(folder.path()), ["report.json"]);
}

#[test]
fn places_that_cannot_be_written_to_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing").join("report.html");
    for place in [&missing, &folder.path().to_owned()] {
        let export = format!("--export-html={}", place.display());
        let run = run_fixture(FIXTURE, &[&export, "-q"]);
        let line = one_line(&run, 3);
        assert!(
            line.contains(place.to_str().expect("a plain path")),
            "{line}"
        );
    }
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn a_file_that_is_another_already_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let [profile, debug] = support::copy(FIXTURE, folder.path());
    let before = fs::read(&profile).expect("a profile");
    let text = |path: &Path| path.to_str().expect("a plain path").to_string();
    let file = text(&folder.path().join("report"));
    let other = text(&folder.path().join(".").join("report"));
    let (profile, debug) = (text(&profile), text(&debug));
    let cases: [(&[String], &str); 4] = [
        (
            &[
                format!("--export-csv={file}"),
                format!("--export-json={other}"),
            ],
            "--export-csv",
        ),
        (&[format!("--export-html={profile}")], "PROFILE"),
        (&[format!("--export-html={debug}")], "DEBUG"),
        (
            &[
                format!("--save-to-file={file}"),
                format!("--export-html={file}"),
            ],
            "--save-to-file",
        ),
    ];
    for (options, part) in cases {
        let run = popliner([profile.clone()].iter().chain(options));
        let line = one_line(&run, 2);
        assert!(
            line.contains(part) && line.contains("the same file"),
            "{line}"
        );
        assert!(line.contains("--export-"), "{line}");
    }
    let run = popliner([&profile, &format!("--save-to-file={profile}")]);
    let line = one_line(&run, 2);
    assert!(
        line.contains("PROFILE and --save-to-file name the same file"),
        "{line}"
    );
    assert_eq!(fs::read(&profile).expect("a profile"), before);
    assert_eq!(names(folder.path()), ["debug.cbor", "profile.pop"]);
}

/// Returns a folder with an invalid profile: wrong options must be refused before it is read.
fn unread() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("profile.pop");
    fs::write(&profile, "no profile").expect("a file");
    fs::write(folder.path().join("debug.cbor"), "no contexts").expect("a file");
    (folder, profile.to_str().expect("a plain path").to_string())
}

#[test]
fn two_paths_to_one_file_are_refused_before_anything_is_read() {
    let (folder, profile) = unread();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir_all(at("o/sub")).expect("folders");
    symlink("o", at("linked")).expect("a link");
    symlink("linked/a", at("dangling")).expect("a link");
    for other in ["o/sub/../a", "linked/a", "dangling", "linked/sub/.././a"] {
        let [json, csv] = [("json", at("o/a")), ("csv", at(other))]
            .map(|(form, file)| format!("--export-{form}={file}"));
        let run = popliner([&profile, &json, &csv]);
        let line = one_line(&run, 2);
        let expected = "error: --export-json and --export-csv name the same file, ";
        assert!(line.starts_with(expected), "{other}: {line}");
    }
    let run = popliner([&profile, &format!("--export-json={}", at("o/a"))]);
    one_line(&run, 3);
}

#[test]
fn no_input_is_written_over() {
    let (folder, profile) = unread();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let [compare, against] =
        ["compare", "against"].map(|option| format!("--{option}={}", at("input")));
    let cases = [
        ("framework.json", None, "framework.json"),
        ("app.json", None, "app.json"),
        ("input", Some(&compare), "--compare"),
        ("input", Some(&against), "--against"),
    ];
    for (file, option, name) in cases {
        let mut arguments = vec![profile.clone(), format!("--export-json={}", at(file))];
        arguments.extend(option.cloned());
        arguments.extend((name == "--against").then(|| "--fit".to_string()));
        let run = popliner(&arguments);
        let line = one_line(&run, 2);
        let expected = format!("error: {name} and --export-json name the same file, ");
        assert!(line.starts_with(&expected), "{line}");
    }
    assert_eq!(names(folder.path()), ["debug.cbor", "profile.pop"]);
}

#[test]
fn what_is_printed_to_a_file_is_not_lost_there() {
    let (folder, profile) = unread();
    let path = folder.path().join("out");
    let out = fs::File::create(&path).expect("a file");
    let export = format!("--export-json={}", path.display());
    let run = finish(support::command([&profile, &export]).stdout(out));
    let line = one_line(&run, 2);
    let expected = "error: standard output and --export-json name the same file, ";
    assert!(line.starts_with(expected), "{line}");
}

/// `-` is standard output, and never the name of a file.
#[test]
fn a_dash_is_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = support::root().join(profile(FIXTURE));
    let run = |options: &[&str]| {
        let mut command = support::command([&profile]);
        finish(command.args(options).current_dir(folder.path()))
    };
    let printed = run(&["-q", "--export-markdown=-"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    assert!(printed.out.starts_with('#'), "{printed:?}");
    let refused = run(&["--save-to-file=-"]);
    let line = one_line(&refused, 2);
    assert!(line.contains(" - would mix with results on"), "{line}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn permissions_of_what_is_replaced_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report");
    let mode = || {
        let metadata = fs::metadata(&file).expect("a file");
        metadata.permissions().mode() & 0o777
    };
    let write = |option: &str| {
        let run = run_fixture(FIXTURE, &["-q", &format!("{option}={}", file.display())]);
        assert_eq!(run.code, 0, "{run:?}");
    };
    write("--export-csv");
    let usual = folder.path().join("usual");
    fs::write(&usual, "").expect("a file");
    let usual = fs::metadata(&usual).expect("a file").permissions().mode();
    assert_eq!(mode(), usual & 0o777, "of a new file");
    for wanted in [0o600, 0o640, 0o666] {
        let permissions = fs::Permissions::from_mode(wanted);
        fs::set_permissions(&file, permissions).expect("permissions");
        for option in ["--export-csv", "--save-to-file"] {
            write(option);
            assert_eq!(mode(), wanted, "{option}");
        }
    }
}

/// The target of a link is written. The temporary file is beside the target, since it cannot be
/// renamed to another disk.
#[test]
fn a_link_is_followed_also_to_what_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let disk = disk.expect("a folder");
    let (link, file) = (folder.path().join("link"), disk.path().join("report"));
    symlink(&file, &link).expect("a link");
    for option in ["--export-csv", "--export-csv", "--save-to-file"] {
        let run = run_fixture(FIXTURE, &["-q", &format!("{option}={}", link.display())]);
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(fs::read_link(&link).expect("a link"), file, "{option}");
        assert!(fs::metadata(&file).expect("a file").len() > 500, "{option}");
    }
    assert_eq!(names(folder.path()), ["link"]);
    assert_eq!(names(disk.path()), ["report"]);
}

#[test]
fn a_saved_model_gives_the_same_report_but_for_names_of_variables() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("model.saved");
    let saved = saved.to_str().expect("a plain path");
    for fixture in FIXTURES {
        run_fixture(fixture, &["-q", "--save-to-file", saved]);
        let options = ["-q", "--export-json=-"];
        let fresh = run_fixture(fixture, &options);
        let loaded = popliner(["--load-from-file", saved].iter().chain(&options));
        let [mut fresh, mut loaded]: [Value; 2] =
            [fresh.out, loaded.out].map(|out| serde_json::from_str(&out).expect("JSON"));
        for report in [&mut fresh, &mut loaded] {
            report["provenance"]["files"].take();
            report["provenance"]["arguments"].take();
        }
        let peak = "/liveness/peak_variables";
        let of_loaded = loaded.pointer_mut(peak).expect("a section").take();
        let of_fresh = fresh.pointer_mut(peak).expect("a section").take();
        assert_eq!(of_loaded["bytes"], of_fresh["bytes"], "{fixture}");
        // Sections that need names of variables.
        assert!(
            fresh
                .as_object_mut()
                .is_some_and(|map| map.remove("live_steps").is_some())
        );
        let map = fresh["memory"]["tile_map"].as_object_mut();
        assert!(map.is_some_and(|map| map.remove("variables").is_some()));
        assert_eq!(fresh, loaded, "{fixture}");
    }
}

#[test]
fn files_beside_the_profile_are_in_the_report_or_said_to_be_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    support::copy("poplar-mlp", folder.path());
    let framework = serde_json::json!({"name": "PopART", "version": {"major": 3}});
    fs::write(folder.path().join("framework.json"), framework.to_string()).expect("a file");
    fs::write(folder.path().join("app.json"), "{\"cut").expect("a file");
    let profile = folder
        .path()
        .join(profile("poplar-mlp").file_name().expect("a name"));
    let run = popliner([profile.as_os_str(), "--export-json=-".as_ref()]);
    assert_eq!(run.code, 0, "{run:?}");
    let report: Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(report["provenance"]["framework"], framework);
    assert_eq!(report["provenance"]["app"], Value::Null);
    let warning = report["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.starts_with("app.json beside the profile is ignored: "),
        "{warning}"
    );
    assert!(run.err.contains(warning), "{}", run.err);
}
