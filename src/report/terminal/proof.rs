//! What shows that a split is the best, in one line.

use crate::report::document::Proof;

/// The numbers that both programs found, and what a lower one would take; None
/// when nothing was proven.
pub fn proof(proof: &Proof) -> Option<String> {
    if !proof.optimal {
        return None;
    }
    let numbers = proof.objectives.iter();
    let numbers: Vec<String> = numbers
        .map(|number| format!("{} {}", number.objective, number.integer_program))
        .collect();
    let mut line = format!(
        "optimal: the integer program and the dynamic program agree on {}",
        numbers.join(", ")
    );
    for bottleneck in &proof.bottlenecks {
        let needs = match bottleneck.stages_needed {
            Some(stages) => format!("needs {stages} stages"),
            None => "is too little for any split".to_string(),
        };
        line.push_str(&format!(
            "; {} {} {needs}",
            bottleneck.objective, bottleneck.below
        ));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::{ProvenBottleneck, ProvenObjective};

    #[test]
    fn only_what_both_programs_found_is_called_optimal() {
        let number = |text: &str| ProvenObjective {
            objective: text.to_string(),
            integer_program: "7".to_string(),
            dynamic_program: "7".to_string(),
        };
        let mut shown = Proof {
            objective: "peak".to_string(),
            optimal: true,
            objectives: vec![number("peak"), number("stages")],
            bottlenecks: vec![ProvenBottleneck {
                objective: "peak".to_string(),
                below: "6".to_string(),
                stages_needed: Some(9),
            }],
        };
        let expected = "optimal: the integer program and the dynamic program agree on peak 7, \
                        stages 7; peak 6 needs 9 stages";
        assert_eq!(proof(&shown).as_deref(), Some(expected));
        shown.optimal = false;
        assert_eq!(proof(&shown), None);
    }
}
