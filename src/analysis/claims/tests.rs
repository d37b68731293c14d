//! Checks what a report says about changed requests, such as one with fewer IPUs: a split fits with
//! the bytes, IPUs or constraints that the report names, and no split fits with one byte or IPU
//! less, or one constraint more.

use super::{
    super::{Analysis, LayerConstraint},
    *,
};
use crate::{memory::PlacedStage, progress::Progress, search::SearchOptions};
use elsa::FrozenVec;
use std::path::Path;

/// Reads the recorded model in the folder `name` of `fixtures`, and runs `test` with an [`Answers`],
/// which finds the best split of this model for each request.
fn on_fixture(name: &str, test: impl FnOnce(&Answers<'_>)) {
    let folder = Path::new("fixtures").join(name);
    let read = Analysis::read(&folder.join("profile.pop"), &folder.join("debug.cbor"));
    let (analysis, layers, progress) = (read.expect(name), FrozenVec::new(), Progress::new());
    test(&Answers::new((&analysis, &[]), &layers, &progress));
}

/// Returns whether the split `one` is as good as `other` or better in each of three values: the
/// number of IPUs, the time per sample, and the peak memory.
fn is_no_worse(one: &Claim<'_>, other: &Claim<'_>) -> bool {
    one.best.all_ipus() <= other.best.all_ipus()
        && one.best.by_rate(&other.best).is_le()
        && one.best.peak_bytes() <= other.best.peak_bytes()
}

/// Makes a request for a split on `ipus` IPUs with `memory` bytes on each tile, which obeys
/// `constraints` (options with their values).
fn request(ipus: usize, memory: u64, constraints: &[&str]) -> Request {
    let parsed = |constraint: &&str| {
        let (option, value) = constraint.split_once(' ')?;
        LayerConstraint::parse(option, value)
    };
    Request {
        options: SearchOptions {
            split: true,
            ..SearchOptions::default()
        },
        memory_per_tile: vec![memory],
        ipus: Some(IpuCount::Exactly(ipus)),
        constraints: constraints
            .iter()
            .map(|constraint| parsed(constraint).expect("a constraint"))
            .collect(),
        ..Request::default()
    }
}

impl<'s> Answers<'s> {
    fn fits(&self, request: &Request) -> bool {
        self.fitting(request).expect("an answer").is_some()
    }

    /// Returns the lowest peak of any split on `ipus` IPUs, the smallest memory with which the
    /// model fits.
    fn lowest_peak(&self, ipus: usize) -> u64 {
        let answer = self.answer(&request(ipus, 1, &[])).expect("an answer");
        answer.expect("a split").best.peak_bytes()
    }

    fn claims_of(&self, request: &Request) -> Claims<'s> {
        let answer = self.answer(request).expect("an answer").expect("a split");
        self.claims(request, &answer).expect("claims")
    }
}

#[test]
fn one_byte_or_one_ipu_less_does_not_fit() {
    on_fixture("training-pipeline", |answers| {
        let peak = answers.lowest_peak(2);
        for memory in [peak - 1, peak * 2 / 3] {
            let asked = request(2, memory, &[]);
            let claims = answers.claims_of(&asked);
            let with_memory = claims.with_memory.expect("a memory");
            assert_eq!(with_memory.memory(), Some(peak));
            assert!(with_memory.best.fits);
            assert_eq!(with_memory.best.peak_bytes(), peak);
            assert!(!answers.fits(&asked));
            assert!(answers.fits(&request(2, peak, &[])));
            let Some(more) = claims.on_more_ipus else {
                assert!(!answers.fits(&request(MOST_IPUS, memory, &[])));
                continue;
            };
            let ipus = more.best.all_ipus();
            assert!(more.best.fits && ipus > 2);
            assert!(!answers.fits(&request(ipus - 1, memory, &[])));
        }
        let asked = request(5, peak, &[]);
        let claims = answers.claims_of(&asked);
        let answer = answers.answer(&asked).expect("an answer").expect("a split");
        let fewest = claims.fewest.map_or(answer.best.all_ipus(), |claim| {
            assert!(claim.best.fits);
            claim.best.all_ipus()
        });
        assert!(answers.fits(&request(fewest, peak, &[])));
        let less = answers
            .fitting(&request(fewest - 1, peak, &[]))
            .expect("an answer");
        let state = answer.best.pipeline.state;
        assert!(less.is_none_or(|less| less.best.pipeline.state != state));
    });
}

