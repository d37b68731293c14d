//! Test data for a report: the proof that a split is the best, the reasons why no split fits, other
//! splits, and the time of a step.

use super::*;
use crate::solve::{Cause, Objective, ObjectiveProof};

pub fn proof() -> Proof {
    Proof {
        objective: "peak".into(),
        optimal: true,
        objectives: vec![ObjectiveProof {
            objective: Objective::Peak,
            integer_program: 700_024,
            dynamic_program: 700_024,
        }],
    }
}

pub fn refusal(limit: u64) -> Refusal {
    let name = |name: &str| Some(name.to_string());
    let range = |layers: LayerNames, tile, bytes| OverLimit {
        layers,
        tile,
        step: Some(3),
        bytes,
        limit,
        ..OverLimit::default()
    };
    Refusal {
        reason: Cause::TooFewIpus,
        limit,
        ranges: vec![
            range(vec![None, name("0"), name("1")], 0, limit + 1),
            range(vec![name("1"), name("2")], 1, 700_024),
        ],
        cuts_before: vec![name("1")],
        stages_needed: Some(3),
        smallest_limit: Some(700_024),
        smallest_tile_memory: Some(701_024),
        with_memory: Some(BestSplit {
            ipus: 2,
            options: "--mem-per-tile 701024".into(),
            fits: true,
            fullest_tile_bytes: 700_024,
            stages: vec![vec![None, name("0")], vec![name("1"), name("2")]],
            ..BestSplit::default()
        }),
        ipus_tried: Some(64),
        fewest_ipus: Some(3),
        on_more_ipus: Some(BestSplit {
            ipus: 3,
            options: "--num-ipus 3".into(),
            fits: true,
            fullest_tile_bytes: 600_000,
            change: -100_024,
            stages: vec![vec![None], vec![Some("0".into())], vec![Some("1".into())]],
            ..BestSplit::default()
        }),
        kept_together: vec!["weight wte (64 bytes) of 0 and 1".into()],
        relaxations: vec![RelaxationFacts {
            constraints: vec!["--pin 1=0".into()],
            weights: vec!["wte".into()],
            answer: BestSplit {
                fits: true,
                stages: vec![
                    vec![None, name("0")],
                    vec![name("1"), name("2"), name("Out")],
                ],
                ..BestSplit::default()
            },
        }],
        most_over: Some(range(vec![name("1"), name("2")], 1, 700_024)),
        advice: vec![Advice {
            change: Change::SerializedWeight,
            weight: Some("wte".into()),
            frees: 32,
        }],
        largest_variables: Vec::new(),
    }
}

pub fn given() -> GivenSplit {
    GivenSplit {
        broken_constraints: vec!["--pin 1=0".into()],
        best: BestSplit {
            stages: vec![
                vec![None, Some("0".into()), Some("1".into())],
                vec![Some("2".into()), Some("Out".into())],
            ],
            fullest_tile_bytes: 700_024,
            cut_bytes: 1024,
            slowest_stage_cycles: Some(590),
            ..BestSplit::default()
        },
    }
}

pub fn sweep(limit: u64) -> Sweep {
    let row = |ipus: u32, bytes: u64| BestSplit {
        ipus,
        fits: bytes <= limit,
        fullest_tile_bytes: bytes,
        free: limit as i64 - bytes as i64,
        cut_bytes: 4096 * u64::from(ipus - 1),
        slowest_stage_cycles: Some(1000 / u64::from(ipus)),
        step: Some(StepFacts {
            cycles: 5000 / u64::from(ipus),
            ..StepFacts::default()
        }),
        stages: vec![vec![None, Some("0".into())]],
        hint: (ipus == 4).then(|| "one machine".into()),
        ..BestSplit::default()
    };
    Sweep {
        limit,
        compares_pipelines: false,
        rows: vec![
            row(1, 1_300_000),
            row(2, 700_024),
            row(3, 500_000),
            row(4, 500_000),
        ],
    }
}

