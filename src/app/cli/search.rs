//! The options of the search: the limits of a stage, and the objective of the best split.

use super::{MemPerTile, NumIpus, Pin, Together};
use crate::model::Rules;
use crate::search::{Reserve, Solver};
use crate::solve::Goal;
use clap::Args;

/// Limits of a stage, and the search.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// How many IPUs there are: the maximum number of stages in a split; or auto for the
    /// fewest on which the model fits, up to 64 (PopTorch takes powers of 2 only). Without it
    /// auto, or as many as a given split has; 16 with --solver greedy and --memory-model classic
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub num_ipus: Option<NumIpus>,

    /// Memory of each tile to keep free, in bytes or per cent (such as 8192 or
    /// 5%). A profile of one IPU cannot show the code for exchange between IPUs
    /// and for host exchange at the ends of a pipeline: start with 5% and compare
    /// with a compilation for all IPUs
    #[arg(long, value_name = "AMOUNT", default_value = "0")]
    pub reserve: Reserve,

    /// Bytes that a stage may take on each tile; without it, what the
    /// profile's target has. A list, such as 600000,638976,500000, has one
    /// amount for each IPU, and as many as there are IPUs
    #[arg(long, value_name = "BYTES")]
    pub mem_per_tile: Option<MemPerTile>,

    /// Which memory is counted: all that the compiler recorded (full), or what the original
    /// tool counted (classic), which is too little for most models
    #[arg(long, value_name = "MODEL", default_value = "full")]
    pub memory_model: Rules,
}

/// Which split is the best one.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Search")]
pub struct Search {
    /// The number by which one split that fits is better than another [default: time, or
    /// fewest where the profile has no cycles]
    #[arg(long, value_name = "OBJECTIVE")]
    pub objective: Option<Goal>,

    /// Keep this layer on this IPU; IPUs are counted from 0, and each has one
    /// stage. In means what runs before the layers, Out what runs after them
    /// (None for both in the classic memory model), here and wherever layers are
    /// named. May be given several times, like --together, --cut-after and
    /// --no-cut-after
    #[arg(long, value_name = "LAYER=IPU")]
    pub pin: Vec<Pin>,

    /// Keep these two layers, and so all between them, on one IPU
    #[arg(long, value_name = "LAYER,LAYER")]
    pub together: Vec<Together>,

    /// End a stage with this layer
    #[arg(long, value_name = "LAYER")]
    pub cut_after: Vec<String>,

    /// End no stage with this layer
    #[arg(long, value_name = "LAYER")]
    pub no_cut_after: Vec<String>,

    /// How to search: the integer program, which proves its answer, or the
    /// greedy search of the original tool, which knows neither objectives nor
    /// constraints
    #[arg(long, value_name = "SOLVER", default_value = "ilp")]
    pub solver: Solver,
}

impl Search {
    /// Is there any constraint on the split?
    pub fn has_constraints(&self) -> bool {
        !(self.pin.is_empty()
            && self.together.is_empty()
            && self.cut_after.is_empty()
            && self.no_cut_after.is_empty())
    }
}
