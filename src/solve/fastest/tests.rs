use super::*;
use crate::{
    memory::{Pipeline, Recompute, Schedule},
    model::{CycleSource, CyclesByLayer, Layering, PassCycles, Positions, PseudoLayers},
    solve::testing::{Case, additive, any_case, obedient},
    solve::{Goal, Problem, ProfileCosts, SolveError},
    time::StepOptions,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Range;

/// The cycles of positions (forward, backward, update), bytes over cuts, and pipeline of a random
/// model.
#[derive(Debug, Clone)]
pub(crate) struct Timed {
    passes: Vec<[u64; 3]>,
    cut_bytes: Vec<[u64; 2]>,
    pipeline: Pipeline,
    is_training: bool,
    out_is_first: bool,
    micro_batches: Option<u64>,
}

impl Timed {
    pub(crate) fn times(&self, layers: usize) -> StageTimes {
        let passes = self.passes.iter().take(layers);
        let passes = passes.map(|&[forward, backward, update]| PassCycles {
            forward,
            backward,
            recomputed: 0,
            update,
        });
        let passes: Vec<PassCycles> = passes.collect();
        let out = PassCycles {
            forward: passes[0].forward / 2,
            backward: passes[0].backward / 3,
            ..PassCycles::default()
        };
        let cycles = CyclesByLayer {
            source: CycleSource::Estimated,
            exchange_by_layer: vec![0; layers],
            passes_by_layer: passes,
            out_in_first: if self.out_is_first {
                out
            } else {
                PassCycles::default()
            },
            unplaced: 0,
            unplaced_exchange: 0,
            other: 0,
            clock_hertz: Some(1000),
        };
        // The random model has `layers` positions. In and Out (the operations before and after the
        // layers) are two of them, or one if Out runs on the first IPU; the others are layers. So
        // make one name per layer, after a first name for operations without a layer.
        let around = if self.out_is_first { 1 } else { 2 };
        let names = vec![String::new(); (layers + 1).saturating_sub(around).max(1)];
        let positions = Positions::new(
            &Layering::of(names, Vec::new()),
            PseudoLayers::full(self.out_is_first),
        );
        let options = StepOptions {
            micro_batches: self.micro_batches,
            link_bandwidth: 7000,
            ..StepOptions::default()
        };
        let cut_bytes = self.cut_bytes[..layers - 1].to_vec();
        StageTimes::new(
            &cycles,
            &positions,
            (self.pipeline, self.is_training),
            cut_bytes,
            options,
        )
    }
}

pub(crate) fn any_times(layers: usize) -> impl Strategy<Value = Timed> {
    let number = || prop_oneof![0..4u64, 0..1000u64];
    let passes = vec([number(), number(), number()], layers);
    let cut_bytes = vec([0..30u64, 0..30u64], layers);
    let schedules = [
        Schedule::None,
        Schedule::Popart,
        Schedule::TfGrouped,
        Schedule::TfInterleaved,
        Schedule::Sequential,
    ];
    let schedule = proptest::sample::select(schedules.to_vec());
    let recompute = [Recompute::None, Recompute::Stage, Recompute::Layer];
    let recompute = proptest::sample::select(recompute.to_vec());
    let micro_batches = prop_oneof![Just(None), (1..40u64).prop_map(Some)];
    let flags = (any::<bool>(), any::<bool>(), micro_batches);
    (passes, cut_bytes, schedule, recompute, flags).prop_map(
        |(passes, cut_bytes, schedule, recompute, (is_training, out_is_first, micro_batches))| {
            Timed {
                passes,
                cut_bytes,
                pipeline: Pipeline {
                    schedule,
                    recompute,
                    ..Pipeline::default()
                },
                is_training,
                out_is_first,
                micro_batches,
            }
        },
    )
}

/// Returns the split with the shortest step, found by trying all splits that limits and constraints
/// allow. A model may have several profiles, compiled with different options, so each split is
/// tried with every choice of a profile for each stage. Among equally fast splits, prefers the
/// fewest stages, then the lowest peak.
fn shortest(case: &Case, checked: &CheckedProblem<'_>) -> Option<TimedSplit> {
    let profiles = checked.problem.by_profile.len();
    let mut best: Option<TimedSplit> = None;
    for cuts in obedient(case) {
        let bounds = [&[0], cuts.as_slice(), &[case.costs().layers()]].concat();
        let stages: Vec<Range<usize>> = bounds.windows(2).map(|ends| ends[0]..ends[1]).collect();
        for choice in 0..profiles.pow(stages.len() as u32) {
            let compiled = stages.iter().enumerate().map(|(n, stage)| CompiledStage {
                positions: stage.clone(),
                profile: choice / profiles.pow(n as u32) % profiles,
            });
            let Some(found) = TimedSplit::new(checked, compiled) else {
                continue;
            };
            if profiles == 1 {
                let times = checked.problem.by_profile[0].times.as_ref().unwrap();
                assert_eq!(found.score.step, times.step_alone(&stages));
            }
            let is_better =
                |best: &TimedSplit| found.score.compare(&best.score, Goal::Time).is_lt();
            if best.as_ref().is_none_or(is_better) {
                best = Some(found);
            }
        }
    }
    best
}

#[test]
fn no_split_is_called_the_fastest_if_more_stages_are_allowed_than_bounds_are_made_for() {
    let timed = Timed {
        passes: vec![[9, 18, 1]; 66],
        cut_bytes: vec![[1, 1]; 65],
        pipeline: Pipeline::default(),
        is_training: true,
        out_is_first: false,
        micro_batches: Some(200),
    };
    let profile = ProfileCosts {
        times: Some(timed.times(66).into()),
        ..ProfileCosts::new(additive(&[1; 66], 99), &[1; 65])
    };
    for (ipus, is_bounded) in [(MAX_STAGES, true), (66, false)] {
        let problem = Problem {
            goal: Goal::Time,
            ..Problem::new(&profile, ipus, &99)
        };
        let found = crate::solve::solve(&problem).unwrap().unwrap();
        assert!(is_bounded || !found.is_shortest);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_global_rejects: 100_000,
        ..crate::memory::testing::cases(1_000)
    })]

    #[test]
    fn the_shortest_step_is_that_of_all_splits_tried(
        case in any_case(8),
        timed in vec(any_times(8), 1..3),
        few in 0..30u64,
    ) {
        let layers = case.costs().layers();
        prop_assume!(timed.len() == 1 || layers < 6);
        let by_profile: Vec<ProfileCosts> = timed
            .iter()
            .map(|own| {
                // All profiles of a problem are of one model in one pipeline: draw only cycles and
                // bytes over cuts for each profile, and take all else from the first.
                let own = Timed {
                    passes: own.passes.clone(),
                    cut_bytes: own.cut_bytes.clone(),
                    ..timed[0].clone()
                };
                ProfileCosts { times: Some(own.times(layers).into()), ..case.profile.clone() }
            })
            .collect();
        let problem = Problem { by_profile: &by_profile, goal: Goal::Time, ..case.problem() };
        let checked = match CheckedProblem::new(&problem) {
            Ok(checked) => checked,
            Err(SolveError::Contradiction(_)) => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        let best = shortest(&case, &checked);
        let found = crate::solve::solve(&problem).unwrap();
        prop_assert_eq!(found.is_some(), best.is_some());
        let (Some(found), Some(best)) = (found, best) else {
            return Ok(());
        };
        let numbers = |score: &Score| {
            let step = score.step.unwrap();
            (step.cycles, step.micro_batches, score.stages, score.peak)
        };
        prop_assert_eq!(numbers(&found.score), numbers(&best.score));
        prop_assert!(found.is_shortest);

        // If the search may add a stage only `few` times to beginnings of splits (their first
        // stages), it may miss the fastest split. Then it must not call the split that it returns
        // the fastest.
        let some = fastest(&checked, &found.plan, few).unwrap();
        prop_assert_eq!(&some.plan, &found.plan);
        let start = crate::solve::solve(&Problem { goal: Goal::Peak, ..problem }).unwrap().unwrap();
        let from_peak = fastest(&checked, &start.plan, few).unwrap();
        let [own, best] = [from_peak.score, best.score].map(|score| score.step.unwrap().rate(1));
        prop_assert!(!from_peak.is_shortest || own.compare(best).is_eq());
    }
}
