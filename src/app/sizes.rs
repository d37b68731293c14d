//! Reads the further profiles that `--micro-batch SIZE=PROFILE` names.

use super::messages::Messages;
use super::options::Options;
use super::{input, profile_path};
use crate::analysis::SizedProfile;
use crate::message::{displayed, usage};
use crate::model::Rules;
use crate::search::Solver;
use anyhow::Result;

/// Returns an error if the sizes of micro-batches contradict each other, or if another option works
/// on one profile only.
pub(super) fn check(options: &Options) -> Result<()> {
    let sizes = &options.time.micro_batch;
    for (index, size) in sizes.iter().enumerate() {
        let samples = size.samples;
        if sizes[..index].iter().any(|other| other.samples == samples) {
            return Err(usage(format!(
                "--micro-batch has {samples} twice; give each size once"
            )));
        }
    }
    match sizes.iter().filter(|size| size.profile.is_none()).count() {
        0 if sizes.is_empty() => return Ok(()),
        0 => {
            return Err(usage(
                "--micro-batch lacks the size of the first profile; give it alone as well, such as \
                 --micro-batch 1",
            ));
        }
        1 if sizes.len() == 1 => return Ok(()),
        1 => {}
        _ => {
            return Err(usage(
                "--micro-batch has several sizes without a profile; give the size of the first \
                 profile alone, and others with their profiles, such as --micro-batch 4=FOLDER",
            ));
        }
    }
    let Options { tables, saved, .. } = options;
    let of_one = [
        (options.layers.list_layers, "--list-layers"),
        (tables.operation_breakdown, "--operation-breakdown"),
        (tables.layer_breakdown, "--layer-breakdown"),
        (tables.memory_totals, "--memory-totals"),
        (tables.memory_affinity, "--memory-affinity"),
        (
            tables.interlayer_communication,
            "--interlayer-communication",
        ),
        (tables.diagnose, "--diagnose"),
        (saved.save_to_file.is_some(), "--save-to-file"),
        (options.search.solver == Solver::Greedy, "--solver greedy"),
        (
            options.limits.memory_model == Rules::Classic,
            "--memory-model classic",
        ),
    ];
    match of_one.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(usage(format!(
            "{option} works on one profile, and --micro-batch names several; leave one of them out"
        ))),
        None => Ok(()),
    }
}

/// Reads the profiles of other sizes, with the `debug.cbor` beside each.
///
/// # Errors
/// If a file cannot be read or understood; the error names the file.
pub(super) fn read(options: &Options, messages: Messages) -> Result<Vec<SizedProfile>> {
    let mut profiles = Vec::new();
    for size in &options.time.micro_batch {
        let Some(profile) = &size.profile else {
            continue;
        };
        let mut of_size = options.clone();
        of_size.input.profile = profile.clone();
        of_size.input.debug = None;
        of_size.saved.load_from_file = false;
        profile_path::resolve(&mut of_size, messages)?;
        messages.info(format_args!(
            "micro-batches of {}: {}",
            size.samples,
            displayed(&of_size.input.profile)
        ));
        profiles.push(SizedProfile {
            samples: size.samples,
            analysis: input::read(&mut of_size, messages)?,
        });
    }
    Ok(profiles)
}
