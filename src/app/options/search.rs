//! Defines the options of the search: the limits of a stage, and the objective of the best split.

use super::effects::{ON_LIMITS, ON_SPLITS};
use super::values::{List, ShortHelp, mem_per_tile};
use crate::analysis::LayerConstraint;
use crate::model::Rules;
use crate::search::{IpuCount, Reserve, Solver};
use crate::solve::Goal;
use clap::Args;

/// Options that limit the IPUs and the memory of a stage.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// How many IPUs you have, for all replicas together; or auto for the fewest on which the
    /// model fits, up to 64 (only powers of 2 for PopTorch). The default is auto, or the number of
    /// IPUs of a given split; 16 with --solver greedy or --memory-model classic
    #[arg(long, value_name = "N", allow_negative_numbers = true, group = ON_SPLITS,
          short_help = "How many IPUs you have, or auto")]
    pub num_ipus: Option<IpuCount>,

    /// Memory of each tile to keep free, in bytes or per cent (such as 8192 or
    /// 5%). A profile of one IPU cannot show the code for exchange between IPUs
    /// and for host exchange at the ends of a pipeline: start with 5% and compare
    /// with a compilation for all IPUs
    #[arg(long, value_name = "AMOUNT", default_value = "0", group = ON_LIMITS,
          short_help = "Memory of each tile to keep free, such as 5%")]
    pub reserve: Reserve,

    /// The memory limit of a stage on each tile, in bytes; by default, the memory of the profile's
    /// tiles. A list, such as 600000,638976,500000, has one amount for each IPU
    #[arg(long, value_name = "BYTES", value_parser = mem_per_tile, group = ON_LIMITS)]
    pub mem_per_tile: Option<List<u64>>,

    /// Which memory to count: everything that the compiler recorded (full), or what the original
    /// tool counted (classic), which is too little for most models
    #[arg(
        long,
        value_name = "MODEL",
        default_value = "full",
        conflicts_with = "fit"
    )]
    pub memory_model: Rules,
}

/// Options that say which split is the best one, and which splits are allowed.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// What makes one split that fits better than another [default: time, or fewest if the
    /// profile has no cycles; peak with --solver greedy or --memory-model classic]
    #[arg(long, value_name = "OBJECTIVE", group = ON_SPLITS)]
    pub objective: Option<Goal>,

    /// Keep this layer on this IPU. IPUs count from 0, and each has one stage. Here and wherever
    /// you name layers, In is what runs before the layers, and Out what runs after them (None for
    /// both in the classic memory model). May be given several times, like --together
    /// and --cut-before
    #[arg(long, value_name = "LAYER=IPU", value_parser = LayerConstraint::pin, group = ON_SPLITS)]
    pub pin: Vec<LayerConstraint>,

    /// Keep these two layers, and all layers between them, on one IPU
    #[arg(long, value_name = "LAYER,LAYER", value_parser = LayerConstraint::together, group = ON_SPLITS)]
    pub together: Vec<LayerConstraint>,

    /// Begin a stage with this layer
    #[arg(long, value_name = "LAYER", group = ON_SPLITS)]
    pub cut_before: Vec<String>,

    /// How to search: with the integer program, which proves its answer, or with the greedy
    /// search of the original tool, which supports no objectives and no constraints
    #[arg(long, value_name = "SOLVER", default_value = "ilp", group = ON_SPLITS)]
    pub solver: Solver,
}

impl SearchArgs {
    /// Returns the constraints on the split that all options give together.
    pub fn constraints(&self) -> Vec<LayerConstraint> {
        self.pin
            .iter()
            .chain(&self.together)
            .cloned()
            .chain(
                self.cut_before
                    .iter()
                    .cloned()
                    .map(LayerConstraint::CutBefore),
            )
            .collect()
    }
}
