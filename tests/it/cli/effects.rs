//! Tests every option with every result. If the table of the command line says that the option
//! affects the result, the output with the option must differ from the output without it. Otherwise
//! the command must refuse the option.

use crate::support::models::pairs;
use crate::support::{Earlier, Words, each, run_fixture, run_once};
use popliner::app::Effect;

/// A training model that fits on four IPUs.
const MODEL: &str = "training-pipeline";
/// A training model in which layers share a weight.
const TIED: &str = "tied-weights";
/// [`MODEL`], compiled for its best split.
const COMPILED: &str = "training-pipelined";

/// Results that need a split, by the names of their options.
const SPLIT: &str = "solve emit sweep plan explain splits layers_per_ipu compare";

/// Results that the original tool also has.
const ORIGINAL: &str = "operation_breakdown layer_breakdown memory_totals memory_affinity \
                        interlayer_communication";

/// All other results.
const OTHERS: &str = "export_json export_markdown export_html diagnose list_layers fit";

/// With this number of IPUs, each constraint below changes the best split.
const IPUS: &str = "--num-ipus=4";

impl Earlier {
    /// Returns a result or an option, with a value that is not the default.
    fn given(&self, fixture: &str, id: &str) -> String {
        let name = id.replace('_', "-");
        let value = match id {
            "emit" => "poptorch",
            "splits" if fixture == TIED => "1,2",
            "splits" => "1,3,5",
            "layers_per_ipu" if fixture == TIED => "1,1,1",
            "layers_per_ipu" => "1,2,2,1",
            "compare" => &self.path(),
            "export_json" | "export_markdown" | "export_html" => "-",
            "num_ipus" => "5",
            "schedule" | "recompute" => "none",
            "accumulator" => "float32",
            "optimizer_state" => "off-chip",
            "streaming_bandwidth" => "0.5",
            "solver" => "greedy",
            "objective" => "fewest",
            "amp" => "0.6",
            "micro_batches" => "30",
            "micro_batch" | "replicas" => "4",
            "ipu_link_bandwidth" => "0.5",
            "pin" => "1=0",
            "together" => "0,1",
            "cut_before" => "2",
            "untie" => "all",
            "mem_per_tile" => "300000",
            "reserve" => "10%",
            "module_root" => "bert",
            "format" => "csv",
            "tiles" => "3",
            _ => return format!("--{name}"),
        };
        format!("--{name}={value}")
    }
}

#[test]
fn options_act_on_the_results_of_the_table_and_are_refused_beside_others() {
    let earlier = Earlier::new(MODEL, &format!("--solve {IPUS}"));
    let results = [SPLIT, ORIGINAL, OTHERS].map(|own| own.words()).concat();
    let options = Effect::ALL.iter().flat_map(|effect| {
        let options = effect.options.words().into_iter();
        options.map(|option| (option, effect.on.words()))
    });
    let options: Vec<_> = options.collect();
    let pairs: Vec<_> = pairs(&options, &results, 13).collect();
    let wrong = each(&pairs, |&((option, on), result)| {
        let wrong = what_is_wrong(&earlier, option, on.contains(result), result)?;
        Some(format!("--{option} with --{result} {wrong}"))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Says what is wrong if an option affects a result but `acts` is false, or the other way round.
fn what_is_wrong(
    earlier: &Earlier,
    option: &str,
    acts: bool,
    result: &str,
) -> Option<&'static str> {
    let fixture = match (option, result) {
        (_, "fit") => COMPILED,
        ("untie" | "accumulator", _) => TIED,
        ("stash", _) => "tensorflow-cnn",
        _ => MODEL,
    };
    let given = |id| earlier.given(fixture, id);
    let mut alone = vec![given(result)];
    // With as many IPUs as stages, constraints change the best split. With more IPUs, the best
    // splits for different objectives differ, and Out has a stage of its own.
    if option != "num_ipus" && SPLIT.words().contains(&result) {
        alone.push(IPUS.to_owned());
    }
    let both = [&alone[..], &[given(option)]].concat();
    let now = run_once(fixture, &both);
    if acts {
        let before = run_once(fixture, &alone);
        // Options that fit together are wrong usage only if the original tool's search ignores
        // them.
        let is_original = now.err.contains("of the original tool, does not support");
        let is_refused = now.code == 2 && !is_original;
        let is_idle = (before.code, before.out, before.err) == (now.code, now.out, now.err);
        return match (is_refused, is_idle) {
            (true, _) => Some("is refused"),
            (_, true) => Some("changes nothing"),
            _ => None,
        };
    }
    let is_right = match option {
        "num_ipus" if ORIGINAL.words().contains(&result) => {
            let before = run_once(fixture, &alone);
            let is_equal = (before.code, before.out) == (now.code, now.out);
            is_equal && now.err.contains("changes none of these results")
        }
        _ => (now.code, &*now.out) == (2, ""),
    };
    let name = format!("--{}", option.replace('_', "-"));
    (!is_right || !now.err.contains(&name)).then_some("is not refused")
}

/// A missing path does not change which error is reported.
#[test]
fn options_of_another_kind_of_run_are_refused_before_any_file_is_read() {
    for options in ["--compare=/nonexistent --num-ipus=4", "--tiles=0"] {
        let reason = "acts on none of the requested results";
        let run = run_fixture(MODEL, &format!("--fit {options}"));
        assert_eq!(run.exits(2).says(reason).out, "");
    }
}
