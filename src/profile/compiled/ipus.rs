//! Finds the IPUs and replicas that a profile lists, and the tiles of each IPU.

use crate::message::{PROFILE_AGAIN, Result, unusable};
use crate::profile::RecordedTile;
use crate::profile::database::Database;
use crate::profile::error::{cell, no_row};
use crate::profile::target::{TILES, Target, listed_tiles};
use std::ops::Range;

/// The IPUs that a profile lists. Tiles are numbered across all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipus {
    /// Number of listed IPUs.
    pub count: u32,
    /// Number of tiles of each IPU.
    pub tiles_per_ipu: u32,
    /// Number of replicas that the model was compiled for; all run the same program.
    pub replicas: u32,
    /// Number of replicas whose IPUs the file lists, one replica after the other. IPUs 0 to `count
    /// / listed_replicas` (end exclusive) belong to the first replica (assumed).
    pub listed_replicas: u32,
}

const TABLE: &str = "target_info";

impl Ipus {
    /// Derives the listed IPUs from the rows of `memory_by_tile`, and sets `num_tiles` and
    /// `num_ipus` of `target` to the numbers of listed tiles and IPUs.
    ///
    /// # Errors
    /// If the listed tiles do not make whole IPUs, or contradict `target`.
    pub(super) fn read(database: &Database, target: &mut Target) -> Result<Self> {
        let listed = listed_tiles(database)?;
        if listed == 0 {
            return Err(no_row(TILES));
        }
        let of_ipu = u64::from(target.tiles_per_ipu);
        let all = u64::from(target.num_tiles);
        if !all.is_multiple_of(of_ipu) {
            let problem =
                format!("{all} tiles are not a whole number of IPUs of {of_ipu} tiles each");
            return Err(cell(TABLE, "num_tiles", all, problem));
        }
        let replicas = target.num_replicas.max(1);
        let is_known = listed == all || listed.checked_mul(replicas) == Some(all);
        if !is_known || !listed.is_multiple_of(of_ipu) {
            return unusable(format!(
                "table `memory_by_tile` lists {listed} tiles, but `target_info` has {all} (IPUs of \
                 {of_ipu} tiles each, {replicas} replicas); {PROFILE_AGAIN}"
            ));
        }
        let ipus = listed / of_ipu;
        let stated = target.num_ipus;
        let is_times = |a: u64, b, by| a.checked_mul(by) == Some(b);
        let is_stated = |by| is_times(ipus, stated, by) || is_times(stated, ipus, by);
        if !is_stated(1) && !is_stated(replicas) {
            return Err(cell(
                TABLE,
                "num_ipus",
                stated,
                format!("{all} tiles at {of_ipu} for each IPU do not make {stated} IPUs"),
            ));
        }
        target.num_tiles = listed as u32;
        target.num_ipus = ipus;
        Ok(Self {
            count: ipus as u32,
            tiles_per_ipu: target.tiles_per_ipu,
            replicas: u32::try_from(replicas).unwrap_or(u32::MAX),
            listed_replicas: listed_replicas(database, target, ipus)?,
        })
    }

    /// Returns the tiles of `ipu`, numbered across all IPUs (end exclusive).
    pub fn tiles(&self, ipu: u32) -> Range<usize> {
        let tiles = self.tiles_per_ipu as usize;
        let first = ipu as usize * tiles;
        first..first + tiles
    }

    /// Returns the IPU on which `tile` lies; tiles are numbered across all IPUs.
    pub fn of_tile(&self, tile: u32) -> u32 {
        tile / self.tiles_per_ipu
    }

    /// Returns the tile of `ipu` with the largest recorded total, numbered across all IPUs; the
    /// first one of a tie. `tiles` has the record of all tiles.
    pub fn fullest_tile(&self, tiles: &[RecordedTile], ipu: u32) -> u32 {
        self.tiles(ipu)
            .rev()
            .max_by_key(|&tile| tiles[tile].total)
            .unwrap_or(0) as u32
    }
}

/// Returns the number of replicas whose IPUs are listed: `ipus`, the number of listed IPUs, divided
/// by the column `ipus_per_replica`; 1 if that column is missing. An error unless the result is 1
/// or all replicas.
fn listed_replicas(database: &Database, target: &Target, ipus: u64) -> Result<u32> {
    let replicas = target.num_replicas;
    let mut of_replica = ipus;
    if replicas > 1 {
        of_replica = database
            .rows_if_any(TABLE, &["ipus_per_replica"], |row| row.optional(0))?
            .into_iter()
            .flatten()
            .next_back()
            .unwrap_or(ipus);
    }
    match [1, replicas]
        .into_iter()
        .find(|listed| listed.checked_mul(of_replica) == Some(ipus))
    {
        Some(listed) => Ok(listed as u32),
        None => Err(cell(
            TABLE,
            "ipus_per_replica",
            of_replica,
            format!("{ipus} IPUs are listed, of {replicas} replicas"),
        )),
    }
}
