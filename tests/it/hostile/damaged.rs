//! Profiles that are cut off. `numbers::mutated` overwrites parts of pages.

use std::fs;

use popliner::profile::Profile;

use super::cases::{Case, number};
use super::compiled::COMPILED;
use crate::support::each;

#[test]
fn profiles_cut_at_any_page() {
    let case = Case::new();
    let whole = fs::read(&case.profile).unwrap();
    let page = number(&case.profile, "PRAGMA page_size") as usize;
    for length in (page..whole.len()).step_by(page) {
        fs::write(&case.profile, &whole[..length]).unwrap();
        let error = Profile::read(&case.profile).unwrap_err().to_string();
        let expected = format!("it has {length} bytes and should have {}", whole.len());
        assert!(error.contains(&expected), "{error}");
    }
    for (length, part) in [
        (0, "empty"),
        (1, "not an SQLite"),
        (17, "cut off"),
        (99, "cut off"),
        (100, "cut off"),
        (5 * page, "cut off"),
        (whole.len() - 1, "cut off"),
    ] {
        fs::write(&case.profile, &whole[..length]).unwrap();
        case.refused(&["profile.pop: ", part]);
    }
    // The number of pages in the header is also cut.
    for pages in [2u32, 50, 200] {
        let mut cut = whole[..pages as usize * page].to_vec();
        cut[28..32].copy_from_slice(&pages.to_be_bytes());
        fs::write(&case.profile, &cut).unwrap();
        case.refused(&["malformed", "copy the profile again"]);
    }
}

#[test]
fn compilations_that_are_cut_off() {
    let length = fs::metadata(Case::of(COMPILED).profile).unwrap().len() as usize;
    let lengths: Vec<usize> = (0..20).map(|part| length * part / 20).collect();
    each(&lengths, |&length| {
        let case = Case::of(COMPILED).bytes(|bytes| bytes.truncate(length));
        case.run("--fit").refuses(3, &[]);
    });
}
