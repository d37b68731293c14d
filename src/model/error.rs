//! What can keep a profile from becoming a model.

use crate::profile::ProfileError;
use thiserror::Error;

/// Why no model could be built. The caller adds the profile's name.
#[derive(Debug, Error)]
pub enum ModelError {
    /// A program leads to itself.
    #[error(
        "table `programs`: program {0} leads to itself through its children or calls, so the \
         program tree is damaged"
    )]
    CyclicProgram(u64),
    /// Calls in calls make more visits than any real model has.
    #[error(
        "the program tree unfolds to more than {0} visits of programs, more than any real model \
         has; the tables `programs` or `program_type_call` are damaged"
    )]
    TooManyVisits(usize),
    /// Calls are in bodies of calls, over and over.
    #[error(
        "Calls are nested more than {most} deep at program {program}, deeper than in any real \
         model; the tables `programs` or `program_type_call` are damaged"
    )]
    NestedTooDeep {
        /// The Call that is one too many.
        program: u64,
        /// How deep Calls may be nested.
        most: usize,
    },
    /// Operations share variables in more ways than any real model does.
    #[error(
        "table `compute_sets` or `exchange_regions`: the {variables} variables are used by more \
         than {most} different groups of operations, more than in any real model; the profile \
         is damaged"
    )]
    TooManySets {
        /// How many variables there are.
        variables: usize,
        /// The maximum number of groups that they may have.
        most: usize,
    },
    /// Operations use more variables than can be looked at.
    #[error(
        "table `compute_sets` or `exchange_regions`: operations use the {variables} variables \
         more than {most} times, more often than in any real model; the profile is damaged"
    )]
    TooManyUses {
        /// How many variables there are.
        variables: usize,
        /// How often they may be used.
        most: usize,
    },
    /// Many programs point to few large rows of code.
    #[error(
        "the code of operations changes from tile to tile more than {most} times, which takes \
         more rows than the profile has; table `programs`, column `variant_index` is damaged"
    )]
    TooMuchCode {
        /// How often it may change.
        most: usize,
    },
    /// Programs use variables in more ways than any real model's.
    #[error(
        "table `compute_sets` or `exchange_regions`: programs use more than {max} different \
         groups of variables together, more than in any real model; the profile is damaged"
    )]
    TooManyPieces {
        /// The maximum number of groups that they may use.
        max: usize,
    },
    /// Many operations with long names or inputs.
    #[error(
        "the names and inputs of operations are longer than {most} bytes together, more than in \
         any real model; the debug contexts or the table `program_type_call` are damaged"
    )]
    TooMuchText {
        /// How long they may be together.
        most: usize,
    },
    /// The names of variables could not be read.
    #[error(transparent)]
    Names(#[from] ProfileError),
    /// Code of one operation that no tile can hold.
    #[error(
        "the {what} of one operation (debug context {uid}) adds up to more than 4 GiB on tile \
         {tile}; the profile is damaged"
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
         {tile}; the profile is damaged"
    )]
    RecordedCodeTooLarge {
        /// The categories of that kind of code.
        categories: String,
        /// The tile.
        tile: u32,
    },
}
