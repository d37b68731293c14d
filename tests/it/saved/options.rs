//! A saved file in place of the profile: every option prints the same, also with other regexes and
//! orders, and an altered file never prints other numbers.

use crate::support::models::pairs;
use crate::support::{FIXTURES, Run, one_line, popliner, profile, run_fixture};
use std::path::Path;

const OPTIONS: [&[&str]; 14] = [
    &["--operation-breakdown"],
    &["--layer-breakdown", "--format=csv"],
    &["--memory-totals"],
    &["--memory-totals", "--tiles=3,1"],
    &["--memory-affinity"],
    &["--interlayer-communication"],
    &["--diagnose"],
    &["--diagnose", "--memory-model=classic"],
    &["--solve", "--num-ipus=4", "-v"],
    &["--solve", "--memory-model=classic", "--layer-order=natural"],
    &["--solve", "--solver=greedy", "--reserve=5%"],
    &["--solve", "--out-on=first", "--mem-per-tile=500000"],
    &[
        "--layer-breakdown",
        r"--layer-name-regex=(?i)layer\D?(\d)|blocks/(\d)",
    ],
    &["--solve", "--diagnose", "--memory-affinity"],
];

fn save(fixture: &str, file: &Path) {
    let file = file.to_str().unwrap();
    let run = run_fixture(fixture, &["--save-to-file", file, "-q"]);
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{run:?}");
}

fn load(file: &Path, options: &[&str]) -> Run {
    let fixed = ["--load-from-file", file.to_str().unwrap()];
    popliner(fixed.iter().chain(options))
}

/// Returns the output without commands to copy, which have the path.
fn without_commands(run: &Run) -> String {
    let is_other =
        |line: &&str| line.contains(" popliner ") || line.contains("The most memory is missing");
    let lines = run.err.lines().filter(|line| !is_other(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_option_prints_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let files = FIXTURES.map(|fixture| {
        let file = folder.path().join(fixture);
        save(fixture, &file);
        (fixture, file)
    });
    for ((fixture, file), options) in pairs(&files, &OPTIONS, 3) {
        let (fresh, loaded) = (run_fixture(fixture, options), load(file, options));
        assert_eq!(fresh.out, loaded.out, "{fixture} {options:?}");
        let message = [&fresh, &loaded].map(without_commands);
        assert_eq!(message[0], message[1], "{fixture} {options:?}");
        assert_eq!(fresh.code, loaded.code, "{fixture} {options:?}");
    }
}

#[test]
fn an_altered_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.saved");
    save("poplar-mlp", &file);
    let whole = std::fs::read(&file).unwrap();
    for flipped in (0..whole.len()).step_by(whole.len() / 60) {
        let mut altered = whole.clone();
        altered[flipped] ^= 1 << (flipped % 8);
        std::fs::write(&file, &altered).unwrap();
        one_line(&load(&file, &["--solve"]), 3);
    }
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    one_line(&load(&file, &["--solve"]), 3);
}

#[test]
fn mix_ups_of_profiles_and_saved_files_are_named() {
    let line = load(&profile("poplar-mlp"), &["--solve"]);
    assert!(
        one_line(&line, 3).contains("leave out --load-from-file")
            || line.err.contains("--load-from-file")
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.saved");
    save("poplar-mlp", &file);
    let path = file.to_str().unwrap();
    let debug = "fixtures/poplar-mlp/debug.cbor";
    for check in [&[][..], &["--load-from-file"]] {
        let run = popliner([path, debug, "--solve"].iter().chain(check));
        assert!(one_line(&run, 2).contains("leave DEBUG out"), "{}", run.err);
    }
    let run = popliner([path, "--fit"]);
    assert!(
        one_line(&run, 2).contains("--fit judges a profile"),
        "{}",
        run.err
    );
}

/// A saved model is recognized by its first bytes, without an option.
#[test]
fn a_saved_model_is_known_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.saved");
    save("poplar-mlp", &file);
    let again = folder.path().join("again.saved");
    let over = format!("--save-to-file={}", file.display());
    let other = format!("--save-to-file={}", again.display());
    let options = ["--solve", "--num-ipus=4"];
    let expected = run_fixture("poplar-mlp", &options);
    for save in [&over, &other] {
        let arguments = [file.to_str().unwrap(), save].into_iter();
        let run = popliner(arguments.chain(options));
        assert_eq!(
            (run.code, &run.out),
            (expected.code, &expected.out),
            "{run:?}"
        );
        assert_eq!(without_commands(&run), without_commands(&expected));
    }
    assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(again).unwrap());
    let whole = std::fs::read(&file).unwrap();
    for (length, message) in [(3, "cut off"), (100, "cut off"), (0, "the file is empty")] {
        std::fs::write(&file, &whole[..length]).unwrap();
        let run = popliner([&file]);
        assert!(one_line(&run, 3).contains(message), "{length}: {}", run.err);
    }
}
