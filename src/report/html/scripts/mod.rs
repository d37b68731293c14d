//! The script of the page: one element, so that one hash in the policy names it.
//!
//! Its files are plain JavaScript without a build step, with types in comments, which
//! `.ci/run` has checked. `page.js` is what all use; each other file is one chart, or
//! one manner of the page, and does nothing where the page has no data for it.

/// All files, in order.
pub(super) const SCRIPT: &str = concat!(
    include_str!("page.js"),
    include_str!("hover.js"),
    include_str!("print.js"),
    include_str!("what_if.js"),
    include_str!("live_steps.js"),
    include_str!("execution.js"),
    include_str!("tile_map.js"),
);

/// The SHA-256 of the script, which a test compares.
pub(super) const SCRIPT_HASH: &str = "woBVsjbW6cV6qPBI7hzHihnZuqMmERk0Ueo6d7GXJ90=";
