//! Optimizer state, accumulators and stash that are off the chip or sharded while they are not
//! used.

use super::{TRAINING, number, report, stages};
use crate::support::models::generate;
use crate::support::{DEFAULT_REGEX, contexts, run_fixture, run_on};
use serde_json::Value;

#[test]
fn parts_and_the_update_add_up() {
    let states = "off-chip / sharded --replicas=4 / sharded-off-chip --replicas=2";
    for state in states.split(" / ") {
        for fixture in [TRAINING, "tied-weights"] {
            let options = format!("--solve --num-ipus=4 --optimizer-state={state}");
            let (_, report) = report(fixture, &options);
            assert!(number(&report["pipeline"]["state_bytes"]) > 0);
            for stage in stages(&report) {
                let tile = &stage["fullest_tile"];
                let parts = tile["parts"].as_object().expect("parts").values();
                let bytes = number(&tile["bytes"]);
                assert_eq!(parts.filter_map(Value::as_u64).sum::<u64>(), bytes);
                let update = &stage["pipeline"]["update"];
                let of_update = |name: &str| update[name].as_u64().unwrap_or(0);
                let [most, passes] = ["bytes", "in_passes"].map(of_update);
                assert_eq!(most.max(passes), bytes, "{stage}");
                assert!(of_update("at_least") <= most && of_update("taken") <= most);
                assert_eq!(update["decides"], most > passes);
                assert!(update["weights"][0].is_string(), "{update}");
            }
        }
    }
}

#[test]
fn auto_takes_the_first_place_that_fits() {
    for (limit, options, code, state) in [
        (262_144, "--num-ipus=4", 0, "on-chip"),
        (200_000, "--num-ipus=4", 0, "off-chip"),
        (200_000, "--num-ipus=16 --replicas=4", 0, "off-chip"),
        (320_000, "--num-ipus=4 --replicas=4", 0, "sharded-off-chip"),
        (50_000, "--num-ipus=4 --replicas=4", 1, "sharded-off-chip"),
    ] {
        // Finer layers are not tried, since the regex is given.
        let fixed = format!("--solve --optimizer-state=auto {DEFAULT_REGEX}");
        let options = format!("{options} --mem-per-tile={limit}");
        let (found, report) = report(TRAINING, &format!("{fixed} {options}"));
        let place = report["pipeline"]["state"].as_str().unwrap_or("on-chip");
        assert_eq!((found, place), (code, state), "{options}");
    }
}

#[test]
fn streaming_takes_the_time_of_its_bytes() {
    let step = |more: &str| {
        let split = "--num-ipus=4 --splits=1,3,5 --micro-batches=7";
        let run = run_fixture(TRAINING, &format!("--solve --export-json=- {split} {more}"));
        let is_said = run.err.contains("give --streaming-bandwidth");
        (is_said, run.report()["step"].clone())
    };
    let (_, on_chip) = step("");
    assert!(on_chip["streamed_bytes"].is_null());
    let (is_said, unknown) = step("--optimizer-state=off-chip");
    let bytes = number(&unknown["streamed_bytes"]);
    assert!(bytes > 0 && is_said);
    assert_eq!(unknown["cycles"], on_chip["cycles"]);
    let (is_said, known) = step("--optimizer-state=off-chip --streaming-bandwidth=0.5");
    assert!(!is_said);
    assert_eq!(number(&known["streamed_bytes"]), bytes);
    // State is loaded for one IPU after the other; nothing else changes.
    assert!(number(&known["cycles"]) > number(&on_chip["cycles"]));
    let [known, on_chip] = [known, on_chip].map(|step| step["milliseconds"].as_f64());
    let more = known.expect("a time") - on_chip.expect("a time");
    let expected = (bytes * 2) as f64 / 1e6;
    assert!((more - expected).abs() < 1e-3, "{more} {expected}");
}

/// Returns the messages and the report of a PopART model that trains with moments, with changed
/// texts in its contexts.
fn recorded(change: impl Fn(&mut String)) -> (String, Value) {
    let options = "--framework popart --mode training --optimiser adam-each --accumulation \
                   --layers 4 --tiles 4 --vars-per-layer-tile 6 --page-size 1024 --seed 5";
    let folder = tempfile::tempdir().expect("a folder");
    let [profile, debug] = generate(folder.path(), options);
    contexts::change_texts(&debug, |text| change(text));
    let options = "--solve --num-ipus=2 --mem-per-tile=9000000 --export-json=-";
    let run = run_on(&profile, options);
    let report = run.exits(0).report();
    (run.err, report)
}

/// PopART loads state with operations of its own, into tensors with a telling suffix, and gathers
/// sharded state from replicas.
#[test]
fn profiles_recorded_with_state_elsewhere_are_recognised() {
    let ends = |moments: [&'static str; 2]| {
        move |text: &mut String| {
            for (start, end) in ["Accl1___", "Accl2___"].into_iter().zip(moments) {
                if text.starts_with(start) {
                    text.push_str(end);
                }
            }
        }
    };
    let none = |_: &mut String| {};
    let loads = |text: &mut String| *text = text.replace("AdamVarUpdate:1", "RemoteLoad:1");
    let (loaded, gathered) = ("loaded from outside the IPUs", "gathered from replicas");
    let both = format!("{loaded} and {gathered}");
    let changes = [
        (&none as &dyn Fn(&mut String), [false, false], ""),
        (&loads, [true, false], loaded),
        (&ends(["__l0", "__l0"]), [true, false], loaded),
        (&ends(["__g0", "__g0"]), [false, true], gathered),
        (&ends(["__l0", "__g0"]), [true, true], &both),
    ];
    for (change, expected, how) in changes {
        let (messages, report) = recorded(change);
        let facts = ["loads_state", "gathers_state"];
        let recording = &report["pipeline"]["recording"];
        assert_eq!(facts.map(|name| recording[name] == true), expected);
        let mut lines = messages.lines();
        let line = lines.find(|line| line.starts_with("Recorded with"));
        let says = format!(
            "Recorded with gradient accumulation and without recomputation, and with tensors that \
             are {how}: the profile has these only while they are used"
        );
        assert_eq!(line, (!how.is_empty()).then_some(&*says), "{messages}");
    }
}
