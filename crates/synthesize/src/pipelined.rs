//! A pipelined compilation asked for on the command line.
//!
//! Measurements want a big one. This has 16 IPUs of 1,472 tiles and 12 million
//! variables, and takes a minute and a half and 1.5 GB of memory:
//!
//! ```text
//! synthesize --out DIR --framework popart --mode training --layers 46 \
//!     --optimiser adam-each --names variable --accumulation --tiles 1472 \
//!     --vars-per-layer-tile 10 --bytes-per-layer-tile 30000 --seed 21 \
//!     --pipelined 3,6,9,12,15,18,21,24,27,30,33,36,39,42,45 \
//!     --recompute stage --planted-codes --execution
//! ```

use clap::Args;

use super::pipeline::{PipelineOptions, PlantedCode, ProfileForm, Recompute, Schedule};

/// Switches of a pipelined compilation.
#[derive(Debug, Clone, Args)]
pub struct PipelinedOptions {
    /// Writes the profile of a pipeline over several IPUs instead of that of one:
    /// the positions before which there is a cut, where In is 0, the layers come
    /// from 1 on, and Out is the last. debug.cbor stays the same. The options
    /// below need it.
    #[arg(long, value_delimiter = ',')]
    pub pipelined: Option<Vec<u32>>,
    /// The order of micro-batches.
    #[arg(long, value_enum, default_value_t = Schedule::Popart, requires = "pipelined")]
    pub schedule: Schedule,
    /// What runs again before the backward pass.
    #[arg(long, value_enum, default_value_t = Recompute::None, requires = "pipelined")]
    pub recompute: Recompute,
    /// Adds code that no profile of one IPU has: of exchanges between IPUs, of
    /// repeated host exchanges, of restores.
    #[arg(long, requires = "pipelined")]
    pub planted_codes: bool,
}

/// A pipelined compilation to be written.
#[derive(Debug, Clone)]
pub struct Pipelined {
    /// Positions before which there is a cut.
    pub cuts: Vec<u32>,
    /// The pipeline that is compiled.
    pub options: PipelineOptions,
    /// How it is written.
    pub form: ProfileForm,
}

impl PipelinedOptions {
    /// The requested pipeline, with an execution or without. Of an outlined model, whose bodies
    /// are listed at the call of one layer, each IPU goes through the steps of the others too.
    pub fn settle(&self, execution: bool, is_outlined: bool) -> Option<Pipelined> {
        let form = ProfileForm {
            planted: match self.planted_codes {
                true => PlantedCode::SMALL,
                false => PlantedCode::NONE,
            },
            execution,
            ..ProfileForm::PLAIN
        };
        Some(Pipelined {
            cuts: self.pipelined.clone()?,
            options: PipelineOptions {
                all_steps: is_outlined,
                ..PipelineOptions::new(self.schedule, self.recompute)
            },
            form,
        })
    }
}
