//! Writes a synthetic `profile.pop` and `debug.cbor` in the schema of Poplar
//! 3.3.0, for tests and measurements. See `--help`.

#![forbid(unsafe_code)]

use clap::Parser;
use synthesize::Options;

fn main() -> anyhow::Result<()> {
    synthesize::generate(Options::parse()).map(drop)
}
