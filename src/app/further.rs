//! Reads the further profiles of a model, which `--micro-batch SIZE=PROFILE` and `--amp
//! VALUE=PROFILE` name.

use super::{Messages, Options, input, options::OfProfile, profile_path};
use crate::{
    analysis::FurtherProfile,
    message::{displayed, usage},
};
use anyhow::Result;
use std::fmt::Display;

/// Checks the options `--micro-batch` and `--amp`. Returns an error if their values contradict each
/// other, or if one of them names several profiles and another option works with one profile only.
pub fn check(options: &mut Options) -> Result<()> {
    let (sizes, proportions) = (&mut options.time.micro_batch, &mut options.pipeline.amp);
    let sizes = check_one(sizes, ["--micro-batch", "size", "1", "4"])?;
    let proportions = check_one(proportions, ["--amp", "proportion", "0.6", "0.2"])?;
    let of_one = options.of_one_profile.as_deref();
    let of_one = of_one.or_else(|| options.request().of_original());
    match (sizes.and(proportions), sizes.or(proportions).zip(of_one)) {
        (Some(_), _) => Err(usage(
            "--micro-batch and --amp name profiles, and only one of them can; leave the profiles of \
             the other out",
        )),
        (None, Some((several, option))) => Err(usage(format!(
            "{option} works on one profile, and {several} names several; leave one of them out"
        ))),
        (None, None) => Ok(()),
    }
}

/// Checks the values that the user gave to `option`, such as `--micro-batch`. No two values may be
/// equal. If there are values, exactly one must be without a profile, as in `--micro-batch 4`: it
/// is the value of the profile that the command reads as its first argument. Each other value names
/// its profile, as in `--micro-batch 8=PROFILE`. Returns `option` if there are several values. In
/// errors, `what` is a word for a value, and `first` and `other` are examples of values.
fn check_one<T: PartialEq + Display>(
    all: &mut [OfProfile<T>],
    [option, what, first, other]: [&'static str; 4],
) -> Result<Option<&'static str>> {
    for (index, own) in all.iter().enumerate() {
        if all[..index].iter().any(|other| other.value == own.value) {
            return Err(usage(format!(
                "{option} has {} twice; give each {what} once",
                own.value
            )));
        }
    }
    let alone = all.iter().filter(|own| own.profile.is_none()).count();
    if alone != 1 && !all.is_empty() {
        return Err(usage(format!(
            "{option} has {alone} {what}s without a profile; give the {what} of the first profile \
             alone, and others with their profiles, such as {option} {first} {option} {other}=FOLDER"
        )));
    }
    all.sort_by_key(|own| own.profile.is_some());
    Ok((all.len() > 1).then_some(option))
}

/// Reads the further profiles of the model, which `--micro-batch` and `--amp` name, each with its
/// `debug.cbor`.
///
/// # Errors
/// If a file cannot be read or understood; the error names the file.
pub fn read(options: &Options, messages: Messages) -> Result<Vec<FurtherProfile>> {
    let sizes = options.time.micro_batch.iter().filter_map(|own| {
        let what = format!("micro-batches of {}", own.value);
        Some((own.profile.clone()?, Some(own.value), what))
    });
    let proportions = options.pipeline.amp.iter().filter_map(|own| {
        let what = format!("available memory proportion {}", own.value);
        Some((own.profile.clone()?, None, what))
    });
    let mut further = Vec::new();
    for (profile, samples, what) in sizes.chain(proportions) {
        let mut own = Options {
            profile,
            debug: None,
            load_from_file: false,
            ..options.clone()
        };
        profile_path::resolve(&mut own, messages)?;
        messages.info(format!("{what}: {}", displayed(&own.profile)));
        further.push(FurtherProfile {
            samples,
            analysis: input::read(&mut own, messages)?,
        });
    }
    Ok(further)
}
