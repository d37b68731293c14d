//! Reads the bytes of not-always-live variables by step and IPU.

use super::super::RecordedTile;
use super::super::database::Database;
use super::super::ids::{Ids, check_ipu};
use super::super::liveness::STEPS;
use super::Ipus;
use crate::limits;
use crate::message::{PROFILE_AGAIN, Result, Warning};
use rustc_hash::FxHashMap;

/// The bytes of not-always-live variables on each IPU at each step.
#[derive(Debug)]
pub struct LiveByIpu {
    /// Number of liveness steps of the program.
    pub steps: u32,
    /// By IPU: each step index at which the live bytes change, ascending, with the bytes that are
    /// live from that step on, summed over the tiles of the IPU.
    pub ipus: Vec<Vec<(u32, u64)>>,
}

/// The table of changes of live bytes by step and IPU.
pub(crate) const TABLE: &str = "memory_not_always_live_by_step_and_ipu";

/// Returns whether the profile has the table of live bytes by step and IPU, and the table of steps.
pub(super) fn is_there(database: &Database) -> bool {
    database.has_table(TABLE) && database.has_table(STEPS)
}

/// Changes of live bytes, on one IPU or summed over all IPUs: pairs of a step index and the change
/// at that step in bytes, negative if fewer bytes are live than at the step before.
type Deltas = Vec<(u32, i64)>;

/// Reads the live bytes of not-always-live variables on each IPU. `tiles` has the recorded memory
/// of all tiles, `steps` the ids of all steps, ascending. Returns `None` if the profile lacks live
/// bytes by IPU, and also, with a warning added to `warnings`, if they contradict other tables.
///
/// Rows without an IPU are taken as sums over all IPUs, beside rows with an IPU. A real profile of
/// one IPU has both kinds of rows. For several IPUs this is assumed, so the sums are checked.
pub(super) fn read(
    database: &Database,
    ipus: Ipus,
    tiles: &[RecordedTile],
    steps: &[u64],
    warnings: &mut Vec<Warning>,
) -> Result<Option<LiveByIpu>> {
    if !is_there(database) {
        return Ok(None);
    }
    let mut deltas = read_deltas(database, steps, ipus.count.into())?;
    let mut of = |ipu| summed_by_step(deltas.remove(&ipu).unwrap_or_default());
    let of_all = of(None);
    let of_ipus: Vec<Deltas> = (0..ipus.count).map(|ipu| of(Some(ipu.into()))).collect();
    if of_ipus.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let checked = curves(of_all, &of_ipus, ipus, tiles);
    if let Err(problem) = &checked {
        warnings.push(Warning::new(format!(
            "liveness by IPU is left out: table `{TABLE}`: {problem}; {PROFILE_AGAIN}"
        )));
    }
    Ok(checked.ok().map(|curves| LiveByIpu {
        steps: steps.len() as u32,
        ipus: curves,
    }))
}

/// Reads the changes of live bytes in the profile of one IPU, ascending by step index: from the
/// rows of IPU 0 or, if there are none, from the rows without an IPU, which are sums. Empty if the
/// profile lacks the table.
///
/// # Errors
/// If the table cannot be read, or refers to a step that is not in `steps` (ids, ascending).
pub(in crate::profile) fn by_step(database: &Database, steps: &[u64]) -> Result<Vec<(u32, i64)>> {
    let mut deltas = FxHashMap::default();
    if database.has_table(TABLE) {
        // IPUs after the first belong to other replicas, which run the same program.
        deltas = read_deltas(database, steps, u64::MAX)?;
    }
    let of_first = deltas.remove(&Some(0));
    let found = of_first.or_else(|| deltas.remove(&None));
    Ok(summed_by_step(found.unwrap_or_default()))
}

/// Reads the ids of the liveness steps, ascending; a step's index is the position of its id here.
pub(super) fn read_steps(database: &Database) -> Result<Vec<u64>> {
    let mut steps = database.rows(STEPS, &["id"], |row| row.unsigned(0))?;
    steps.sort_unstable();
    Ids::of(STEPS, "id", &steps)?;
    Ok(steps)
}

