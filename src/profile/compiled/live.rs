//! Reads how many bytes of not-always-live variables are live on each IPU at each liveness step
//! (execution of a program).

use super::{
    super::liveness::STEPS,
    super::{Cells, Database, Ids, RecordedTile},
    Ipus,
};
use crate::{
    limits,
    message::{PROFILE_AGAIN, Result, Warning},
};
use rustc_hash::FxHashMap;

/// The bytes of not-always-live variables that are live on each IPU at each liveness step.
#[derive(Debug)]
pub struct LiveByIpu {
    /// Number of liveness steps (executions of programs) of the compiled model.
    pub steps: u32,
    /// One list per IPU. Each entry is a step index at which the live bytes of the IPU change, and
    /// the bytes that are live from that step on, summed over the tiles of the IPU. Step indices
    /// ascend.
    pub ipus: Vec<Vec<(u32, u64)>>,
}

pub const TABLE: &str = "memory_not_always_live_by_step_and_ipu";

pub fn is_there(database: &Database) -> bool {
    database.has_table(TABLE) && database.has_table(STEPS)
}

/// Changes of live bytes, on one IPU or summed over all IPUs. Each entry is the index of a liveness
/// step, and the change in bytes since the step before, negative if fewer bytes are live.
type Deltas = Vec<(u32, i64)>;

/// Reads the live bytes of not-always-live variables on each IPU. `tiles` holds the recorded memory
/// of all tiles; `steps` holds the ids of all steps, ascending. Returns `None` if the profile has
/// no live bytes by IPU. If the live bytes contradict other tables, also returns `None`, and adds a
/// warning to `warnings`.
///
/// Rows without an IPU are taken as sums over all IPUs, which the table holds in addition to the
/// rows of single IPUs. A real profile of one IPU has both kinds of rows. For several IPUs this
/// meaning is assumed, so the sums are checked.
pub fn read(
    database: &Database,
    ipus: Ipus,
    tiles: &[RecordedTile],
    steps: &[u64],
    warnings: &mut Vec<Warning>,
) -> Result<Option<LiveByIpu>> {
    let mut deltas = read_deltas(database, steps, |row, ipu| {
        row.check_ipu(1, ipu, ipus.count.into())?;
        Ok(true)
    })?;
    let mut of = |ipu| summed_by_step(deltas.remove(&ipu).unwrap_or_default());
    let of_all = of(None);
    let of_ipus: Vec<Deltas> = (0..ipus.count).map(|ipu| of(Some(ipu.into()))).collect();
    if of_ipus.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let ipus = curves(of_all, &of_ipus, ipus, tiles).map_err(|problem| {
        warnings.push(Warning::new(format!(
            "liveness by IPU is left out: table `{TABLE}`: {problem}; {PROFILE_AGAIN}"
        )));
    });
    Ok(ipus.ok().map(|ipus| LiveByIpu {
        steps: steps.len() as u32,
        ipus,
    }))
}

/// Reads the changes of live bytes in the profile of one IPU, ascending by step index. The changes
/// come from the rows of IPU 0 or, if there are none, from the rows without an IPU, which are sums
/// over all IPUs. Returns an empty list if the profile lacks the table.
///
/// # Errors
/// If the table cannot be read, or refers to a step whose id is not in `steps`. `steps` holds the
/// ids of all steps, ascending.
pub fn by_step(database: &Database, steps: &[u64]) -> Result<Vec<(u32, i64)>> {
    // In a profile of one IPU, rows of IPUs other than IPU 0 are of other replicas. These run the
    // same program, so their rows are skipped.
    let mut deltas = read_deltas(database, steps, |_, ipu| Ok(ipu == 0))?;
    let of_first = deltas.remove(&Some(0)).or_else(|| deltas.remove(&None));
    Ok(summed_by_step(of_first.unwrap_or_default()))
}

