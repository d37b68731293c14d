//! Whole files that are damaged: an error that names the place, or the readable part.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use ciborium::Value;
use popliner::profile::Profile;

use crate::hostile::cases::{Case, number, of_profile, set};
use crate::support::each;
use crate::support::root;

#[test]
fn profiles_cut_at_any_page() {
    let case = Case::new();
    let whole = fs::read(&case.profile).unwrap();
    let page = number(&case.profile, "PRAGMA page_size") as usize;
    for length in (0..whole.len()).step_by(page) {
        fs::write(&case.profile, &whole[..length]).unwrap();
        let error = Profile::read(&case.profile).unwrap_err().to_string();
        let expected = format!("it has {length} bytes and should have {}", whole.len());
        assert!(error.contains(&expected) || length == 0, "{error}");
    }
    for length in [0, 1, 17, 99, 100, 5 * page, whole.len() - 1] {
        fs::write(&case.profile, &whole[..length]).unwrap();
        let part = if length == 0 { "empty" } else { "cut off" };
        let part = if (1..16).contains(&length) {
            "not an SQLite"
        } else {
            part
        };
        case.refused(&format!("cut at {length}"), &["profile.pop: ", part]);
    }
    // The number of pages in the header is also cut.
    for pages in [2u32, 50, 200] {
        let mut cut = whole[..pages as usize * page].to_vec();
        cut[28..32].copy_from_slice(&pages.to_be_bytes());
        fs::write(&case.profile, &cut).unwrap();
        case.refused(
            &format!("{pages} pages"),
            &["malformed", "copy the profile again"],
        );
    }
}

/// The contents of an overwritten page decide the outcome. `numbers/mutated.rs` compares each
/// answer with a slow reader.
#[test]
fn pages_overwritten() {
    let case = Case::new();
    let whole = fs::read(&case.profile).unwrap();
    let page = number(&case.profile, "PRAGMA page_size") as usize;
    let pages = whole.len() / page;
    let changes: Vec<(usize, usize)> = (1..pages).map(|page| (page, page % 3)).collect();
    let refused = AtomicUsize::new(0);
    each(&changes, |&(number, fill)| {
        let mut bytes = whole.clone();
        let other = &whole[(number * 7 % pages) * page..][..page];
        let new = [vec![0; page], vec![0xff; page], other.to_vec()];
        bytes[number * page..][..page].copy_from_slice(&new[fill]);
        let case = Case::new().bytes(of_profile, |all| *all = bytes);
        if let Err(error) = Profile::read(&case.profile) {
            assert!(error.to_string().len() > 20, "{error}");
            refused.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(refused.into_inner() > pages / 3);
    for number in [1, 20, 60, 100] {
        let mut bytes = whole.clone();
        bytes[number * page..][..page].fill(0);
        fs::write(&case.profile, bytes).unwrap();
        let run = case.run(&["--solve"]);
        assert!([0, 1, 3].contains(&run.code), "{run:?}");
    }
}

#[test]
fn cycles() {
    let root = "UPDATE programs SET children = x'80' WHERE id = (SELECT max(id) FROM programs)";
    Case::new()
        .sql(root)
        .refused("programs", &["program 0 leads to itself"]);
    let statement = "UPDATE programs SET children = x'85' WHERE id = 5";
    let case = Case::new().sql(statement);
    let run = case.run(&["--solve"]);
    assert!(
        run.code < 2 || run.err.contains("program 5 leads to itself"),
        "{run:?}"
    );
    // A chain of contexts ends where it closes.
    let case = Case::new().cbor(|contexts, _| {
        let ids: Vec<Value> = contexts.iter().map(|c| field(c, "id")).collect();
        for (context, id) in contexts.iter_mut().zip(ids.iter().cycle().skip(1)) {
            if field(context, "parentId") == 0.into() || field(context, "parentId").is_null() {
                set(context, "parentId", id.clone());
            }
        }
    });
    let run = case.run(&["--operation-breakdown"]);
    assert_eq!(run.code, 0, "{run:?}");
}

fn field(context: &Value, key: &str) -> Value {
    let mut fields = context.as_map().unwrap().iter();
    let found = fields.find(|(name, _)| name.as_text() == Some(key));
    found.map_or(Value::Null, |(_, value)| value.clone())
}

/// The unchanged fixture gives the same answer as before.
#[test]
fn a_sound_profile_is_sound() {
    let case = Case::new();
    // Printed commands name the files.
    let folder = |case: &Case| case.folder.path().display().to_string();
    let other = Case::new();
    let message = other.run(crate::hostile::cases::SOLVE).err;
    assert_eq!(
        case.same("the fixture"),
        message.replace(&folder(&other), &folder(&case))
    );
    assert!(of_profile(&case).starts_with(case.folder.path()));
    assert!(Path::new(root()).join("fixtures").is_dir());
}
