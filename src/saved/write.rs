//! From a model to the bytes of a file.

use super::SavedError;
use super::columns::Output;
use super::format::{Frame, Kind, assemble};
use super::records::Record;
use super::shape::Shape;
use super::{items, origin, tables};
use crate::model::Model;
use rayon::prelude::*;

/// A frame of a list ends after the entry with which it has this many bytes.
const BYTES_OF_FRAME: usize = 1 << 20;

/// The file of `model`, always the same for the same model.
pub(super) fn encode(model: &Model) -> Result<Vec<u8>, SavedError> {
    let mut parts: Vec<(Kind, Output)> = Vec::new();
    let shape = Shape::of(model)?;
    table(&mut parts, Kind::Shape, |output| shape.write(output));
    list(&mut parts, Kind::Operations, &model.operations);
    list(&mut parts, Kind::Bodies, &model.operation_groups);
    table(&mut parts, Kind::Classes, |output| {
        tables::write_classes(&model.classes, output);
    });
    table(&mut parts, Kind::Sets, |output| {
        tables::write_sets(&model.user_sets, output);
    });
    list(&mut parts, Kind::VertexCode, &model.vertex_code);
    table(&mut parts, Kind::RecordedCode, |output| {
        tables::write_recorded_code(&model.recorded_code, output);
    });
    table(&mut parts, Kind::CodeVariables, |output| {
        tables::write_code_variables(&model.code_variables, output);
    });
    list(&mut parts, Kind::Programs, &model.programs);
    list(&mut parts, Kind::RecordedTiles, &model.recorded.tiles);
    list(&mut parts, Kind::Categories, &model.recorded.categories);
    let bottleneck = model.memory_peak.as_ref();
    let live = bottleneck.map_or(&[][..], |found| &found.variables);
    list(&mut parts, Kind::BottleneckVariables, live);
    list(&mut parts, Kind::Warnings, &model.warnings);
    table(&mut parts, Kind::Origin, |output| {
        origin::write(model.version, &model.made, output);
    });
    table(&mut parts, Kind::Cycles, |output| {
        origin::write_cycles(model.cycles.as_ref(), output);
    });
    list(&mut parts, Kind::Labels, &model.labels);
    list(&mut parts, Kind::Calls, &model.calls);
    let frames = parts
        .par_iter()
        .map(|(kind, raw)| Frame::new(*kind, &raw.0));
    let mut frames: Vec<Frame> = frames.collect::<Result<_, _>>()?;
    frames.extend(items::write(&model.variables)?);
    assemble(&frames)
}

fn table(parts: &mut Vec<(Kind, Output)>, kind: Kind, write: impl FnOnce(&mut Output)) {
    let mut output = Output::default();
    write(&mut output);
    parts.push((kind, output));
}

/// Each frame of a list: the number of its entries, then these.
fn list<T: Record>(parts: &mut Vec<(Kind, Output)>, kind: Kind, list: &[T]) {
    let mut rest = list;
    while !rest.is_empty() {
        let mut entries = Output::default();
        let mut count = 0;
        while count < rest.len() && entries.0.len() < BYTES_OF_FRAME {
            rest[count].write(&mut entries);
            count += 1;
        }
        rest = &rest[count..];
        table(parts, kind, |output| {
            output.length(count);
            output.0.append(&mut entries.0);
        });
    }
}