/// Reads the ids of the liveness steps (executions of programs), ascending. The index of a step is
/// its index in this list.
pub fn read_steps(database: &Database) -> Result<Vec<u64>> {
    let mut steps = database.rows(STEPS, &["id"], |row| row.unsigned(0))?;
    steps.sort_unstable();
    Ids::of(STEPS, "id", steps.iter().copied())?;
    Ok(steps)
}

/// Reads how the live bytes of each IPU, without always-live variables, change at each liveness
/// step. Returns a map from the index of an IPU to its changes; the key `None` has the changes
/// summed over all IPUs, which the profile stores in rows of their own. The rows of an IPU are kept
/// only if `is_wanted` returns `true`. `steps` holds the ids of all steps, ascending. The map is
/// empty if the profile lacks the table of these changes.
fn read_deltas(
    database: &Database,
    steps: &[u64],
    is_wanted: impl Fn(&Cells<'_>, u64) -> Result<bool>,
) -> Result<FxHashMap<Option<u64>, Deltas>> {
    let mut deltas = FxHashMap::<_, Deltas>::default();
    if !is_there(database) {
        return Ok(deltas);
    }
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
        if ipu.map_or(Ok(true), |ipu| is_wanted(&row, ipu))? {
            deltas.entry(ipu).or_default().push((step as u32, delta));
        }
        Ok(())
    })?;
    Ok(deltas)
}

/// Sorts changes of live bytes by liveness step, adds up the changes at the same step, and drops
/// steps whose sum is 0 bytes.
fn summed_by_step(mut deltas: Deltas) -> Deltas {
    deltas.sort_unstable_by_key(|&(step, _)| step);
    deltas
        .chunk_by(|one, next| one.0 == next.0)
        .map(|of_step| {
            let sum = of_step
                .iter()
                .fold(0, |sum: i64, own| sum.saturating_add(own.1));
            (of_step[0].0, sum)
        })
        .filter(|&(_, delta)| delta != 0)
        .collect()
}

/// Adds up `deltas`, the changes of live bytes on the IPU `ipu`. Returns pairs of a step index and
/// the bytes that are live from that step on. A negative number of live bytes is an error.
fn curve(ipu: u32, deltas: &Deltas) -> Result<Vec<(u32, u64)>, String> {
    let mut live = 0i64;
    let point = |&(step, delta): &(u32, i64)| {
        live = live.saturating_add(delta);
        let problem = |_| format!("below 0 bytes are live at step {step} on IPU {ipu}");
        Ok((step, u64::try_from(live).map_err(problem)?))
    };
    deltas.iter().map(point).collect()
}

/// Returns one list per IPU: each liveness step at which its live bytes change, and the bytes that
/// are live from that step on. `of_ipus` has the changes of live bytes on each IPU. `of_all` has
/// the changes that the profile recorded for all IPUs together, or nothing.
///
/// # Errors
/// If `of_all` is not empty and differs from the sums over `of_ipus`; if an IPU has fewer than 0
/// live bytes at a step; or if an IPU has more live bytes at a step than the sum of the recorded
/// not-always-live peaks of its tiles.
fn curves(
    of_all: Deltas,
    of_ipus: &[Deltas],
    ipus: Ipus,
    tiles: &[RecordedTile],
) -> Result<Vec<Vec<(u32, u64)>>, String> {
    let curves: Vec<_> = (0..)
        .zip(of_ipus)
        .map(|(ipu, deltas)| curve(ipu, deltas))
        .collect::<Result<_, _>>()?;
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
        let limit: u64 = tiles[ipus.tiles(ipu)]
            .iter()
            .map(|tile| tile.not_always_live)
            .sum();
        if let Some((step, bytes)) = curve.iter().find(|point| point.1 > limit) {
            return Err(format!(
                "{bytes} bytes are live at step {step} on IPU {ipu}, and its tiles have no more \
                 than {limit} by `memory_by_tile`"
            ));
        }
    }
    Ok(curves)
}
