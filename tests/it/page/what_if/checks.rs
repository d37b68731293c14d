//! The verdict, the step and the sums of a split that the page shows, against the report of its
//! command line.

use serde_json::{Value, json};

/// The head and the figures have the step, unless Out runs on the first IPU.
pub(super) fn check_step(state: &Value, judged: &Value, command: &str) {
    let is_known = judged["step"].is_object() && judged["pseudo_layers"] != "out-with-in";
    let shown = state["step"].as_u64().expect("a number");
    assert_eq!(shown > 0, is_known, "{command}");
}

pub(super) fn plain(text: &Value) -> String {
    text.as_str().expect("a text").replace(',', "")
}

pub(super) fn check_verdict(state: &Value, judged: &Value, command: &str) {
    for (fits, expected) in [
        (&state["fits"], &judged["split"]["fits"]),
        (&state["best_fits"], &judged["given"]["best_fits"]),
    ] {
        assert_eq!(fits.as_str(), Some(&*expected.to_string()), "{command}");
    }
    let verdict = state["verdict"].as_str().expect("a verdict");
    let broken = judged["given"]["broken_constraints"].as_array();
    let broken = broken.expect("constraints");
    assert_eq!(
        verdict.matches("it breaks ").count(),
        broken.len(),
        "{command}"
    );
    for name in broken {
        let name = name.as_str().expect("a name");
        assert!(verdict.contains(&format!("it breaks {name}")), "{verdict}");
    }
}

pub(super) fn check_totals(state: &Value, judged: &Value, command: &str) {
    let numbers = |list: &Value, at: &str| -> Vec<u64> {
        let all = list.as_array().into_iter().flatten();
        all.map(|page| page.pointer(at).and_then(Value::as_u64).expect("a number"))
            .collect()
    };
    let stages = &judged["split"]["stages"];
    let bytes = numbers(stages, "/fullest_tile/bytes");
    let limits = numbers(stages, "/fullest_tile/limit");
    let highest = |all: Vec<u64>| all.into_iter().max().expect("a number");
    let mut expected = vec![
        format!("{}bytes", highest(bytes.clone())),
        format!(
            "{}bytes",
            numbers(&judged["cuts"], "/bytes").iter().sum::<u64>()
        ),
    ];
    if judged.get("execution").is_some() {
        let slowest = highest(numbers(
            &judged["execution"]["stages"],
            "/micro_batch_cycles",
        ));
        expected.push(format!("{slowest}cycles"));
    }
    let totals = state["totals"]
        .as_array()
        .expect("totals")
        .iter()
        .map(plain);
    let mut totals: Vec<String> = totals.collect();
    if state["step"] != 0 {
        let cycles = format!("{} cycles", judged["step"]["cycles"]);
        assert!(
            totals.pop().expect("a step").ends_with(&cycles),
            "{command}"
        );
    }
    assert_eq!(totals, expected, "{command}");
    // In tenths of a per cent, rounded up.
    let shares = bytes.iter().zip(limits).map(|(&bytes, limit)| {
        let tenths = (bytes * 1000).div_ceil(limit);
        format!("{}.{} %", tenths / 10, tenths % 10)
    });
    assert_eq!(
        state["shares"],
        json!(shares.collect::<Vec<_>>()),
        "{command}"
    );
}
