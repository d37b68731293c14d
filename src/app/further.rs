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
pub fn check(options: &Options) -> Result<()> {
    let (sizes, proportions) = (&options.time.micro_batch, &options.pipeline.amp);
    check_one(sizes, ["--micro-batch", "size", "1", "4"])?;
    check_one(proportions, ["--amp", "proportion", "0.6", "0.2"])?;
    let of_one = options.of_one_profile.as_deref();
    let of_one = of_one.or_else(|| options.request().of_original());
    let (several, of_one) = match (sizes.len() > 1, proportions.len() > 1) {
        (false, false) => return Ok(()),
        (true, true) => {
            return Err(usage(
                "--micro-batch and --amp name profiles, and only one of them can; leave the profiles \
                 of the other out",
            ));
        }
        (true, false) => ("--micro-batch", of_one),
        (false, true) => ("--amp", of_one),
    };
    of_one.map_or(Ok(()), |option| {
        Err(usage(format!(
            "{option} works on one profile, and {several} names several; leave one of them out"
        )))
    })
}

/// Checks the values of `option`, such as `--micro-batch`. The user gives each value alone or as
/// VALUE=PROFILE. No value may occur twice. If there are values, exactly one must be alone: the
/// value of the profile that the argument PROFILE names. For error messages, `what` is a word for a
/// value, and `first` and `other` are examples of values.
fn check_one<T: PartialEq + Display>(
    all: &[OfProfile<T>],
    [option, what, first, other]: [&str; 4],
) -> Result<()> {
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
    Ok(())
}

/// Reads the further profiles of the model, which `--micro-batch` and `--amp` name, each with its
/// `debug.cbor`.
///
/// # Errors
/// If a file cannot be read or understood; the error names the file.
pub fn read(options: &Options, messages: Messages) -> Result<Vec<FurtherProfile>> {
    let sizes = options.time.micro_batch.iter().map(|own| {
        let what = format!("micro-batches of {}", own.value);
        (&own.profile, Some(own.value), what)
    });
    let proportions = options.pipeline.amp.iter().map(|own| {
        let what = format!("available memory proportion {}", own.value);
        (&own.profile, None, what)
    });
    let mut further = Vec::new();
    for (profile, samples, what) in sizes.chain(proportions) {
        let Some(path) = profile else { continue };
        let mut own = Options {
            profile: path.clone(),
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
