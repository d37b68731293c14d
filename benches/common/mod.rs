//! Synthetic models for benchmarks.

use std::path::PathBuf;
use tempfile::TempDir;

/// The two files of a model, until this is dropped.
pub struct Files {
    folder: TempDir,
}

#[allow(dead_code, reason = "not every benchmark reads both files")]
impl Files {
    /// Writes them with these options of `synthesize`, apart by spaces.
    pub fn generate(options: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let options = options.split_whitespace();
        synthesize::write(folder.path(), options).expect("the files are written");
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
