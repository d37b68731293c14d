//! From the bytes of a file to a model.

use super::SavedError;
use super::columns::Input;
use super::format::{Kind, Section, take_apart};
use super::records::Record;
use super::shape::Shape;
use super::{items, origin, tables};
use crate::model::{MemoryPeak, Model, VariableGroups};
use crate::profile::Recorded;
use rayon::prelude::*;

/// The model in `file`.
pub(super) fn decode(file: &[u8]) -> Result<Model, SavedError> {
    let sections = Sections(take_apart(file)?);
    let shape = sections.table(Kind::Shape, Shape::read)?;
    let variables = || {
        let (uses, tiles) = (sections.only(Kind::Uses)?, sections.only(Kind::Tiles)?);
        items::read(&shape, uses, tiles, sections.all(Kind::Items))
    };
    let (variables, rest) = rayon::join(variables, || read_rest(&sections, &shape));
    let model = rest?;
    Ok(Model {
        variables: variables?,
        ..model
    })
}

/// All but the variables.
fn read_rest(sections: &Sections<'_>, shape: &Shape) -> Result<Model, SavedError> {
    let live = shape.bottleneck.map_or(0, |found| found.variables);
    let live = sections.list(Kind::BottleneckVariables, live, shape)?;
    let (version, made) = sections.table(Kind::Origin, origin::read)?;
    Ok(Model {
        version,
        made,
        cycles: sections.table(Kind::Cycles, |input| origin::read_cycles(input, shape))?,
        operations: sections.list(Kind::Operations, shape.operations, shape)?,
        operation_groups: sections.list(Kind::Bodies, shape.bodies, shape)?,
        classes: sections.table(Kind::Classes, |input| tables::read_classes(input, shape))?,
        user_sets: sections.table(Kind::Sets, |input| tables::read_sets(input, shape))?,
        vertex_code: sections.list(Kind::VertexCode, shape.vertex_types, shape)?,
        recorded_code: sections.table(Kind::RecordedCode, |input| {
            tables::read_recorded_code(input, shape)
        })?,
        code_variables: sections.table(Kind::CodeVariables, |input| {
            tables::read_code_variables(input, shape)
        })?,
        programs: sections.list(Kind::Programs, shape.programs, shape)?,
        recorded: Recorded {
            tiles: sections.list(Kind::RecordedTiles, shape.recorded_tiles, shape)?,
            categories: sections.list(Kind::Categories, shape.categories, shape)?,
        },
        memory_peak: shape.bottleneck.map(|found| MemoryPeak {
            tile: found.tile,
            step: found.step,
            bytes: found.bytes,
            variables: live,
        }),
        labels: sections.list(Kind::Labels, shape.labels, shape)?,
        calls: sections.list(Kind::Calls, shape.calls, shape)?,
        warnings: sections.list(Kind::Warnings, shape.warnings, shape)?,
        target: shape.target.clone(),
        // The caller has them.
        variables: VariableGroups::new(0, std::iter::empty()),
    })
}

/// The frames of a file, sorted by what they hold.
struct Sections<'a>(Vec<Section<'a>>);

impl<'a> Sections<'a> {
    fn all(&self, kind: Kind) -> &[Section<'a>] {
        let from = self.0.partition_point(|section| section.is_before(kind));
        let own = self.0[from..].partition_point(|section| section.is(kind));
        &self.0[from..from + own]
    }

    /// The frame of a kind that stands once.
    fn only(&self, kind: Kind) -> Result<&Section<'a>, SavedError> {
        match self.all(kind) {
            [section] => Ok(section),
            all => Err(SavedError::Invalid(format!(
                "the {} stands there {} times, not once",
                kind.name(),
                all.len()
            ))),
        }
    }

    /// Reads that frame.
    fn table<T>(
        &self,
        kind: Kind,
        read: impl FnOnce(Input<'_>) -> Result<T, SavedError>,
    ) -> Result<T, SavedError> {
        let mut buffer = Vec::new();
        self.only(kind)?.decompress(kind, &mut buffer)?;
        read(Input::new(kind.name(), &buffer))
    }

    /// Reads all frames of a list, one beside the other.
    fn list<T: Record>(
        &self,
        kind: Kind,
        length: u32,
        shape: &Shape,
    ) -> Result<Vec<T>, SavedError> {
        let frames = self.all(kind).par_iter();
        let frames = frames.map_init(Vec::new, |buffer, section| {
            section.decompress(kind, buffer)?;
            read_entries(Input::new(kind.name(), buffer), shape)
        });
        let frames: Vec<Vec<T>> = frames.collect::<Result<_, _>>()?;
        let found: usize = frames.iter().map(Vec::len).sum();
        if found != length as usize {
            let name = kind.name();
            let problem = format!("the {name} has {found} entries and should have {length}");
            return Err(SavedError::Invalid(problem));
        }
        let mut frames = frames.into_iter();
        let mut all = frames.next().unwrap_or_default();
        all.reserve_exact(found - all.len());
        frames.for_each(|frame| all.extend(frame));
        Ok(all)
    }
}

fn read_entries<T: Record>(mut input: Input<'_>, shape: &Shape) -> Result<Vec<T>, SavedError> {
    let count = input.count(T::BYTES)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(T::read(&mut input, shape)?);
    }
    input.finish()?;
    Ok(entries)
}