/// Makes the report on `asked`, a request for which no split fits. The report has sets of
/// constraints and tied weights that the user could give up so that a split fits. Checks each set:
/// a split must fit without the whole set, and no split may fit if any member of the set is kept.
fn check_relaxed(answers: &Answers<'_>, asked: &Request) {
    assert!(!answers.fits(asked));
    let without = |constraints: &[String], weights: &[String]| {
        let is_dropped = |index: usize| constraints.contains(&asked.constraints[index].to_string());
        let changed = asked.changed().without_constraints(is_dropped);
        let weights = weights.iter().cloned();
        answers.fits(&changed.with_untied(weights).request)
    };
    let answer = answers.answer(asked).expect("an answer").expect("a split");
    let ties = tied_weights(&answer.level.layers.placement);
    let all: Vec<String> = asked.constraints.iter().map(ToString::to_string).collect();
    let relaxed = answers.claims_of(asked).relaxed;
    let given_up: Vec<_> = relaxed.iter().map(Claim::given_up).collect();
    let by_constraints = !all.is_empty() && without(&all, &[]);
    assert!(by_constraints);
    assert!(given_up.iter().any(|(_, weights)| weights.is_empty()));
    let by_ties = !ties.is_empty() && without(&[], &ties);
    let keeps_constraints = |(constraints, _): &(Vec<String>, _)| constraints.is_empty();
    assert_eq!(given_up.iter().any(keeps_constraints), by_ties);
    assert_eq!(!relaxed.is_empty(), without(&all, &ties));
    for (own, (constraints, weights)) in relaxed.iter().zip(&given_up) {
        assert!(own.best.fits);
        assert!(without(constraints, weights));
        let all_but = |names: &[String], kept: &String| -> Vec<String> {
            names.iter().filter(|&name| name != kept).cloned().collect()
        };
        for kept in constraints {
            assert!(!without(&all_but(constraints, kept), weights), "{kept}");
        }
        for kept in weights {
            assert!(!without(constraints, &all_but(weights, kept)), "{kept}");
        }
    }
}

#[test]
fn no_constraint_is_dropped_and_no_weight_untied_without_need() {
    on_fixture("popart-bert-inference", |answers| {
        let memory = answers.lowest_peak(4);
        for constraints in [
            &["--together 0,4"][..],
            &["--together 0,1", "--together 1,5", "--cut-before 6"],
            &["--pin 1=0", "--pin 6=0", "--cut-before 7"],
        ] {
            let asked = request(4, memory, constraints);
            check_relaxed(answers, &asked);
        }
    });
}

#[test]
fn rows_of_a_plan_are_the_best_of_what_was_tried() {
    on_fixture("training-pipeline", |answers| {
        let peak = answers.lowest_peak(2);
        for memory in [peak, peak * 3 / 2] {
            let mut asked = request(4, memory, &[]);
            asked.options.plan = true;
            let answer = answers.answer(&asked).expect("an answer").expect("a split");
            let front = answers.claims_of(&asked).plan.expect("a plan");
            let rows = &front.rows;
            assert!((2..=MAX_ROWS).contains(&rows.len()), "{}", rows.len());
            assert_eq!(rows[0].best.solution.plan, answer.best.solution.plan);
            assert_eq!(rows[0].best.pipeline, answer.best.pipeline);
            for (row, above) in rows.iter().skip(1).zip(rows) {
                assert!(differs(&above.best, &row.best));
            }
            for (n, row) in rows.iter().enumerate() {
                let stages = PlacedStage::of_split(row.best.solution.plan.stages());
                assert_eq!(row.costs.memory().peaks(&stages), row.best.peaks);
                assert_eq!(row.costs.pipeline(), row.best.pipeline);
                assert!(row.best.peaks.iter().all(|&peak| peak <= memory));
                assert!(stages.len() <= row.best.ipus && row.best.all_ipus() <= 4);
                let beats = |other: &Claim<'_>| {
                    other.best.lacks_time <= row.best.lacks_time && is_no_worse(other, row)
                };
                assert!(!rows[..n].iter().any(beats), "row {n}");
            }
            check_all_tried(answers, &asked, &front);
        }
    });
}

/// Checks that a plan left out no configuration without reason: each configuration that it tried is
/// no better than a row of the plan, or differs little from one. A plan with the maximum number of
/// rows is not checked, since it may leave such configurations out.
fn check_all_tried(answers: &Answers<'_>, asked: &Request, front: &Front<'_>) {
    if front.rows.len() == MAX_ROWS {
        return;
    }
    for &ipus in &front.ipus {
        for &pipeline in &front.pipelines {
            let tried = answers.rows(asked, pipeline, &[ipus]);
            for tried in tried.expect("an answer") {
                let covers =
                    |row: &Claim<'_>| is_no_worse(row, &tried) || !differs(&row.best, &tried.best);
                assert!(front.rows.iter().any(covers), "{ipus} {pipeline:?}");
            }
        }
    }
}
