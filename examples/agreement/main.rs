//! Prints how far both memory models (full and classic) are from the memory that the compiler
//! recorded, with all layers in one stage.
//!
//! ```text
//! cargo run --release --example agreement -- fixtures/*/profile.pop
//! cargo run --release --example agreement -- --layer-regex 'CS (\d+)' some.profile.pop
//! ```
//!
//! The debug contexts of `profile.pop` are read from `debug.cbor` beside it, those of
//! `some.profile.pop` from `some.debug.cbor`. For each profile and memory model, a line has the
//! recorded and the predicted bytes of the fullest tile, the error on that tile, the mean over all
//! tiles of the absolute error, and the lowest and highest error on any tile. Errors are
//! percentages of the recorded bytes; below 0, the prediction is too low.

#![forbid(unsafe_code)]

use anyhow::{Context, anyhow, ensure};
use clap::Parser;
use popliner::debug_info::DebugInfo;
use popliner::memory::MemoryModel;
use popliner::model::{
    DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, LayerSource, Layering,
    Model, Placement, PlacementOptions,
};
use popliner::profile::Profile;
use regex::Regex;
use std::path::{Path, PathBuf};

/// Compares both memory models with the memory that the compiler recorded.
#[derive(Debug, Parser)]
struct Arguments {
    /// Matches the layer in names and inputs of operations.
    #[arg(long, default_value = DEFAULT_LAYER_REGEX)]
    layer_regex: Regex,
    /// Profiles, each with its debug contexts beside it.
    #[arg(required = true)]
    profiles: Vec<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    println!(
        "{:<32} {:<8} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "profile", "model", "recorded", "predicted", "error", "mean", "lowest", "highest"
    );
    for profile in &arguments.profiles {
        compare(profile, &arguments.layer_regex).with_context(|| profile.display().to_string())?;
    }
    Ok(())
}

/// Prints the two lines of one profile.
fn compare(profile: &Path, layer_regex: &Regex) -> anyhow::Result<()> {
    let debug_info = DebugInfo::read(&debug_file(profile)?)?;
    let (model, _) = Model::build(Profile::read(profile)?, debug_info, false)?;
    let options = LayerOptions {
        source: LayerSource::Regex(layer_regex.clone()),
        inputs_regex: Regex::new(DEFAULT_INPUTS_REGEX)?,
        order: LayerOrder::Steps,
        ..LayerOptions::default()
    };
    let layering = Layering::of_names(&model.operations, &options);
    ensure!(
        !layering.is_empty(),
        "no layer was found; try --layer-regex"
    );
    let classic = Placement::classic(&model, &layering)?;
    let full = Placement::full(&model, &layering, &PlacementOptions::default())?;
    for (name, placement) in [("classic", classic), ("full", full)] {
        let memory = MemoryModel::new(&model, &placement)?;
        let line = Errors::new(&model, &memory).context("no memory was recorded")?;
        println!("{:<32} {name:<8} {line}", title(profile));
    }
    Ok(())
}

/// Returns the path of the debug file: `debug.cbor` for `profile.pop`, `x.debug.cbor` for
/// `x.profile.pop`.
fn debug_file(profile: &Path) -> anyhow::Result<PathBuf> {
    let name = profile.file_name().and_then(|name| name.to_str());
    let before = name.and_then(|name| name.strip_suffix("profile.pop"));
    let before = before.ok_or_else(|| anyhow!("the name does not end with profile.pop"))?;
    Ok(profile.with_file_name(format!("{before}debug.cbor")))
}

/// Returns the first column of the lines: the folder of a `profile.pop`, the file name of any other
/// profile.
fn title(profile: &Path) -> String {
    let folder = profile
        .parent()
        .filter(|_| profile.ends_with("profile.pop"));
    let name = folder.and_then(Path::file_name).or(profile.file_name());
    name.map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

/// The differences between predicted and recorded memory.
struct Errors {
    recorded: u64,
    predicted: u64,
    /// Errors in per cent: on the fullest tile; the mean of absolute errors; the lowest; the
    /// highest.
    per_cent: [f64; 4],
}

impl Errors {
    /// Computes the errors; returns `None` if the profile has no recorded memory.
    fn new(model: &Model, memory: &MemoryModel<'_>) -> Option<Self> {
        let stages = memory.stages(std::slice::from_ref(&(0..memory.layers())));
        let recorded = model.recorded.tiles.iter().map(|tile| tile.total);
        let predicted = stages[0].tiles.iter().map(|parts| parts.total());
        let tiles: Vec<(u64, u64)> = recorded.zip(predicted).filter(|t| t.0 > 0).collect();
        let &(recorded, predicted) = tiles.iter().max_by_key(|tile| tile.0)?;
        let errors: Vec<f64> = tiles.iter().copied().map(error).collect();
        let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
        let lowest = errors.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = errors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self {
            recorded,
            predicted,
            per_cent: [error((recorded, predicted)), mean, lowest, highest],
        })
    }
}

/// Returns by how many per cent the predicted bytes exceed the recorded bytes.
fn error((recorded, predicted): (u64, u64)) -> f64 {
    (predicted as f64 / recorded as f64 - 1.0) * 100.0
}

impl std::fmt::Display for Errors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>9} {:>9}", self.recorded, self.predicted)?;
        let mut per_cent = self.per_cent.iter();
        per_cent.try_for_each(|error| write!(f, " {error:>8.2}"))
    }
}
