//! A profile without a question: is it a compiled pipeline, and does the model fit on one
//! IPU?

use super::messages::Messages;
use super::{Options, request};
use crate::model::Model;
use crate::profile::Outline;
use crate::report::Units;
use anyhow::Result;

/// Was it compiled for several IPUs? A profile that cannot be looked at says later why.
pub(super) fn is_compiled_pipeline(options: &Options) -> bool {
    if options.load_from_file {
        return false;
    }
    let outline = Outline::read(&options.profile);
    outline.is_ok_and(|own| own.ipus > own.replicas.max(1))
}

/// Says what one IPU needs, as the compiler recorded it. Is that all there is to say: does
/// it fit, and is no number of IPUs given?
///
/// # Errors
/// Limits that leave nothing of a tile.
pub(super) fn fits_on_one_ipu(
    model: &Model,
    options: &Options,
    messages: Messages,
) -> Result<bool> {
    let recorded = model
        .recorded
        .tiles
        .iter()
        .map(|own| own.with_gaps.unwrap_or(own.total));
    // The first of several.
    let fullest = recorded.enumerate().rev().max_by_key(|&(_, bytes)| bytes);
    let Some((tile, bytes)) = fullest else {
        return Ok(false);
    };
    let limits = request::limits(options, model.target.bytes_per_tile)?;
    let limit = limits
        .first()
        .copied()
        .unwrap_or(model.target.bytes_per_tile);
    let units = messages.look().units.for_bytes(limit);
    let amount = |bytes: u64, units: Units| units.amount(bytes);
    let needs = format!(
        "on one IPU the fullest tile, {tile}, needs {} of {}",
        amount(bytes, units),
        amount(limit, units)
    );
    if bytes > limit {
        let over = amount(bytes - limit, units);
        messages.summary(format_args!(
            "{needs}: the model does not fit there, by {over}"
        ));
        return Ok(false);
    }
    messages.summary(format_args!("{needs}: the model fits there"));
    if options.num_ipus.is_none() {
        messages.summary("for more of them: --num-ipus N; for all else: --help");
    }
    Ok(options.num_ipus.is_none())
}
