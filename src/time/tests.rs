use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Stages of these forward, backward and recomputed cycles, each on an IPU of its own.
fn stages(passes: &[[u128; 3]]) -> Vec<(usize, Passes)> {
    let stage = |(ipu, &[forward, backward, recomputed]): (usize, &[u128; 3])| {
        let passes = Passes {
            forward,
            backward,
            recomputed,
            update: 0,
            streaming: [0; 2],
        };
        (ipu, passes)
    };
    passes.iter().enumerate().map(stage).collect()
}

fn step(order: Order, stages: &[(usize, Passes)], micro_batches: u64) -> StepTime {
    let slots = Slots::new(order, stages.len(), micro_batches);
    let period = Slots::of_one_micro_batch(order, stages.len());
    StepTime::new((&slots, &period), stages, (micro_batches, Some(0), 0)).unwrap()
}

const ALL: [Order; 6] = [
    Order::Together { every: 1 },
    Order::Apart { every: 1 },
    Order::Apart { every: 2 },
    Order::OneAfterTheOther,
    Order::Forward,
    Order::ForwardOneAfterTheOther,
];

/// The efficiencies that were computed by hand for stages of 1 forward, 2 backward and 1
/// recomputed; the last stage recomputes nothing, or all of its layers.
#[test]
fn efficiencies_of_even_stages() {
    let order = Order::Together { every: 1 };
    let efficiency = |count: usize, micro_batches: u64, last: u128| {
        let mut passes = vec![[1, 2, 1]; count];
        passes[count - 1][2] = last;
        let step = step(order, &stages(&passes), micro_batches);
        (step.steady as f64 * micro_batches as f64 / step.cycles as f64 * 1000.0).round()
    };
    assert_eq!(efficiency(4, 8, 0), 762.0);
    assert_eq!(efficiency(4, 8, 1), 727.0);
    assert_eq!(efficiency(8, 32, 0), 831.0);
    assert_eq!(efficiency(8, 32, 1), 821.0);
}

/// Work on micro-batches one by one, as IPUs would do it: in each slot every IPU takes
/// the work that has come to it.
fn simulated(order: Order, stages: &[(usize, Passes)], micro_batches: u64) -> u128 {
    let count = stages.len();
    let backward_at = |stage: usize| match order {
        Order::Together { .. } => 2 * (count - 1) - stage,
        _ => 2 * count - 1 - stage,
    };
    let has_backward = !matches!(order, Order::Forward | Order::ForwardOneAfterTheOther);
    let every = match order {
        Order::Together { every } | Order::Apart { every } => every as usize,
        _ => 1,
    };
    let is_parallel = !matches!(
        order,
        Order::OneAfterTheOther | Order::ForwardOneAfterTheOther
    );
    if !is_parallel {
        let all: u128 = stages
            .iter()
            .map(|(_, times)| times.active(true, has_backward))
            .sum();
        return all * u128::from(micro_batches);
    }
    let mut cycles = 0;
    let last_slot = 2 * count + every * micro_batches as usize;
    for slot in 0..=last_slot {
        let mut busy = vec![0u128; count];
        for micro_batch in 0..micro_batches as usize {
            let since = slot.checked_sub(every * micro_batch);
            for (stage, (ipu, times)) in stages.iter().enumerate() {
                let forward = since == Some(stage);
                let backward = has_backward && since == Some(backward_at(stage));
                busy[*ipu] += times.active(forward, backward);
            }
        }
        cycles += busy.iter().copied().max().unwrap();
    }
    cycles
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_step_is_what_ipus_do_one_micro_batch_after_the_other(
        passes in vec([0..40u128, 0..40u128, 0..20u128], 1..7),
        micro_batches in 0..20u64,
        order in 0..ALL.len(),
        out_is_first in any::<bool>(),
    ) {
        let mut stages = stages(&passes);
        if out_is_first && passes.len() > 2 {
            stages.last_mut().unwrap().0 = 0;
        }
        let order = ALL[order];
        let found = step(order, &stages, micro_batches);
        prop_assert_eq!(found.cycles, simulated(order, &stages, micro_batches));
        let more = step(order, &stages, micro_batches + 50).cycles;
        let one_more = step(order, &stages, micro_batches + 51).cycles;
        prop_assert_eq!(one_more - more, found.steady);
        prop_assert_eq!(found.ramps, found.cycles - found.steady * u128::from(micro_batches));
    }
}

#[test]
fn slots_are_counted_without_looking_at_each() {
    for order in ALL {
        let slots = Slots::new(order, 5, u64::MAX / 4);
        assert!(slots.kinds.len() <= 40, "{order:?}: {}", slots.kinds.len());
    }
    let few = Slots::new(Order::Apart { every: 1 }, 3, 10);
    assert_eq!(few.count(), 10 + 2 * 3 - 1);
    let in_turn = Slots::new(Order::Apart { every: 2 }, 3, 10);
    assert_eq!(in_turn.count(), 2 * (10 + 3 - 1));
    assert_eq!(Slots::new(Order::Forward, 4, 10).count(), 10 + 4 - 1);
}