/// Makes the numbers from which an HTML page computes other splits of 5 positions (In, layers,
/// Out): a stage has 100,000 bytes for each of its positions, and 1,000 bytes for each stage after
/// it.
pub fn what_if() -> WhatIf {
    let bytes_of = |(start, end, after): (u32, u32, usize)| {
        100_000 * u64::from(end - start) + 1000 * after as u64
    };
    let best = |ipus, cuts: &[u32]| SplitCuts {
        ipus,
        fits: ipus > 1,
        cuts: cuts.to_vec(),
    };
    let without_numbers = WhatIf {
        max_stages: 4,
        by_stages_after: true,
        best: vec![best(1, &[]), best(2, &[3])],
        constraints: vec![CheckedConstraint {
            name: "--pin 1=0".into(),
            rule: crate::solve::Rule::Pin {
                position: 2,
                ipu: 0,
            },
        }],
        arguments: vec!["profile.pop".into()],
        ..WhatIf::default()
    };
    let boundaries: Vec<u32> = (0..=5).collect();
    let numbers = ProfileNumbers {
        bytes: without_numbers.ranges(&boundaries).map(bytes_of).collect(),
        cut_bytes: (1..5).map(|at| 10 * at).collect(),
        ..ProfileNumbers::default()
    };
    WhatIf {
        boundaries,
        profiles: vec![numbers],
        ..without_numbers
    }
}

pub fn plan() -> PlanFacts {
    let row = |ipus: u32, cycles| BestSplit {
        ipus,
        replicas: 4 / u64::from(ipus),
        schedule: Schedule::Popart,
        recompute: Recompute::Stage,
        fits: true,
        limit: 638_976,
        fullest_tile_bytes: 400_000 / u64::from(ipus),
        free: 38_976,
        stage_bytes: vec![400_000 / u64::from(ipus); 2],
        step: Some(StepFacts {
            cycles,
            micro_batches: 7,
            milliseconds: Some(1.5),
            efficiency: 0.75,
            slowest_stage: 1,
            ..StepFacts::default()
        }),
        stages: vec![vec![None, Some("0".into())], vec![Some("Out".into())]],
        command: "popliner profile.pop --num-ipus=2".into(),
        ..BestSplit::default()
    };
    PlanFacts {
        max_ipus: 4,
        ipus_tried: vec![1, 2, 4],
        pipelines_tried: vec![Pipeline {
            schedule: Schedule::Popart,
            recompute: Recompute::Stage,
            ..Pipeline::default()
        }],
        rows: vec![row(2, 1000), row(1, 3000)],
    }
}

pub fn step() -> StepFacts {
    StepFacts {
        micro_batches: 3,
        given_micro_batches: None,
        micro_batch: Some(8),
        replicas: 2,
        cycles: 3000,
        steady_cycles: 590,
        ramp_cycles: 830,
        update_cycles: 100,
        copy_cycles: Some(300),
        streamed_bytes: None,
        streaming_is_counted: None,
        slowest_stage: 1,
        efficiency: 0.59,
        milliseconds: Some(0.003),
        samples_per_second: Some(16_000_000.0),
    }
}

pub fn execution() -> Execution {
    let layer = |name: Option<&str>, cycles, exchange| LayerCycles {
        name: name.map(String::from),
        cycles,
        milliseconds: None,
        exchange,
        passes: PassCycles {
            forward: cycles - cycles / 4,
            backward: cycles / 4,
            ..PassCycles::default()
        },
    };
    let stage = |stage, cycles, exchange| StageCycles {
        stage,
        cycles,
        micro_batch_cycles: Some(cycles + cycles / 2),
        micro_batch_milliseconds: None,
        exchange,
        passes: Some(PassCycles {
            forward: cycles / 2,
            recomputed: cycles - cycles / 2,
            ..PassCycles::default()
        }),
    };
    Execution {
        source: ExecutionSource::CompileTimeEstimates,
        total: 1033,
        layers: vec![
            layer(None, 10, 10),
            layer(Some("0"), 400, 100),
            layer(Some("1"), 0, 0),
            layer(Some("2"), 580, 0),
            layer(Some("Out"), 10, 4),
        ],
        stages: vec![stage(0, 410, 110), stage(1, 590, 4)],
        unplaced: 30,
        unplaced_exchange: 20,
        other: 3,
    }
}
