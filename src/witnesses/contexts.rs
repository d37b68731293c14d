//! Decides whether `debug.cbor` can be trusted: whether it belongs to the profile, and has all
//! debug contexts to which the profile refers.

use super::{
    contradiction::{Contradiction, DEBUG, Witness, incomplete},
    programs::{bytes_of, reached},
};
use crate::{
    debug_info::{Damage, DebugInfo},
    message::OWN_DEBUG,
    profile::{Profile, Program, ProgramKind, Programs},
};
use anyhow::{Result, bail};
use rustc_hash::FxHashSet;

/// Checks that the debug contexts in `debug_info` are intact and belong to `programs`. If not,
/// returns a contradiction with an upper bound on the bytes of `profile` that depend on the damaged
/// data. There is no bound if the contexts are of another compilation, or if any context may have a
/// wrong name.
///
/// # Errors
/// If the file has no contexts, or if there is a contradiction but no `profile` to compute its
/// bytes.
pub fn check_debug(
    programs: &Programs,
    profile: Option<&Profile>,
    debug_info: &DebugInfo,
) -> Result<Option<Contradiction>> {
    if debug_info.is_empty() && debug_info.damage().is_empty() {
        // A `debug.cbor` without any debug contexts gets an error message of its own, since such
        // files exist: two were found in public repositories.
        bail!(
            "it has no contexts, so no operation has a name or a layer: the process that wrote it \
             compiled nothing; {OWN_DEBUG}, or record both again with autoReport.outputDebugInfo \
             set to true"
        );
    }
    let debug_match = DebugMatch::new(programs, debug_info);
    let is_foreign = debug_match.is_foreign();
    let (mut damage, mut texts) = (debug_info.damage().to_vec(), Vec::new());
    if is_foreign {
        let DebugMatch {
            ids,
            found,
            of_programs,
            named,
            same_names,
            ..
        } = debug_match;
        texts.push(format!(
            "it belongs to another compilation than the profile: of {ids} contexts that its \
             programs refer to, {found} exist, and {of_programs} of these belong to programs; of \
             {named} compute sets with a name, {same_names} have the name of their context \
             ({OWN_DEBUG})"
        ));
    } else {
        damage.extend(debug_match.damage);
    }
    texts.extend(damage.iter().map(ToString::to_string));
    if texts.is_empty() {
        return Ok(None);
    }
    let text = texts.join("; ");
    let Some(profile) = profile else {
        return Err(incomplete(DEBUG, &text).into());
    };
    let (witness, table) = (Witness::DebugContexts, "debug.cbor");
    Ok(Some(
        if is_foreign || damage.iter().any(Damage::may_change_any_name) {
            Contradiction::unbounded(witness, table).in_row(text)
        } else {
            let bytes = bytes_of(profile, &lacking(&profile.programs, debug_info));
            Contradiction::lacking(witness, table, text, bytes, &profile.recorded)
        },
    ))
}

/// Returns one entry per program: whether its bytes may be attributed to the wrong layer. They may
/// in these cases:
/// - `debug_info` lacks the debug context of the program or of its compute set, or an ancestor of
///   such a context;
/// - the compute set has another name than its context;
/// - one of these holds for a Call that leads to the program, since the context of the Call
///   determines which operations the called programs stand for.
fn lacking(programs: &Programs, debug_info: &DebugInfo) -> Vec<bool> {
    let is_broken = |id: u64| {
        let position = debug_info.position(id);
        id != 0 && position.is_none_or(|position| debug_info.is_orphan(position))
    };
    let lacks = |program: &Program| {
        let Some(set) = programs.set_of(program) else {
            return is_broken(program.debug_id);
        };
        let is_renamed = !set.name.is_empty()
            && debug_info
                .position(set.debug_id)
                .is_some_and(|position| debug_info.name(position) != &*set.name);
        is_renamed || is_broken(program.debug_id) || is_broken(set.debug_id)
    };
    let lack: Vec<bool> = programs.all.iter().map(lacks).collect();
    let body = |(program, lacks): (&Program, &bool)| match program.kind {
        ProgramKind::Call(body) if *lacks => Some(body),
        _ => None,
    };
    reached(
        programs,
        programs.all.iter().zip(&lack).filter_map(body).collect(),
    )
    .into_iter()
    .zip(lack)
    .map(|(is_below, lacks)| is_below || lacks)
    .collect()
}

