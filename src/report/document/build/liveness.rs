//! What is live, step by step and at the peaks.

use super::Inputs;
use crate::memory;
use crate::model::{CodeKind, LivePlace, LiveVariables};
use crate::profile::ProfileError;
use crate::report::document::{
    Band, CategorySum, Curve, LiveVariable, Liveness, Peak, PeakVariables, SplitFacts, StageFacts,
    thin,
};
use std::ops::Range;

/// A curve of the whole model has at most about so many points.
pub(super) const MAX_POINTS: usize = 1000;
/// How many of the variables that are live at a peak are named.
const MAX_VARIABLES: usize = 20;

impl Inputs<'_> {
    pub(super) fn liveness(&self) -> Option<Liveness> {
        let tile = self.fullest_tile();
        let curves = self.memory.whole_curves(tile)?;
        let bands = self.memory.layer_spans().into_iter();
        Some(Liveness {
            steps: self.model.steps(),
            all_tiles: Curve::new(&curves.all_tiles, MAX_POINTS),
            fullest_tile: tile,
            fullest_tile_curve: Curve::new(&curves.on_tile, MAX_POINTS),
            bands: bands
                .map(|band| Band {
                    layer: self.name(band.layer as usize),
                    from: band.from,
                    to: band.to,
                })
                .collect(),
            peak_variables: None,
        })
    }

    /// Looks up what is live at the peaks: that of the whole model and those
    /// of all stages at once.
    pub(super) fn name_variables(
        &self,
        stages: &[Range<usize>],
        split: &mut Option<SplitFacts>,
        liveness: &mut Option<Liveness>,
    ) -> Result<(), ProfileError> {
        let Some(liveness) = liveness else {
            return Ok(());
        };
        let Some(lookup) = self.lookup else {
            liveness.peak_variables = self.at_bottleneck();
            return Ok(());
        };
        let facts = split.iter_mut().flat_map(|split| &mut split.stages);
        let facts: Vec<(&Range<usize>, &mut StageFacts)> = stages.iter().zip(facts).collect();
        let mut places = vec![LivePlace {
            tile: liveness.fullest_tile,
            step: liveness.fullest_tile_curve.peak.step,
        }];
        places.extend(facts.iter().map(|(_, stage)| LivePlace {
            tile: stage.fullest_tile.tile,
            step: stage.fullest_tile.peak_step.unwrap_or(0),
        }));
        let counts = |place: usize, set: u32, category: &str| match place.checked_sub(1) {
            None => true,
            Some(stage) => {
                let is_code = CodeKind::of_category(category).is_some();
                self.memory.counts_in(&stages[stage], set, is_code)
            }
        };
        let classes = &self.model.classes;
        let found = lookup.live_at(classes, &places, MAX_VARIABLES, counts)?;
        let mut found = found.into_iter().zip(places);
        let mut next = || found.next().map(|(live, place)| self.live(live, place));
        liveness.peak_variables = next();
        for (_, stage) in facts {
            let variables = next();
            stage.peak_variables = variables.filter(|_| stage.fullest_tile.peak_step.is_some());
        }
        Ok(())
    }

    /// What a saved model still knows by name.
    fn at_bottleneck(&self) -> Option<PeakVariables> {
        let bottleneck = self.model.memory_peak.as_ref()?;
        let largest = bottleneck.variables.iter().take(MAX_VARIABLES);
        let live = LiveVariables {
            count: bottleneck.variables.len() as u64,
            bytes: bottleneck.bytes,
            categories: Vec::new(),
            largest: largest.cloned().collect(),
        };
        let place = LivePlace {
            tile: bottleneck.tile,
            step: bottleneck.step,
        };
        Some(self.live(live, place))
    }

    fn live(&self, live: LiveVariables, place: LivePlace) -> PeakVariables {
        let categories = live.categories.into_iter();
        let categories = categories.map(|(name, bytes)| CategorySum {
            name: name.into(),
            bytes,
        });
        let largest = live.largest.into_iter().map(|variable| LiveVariable {
            name: variable.name.into(),
            category: variable.category.into(),
            bytes: u64::from(variable.bytes),
            layers: self.names(self.memory.layers_of(variable.set)),
        });
        PeakVariables {
            tile: place.tile,
            step: place.step,
            count: live.count,
            bytes: live.bytes,
            categories: categories.collect(),
            largest: largest.collect(),
        }
    }
}

impl Curve {
    /// Thins a curve to about `most` points.
    pub(super) fn new(curve: &memory::LiveCurve, most: usize) -> Self {
        let kept = thin(&curve.points, most);
        let points: Vec<_> = kept.into_iter().map(|place| curve.points[place]).collect();
        let (bytes, step) = curve.peak();
        Self {
            first_step: curve.window.0,
            last_step: curve.window.1,
            fixed: curve.fixed,
            always_live: curve.always_live,
            peak: Peak { step, bytes },
            thinned: points.len() < curve.points.len(),
            steps: points.iter().map(|point| point.0).collect(),
            bytes: points.iter().map(|point| point.1).collect(),
        }
    }
}
