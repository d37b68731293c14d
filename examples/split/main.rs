//! Finds the best split of a model, in a program that uses the library.
//!
//!     cargo run --release --example split -- profile.pop debug.cbor 4

use anyhow::{Context, Result};
use popliner::analysis::{Analysis, LayerConstraint, Request};
use std::path::Path;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [profile, debug, ipus] = arguments.as_slice() else {
        anyhow::bail!("give profile.pop, debug.cbor and the number of IPUs");
    };
    let analysis = Analysis::read(Path::new(profile), Path::new(debug))?;
    for (file, warning) in &analysis.warnings {
        eprintln!("{file}: {warning}");
    }
    // If the layers of a model have other names, set another regex in `layers`.
    let request = Request {
        ipus: Some(ipus.parse()?),
        // Give an IPU of its own to the operations before the layers.
        constraints: vec![LayerConstraint::CutBefore("0".into())],
        ..Request::default()
    };
    let report = analysis.split(&request)?;

    let split = report.split.context("a split was asked for")?;
    for stage in &split.stages {
        let (names, tile) = (&stage.layers, &stage.fullest_tile);
        let names: Vec<&str> = names
            .iter()
            .map(|own| own.as_deref().unwrap_or("In"))
            .collect();
        println!(
            "IPU {}: {} ({} bytes on tile {}, {} free)",
            stage.stage,
            names.join(" "),
            tile.bytes,
            tile.tile,
            tile.free
        );
    }
    println!("{}", if split.fits { "fits" } else { "does not fit" });
    Ok(())
}
