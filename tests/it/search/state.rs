//! Optimizer state, accumulators and stash that are off the chip or sharded while they are not
//! used.

use crate::support::models::generate;
use crate::support::{DEFAULT_REGEX, Run, change_texts, popliner, run_fixture};
use serde_json::Value;

const TRAINING: &str = "training-pipeline";

fn solve(fixture: &str, options: &[&str]) -> (Run, Value) {
    let all = [&["--solve", "--export-json=-", "--format=json"], options].concat();
    let run = run_fixture(fixture, &all);
    let mut results: Value = serde_json::from_str(&run.out).expect("JSON");
    let report = results["export_json"].take();
    (run, report)
}

fn stages(report: &Value) -> &[Value] {
    report["split"]["stages"].as_array().expect("stages")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

#[test]
fn parts_and_the_update_add_up() {
    for (state, replicas) in [
        ("off-chip", "1"),
        ("sharded", "4"),
        ("sharded-off-chip", "2"),
    ] {
        let state = format!("--optimizer-state={state}");
        let replicas = format!("--replicas={replicas}");
        for fixture in [TRAINING, "tied-weights"] {
            let (_, report) = solve(fixture, &["--num-ipus=4", &state, &replicas]);
            assert!(number(&report["pipeline"]["state_bytes"]) > 0);
            for stage in stages(&report) {
                let full = &stage["fullest_tile"];
                let parts = full["parts"].as_object().expect("parts").values();
                assert_eq!(parts.map(number).sum::<u64>(), number(&full["bytes"]));
                let update = &stage["pipeline"]["update"];
                let [max_bytes, least] = ["bytes", "at_least"].map(|name| number(&update[name]));
                let passes = number(&update["in_passes"]);
                assert_eq!(max_bytes.max(passes), number(&full["bytes"]), "{stage}");
                assert!(least <= max_bytes && number(&update["taken"]) <= max_bytes);
                assert_eq!(update["decides"], max_bytes > passes);
                assert!(
                    update["weights"]
                        .as_array()
                        .is_some_and(|weights| !weights.is_empty())
                );
            }
        }
    }
}

#[test]
fn auto_takes_the_first_place_that_fits() {
    let state = |limit: &str, more: &[&str]| {
        // Finer layers are not tried, since the regex is given.
        let options = [
            "--num-ipus=4",
            "--optimizer-state=auto",
            DEFAULT_REGEX,
            limit,
        ];
        let (run, report) = solve(TRAINING, &[&options, more].concat());
        let state = report["pipeline"]["state"].as_str().unwrap_or("on-chip");
        (run.code, state.to_string())
    };
    let expected = |code, state: &str| (code, state.to_string());
    assert_eq!(state("--mem-per-tile=262144", &[]), expected(0, "on-chip"));
    assert_eq!(state("--mem-per-tile=200000", &[]), expected(0, "off-chip"));
    let replicas = ["--replicas=4"];
    let sharded = state("--mem-per-tile=200000", &replicas);
    assert_eq!(sharded, expected(0, "sharded"));
    assert_eq!(
        state("--mem-per-tile=50000", &replicas),
        expected(1, "on-chip")
    );
}

#[test]
fn streaming_takes_the_time_of_its_bytes() {
    let split = ["--num-ipus=4", "--check-splits=0,2,4", "--micro-batches=7"];
    let step = |more: &[&str]| {
        let (run, report) = solve(TRAINING, &[&split, more].concat());
        (run.err, report["step"].clone())
    };
    let (_, on_chip) = step(&[]);
    assert!(on_chip["streamed_bytes"].is_null());
    let place = "--optimizer-state=off-chip";
    let (message, unknown) = step(&[place]);
    let bytes = number(&unknown["streamed_bytes"]);
    assert!(
        bytes > 0 && message.contains("give --streaming-bandwidth"),
        "{message}"
    );
    assert_eq!(unknown["cycles"], on_chip["cycles"]);
    let (message, known) = step(&[place, "--streaming-bandwidth=0.5"]);
    assert!(!message.contains("give --streaming-bandwidth"), "{message}");
    assert_eq!(number(&known["streamed_bytes"]), bytes);
    // State is loaded for one IPU after the other; nothing else changes.
    assert!(number(&known["cycles"]) > number(&on_chip["cycles"]));
    let nanoseconds = bytes * 2;
    let time = |step: &Value| step["milliseconds"].as_f64().expect("a time");
    let expected = time(&known) - time(&on_chip);
    let error = expected - nanoseconds as f64 / 1e6;
    assert!(error.abs() < 1e-3, "{expected} {nanoseconds}");
}

#[test]
fn what_no_framework_can_do_is_refused() {
    let run = run_fixture(TRAINING, &["--solve", "--optimizer-state=sharded"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.err
            .contains("state can only be shared by several replicas"),
        "{}",
        run.err
    );
}

#[test]
fn configurations_have_the_switches_of_their_framework() {
    let emitted = |form: &str, more: &[&str]| {
        let form = format!("--emit={form}");
        let options = [
            &[
                form.as_str(),
                "--num-ipus=4",
                "--module=model.layer[{}]",
                "-q",
            ],
            more,
        ];
        run_fixture(TRAINING, &options.concat()).out
    };
    let elsewhere = ["--optimizer-state=sharded-off-chip", "--replicas=4"];
    for (form, switches) in [
        (
            "popart",
            &[
                "optimizerStateTensorLocationSettings.location.storage = popart.TensorStorage.OffChip",
                "location.replicatedTensorSharding = popart.ReplicatedTensorSharding.On",
                "replicatedGraphCount = 4",
            ][..],
        ),
        (
            "poptorch",
            &[
                "useOnChipStorage(False).useReplicatedTensorSharding(True)",
                "replicationFactor(4)",
            ],
        ),
        (
            "keras",
            &[
                "offload_weight_update_variables=True",
                "replicated_optimizer_state_sharding=True",
            ],
        ),
        (
            "examples",
            &[
                "optimizer_state_offchip: true",
                "replicated_tensor_sharding: true",
                "replication_factor: 4",
            ],
        ),
        (
            "optimum",
            &[
                "\"optimizer_state_offchip\": true",
                "\"replicated_tensor_sharding\": true",
                "\"replication_factor\": 4",
            ],
        ),
        (
            "pipeline-splits",
            &[
                "offload_optimizer: true",
                "enable_optimizer_rts: true",
                "replicas: 4",
            ],
        ),
    ] {
        let (plain, text) = (emitted(form, &[]), emitted(form, &elsewhere));
        for switch in switches {
            assert!(
                text.contains(switch) && !plain.contains(switch),
                "{switch}: {text}"
            );
        }
    }
}

/// Returns a PopART model that trains with moments, with changed texts in its contexts.
fn recorded(change: impl Fn(&mut String)) -> (String, Value) {
    let options = "--framework popart --mode training --optimiser adam-each --accumulation \
                   --layers 4 --tiles 4 --vars-per-layer-tile 6 --page-size 1024 --seed 5";
    let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let [profile, debug] = generate(folder.path(), &options);
    let bytes = std::fs::read(&debug).expect("contexts");
    let mut contexts = ciborium::from_reader(&*bytes).expect("CBOR");
    change_texts(&mut contexts, &mut |text| change(text));
    let mut bytes = Vec::new();
    ciborium::into_writer(&contexts, &mut bytes).expect("CBOR");
    std::fs::write(debug, bytes).expect("a file");
    let report = folder.path().join("report.json");
    let options = ["--solve", "--num-ipus=2", "--mem-per-tile=9000000"].map(Into::into);
    let files = [
        profile.into_os_string(),
        "--export-json".into(),
        (&report).into(),
    ];
    let run = popliner(files.into_iter().chain(options));
    assert_eq!(run.code, 0, "{run:?}");
    let report = std::fs::read(report).expect("a report");
    (run.err, serde_json::from_slice(&report).expect("JSON"))
}

/// PopART loads state with operations of its own, into tensors with a telling suffix, and gathers
/// sharded state from replicas.
#[test]
fn profiles_recorded_with_state_elsewhere_are_recognised() {
    let ends_with = |text: &mut String, end: &str| {
        if text.starts_with("Accl1___") || text.starts_with("Accl2___") {
            text.push_str(end);
        }
    };
    let update = |text: &mut String| {
        *text = text.replace("AdamVarUpdate:1", "RemoteLoad:1");
    };
    let both = |text: &mut String| {
        let end = if text.starts_with("Accl1___") {
            "__l0"
        } else {
            "__g0"
        };
        ends_with(text, end);
    };
    let found = |change: &dyn Fn(&mut String)| {
        let (message, report) = recorded(change);
        let facts = ["recorded_state_off_chip", "recorded_state_sharded"];
        let facts = facts.map(|name| report["pipeline"][name] == true);
        let line = message
            .lines()
            .find(|line| line.starts_with("Recorded with"));
        (facts, line.unwrap_or_default().to_owned())
    };
    let says = |of: &str| {
        format!(
            "Recorded with gradient accumulation and without recomputation, and with tensors that \
             are {of}: the profile has these only while they are used"
        )
    };
    assert_eq!(found(&|_| {}), ([false, false], String::new()));
    let loaded = says("loaded from outside the IPUs");
    assert_eq!(found(&update), ([true, false], loaded.clone()));
    assert_eq!(
        found(&|text| ends_with(text, "__l0")),
        ([true, false], loaded)
    );
    let gathered = says("gathered from replicas");
    assert_eq!(
        found(&|text| ends_with(text, "__g0")),
        ([false, true], gathered)
    );
    let together = says("loaded from outside the IPUs and gathered from replicas");
    assert_eq!(found(&both), ([true, true], together));
}
