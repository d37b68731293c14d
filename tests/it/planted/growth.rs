//! A stage never shrinks when a layer is added, on any tile and in either memory model, so a range
//! over the limit is over it in every longer range.

use std::collections::HashMap;
use std::ops::Range;

use popliner::model::Placement;

use super::subject::{Subject, each_fixture, each_generated, the_sample};

fn stages_only_grow(subject: &Subject) {
    let placements = [
        Placement::classic(&subject.model, &subject.layering).expect("few sets"),
        subject.placement(),
    ];
    for placement in &placements {
        let memory = subject.memory(placement);
        let layers = memory.layers();
        let starts = 0..layers;
        let ranges = starts.flat_map(|from| (from + 1..=layers).map(move |to| from..to));
        let ranges: Vec<Range<usize>> = ranges.collect();
        let stages = memory.stages(&ranges);
        let needs = stages.iter().map(|stage| -> Vec<u64> {
            let tiles = stage.tiles.iter();
            tiles.map(|parts| parts.total()).collect()
        });
        let needs: HashMap<Range<usize>, Vec<u64>> = ranges.into_iter().zip(needs).collect();
        for (range, needed) in needs.iter().filter(|(range, _)| range.len() > 1) {
            for smaller in [range.start + 1..range.end, range.start..range.end - 1] {
                let less = &needs[&smaller];
                let grows = needed.iter().zip(less).all(|(more, less)| more >= less);
                assert!(grows, "{}: {range:?} and {smaller:?}", subject.name);
            }
        }
    }
}

#[test]
fn stages_of_fixtures_only_grow() {
    each_fixture(stages_only_grow);
}

#[test]
fn stages_of_generated_models_only_grow() {
    each_generated(stages_only_grow);
}

#[test]
fn stages_of_the_real_sample_only_grow() {
    the_sample(stages_only_grow);
}
