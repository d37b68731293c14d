//! Decides whether a verdict can rest on a `debug.cbor`.

use super::contradiction::{Contradiction, Incomplete, Witness};
use super::debug_match::DebugMatch;
use super::programs::{bytes_of, reached};
use crate::debug_info::{Damage, DebugInfo};
use crate::message::{DEBUG_AGAIN, FileWarnings, OWN_DEBUG, Warning, displayed};
use crate::profile::{Profile, Program, ProgramKind, Programs};
use anyhow::{Context, Result};
use std::path::Path;

/// Refuses debug contexts that are damaged or belong to other programs. If the user trusts them
/// (`is_trusted`), warns instead. Returns the warnings. If damage affects only few bytes of
/// `profile`, also returns it as a contradiction. Without a profile these bytes are unknown, and
/// all damage is refused.
///
/// # Errors
/// If the contexts are refused; the error names the file. A file without contexts is refused even
/// if it is trusted.
pub(crate) fn check_debug(
    (programs, profile): (&Programs, Option<&Profile>),
    (path, debug_info): (&Path, &DebugInfo),
    is_trusted: bool,
) -> Result<(FileWarnings, Option<Contradiction>)> {
    let judged = || -> Result<_> {
        // Two files without contexts were found in public repositories.
        anyhow::ensure!(
            !debug_info.is_empty() || !debug_info.damage().is_empty(),
            "it has no contexts, so no operation has a name or a layer: the process that wrote it \
             compiled nothing; give the debug.cbor of the process that wrote the profile, or \
             record both again with autoReport.outputDebugInfo set to true"
        );
        let debug_match = DebugMatch::new(programs, debug_info);
        let mut damage = debug_info.damage().to_vec();
        let mut warnings = Vec::new();
        if debug_match.is_foreign() {
            warnings.push(foreign(&debug_match, is_trusted)?);
        } else {
            damage.extend(debug_match.damage());
        }
        if damage.is_empty() {
            return Ok((warnings, None));
        }
        let (of_damage, found) = judged_damage(profile, (debug_info, &damage), is_trusted)?;
        warnings.extend(of_damage);
        Ok((warnings, found))
    };
    let (warnings, found) = judged().with_context(|| displayed(path))?;
    let all = warnings.iter().chain(debug_info.warnings());
    let all = all.map(|warning| (displayed(path), warning.clone()));
    Ok((all.collect(), found))
}

/// Refuses the contexts of another compilation, or returns a warning about them if the user trusts
/// them.
fn foreign(debug_match: &DebugMatch, is_trusted: bool) -> Result<Warning> {
    let DebugMatch {
        ids,
        found,
        of_programs,
        named,
        same_names,
        ..
    } = debug_match;
    let evidence = format!(
        "of {ids} contexts that its programs refer to, {found} exist, and {of_programs} of these \
         belong to programs; of {named} compute sets with a name, {same_names} have the name of \
         their context"
    );
    anyhow::ensure!(
        is_trusted,
        "the debug file belongs to another compilation than the profile: {evidence}; {OWN_DEBUG}, \
         or --trust-debug-info to use this one"
    );
    Ok(Warning::new(format!(
        "the debug file belongs to another compilation than the profile, but is used as requested: \
         {evidence}; {OWN_DEBUG}"
    )))
}

/// Judges a damaged `debug.cbor`. If the user trusts the file, returns a warning; else a
/// contradiction with the bytes that depend on the damage, if these are too few to rule out a
/// verdict.
///
/// # Errors
/// [`Incomplete::Debug`] if the file is not trusted, and the bytes are many or unknown.
fn judged_damage(
    profile: Option<&Profile>,
    (debug_info, damage): (&DebugInfo, &[Damage]),
    is_trusted: bool,
) -> Result<(Option<Warning>, Option<Contradiction>)> {
    let texts: Vec<String> = damage.iter().map(ToString::to_string).collect();
    let found = profile.map(|profile| {
        let all = damage.iter().any(Damage::may_change_any_name);
        let bytes = bytes_of(profile, &lacking(&profile.programs, debug_info, all));
        let of_file = ("debug.cbor", texts.join("; "));
        Contradiction::lacking(Witness::DebugContexts, of_file, bytes, &profile.recorded)
    });
    let text = found
        .as_ref()
        .map_or_else(|| texts.join("; "), ToString::to_string);
    if is_trusted {
        let warning = Warning::new(format!(
            "the debug file is damaged, but is used as requested: {text}; {DEBUG_AGAIN}"
        ));
        return Ok((Some(warning), None));
    }
    match found {
        Some(found) if !found.refused => Ok((None, Some(found))),
        _ => Err(Incomplete::Debug(text).into()),
    }
}

/// Marks the programs that may count for the wrong layer: the context of the program, its name or
/// an ancestor is missing, or the program is below a Call without its context, which says what the
/// program stands for. With `all`, every context may be wrong.
fn lacking(programs: &Programs, debug_info: &DebugInfo, all: bool) -> Vec<bool> {
    let is_broken = |id: u64| {
        let position = || debug_info.position(id);
        id != 0 && (all || position().is_none_or(|position| debug_info.is_orphan(position)))
    };
    let lacks = |program: &Program| {
        let set = match program.kind {
            ProgramKind::OnTileExecute(set) => &programs.compute_sets[set as usize],
            _ => return is_broken(program.debug_id),
        };
        let of_set = debug_info.position(set.debug_id);
        let has_other_name = |position| debug_info.name(position) != &*set.name;
        let is_renamed = !set.name.is_empty() && of_set.is_some_and(has_other_name);
        is_renamed || is_broken(program.debug_id) || is_broken(set.debug_id)
    };
    let mut lack: Vec<bool> = programs.all.iter().map(lacks).collect();
    let calls = programs.all.iter().zip(&lack).filter(|(_, lacks)| **lacks);
    let bodies = calls.filter_map(|(program, _)| match program.kind {
        ProgramKind::Call(body) => Some(body),
        _ => None,
    });
    let below = reached(programs, bodies.collect());
    let pairs = lack.iter_mut().zip(below);
    pairs.for_each(|(lacks, is_below)| *lacks |= is_below);
    lack
}