/// Reads the changes of live bytes in [`TABLE`] by IPU; there are `ipus` IPUs, and `None` stands
/// for the sum over all. `steps` has the ids of the steps, ascending.
fn read_deltas(
    database: &Database,
    steps: &[u64],
    ipus: u64,
) -> Result<FxHashMap<Option<u64>, Deltas>> {
    let mut deltas = FxHashMap::<_, Deltas>::default();
    database.rows(TABLE, &["step_id", "ipu", "delta_bytes"], |row| {
        let id = row.unsigned(0)?;
        let step = steps
            .binary_search(&id)
            .map_err(|_| row.problem(0, format!("there is no step {id}")))?;
        let delta = row.signed(2)?.unwrap_or(0);
        if delta.unsigned_abs() > limits::DEVICE_BYTES {
            return Err(row.problem(2, format!("{delta} bytes are more than any machine has")));
        }
        let ipu = row.optional(1)?;
        if let Some(ipu) = ipu {
            check_ipu(&row, 1, ipu, ipus)?;
        }
        deltas.entry(ipu).or_default().push((step as u32, delta));
        Ok(())
    })?;
    Ok(deltas)
}

/// Sorts changes of live bytes by step, adds up the changes at each step, and drops sums of 0
/// bytes.
fn summed_by_step(mut deltas: Deltas) -> Deltas {
    deltas.sort_unstable_by_key(|&(step, _)| step);
    let mut sums = Deltas::with_capacity(deltas.len());
    for (step, delta) in deltas {
        match sums.last_mut() {
            // The sum is far from overflow: each change is bounded, and so is the number of rows.
            Some(last) if last.0 == step => last.1 = last.1.saturating_add(delta),
            _ => sums.push((step, delta)),
        }
    }
    sums.retain(|&(_, delta)| delta != 0);
    sums
}

/// Returns pairs of a step index and the bytes that are live from that step on, from `deltas`, the
/// changes of live bytes on `ipu`. It is an error if fewer than 0 bytes are live at a step.
fn curve(ipu: u32, deltas: &Deltas) -> Result<Vec<(u32, u64)>, String> {
    let mut live = 0i64;
    let point = |&(step, delta): &(u32, i64)| {
        live = live.saturating_add(delta);
        let bytes = u64::try_from(live);
        let bytes =
            bytes.map_err(|_| format!("below 0 bytes are live at step {step} on IPU {ipu}"));
        Ok((step, bytes?))
    };
    deltas.iter().map(point).collect()
}

/// Returns the live bytes of each IPU, as in [`LiveByIpu::ipus`], from `of_ipus`, the changes of
/// each IPU.
///
/// # Errors
/// If `of_all`, the changes in rows without an IPU, are neither empty nor the sums of the changes
/// of each IPU; or if at a step an IPU has more live bytes than the recorded not-always-live peaks
/// of its tiles add up to.
fn curves(
    of_all: Deltas,
    of_ipus: &[Deltas],
    ipus: Ipus,
    tiles: &[RecordedTile],
) -> Result<Vec<Vec<(u32, u64)>>, String> {
    let curves = (0..).zip(of_ipus).map(|(ipu, deltas)| curve(ipu, deltas));
    let curves = curves.collect::<Result<Vec<_>, _>>()?;
    if !of_all.is_empty() {
        let negated = |(step, delta): (u32, i64)| (step, delta.saturating_neg());
        let mut differences = of_ipus.concat();
        differences.extend(of_all.into_iter().map(negated));
        if let Some((step, _)) = summed_by_step(differences).first() {
            return Err(format!(
                "the rows without an IPU are not the sums over all IPUs, first at step {step}"
            ));
        }
    }
    for (curve, ipu) in curves.iter().zip(0u32..) {
        let tiles = tiles[ipus.tiles(ipu)].iter();
        let limit: u64 = tiles.map(|tile| tile.not_always_live).sum();
        if let Some((step, bytes)) = curve.iter().find(|point| point.1 > limit) {
            return Err(format!(
                "{bytes} bytes are live at step {step} on IPU {ipu}, and its tiles have no more \
                 than {limit} by `memory_by_tile`"
            ));
        }
    }
    Ok(curves)
}
