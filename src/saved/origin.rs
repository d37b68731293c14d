//! Where the model comes from, and what its operations took when they ran.

use super::SavedError;
use super::columns::{Input, Output};
use super::shape::Shape;
use crate::model::{CycleSource, OperationCycles};
use crate::profile::{BuildInfo, ChosenOption, FormatVersion};

/// The three numbers of the report format; each fact as 0, or 1 and what it
/// is; the options, of each list their number, names and values.
pub(super) fn write(version: FormatVersion, made: &BuildInfo, output: &mut Output) {
    for number in [version.major, version.minor, version.point] {
        output.number(number);
    }
    for text in [&made.poplar, &made.time, &made.device] {
        output.number(u8::from(text.is_some()));
        text.iter().for_each(|text| output.text(text));
    }
    output.number(u8::from(made.clock_hertz.is_some()));
    made.clock_hertz.iter().for_each(|&hz| output.number(hz));
    for options in [&made.compilation_options, &made.target_options] {
        output.length(options.len());
        for option in options {
            output.text(&option.name);
            output.text(&option.value);
        }
    }
}

pub(super) fn read(mut input: Input<'_>) -> Result<(FormatVersion, BuildInfo), SavedError> {
    let version = FormatVersion {
        major: input.number()?,
        minor: input.number()?,
        point: input.number()?,
    };
    let text = |input: &mut Input<'_>| Ok(input.text()?.to_owned());
    let made = BuildInfo {
        poplar: read_optional(&mut input, text)?,
        time: read_optional(&mut input, text)?,
        device: read_optional(&mut input, text)?,
        clock_hertz: read_optional(&mut input, Input::number)?,
        compilation_options: read_options(&mut input)?,
        target_options: read_options(&mut input)?,
    };
    input.finish()?;
    Ok((version, made))
}

fn read_optional<'a, T>(
    input: &mut Input<'a>,
    read: impl FnOnce(&mut Input<'a>) -> Result<T, SavedError>,
) -> Result<Option<T>, SavedError> {
    match input.position(2, "kind of fact")? {
        0 => Ok(None),
        _ => Ok(Some(read(input)?)),
    }
}

fn read_options(input: &mut Input<'_>) -> Result<Vec<ChosenOption>, SavedError> {
    let count = input.count(2)?;
    let option = |_| {
        Ok(ChosenOption {
            name: input.text()?.to_owned(),
            value: input.text()?.to_owned(),
        })
    };
    (0..count).map(option).collect()
}

/// 0 for none; 1 for estimates; 2 and the number of runs for executed ones.
/// Then those of no operation, those of everything else, and those of each
/// operation.
pub(super) fn write_cycles(cycles: Option<&OperationCycles>, output: &mut Output) {
    let Some(cycles) = cycles else {
        return output.number(0u32);
    };
    match cycles.source {
        CycleSource::Estimated => output.number(1u32),
        CycleSource::Executed { runs } => {
            output.number(2u32);
            output.number(runs);
        }
    }
    output.number(cycles.unexplained);
    output.number(cycles.other);
    for &own in &cycles.by_operation {
        output.number(own);
    }
}

pub(super) fn read_cycles(
    mut input: Input<'_>,
    shape: &Shape,
) -> Result<Option<OperationCycles>, SavedError> {
    let source = match input.position(3, "source of cycles")? {
        0 => return input.finish().map(|()| None),
        1 => CycleSource::Estimated,
        _ => CycleSource::Executed {
            runs: input.number()?,
        },
    };
    let (unexplained, other) = (input.number()?, input.number()?);
    if shape.operations as usize > input.left() {
        return Err(input.problem("it ends before the last operation"));
    }
    let by_operation = (0..shape.operations).map(|_| input.number());
    let by_operation = by_operation.collect::<Result<_, _>>()?;
    input.finish()?;
    Ok(Some(OperationCycles {
        source,
        by_operation,
        unexplained,
        other,
    }))
}
