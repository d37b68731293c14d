//! The objectives by which splits are compared, and their order for each goal. `plan.rs` computes
//! the values of a whole split, and `checked_problem.rs` the values of one stage.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A number by which splits are compared. A lower value is better in every objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// The bytes on the fullest tile of any stage.
    Peak,
    /// The number of stages of the split.
    Stages,
    /// The sum of the squared peaks of all stages, in bytes squared. Of splits into equally many
    /// stages, those that divide memory more evenly tend to have lower sums.
    Squares,
    /// The bytes of the variables that cross cuts between stages, over all tiles and summed over
    /// all cuts.
    CutBytes,
    /// The cycles that the slowest stage takes for one micro-batch, including the operations that
    /// it recomputes.
    Cycles,
}

/// The objective by which splits are compared first. Only splits that are within the limits and
/// obey the constraints are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ValueEnum)]
pub enum Goal {
    /// The lowest memory on the fullest tile; then the fewest stages, the fewest cycles of the
    /// slowest stage, the most even memory of the stages, and the fewest bytes over the cuts.
    #[default]
    Peak,
    /// The fewest stages; of splits with equally many stages, the best one for the objective peak.
    Fewest,
    /// The fewest bytes over the cuts; of splits with equally many bytes, the best one for the
    /// objective peak.
    Communication,
    /// The fewest cycles of the slowest stage, executed or as the compiler estimates, including
    /// recomputation; of splits with equally many cycles, the best one for the objective peak.
    Cycles,
    /// The shortest time of a pipeline step divided by its micro-batches, including filling and
    /// draining the pipeline, the copies between IPUs and the weight update; then the fewest
    /// stages, then the lowest peak.
    Time,
}

impl Goal {
    /// Returns the objectives by which plans are compared, the most important first. Cycles are
    /// skipped if the profile has no cycle counts. Of plans that are equal in all objectives, the
    /// plan with the earliest cuts is the best. The time of a step is not an objective: for
    /// [`Goal::Time`], the returned order only determines the split that the search for the
    /// shortest step begins with.
    pub fn order(self) -> &'static [Objective] {
        use Objective::{CutBytes, Cycles, Peak, Squares, Stages};
        match self {
            Self::Peak => &[Peak, Stages, Cycles, Squares, CutBytes],
            Self::Fewest => &[Stages, Peak, Cycles, Squares, CutBytes],
            Self::Communication => &[CutBytes, Peak, Stages, Cycles, Squares],
            Self::Cycles | Self::Time => &[Cycles, Peak, Stages, Squares, CutBytes],
        }
    }

    /// Returns whether the goal compares times or cycles, which a profile may lack.
    pub fn needs_cycles(self) -> bool {
        matches!(self, Self::Cycles | Self::Time)
    }
}

impl Objective {
    /// Returns the name of the objective in JSON and other machine-readable output.
    pub fn key(self) -> &'static str {
        self.words().0
    }

    /// Returns the name of the objective ([`Objective::key`]), and a phrase for people that
    /// describes the best value in this objective.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Peak => ("peak", "lowest memory on the fullest tile"),
            Self::Stages => ("stages", "fewest stages"),
            Self::Squares => ("squares", "least sum of squared stage peaks"),
            Self::CutBytes => ("cut_bytes", "fewest bytes over the cuts"),
            Self::Cycles => ("cycles", "fewest cycles of the slowest stage"),
        }
    }

    /// Returns whether the value of a plan in this objective is the highest value of any of its
    /// stages, rather than the sum over its stages.
    pub fn is_bottleneck(self) -> bool {
        matches!(self, Self::Peak | Self::Cycles)
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words().1)
    }
}

/// Serializes numbers of up to 128 bits as decimal text, which every reader of JSON keeps exactly.
pub mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(number: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(number)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_has_the_stages_so_that_equals_have_as_many_cuts() {
        for goal in Goal::value_variants() {
            assert!(goal.order().contains(&Objective::Stages));
            assert!(goal.order().contains(&Objective::Peak));
        }
    }
}
