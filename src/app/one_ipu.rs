//! Answers a command line that has no options, only a profile: whether a compiled pipeline fits, or
//! whether a model that was compiled for one IPU fits there.

use super::{Messages, Options, Run};
use crate::{
    analysis::{Analysis, Answers, FurtherProfile},
    model::Model,
    profile::Outline,
    report::terminal::Severity,
    search::free_bytes,
    witnesses::{are_refused, doubts, refuse_close},
    wording::counted,
};
use anyhow::Result;
use elsa::FrozenVec;

/// Returns whether the profile was compiled for more than one IPU in each replica. Returns `false`
/// if the profile cannot be read; the error is reported when the profile is read later.
pub fn is_compiled_pipeline(options: &Options) -> bool {
    !options.load_from_file
        && Outline::read(&options.profile)
            .is_ok_and(|Outline { target, .. }| target.num_ipus > target.num_replicas.max(1))
}

/// Prints how much memory the model needs on one IPU, and whether the model fits there. Returns
/// `true` if this answers the user's question: the model fits, and the options request no number of
/// IPUs, export, comparison or `--explain`.
///
/// # Errors
/// If options contradict each other, or if the reserve leaves no memory of a tile.
pub fn answers((analysis, further): (&Analysis, &[FurtherProfile]), run: &Run) -> Result<bool> {
    let (messages, model) = (run.messages, &analysis.model);
    let stage = messages.while_showing(|progress| {
        Answers::new((analysis, further), &FrozenVec::new(), progress).on_one_ipu(&run.request)
    })?;
    let Some(stage) = stage else {
        return Ok(false);
    };
    let limit = run.request.limits(model.target.bytes_per_tile)?[0];
    let (tile, bytes) = (stage.max_tile(), stage.max_tile_bytes());
    let mut found = model.contradictions.clone();
    refuse_close(&mut found, [free_bytes(limit, bytes)]);
    if are_refused(&found) {
        return Ok(false);
    }
    let is_answered = bytes <= limit && run.request.ipus.is_none() && !run.options.wants_report();
    if is_answered {
        messages.warn_of_files(&doubts(&found, analysis.provenance.files.displayed(), true));
    }
    messages.summary(format!(
        "A profile of {} with {}, compiled for one IPU of {}",
        model.work(),
        model.recording.framework,
        counted(model.target.num_tiles, "tile")
    ));
    let units = messages.look.units.for_bytes(limit);
    let added = match stage.tiles[tile as usize].accumulators {
        0 => String::new(),
        bytes => format!(
            ", {} of them for gradient accumulators, which the profile lacks",
            units.amount(bytes)
        ),
    };
    let needs = format!(
        "{} of {} on tile {tile}{added}",
        units.amount(bytes),
        units.short(limit)
    );
    if bytes > limit {
        messages.summary(format!(
            "It does not fit on one IPU, where it needs {needs}"
        ));
        return Ok(false);
    }
    warn_of_gaps(model, limit, messages);
    let success = messages.look.toned(Severity::Good, "SUCCESS:");
    messages.summary(format!(
        "{success} the model fits on one IPU, where it needs {needs}"
    ));
    if is_answered {
        messages.verbatim(&run.options.after_one_ipu());
    }
    Ok(is_answered)
}

/// Prints a warning if the fullest tile exceeds `limit` (in bytes) when the gaps between variables
/// count as used memory. Call this function only if no tile exceeds the limit without gaps. It is
/// unknown whether the compiler counts gaps.
fn warn_of_gaps(model: &Model, limit: u64, messages: Messages) {
    // Index and bytes of the tile that takes the most bytes if gaps between variables count as
    // used; the first such tile.
    let Some((tile, with_gaps)) = model
        .recorded
        .tiles
        .iter()
        .map(|tile| tile.with_gaps.unwrap_or(tile.total))
        .enumerate()
        .rev()
        .max_by_key(|&(_, bytes)| bytes)
        .filter(|&(_, bytes)| bytes > limit)
    else {
        return;
    };
    let units = messages.look.units.for_bytes(limit);
    messages.warn(format!(
        "tile {tile} needs {} of {}, but {} with the gaps that the compiler left between \
         variables; keep that much free with --reserve in case it counts them",
        units.amount(model.recorded.tiles[tile].total),
        units.short(limit),
        units.amount(with_gaps)
    ));
}
