//! The best split of a model, from a program that uses the library.
//!
//!     cargo run --release --example split -- profile.pop debug.cbor 4

use anyhow::{Context, Result};
use popliner::analysis::Analysis;
use popliner::model::{LayerOptions, PlacementOptions, Rules};
use popliner::search::{IpuCount, SearchRequest};
use popliner::solve::{Constraint, Rule};
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
    // Other names of layers need another `layer_regex`.
    let (regexes, places) = (LayerOptions::default(), PlacementOptions::default());
    let layers = analysis.layers(Rules::Full, &regexes, &places)?;

    // What runs before the layers shall have an IPU for itself.
    let first = layers.position("In").context("there is always an In")?;
    let alone = Constraint::option(Rule::CutAfter { position: first }, "In is alone");
    let report = layers.split(SearchRequest {
        ipus: IpuCount::Exactly(ipus.parse()?),
        limits: vec![analysis.model.target.bytes_per_tile],
        constraints: vec![alone],
        ..SearchRequest::default()
    })?;

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
