//! Reasons why a profile cannot become a model, or cannot answer a request.

use crate::limits;
use crate::message::{OVER_BOUND, PROFILE_AGAIN};
use crate::profile::ProfileError;
use thiserror::Error;

/// Why no model could be built. The caller adds the profile's name.
#[derive(Debug, Error)]
pub enum ModelError {
    /// A program leads to itself.
    #[error(
        "table `programs`: program {0} leads to itself through its children or calls; {PROFILE_AGAIN}"
    )]
    CyclicProgram(u64),
    /// Calls in calls make more visits than any real model has.
    #[error(
        "table `programs` or `program_type_call`: the program tree unfolds to more than {0} visits \
         of programs, more than any real model has; {OVER_BOUND}"
    )]
    TooManyVisits(usize),
    /// Calls are in bodies of calls, over and over.
    #[error(
        "table `programs` or `program_type_call`: Calls are nested more than {max} deep at program \
         {program}, deeper than in any real model; {OVER_BOUND}"
    )]
    NestedTooDeep {
        /// The Call that exceeds the maximum.
        program: u64,
        /// How deep Calls may be nested.
        max: usize,
    },
    /// The variables have more distinct groups of operations as users than in any real model.
    #[error(
        "table `compute_sets` or `exchange_regions`: the {variables} variables are used by more \
         than {max} different groups of operations, more than in any real model; {OVER_BOUND}"
    )]
    TooManySets {
        /// Number of variables.
        variables: usize,
        /// Maximum number of groups of operations that use variables.
        max: usize,
    },
    /// Operations use variables more often than can be processed.
    #[error(
        "table `compute_sets` or `exchange_regions`: operations use the {variables} variables \
         more than {max} times, more often than in any real model; {OVER_BOUND}"
    )]
    TooManyUses {
        /// Number of variables.
        variables: usize,
        /// Maximum number of uses of all variables together.
        max: usize,
    },
    /// Many programs point to few large rows of code.
    #[error(
        "table `programs`, column `variant_index`: the code of operations changes from tile to tile \
         more than {max} times, which takes more rows than the profile has; {OVER_BOUND}"
    )]
    TooMuchCode {
        /// Maximum number of changes of code from tile to tile.
        max: usize,
    },
    /// Programs use more distinct groups of variables together than in any real model.
    #[error(
        "table `compute_sets` or `exchange_regions`: programs use more than {max} different \
         groups of variables together, more than in any real model; {OVER_BOUND}"
    )]
    TooManyClusters {
        /// Maximum number of groups of variables that programs use.
        max: usize,
    },
    /// Steps use variables more often than any real model's.
    #[error(
        "table `depth_first_steps` or `eq_class_step`: steps use variables more than {} times or in \
         more than {} ways, more than in any real model; {OVER_BOUND}",
        limits::LOOKS,
        limits::FLOW
    )]
    TooMuchFlow,
    /// Many operations with long names or inputs.
    #[error(
        "debug.cbor or table `program_type_call`: the names and inputs of operations are longer than \
         {max} bytes together, more than in any real model; {OVER_BOUND}"
    )]
    TooMuchText {
        /// Maximum length of all texts together, in bytes.
        max: usize,
    },
    /// The names of variables could not be read.
    #[error(transparent)]
    Names(#[from] ProfileError),
    /// Code of one operation that no tile can hold.
    #[error(
        "the {what} of one operation (debug context {uid}) adds up to more than 4 GiB on tile \
         {tile}; {PROFILE_AGAIN}"
    )]
    CodeTooLarge {
        /// `vertex state`, `exchange code` or `control code`.
        what: &'static str,
        /// The operation's context.
        uid: u64,
        /// The tile.
        tile: u32,
    },
    /// Lowered variables with code that no tile can hold.
    #[error(
        "table `vars_info`: the variables of {categories} add up to more than 4 GiB on tile \
         {tile}; {PROFILE_AGAIN}"
    )]
    RecordedCodeTooLarge {
        /// The categories of that kind of code.
        categories: String,
        /// The tile.
        tile: u32,
    },
}

/// The profile says nothing of cycles, but the request needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the profile has no cycles: neither executed steps nor the compiler's estimates; record it \
     again with \
     POPLAR_ENGINE_OPTIONS='{{\"autoReport.all\":\"true\",\"profiler.includeCycleEstimates\":\"true\"}}' \
     for estimates, or run the model with the engine option autoReport.outputExecutionProfile set \
     to true for measured cycles"
)]
pub struct NoCycles;

/// The profile does not say how long a cycle takes, but the request needs that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the profile lacks the clock frequency of its target (clock_frequency of target_info), so a \
     step has cycles but no milliseconds; leave the option out, and compare the cycles of the \
     report"
)]
pub struct NoClock;
