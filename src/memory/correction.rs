//! The calibrated correction: bytes that compiled pipelines needed beyond the prediction.

use super::PlacedStage;

/// The bytes on each tile that compiled pipelines needed beyond the prediction; below
/// 0 where they needed less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Correction {
    /// Stages that were compiled themselves, with their bytes: these positions with
    /// as many stages after them. The first of several counts.
    pub stages: Vec<(PlacedStage, i64)>,
    /// Bytes of any other stage that is the first of several.
    pub first: i64,
    /// Bytes of any other stage between two.
    pub middle: i64,
    /// Bytes of any other stage that is the last of several.
    pub last: i64,
    /// Bytes of any other stage that is alone.
    pub alone: i64,
}

impl Correction {
    /// Bytes beyond what is predicted for `stage`: its own if it was compiled, else
    /// those of its place. Where it is not known what comes after a stage, the
    /// [least](Correction::least) of any.
    pub fn bytes(&self, stage: &PlacedStage) -> i64 {
        let Some(after) = stage.after else {
            return self.least();
        };
        self.own(stage)
            .unwrap_or(match (stage.positions.start, after) {
                (0, 0) => self.alone,
                (0, _) => self.first,
                (_, 0) => self.last,
                _ => self.middle,
            })
    }

    /// For a pipeline of which no stage was compiled: what goes by the place.
    pub fn carried(&self) -> Self {
        Self {
            stages: Vec::new(),
            ..self.clone()
        }
    }

    /// Is the correction of `stage` that of other stages?
    pub fn is_estimate(&self, stage: &PlacedStage) -> bool {
        self.own(stage).is_none()
    }

    /// The lowest number of bytes of any stage.
    pub fn least(&self) -> i64 {
        let places = [self.first, self.middle, self.last, self.alone];
        let compiled = self.stages.iter().map(|&(_, bytes)| bytes);
        compiled.chain(places).min().unwrap_or(0)
    }

    /// The bytes that a stage which needs at most `limit` with the correction is predicted
    /// to need at most. No limit stays none.
    pub(super) fn predicted(&self, limit: u64) -> u64 {
        match limit {
            u64::MAX => limit,
            _ => limit.saturating_add_signed(self.least().saturating_neg()),
        }
    }

    /// The bytes of a stage that was compiled itself.
    fn own(&self, stage: &PlacedStage) -> Option<i64> {
        let mut compiled = self.stages.iter();
        let found = compiled.find(|(compiled, _)| compiled == stage);
        found.map(|&(_, bytes)| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    fn placed(positions: Range<usize>, after: usize) -> PlacedStage {
        PlacedStage {
            positions,
            after: Some(after),
        }
    }

    fn correction() -> Correction {
        Correction {
            stages: vec![(placed(0..2, 1), -7), (placed(2..5, 0), 100)],
            first: 1,
            middle: 2,
            last: -3,
            alone: 4,
        }
    }

    #[test]
    fn a_stage_gets_its_own_number_before_that_of_its_place() {
        let correction = correction();
        let expected = [
            (placed(0..2, 1), -7, false),
            (placed(2..5, 0), 100, false),
            (placed(0..2, 2), 1, true),
            (placed(0..3, 1), 1, true),
            (placed(2..4, 1), 2, true),
            (placed(1..5, 0), -3, true),
            (placed(0..5, 0), 4, true),
        ];
        for (stage, bytes, is_estimate) in expected {
            assert_eq!(correction.bytes(&stage), bytes, "{stage:?}");
            assert_eq!(correction.is_estimate(&stage), is_estimate, "{stage:?}");
            assert!(correction.least() <= bytes);
        }
        assert_eq!(correction.bytes(&PlacedStage::alone(0..2)), -7);
        assert_eq!(Correction::default().least(), 0);
    }

    #[test]
    fn what_may_fit_is_computed() {
        let with = |first| Correction {
            first,
            middle: first,
            last: first,
            alone: first,
            ..Correction::default()
        };
        assert_eq!(with(-5).predicted(10), 15);
        assert_eq!(with(4).predicted(10), 6);
        assert_eq!(with(11).predicted(10), 0);
        assert_eq!(with(i64::MIN).predicted(10), i64::MAX as u64 + 10);
        assert_eq!(with(5).predicted(u64::MAX), u64::MAX);
    }
}
