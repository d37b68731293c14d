//! Summary of a profile, for users who have several.

use super::database::Database;
use super::{FormatVersion, ProfileError, Target};
use crate::progress::Progress;
use std::path::Path;

/// Summary of a profile that is made without reading all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// IPUs that the model was compiled for (`target_info.num_ipus`).
    pub ipus: u64,
    /// Replicas that the model was compiled for.
    pub replicas: u64,
    /// Does the profile have lowered variables?
    pub has_variables: bool,
    /// Does the profile have executed steps?
    pub is_executed: bool,
}

impl Outline {
    /// Reads the summary of the profile at `path`.
    ///
    /// # Errors
    /// [`ProfileError`] if the file is no profile, or its target cannot be understood.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let mut database = Database::open(path, &Progress::new())?;
        database.version = FormatVersion::read(&database)?;
        let target = Target::read(&database)?;
        let has_rows = |table| -> Result<bool, ProfileError> {
            Ok(database.has_table(table) && database.has_rows(table)?)
        };
        Ok(Self {
            ipus: target.num_ipus,
            replicas: target.num_replicas,
            has_variables: has_rows("vars_info")?,
            is_executed: has_rows("steps")?,
        })
    }

    /// Can the model be split: was it compiled for one IPU, and does the profile have variables?
    pub fn can_be_split(&self) -> bool {
        self.ipus == 1 && self.has_variables
    }
}
