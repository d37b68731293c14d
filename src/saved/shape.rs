//! The first section: the target and how long everything else is.

use super::SavedError;
use super::columns::{Input, Output};
use crate::limits;
use crate::model::{MemoryPeak, Model};
use crate::profile::Target;

/// Are there more steps than a model can have?
fn is_too_long(steps: u32, tiles: u32) -> bool {
    let steps = u64::from(steps);
    steps > limits::STEPS || steps * u64::from(tiles) > limits::STEPS_AND_TILES
}

/// What other sections refer to, as the file states it before anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) target: Target,
    /// How many liveness steps there are.
    pub(super) steps: u32,
    pub(super) operations: u32,
    pub(super) bodies: u32,
    pub(super) classes: u32,
    /// How many sets of bodies there are, the empty one included.
    pub(super) sets: u32,
    /// How many vertex types have code.
    pub(super) vertex_types: u32,
    pub(super) programs: u32,
    pub(super) recorded_tiles: u32,
    pub(super) categories: u32,
    pub(super) warnings: u32,
    pub(super) labels: u32,
    /// How many calls of functions there are, fewer than 2^32 - 1.
    pub(super) calls: u32,
    pub(super) bottleneck: Option<BottleneckShape>,
}

/// The bottleneck without its variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BottleneckShape {
    pub(super) tile: u32,
    pub(super) step: u32,
    pub(super) bytes: u64,
    /// How many variables are live there.
    pub(super) variables: u32,
}

impl BottleneckShape {
    fn of(found: &MemoryPeak) -> Result<Self, SavedError> {
        Ok(Self {
            tile: found.tile,
            step: found.step,
            bytes: found.bytes,
            variables: length(found.variables.len())?,
        })
    }
}

impl Shape {
    pub(super) fn of(model: &Model) -> Result<Self, SavedError> {
        let steps = model.steps();
        if is_too_long(steps, model.target.num_tiles) {
            let problem = format!("it has {steps} liveness steps, more than any real one");
            return Err(SavedError::TooLarge(problem));
        }
        Ok(Self {
            target: model.target.clone(),
            steps,
            operations: length(model.operations.len())?,
            bodies: length(model.operation_groups.len())?,
            classes: length(model.classes.len())?,
            sets: length(model.user_sets.len())?,
            vertex_types: length(model.vertex_code.len())?,
            programs: length(model.programs.len())?,
            recorded_tiles: length(model.recorded.tiles.len())?,
            categories: length(model.recorded.categories.len())?,
            warnings: length(model.warnings.len())?,
            labels: length(model.labels.len())?,
            calls: length(model.calls.len())?,
            bottleneck: model
                .memory_peak
                .as_ref()
                .map(BottleneckShape::of)
                .transpose()?,
        })
    }

    pub(super) fn write(&self, output: &mut Output) {
        let target = &self.target;
        output.number(target.tiles_per_ipu);
        output.number(target.num_tiles);
        output.number(target.bytes_per_tile);
        output.number(target.num_ipus);
        output.number(target.num_replicas);
        output.text(&target.architecture);
        for length in [
            self.steps,
            self.operations,
            self.bodies,
            self.classes,
            self.sets,
            self.vertex_types,
            self.programs,
            self.recorded_tiles,
            self.categories,
            self.warnings,
            self.labels,
            self.calls,
        ] {
            output.number(length);
        }
        output.number(u8::from(self.bottleneck.is_some()));
        if let Some(found) = self.bottleneck {
            output.number(found.tile);
            output.number(found.step);
            output.number(found.bytes);
            output.number(found.variables);
        }
    }

    pub(super) fn read(mut input: Input<'_>) -> Result<Self, SavedError> {
        let target = read_target(&mut input)?;
        let steps = input.small()?;
        if is_too_long(steps, target.num_tiles) {
            return Err(input.problem(&format!("{steps} steps are more than any model has")));
        }
        let shape = Self {
            steps,
            operations: input.small()?,
            bodies: input.small()?,
            classes: input.small()?,
            sets: input.small()?,
            vertex_types: input.small()?,
            programs: input.small()?,
            recorded_tiles: input.small()?,
            categories: input.small()?,
            warnings: input.small()?,
            labels: input.small()?,
            calls: input.position(u32::MAX, "number of calls")?,
            bottleneck: read_bottleneck(&mut input, target.num_tiles, steps)?,
            target,
        };
        if shape.recorded_tiles != 0 && shape.recorded_tiles != shape.target.num_tiles {
            return Err(input.problem("recorded tiles are not as many as tiles"));
        }
        if shape.labels == 0 {
            return Err(input.problem("the first label is missing"));
        }
        input.finish()?;
        Ok(shape)
    }
}

/// The same rules as for a profile.
fn read_target(input: &mut Input<'_>) -> Result<Target, SavedError> {
    let target = Target {
        tiles_per_ipu: input.small()?,
        num_tiles: input.small()?,
        bytes_per_tile: input.number()?,
        num_ipus: input.number()?,
        num_replicas: input.number()?,
        architecture: input.text()?.to_owned(),
    };
    if target.num_tiles == 0 {
        return Err(input.problem("there is no tile"));
    }
    let checked = target.check_single_ipu();
    checked.map_err(|error| SavedError::Invalid(error.to_string()))?;
    Ok(target)
}

fn read_bottleneck(
    input: &mut Input<'_>,
    tiles: u32,
    steps: u32,
) -> Result<Option<BottleneckShape>, SavedError> {
    if input.position(2, "kind of bottleneck")? == 0 {
        return Ok(None);
    }
    Ok(Some(BottleneckShape {
        tile: input.position(tiles, "tile")?,
        // Without a step, the first one stands for none.
        step: input.position(steps.max(1), "step")?,
        bytes: input.number()?,
        variables: input.small()?,
    }))
}

fn length(length: usize) -> Result<u32, SavedError> {
    let too_large = |_| SavedError::TooLarge(format!("a list has {length} entries"));
    u32::try_from(length).map_err(too_large)
}
