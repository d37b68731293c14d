//! The only real profile, through a saved file and back.
//!
//! The files have no licence and are not part of the project. If they are missing, this test is
//! skipped.

use popliner::debug_info::DebugInfo;
use popliner::model::Model;
use popliner::profile::Profile;
use popliner::saved;
use std::path::Path;

use crate::support::sample_pair;

#[test]
fn the_real_sample_comes_back_far_smaller() {
    let Some([profile_path, debug_path]) = sample_pair() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("firehose.saved");
    for with_bottleneck in [false, true] {
        let profile = Profile::read(&profile_path).unwrap();
        let debug_info = DebugInfo::read(&debug_path).unwrap();
        let model = Model::build(profile, &debug_info, with_bottleneck).unwrap();
        saved::save(&model, &path).unwrap();
        let loaded = saved::load(&path).unwrap();
        assert_eq!(loaded, model);
        assert_eq!(loaded.memory_peak.is_some(), with_bottleneck);
        let size = |path: &Path| path.metadata().unwrap().len();
        assert!(size(&path) * 50 < size(&profile_path), "{}", size(&path));
    }
    let error = saved::load(&profile_path).unwrap_err().to_string();
    assert!(error.contains("--load-from-file"), "{error}");
}
