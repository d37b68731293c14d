//! Profiles that contradict themselves have no verdict, in every form. `planted::whole` checks that
//! sound profiles do not contradict themselves.

use serde_json::Value;

use super::cases::{Case, each_sql, number};
use super::compiled::COMPILED;
use crate::support::{Run, popliner};

/// Checks that there is an error with all these parts and no result, and with `--allow-incomplete`
/// results with the same exit code.
fn no_verdict(case: &Case, options: &str, parts: &[&str]) {
    let fixed = ["the profile contradicts itself: ", "--allow-incomplete"];
    case.run(options).refuses(3, &[&fixed, parts].concat());
    let run = case.run(&format!("{options} --allow-incomplete"));
    run.exits(3);
    let is_verdict = run.err.contains("SUCCESS") || run.err.contains("error: ");
    assert!(!is_verdict, "{run:?}");
}

/// SQL that removes data, with parts of the messages about it.
const LOST: &str = "
    DELETE FROM depth_first_steps
        table `memory_by_tile`, tile 0: the total is 1,476,690, and its variables and code take
    DELETE FROM eq_class_step => table `memory_by_tile`, tile ... and its variables and code take
    UPDATE compute_sets SET var_ids_diff_rle = NULL
        table `compute_sets`, variables that no program uses:
    UPDATE programs SET debug_id = NULL WHERE id % 2 = 0
        table `programs`, programs without a context whose compute set has one: 70 of 475
    DELETE FROM vertex_instances
        table `vertex_instances`, programs with other vertices than their compute set counts:
    DELETE FROM memory_by_category => table `memory_by_category`: its rows are 0
    DELETE FROM memory_by_tile => table `memory_by_tile`: its rows are 0
    UPDATE memory_by_tile SET total = total * 3 / 2
        table `memory_by_tile`, tile 0: the total is 2,215,035, and its parts make up 1,476,7
    UPDATE memory_by_tile SET total = total / 2 WHERE tile = 3
        table `memory_by_tile`, tile 3: the total is ... and its parts make up
    UPDATE vars_info SET size_bytes = size_bytes / 2 WHERE tile = 5
        table `memory_by_tile`, tile 5: the total is ... its variables and code take
    UPDATE memory_by_tile SET always_live_bytes = 1
    WHERE tile = (SELECT tile FROM memory_by_tile ORDER BY total DESC, tile LIMIT 1)
        table `memory_by_tile`, tile ... its variables and code take
    DELETE FROM exchange_regions => table `exchange_regions`: its rows are 0
    UPDATE vars_info SET category = (SELECT id FROM var_categories WHERE name = 'stack')
    WHERE rowid % 7 = 0
        table `memory_by_category`, category ` ... bytes are ... and its variables have
    UPDATE memory_by_category SET non_interleaved_overlapped = non_interleaved_non_overlapped
    WHERE category_id = 'variable' => table `memory_by_category`, category `variable`, tile
    UPDATE eq_class_step SET step_id_to = step_id_from + 1 WHERE step_id_to - step_id_from > 20
        table `memory_not_always_live_by_step_and_ipu`, step
    UPDATE memory_not_always_live_by_step_and_ipu SET delta_bytes = delta_bytes / 2
        table `memory_not_always_live_by_step_and_ipu`, step
    UPDATE depth_first_steps SET program_id = 3 WHERE id > 400
        table `depth_first_steps`, programs without a step below one that runs them:
    UPDATE exchange_regions SET regions = '[0,4),[8,99999999)'
        table `exchange_regions`, variables that do not hold the regions in them:
    UPDATE debug_ids SET ids = NULL
        table `debug_ids`, variables without contexts that live from the first to the last step
    UPDATE control_programs SET program = 7
        table `control_programs`, programs of steps that no root leads to: 474 of 475
    UPDATE memory_by_tile SET overflowed = 0, overflowed_including_gaps = 0
        table `memory_by_tile`, tile 0: the total is 1,476,690, and its parts make up
";

/// Options whose result is the split of the fixture with the lowest peak.
const NEEDS: &str = "--solve --num-ipus=4 --format=json --quiet";

#[test]
fn what_is_lost_takes_the_verdict_with_it() {
    // The limit is within one byte of the need, so any byte that may be wrong changes the verdict.
    let needs = Case::loose_of("impossible").run(NEEDS).peak();
    let options = format!("--solve --num-ipus=4 --mem-per-tile={needs}");
    each_sql("impossible", LOST, |case, parts| {
        no_verdict(case, &options, parts);
    });
}

#[test]
fn a_compilation_is_held_against_the_same() {
    let list = "
        UPDATE memory_by_tile SET total = total / 2 => table `memory_by_tile` ... its parts make up
        UPDATE memory_by_tile SET total = total / 2, interleaved = interleaved / 2,
        non_interleaved = non_interleaved / 2, always_live_bytes = always_live_bytes / 2,
        not_always_live_max_bytes = not_always_live_max_bytes / 2
            table `memory_by_tile` ... and its variables and code take
        DELETE FROM eq_class_step => table `memory_by_tile` ... and its variables and code take
        DELETE FROM memory_by_category => table `memory_by_category`: its rows are 0
    ";
    let whole = Case::loose_of(COMPILED);
    let fullest = number(&whole.profile, "SELECT max(total) FROM memory_by_tile");
    let options = format!("--fit --mem-per-tile={}", fullest - 1);
    each_sql(COMPILED, list, |case, parts| {
        no_verdict(case, &options, parts)
    });
}

/// Decodes the characters that Markdown writes as numbers.
fn decoded(markdown: &str) -> String {
    let mut parts = markdown.split("&#");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| {
        let (code, rest) = part.split_once(';').expect("a character");
        let code = code.parse().ok().and_then(char::from_u32);
        format!("{all}{}{rest}", code.expect("a character"))
    })
}

/// Runs the tool on a case with all exports; returns the run, the report, and the texts of Markdown,
/// page and messages.
fn exported(case: &Case, options: &str) -> (Run, Value, [String; 3]) {
    let forms = ["export-json", "export-markdown", "export-html"];
    let exports = forms.map(|form| format!("--{form}=-")).join(" ");
    let run = case.run(&format!("{options} {exports}"));
    let [_, markdown, page] = forms.map(|form| run.section(form));
    let report = run.report();
    let texts = [decoded(&markdown), page, run.err.clone()];
    (run, report, texts)
}

/// Returns the contradiction that a witness found.
fn found_by<'a>(report: &'a Value, witness: &str) -> &'a Value {
    let all = report["contradictions"].as_array().expect("a list");
    let found = all.iter().find(|item| item["witness"] == witness);
    found.expect("a contradiction")
}

#[test]
fn without_a_verdict_no_form_has_one() {
    let lost = "memory_by_category";
    for (fixture, options, at) in [
        ("impossible", "--solve --sweep --num-ipus=4", "/split/fits"),
        ("training-pipeline", "--solve --explain", "/split/fits"),
        (COMPILED, "--fit", "/fit/fits"),
    ] {
        let case = Case::loose_of(fixture).sql(&format!("DELETE FROM {lost}"));
        let options = format!("{options} --allow-incomplete");
        let (run, report, texts) = exported(&case, &options);
        run.exits(3);
        assert!(!run.err.contains(" it does not fit") && !run.err.contains("fits"));
        assert_eq!(report.pointer(at), Some(&false.into()), "{fixture}");
        let rows = found_by(&report, "rows");
        let found = ["table", "tile", "recorded", "refused"].map(|key| rows[key].clone());
        assert_eq!(found, [lost.into(), Value::Null, 0.into(), true.into()]);
        for text in texts {
            let message = "No verdict, since the profile contradicts itself";
            assert!(text.contains(message) && text.contains(lost), "{text}");
        }
    }
}

#[test]
fn more_code_than_was_recorded_is_said() {
    let case = Case::loose_of("impossible").sql(
        "UPDATE memory_by_category SET interleaved_non_overlapped = interleaved_overlapped,
         non_interleaved_non_overlapped = non_interleaved_overlapped,
         overflowed_non_overlapped = overflowed_overlapped WHERE category_id = 'vertexCode'",
    );
    case.run("--solve --num-ipus=4")
        .exits(1)
        .says("`memory_by_category`, category `vertexCode`, tile")
        .says("`memory_by_category`, `vertexCode`, tile");
}

#[test]
fn a_saved_model_keeps_what_contradicts_itself() {
    let case = Case::loose_of("impossible").sql("DELETE FROM depth_first_steps");
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("model");
    let saved = saved.to_str().expect("a plain path");
    let message = "its variables and code take";
    case.run(&["--save-to-file", saved]).exits(0).says(message);
    let needs = Case::loose_of("impossible").run(NEEDS).peak().to_string();
    let solve = ["--solve", "--num-ipus=4", "--mem-per-tile", &needs];
    for allow in [&[][..], &["--allow-incomplete"]] {
        let run = popliner([&[saved, "--load-from-file"], &solve[..], allow].concat());
        run.exits(3).says(message);
        assert_eq!(run.out.is_empty(), allow.is_empty(), "{run:?}");
    }
}

#[test]
fn bytes_that_do_not_turn_the_verdict_are_a_warning_in_every_form() {
    let case = Case::loose_of("impossible").sql(
        "UPDATE vars_info SET size_bytes = size_bytes + 64 WHERE rowid =
         (SELECT max(v.rowid) FROM vars_info v JOIN eq_classes c ON c.id = v.equivalence_class
          WHERE v.tile = 8 AND c.is_always_live = 1)",
    );
    let (run, report, texts) = exported(&case, "--solve --num-ipus=4");
    run.exits(1);
    let message = "table `memory_by_tile`, tile 8: the total is 1,060,454, and its variables and code \
                take 1,060,518, which could move up to 64 bytes (0.1 % of the fullest tile), so \
                figures may be off by that much, but the verdict is the same";
    let contradiction = found_by(&report, "one-stage");
    assert_eq!(contradiction["refused"], false);
    assert_eq!(contradiction["computed"], 1_060_518);
    for text in [report["warnings"].to_string()].iter().chain(&texts) {
        assert!(text.contains(message), "{text}");
    }
}