/// Counts that show how well the contexts of `debug.cbor` fit the programs that refer to them.
///
/// Programs refer to contexts by ids that every compilation counts from 1, so the contexts of
/// another compilation have the same ids but describe something else. Two comparisons detect this:
/// * *Programs.* Of the contexts that programs refer to, the share that Poplar wrote for a program
///   or for the compilation. In the real files it is 100 % (35 contexts), and with contexts of
///   other compilations at most 40 %. In generated files it is at least 85 %, and with contexts of
///   other compilations at most 57 %.
/// * *Names.* The share of compute sets with a name that have the name of their context. In the
///   real files it is 100 %, and with contexts of other compilations 0 %. In generated files it is
///   100 %, and with contexts of another compilation by the same framework at most 50 %. A file
///   that was cut off has no names.
///
/// The real files and all generated files have every context to which programs and compute sets
/// refer, all parents of these contexts, and the name of each compute set. Anything that is missing
/// is [damage](Self::damage). This includes parents, which an intact file may lack: Poplar writes a
/// context when its C++ object is destroyed, which may be after the file is closed.
#[derive(Debug)]
pub struct DebugMatch {
    /// Number of distinct ids of debug contexts to which programs of the profile refer.
    pub ids: usize,
    /// Number of the [`ids`](Self::ids) whose debug context is in `debug.cbor`.
    pub found: usize,
    /// Number of debug contexts that programs refer to, that `debug.cbor` has, and that Poplar
    /// wrote for a program or the compilation. The other contexts counted in [`found`](Self::found)
    /// were written for something else.
    pub of_programs: usize,
    /// Number of compute sets whose name can be compared: the compute set and its debug context
    /// both have one.
    pub named: usize,
    /// Number of compute sets, of those counted in [`named`](Self::named), whose name equals the
    /// name of their debug context.
    pub same_names: usize,
    /// The kinds of damage of `debug.cbor` that were found, in this order: contexts to which the
    /// profile refers are missing; parents of such contexts are missing; compute sets have another
    /// name than their context.
    pub damage: Vec<Damage>,
}

/// Minimum number of debug contexts that must be compared to show that `debug.cbor` belongs to
/// another compilation than the profile, unless programs refer to fewer. Also the minimum number of
/// compute sets with names for which the comparison of names counts.
const MIN_CONTEXTS: usize = 8;

impl DebugMatch {
    /// Compares `programs` and their compute sets with the debug contexts in `debug_info` to which
    /// they refer. Counts contexts and equal names, and lists the damage.
    pub fn new(programs: &Programs, debug_info: &DebugInfo) -> Self {
        let sets = &programs.compute_sets;
        let mut ids: FxHashSet<u64> = programs.all.iter().map(|own| own.debug_id).collect();
        ids.remove(&0);
        let mut all_ids = ids.clone();
        all_ids.extend(sets.iter().map(|set| set.debug_id).filter(|&id| id != 0));
        let place = |id: &u64| debug_info.position(*id);
        let found = || ids.iter().filter_map(place);
        let all_found = || all_ids.iter().filter_map(place);
        let names = || {
            sets.iter()
                .filter(|set| !set.name.is_empty())
                .filter_map(|set| Some((&*set.name, debug_info.name(place(&set.debug_id)?))))
        };
        let both = || names().filter(|(_, of_context)| !of_context.is_empty());
        let same_names = both().filter(|(a, b)| a == b).count();
        let orphans = all_found().filter(|&p| debug_info.is_orphan(p)).count();
        let counts = [
            (
                all_ids.len() - all_found().count(),
                all_ids.len(),
                Damage::Missing as fn(usize, usize) -> Damage,
            ),
            (orphans, all_found().count(), Damage::Orphans),
            (
                names().count() - same_names,
                names().count(),
                Damage::Renamed,
            ),
        ];
        let damage = counts.into_iter().filter(|&(count, ..)| count > 0);
        Self {
            ids: ids.len(),
            found: found().count(),
            of_programs: found().filter(|&p| debug_info.is_of_programs(p)).count(),
            named: both().count(),
            same_names,
            damage: damage.map(|(count, of, kind)| kind(count, of)).collect(),
        }
    }

    /// Returns whether the debug contexts belong to another compilation than the profile. The first
    /// rule that applies decides:
    /// - `false` if at least 8 compute sets can be compared by name, and at least three quarters of
    ///   them have the name of their context.
    /// - `false` if `debug.cbor` has fewer than 8 of the contexts to which programs refer, and
    ///   lacks others, since these are too few to decide.
    /// - Otherwise, `true` if Poplar wrote too few of these contexts for programs or the
    ///   compilation: fewer than nine tenths if at least 8 names were compared, otherwise fewer
    ///   than three quarters.
    pub fn is_foreign(&self) -> bool {
        let has_names = self.named >= MIN_CONTEXTS;
        if has_names && self.same_names * 4 >= self.named * 3 {
            return false;
        }
        let (part, of) = if has_names { (9, 10) } else { (3, 4) };
        self.found >= MIN_CONTEXTS.min(self.ids) && self.of_programs * of < self.found * part
    }
}
