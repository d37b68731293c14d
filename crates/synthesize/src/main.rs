//! Writes a synthetic `profile.pop` and `debug.cbor` in the schema of Poplar
//! 3.3.0, for tests and measurements. See `--help`.

#![forbid(unsafe_code)]

use clap::Parser;
use synthesize::Options;

fn main() -> anyhow::Result<()> {
    let summary = synthesize::generate(Options::parse())?;
    eprintln!(
        "{} variables ({} of them in several places), {} programs, {} steps, {} classes, {} contexts",
        summary.variables,
        summary.shared,
        summary.programs,
        summary.steps,
        summary.classes,
        summary.contexts
    );
    Ok(())
}
