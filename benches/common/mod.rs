//! Synthetic models for benchmarks.

#[allow(dead_code, reason = "not every benchmark looks at what was written")]
#[path = "../../examples/synthesize/generator/mod.rs"]
mod generator;

use clap::Parser;
use std::path::PathBuf;
use tempfile::TempDir;

/// The two files of a model, until this is dropped.
pub struct Files {
    folder: TempDir,
}

#[allow(dead_code, reason = "not every benchmark reads both files")]
impl Files {
    /// Writes them with these options of `examples/synthesize`, apart by spaces.
    pub fn generate(options: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let out = folder.path().to_str().expect("a path that is UTF-8");
        let fixed = ["synthesize", "--out", out];
        let all = fixed.into_iter().chain(options.split_whitespace());
        let options = generator::options::Options::parse_from(all);
        generator::generate(options.settle()).expect("the files are written");
        Self { folder }
    }

    /// The path of the profile.
    pub fn profile(&self) -> PathBuf {
        self.folder.path().join("profile.pop")
    }

    /// The path of the debug file.
    pub fn debug(&self) -> PathBuf {
        self.folder.path().join("debug.cbor")
    }
}
