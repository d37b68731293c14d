//! Format version and target, which are read first.

use super::ProfileError;
use super::database::Database;
use super::error::KNOWN_MAJOR;
use super::recorded::{TILES, listed_tiles};
use crate::limits;
use crate::message::Warning;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of the report format, from `version_info`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FormatVersion {
    /// First number; 3 since profiles are SQLite.
    pub major: u64,
    /// Second number.
    pub minor: u64,
    /// Third number.
    pub point: u64,
}

/// Second number of the only version that was checked on a real file (Poplar 3.3.0).
const KNOWN_MINOR: u64 = 8;

impl FormatVersion {
    pub(super) fn read(database: &Database) -> Result<Self, ProfileError> {
        let table = "version_info";
        if !database.has_table(table) {
            return Err(ProfileError::NotAProfile { table });
        }
        let mut version = None;
        database.scan(table, &["major", "minor", "point"], |row| {
            if version.is_some() {
                return Err(ProfileError::SeveralRows { table });
            }
            version = Some(Self {
                major: row.unsigned(0)?,
                minor: row.unsigned(1)?,
                point: row.unsigned(2)?,
            });
            Ok(())
        })?;
        let version = version.ok_or(ProfileError::NoRow { table })?;
        version.check_major()?;
        Ok(version)
    }

    /// Refuses formats whose tables may mean something else.
    fn check_major(self) -> Result<(), ProfileError> {
        match self.major {
            KNOWN_MAJOR => Ok(()),
            _ => Err(ProfileError::OtherFormat(self)),
        }
    }

    /// Warns about a version that was not checked on a real file.
    pub(super) fn warnings(self) -> Vec<Warning> {
        if (self.major, self.minor) == (KNOWN_MAJOR, KNOWN_MINOR) {
            return Vec::new();
        }
        vec![Warning::new(format!(
            "the profile has report format {self}, and only {KNOWN_MAJOR}.{KNOWN_MINOR} (Poplar \
             3.3) was checked against real files; look at the figures and at the coverage with \
             care, or record the profile with that SDK"
        ))]
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.point)
    }
}

/// Machine that the model was compiled for, from `target_info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Tiles of one IPU: 1216 on Mk1, 1472 on Mk2 and Bow.
    pub tiles_per_ipu: u32,
    /// Tiles of all IPUs together.
    pub num_tiles: u32,
    /// Memory of one tile in bytes: 262,144 on Mk1, 638,976 on Mk2 and Bow.
    pub bytes_per_tile: u64,
    /// IPUs that the model was compiled for.
    pub num_ipus: u64,
    /// Replicas that the model was compiled for.
    pub num_replicas: u64,
    /// Poplar's name of the hardware, such as `ipu2`.
    pub architecture: String,
}

impl Target {
    pub(super) fn read(database: &Database) -> Result<Self, ProfileError> {
        let table = "target_info";
        let columns = &[
            "tiles_per_ipu",
            "num_tiles",
            "bytes_per_tile",
            "num_ipus",
            "num_replicas",
            "architecture",
        ];
        let mut target = None;
        database.scan(table, columns, |row| {
            if target.is_some() {
                return Err(ProfileError::SeveralRows { table });
            }
            for column in 0..2 {
                if !(1..=limits::TILES).contains(&row.unsigned(column)?) {
                    return Err(row.problem(column, "no machine has that many tiles"));
                }
            }
            target = Some(Self {
                tiles_per_ipu: row.small(0)?,
                num_tiles: row.small(1)?,
                bytes_per_tile: row.unsigned(2)?,
                num_ipus: row.unsigned(3)?,
                num_replicas: row.unsigned(4)?,
                architecture: row.text(5)?,
            });
            Ok(())
        })?;
        target.ok_or(ProfileError::NoRow { table })
    }

    /// If the model was compiled for replicas of one IPU each and the profile lists one of them,
    /// reduces the target to that replica and returns a warning. Replicas run the same program on
    /// the same tiles, so results for one hold for all.
    pub(super) fn take_one_replica(
        &mut self,
        database: &Database,
    ) -> Result<Option<Warning>, ProfileError> {
        let replicas = self.num_replicas;
        let (of_ipu, all) = (u64::from(self.tiles_per_ipu), u64::from(self.num_tiles));
        let is_one_ipu_each = all == of_ipu || Some(all) == of_ipu.checked_mul(replicas);
        if replicas <= 1 || !is_one_ipu_each {
            return Ok(None);
        }
        let listed = if database.has_table(TILES) {
            listed_tiles(database)?
        } else {
            0
        };
        if listed != of_ipu {
            return Err(ProfileError::Replicas { replicas, listed });
        }
        *self = Self {
            num_tiles: self.tiles_per_ipu,
            num_ipus: 1,
            num_replicas: 1,
            ..self.clone()
        };
        Ok(Some(Warning::new(format!(
            "the profile was compiled for {replicas} identical replicas of one IPU each, and \
             results are for one of them, with the code that exchanges gradients between them and \
             only its share of sharded variables; compile without replication to compute the model \
             by itself"
        ))))
    }

    /// Refuses a target of several IPUs, which the rules do not cover (docs/model.md, "The memory
    /// of a stage"), and impossible sizes.
    pub(crate) fn check_single_ipu(&self) -> Result<(), ProfileError> {
        self.check_sizes()?;
        if self.num_tiles == self.tiles_per_ipu && self.num_ipus == 1 && self.num_replicas <= 1 {
            return Ok(());
        }
        Err(ProfileError::SeveralIpus {
            ipus: self.num_ipus,
            tiles: self.num_tiles,
            of_ipu: self.tiles_per_ipu,
            replicas: self.num_replicas,
        })
    }

    /// Refuses sizes that no machine has.
    pub(super) fn check_sizes(&self) -> Result<(), ProfileError> {
        let unlike = |column, value: u64, what| {
            let problem = format!("no machine has {what}");
            Err(ProfileError::cell("target_info", column, value, problem))
        };
        if !(1..=limits::BYTES_OF_TILE).contains(&self.bytes_per_tile) {
            return unlike("bytes_per_tile", self.bytes_per_tile, "tiles of that size");
        }
        if self.tiles_per_ipu > limits::TILES_OF_IPU {
            let tiles = u64::from(self.tiles_per_ipu);
            return unlike("tiles_per_ipu", tiles, "IPUs of that many tiles");
        }
        Ok(())
    }
}
