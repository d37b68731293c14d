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
}
