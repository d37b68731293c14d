use super::*;
use crate::model::{Layering, Positions, PseudoLayers};
use std::fs;

/// Returns the positions of layers 0 to 3 with Out as the last position, with Out in the position
/// of In, and with None.
pub(super) fn orders() -> [Positions; 3] {
    let names = ["", "0", "1", "2", "3"].map(String::from);
    let layering = Layering::of(names.to_vec(), Vec::new());
    [
        Positions::new(&layering, PseudoLayers::InAndOut),
        Positions::new(&layering, PseudoLayers::OutWithIn),
        Positions::new(&layering, PseudoLayers::NoneFirst),
    ]
}

#[test]
fn names_are_not_fetched_from_a_profile_that_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let to = folder.path().join(name);
        fs::copy(Path::new("fixtures/poplar-mlp").join(name), &to).unwrap();
        to
    };
    let (profile, debug) = (copy("profile.pop"), copy("debug.cbor"));
    let analysis = Analysis::read(&profile, &debug).unwrap();
    let request = Request::default();
    let layers = analysis.layers(&request).unwrap();
    assert!(layers.split(&request).is_ok());
    // The change counter in SQLite's header, bytes 24 to 27.
    let mut bytes = fs::read(&profile).unwrap();
    bytes[27] ^= 1;
    fs::write(&profile, bytes).unwrap();
    let error = layers.split(&request).unwrap_err();
    assert!(format!("{error:#}").contains("changed"), "{error:#}");
    assert!(format!("{error:#}").contains("profile.pop"), "{error:#}");
}
