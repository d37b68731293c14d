//! Tests that loading refuses saved models that were cut off or altered, and files of another kind.

use super::{super::*, models::full};
use proptest::prelude::*;
use std::fs;

/// If any one bit of a saved model is flipped, loading returns an error or the original model.
#[test]
fn any_changed_bit_is_noticed() {
    let model = full();
    let good = to_bytes(&model).unwrap();
    for place in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[place] ^= 1 << bit;
            if let Ok(loaded) = from_bytes(&bad) {
                assert_eq!(loaded, model, "bit {bit} of byte {place}");
            }
        }
    }
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    assert_eq!(from_bytes(&bad), Err(altered()));
    bad = good.clone();
    bad[HEADER + 1] ^= 1;
    assert_eq!(from_bytes(&bad), Err(altered()));
    bad = good;
    bad.push(0);
    assert_eq!(from_bytes(&bad), Err(altered()));
}

#[test]
fn a_file_that_is_cut_anywhere_says_so() {
    let good = to_bytes(&full()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    for length in 0..good.len() {
        let error = from_bytes(&good[..length]).unwrap_err();
        let expected = format!("the file is cut off: it has {length} bytes and should have ");
        assert!(
            error.to_string().starts_with(&expected),
            "{length}: {error}"
        );
        if length % 37 == 0 {
            fs::write(&path, &good[..length]).unwrap();
            let error = load(&path).unwrap_err();
            assert!(
                error.to_string().starts_with(&expected),
                "{length}: {error}"
            );
        }
    }
    let error = from_bytes(&good[..100]).unwrap_err().to_string();
    let sizes = format!("it has 100 bytes and should have {}", good.len());
    assert!(error.contains(&sizes), "{error}");
}

fn with(bytes: &[u8], place: usize, part: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[place..place + part.len()].copy_from_slice(part);
    bytes
}

#[test]
fn other_versions_and_other_files_are_named() {
    let good = to_bytes(&full()).unwrap();
    let found = VERSION + 1;
    let error = |bytes: &[u8]| from_bytes(bytes).unwrap_err().to_string();
    let newer = error(&with(&good, 8, &found.to_le_bytes()));
    let expected = format!("the file has format version {found} and this popliner reads");
    assert!(newer.starts_with(&expected), "{newer}");
    assert!(newer.contains("--save-to-file"), "{newer}");
    let mut sqlite = b"SQLite format 3\0".to_vec();
    sqlite.resize(4096, 0);
    let sqlite = error(&sqlite);
    assert!(sqlite.starts_with("this is not a model"), "{sqlite}");
    assert!(sqlite.contains("profile.pop") && sqlite.contains("--load-from-file"));
    for other in [&b"\xbf\x68contexts"[..], b"x", &good[1..]] {
        assert_eq!(error(other), sqlite);
    }
    // If a file transfer has converted the line ends of a saved model, as if it were a text file,
    // the error says that the file is no model.
    let text = with(&good, 5, b"\n\n\n");
    assert_eq!(error(&text), sqlite);
    // If the header gives a file size that no file has, the error says that the file is cut off.
    // Loading also fails if this size is too small for header and checksum.
    let huge = with(&good, 12, &u64::MAX.to_le_bytes());
    assert!(error(&huge).starts_with("the file is cut off"));
    for size in 20..28u64 {
        let small = with(&good, 12, &size.to_le_bytes());
        assert!(from_bytes(&small[..size as usize]).is_err());
    }
}

proptest! {
    #[test]
    fn random_bytes_are_never_a_model(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(from_bytes(&bytes).is_err());
        let mut with_header = to_bytes(&full()).unwrap()[..12].to_vec();
        with_header.extend((bytes.len() as u64 + 20).to_le_bytes());
        with_header.extend(&bytes);
        prop_assert!(from_bytes(&with_header).is_err());
    }
}
