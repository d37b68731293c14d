//! Can a verdict stand on a `debug.cbor`? This is the only place that decides it.

use crate::debug_info::{Damage, DebugInfo};
use crate::message::{DEBUG_AGAIN, FileWarnings, OWN_DEBUG, Warning, displayed};
use crate::model::Belonging;
use crate::profile::Programs;
use anyhow::{Context, Result};
use std::path::Path;

/// Refuses contexts that are damaged or not those of these programs, unless they are
/// trusted: then that is among what is to be said of them.
///
/// # Errors
/// With the name of the file. One without contexts is refused even if it is trusted.
pub(crate) fn check_debug(
    programs: &Programs,
    (path, debug_info): (&Path, &DebugInfo),
    is_trusted: bool,
) -> Result<FileWarnings> {
    let judged = judged(programs, debug_info, is_trusted).with_context(|| displayed(path))?;
    let all = judged
        .into_iter()
        .chain(debug_info.warnings().iter().cloned());
    Ok(all.map(|warning| (displayed(path), warning)).collect())
}

fn judged(programs: &Programs, debug_info: &DebugInfo, is_trusted: bool) -> Result<Vec<Warning>> {
    // Two such files were found in public repositories.
    anyhow::ensure!(
        !debug_info.is_empty() || !debug_info.damage().is_empty(),
        "it has no contexts, so nothing would have a name or a layer: the process that wrote it \
         compiled nothing; give the debug.cbor of the process that wrote the profile, or record \
         both again with autoReport.outputDebugInfo set to true"
    );
    let belonging = Belonging::new(programs, debug_info);
    let foreign = belonging.is_foreign().then(|| foreign(&belonging));
    let mut damage = debug_info.damage().to_vec();
    if foreign.is_none() {
        damage.extend(belonging.damage());
    }
    let damage = (!damage.is_empty()).then(|| listed(&damage));
    if !is_trusted {
        refuse(foreign.as_deref(), damage.as_deref())?;
    }
    let taken = taken(foreign.as_deref(), damage.as_deref());
    Ok(taken.into_iter().chain(orphans(&belonging)).collect())
}

/// Refuses a file for one of two reasons, if there is any.
fn refuse(foreign: Option<&str>, damage: Option<&str>) -> Result<()> {
    if let Some(evidence) = foreign {
        anyhow::bail!(
            "the debug file belongs to another compilation than the profile: {evidence}; \
             {OWN_DEBUG}, or --trust-debug-info to take this one"
        );
    }
    if let Some(evidence) = damage {
        anyhow::bail!(
            "the debug file is damaged: {evidence}; {DEBUG_AGAIN}, or give --trust-debug-info to \
             take it as it is"
        );
    }
    Ok(())
}

/// Warnings where it is taken all the same.
fn taken(foreign: Option<&str>, damage: Option<&str>) -> Vec<Warning> {
    let foreign = foreign.map(|evidence| {
        Warning::new(format!(
            "the debug file belongs to another compilation than the profile, and is taken all the \
             same: {evidence}; {OWN_DEBUG}"
        ))
    });
    let damage = damage.map(|evidence| {
        Warning::new(format!(
            "the debug file is damaged, and is taken all the same: {evidence}; {DEBUG_AGAIN}"
        ))
    });
    foreign.into_iter().chain(damage).collect()
}

fn listed(damage: &[Damage]) -> String {
    let all: Vec<String> = damage.iter().map(ToString::to_string).collect();
    all.join("; ")
}

/// The sign that the contexts are those of another compilation.
fn foreign(belonging: &Belonging) -> String {
    let Belonging {
        ids,
        found,
        of_programs,
        named,
        same_names,
        ..
    } = belonging;
    format!(
        "of {ids} contexts that its programs refer to, {found} are there, and {of_programs} of \
         these are of programs; of {named} compute sets with a name, {same_names} have that of \
         their context"
    )
}

/// Says that parents are missing: a whole file may lack some, and a damaged one,
/// too.
fn orphans(belonging: &Belonging) -> Option<Warning> {
    let (orphans, all) = (belonging.orphans, belonging.all_found);
    (orphans > 0).then(|| {
        Warning::new(format!(
            "above {orphans} of {all} contexts that programs and compute sets refer to, one is \
             missing that may have named their layer; {OWN_DEBUG}"
        ))
    })
}
