//! What lists hold, entry by entry: each is written and read here.

use super::SavedError;
use super::columns::{Input, Output};
use super::shape::Shape;
use crate::model::{Body, BodyCode, NamedVariable, Operation, OwnedKind, OwnedProgram};
use crate::profile::{RecordedTile, TileBytes};

/// An entry of a list.
pub(super) trait Record: Sized + Send {
    /// The bytes that one takes at least.
    const BYTES: usize;

    fn write(&self, output: &mut Output);

    /// Reads what [`Record::write`] wrote and checks what it refers to.
    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError>;
}

/// Body, twice, and one more if it only makes a tensor; name; inputs.
impl Record for Operation {
    const BYTES: usize = 3;

    fn write(&self, output: &mut Output) {
        output.number(u64::from(self.body) * 2 + u64::from(self.is_tensor));
        output.text(&self.name);
        output.text(&self.inputs);
    }

    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError> {
        let body = input.number()?;
        let (body, is_tensor) = (body / 2, body % 2 == 1);
        if body >= u64::from(shape.bodies) {
            return Err(input.problem(&format!("there is no body {body}")));
        }
        Ok(Self {
            body: body as u32,
            name: input.text()?.into(),
            inputs: input.text()?.into(),
            is_tensor,
        })
    }
}

/// Context; window; vertex types with their tiles; state, exact memory of
/// vertices, exchange code and control code by tile.
impl Record for Body {
    const BYTES: usize = 7;

    fn write(&self, output: &mut Output) {
        output.number(self.uid);
        match self.window {
            None => output.number(0u32),
            Some((first, last)) => {
                output.number(u64::from(first) + 1);
                output.number(last.wrapping_sub(first));
            }
        }
        let code = &self.code;
        output.length(code.vertex_types.len());
        for (vertex_type, tiles) in &code.vertex_types {
            output.number(*vertex_type);
            output.tile_bytes(tiles);
        }
        output.tile_bytes(&code.vertex_state);
        output.tile_bytes(&code.vertex_memory);
        output.tile_bytes(&code.exchange_code);
        output.tile_bytes(&code.control_code);
    }

    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError> {
        let uid = input.number()?;
        let window = read_window(input, shape.steps)?;
        let tiles = shape.target.num_tiles;
        let count = input.count(2)?;
        let vertex_types = (0..count).map(|_| {
            let vertex_type = input.position(shape.vertex_types, "vertex type")?;
            Ok((vertex_type, input.tile_bytes(tiles)?))
        });
        let vertex_types: Vec<_> = vertex_types.collect::<Result<_, SavedError>>()?;
        if !vertex_types.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(input.problem("vertex types are not in order"));
        }
        let code = BodyCode {
            vertex_types,
            vertex_state: input.tile_bytes(tiles)?,
            vertex_memory: input.tile_bytes(tiles)?,
            exchange_code: input.tile_bytes(tiles)?,
            control_code: input.tile_bytes(tiles)?,
        };
        Ok(Self { uid, window, code })
    }
}

/// 0, or one more than the first step and how far behind it the last one is.
fn read_window(input: &mut Input<'_>, steps: u32) -> Result<Option<(u32, u32)>, SavedError> {
    let Some(first) = input.number()?.checked_sub(1) else {
        return Ok(None);
    };
    if first >= u64::from(steps) {
        return Err(input.problem(&format!("there is no step {first}")));
    }
    let first = first as u32;
    Ok(Some((
        first,
        first + input.position(steps - first, "step")?,
    )))
}

/// Id; kind; name; bytes; one more than its body, or 0.
impl Record for OwnedProgram {
    const BYTES: usize = 5;

    fn write(&self, output: &mut Output) {
        output.number(self.id);
        output.number(match self.kind {
            OwnedKind::OnTileExecute => 0u32,
            OwnedKind::DoExchange => 1,
        });
        output.text(&self.name);
        output.number(self.bytes);
        output.number(self.body.map_or(0, |body| u64::from(body) + 1));
    }

    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError> {
        let id = input.number()?;
        let kind = match input.position(2, "kind of program")? {
            0 => OwnedKind::OnTileExecute,
            _ => OwnedKind::DoExchange,
        };
        let (name, bytes) = (input.text()?.into(), input.number()?);
        let body = input.number()?.checked_sub(1);
        if body.is_some_and(|body| body >= u64::from(shape.bodies)) {
            return Err(input.problem("a program belongs to a body that is not there"));
        }
        Ok(Self {
            id,
            kind,
            name,
            bytes,
            body: body.map(|body| body as u32),
        })
    }
}

/// Without gaps; 0, or 1 and the bytes with gaps; always live; not always live.
impl Record for RecordedTile {
    const BYTES: usize = 4;

    fn write(&self, output: &mut Output) {
        output.number(self.total);
        output.number(u8::from(self.with_gaps.is_some()));
        self.with_gaps.iter().for_each(|&all| output.number(all));
        output.number(self.always_live);
        output.number(self.not_always_live);
    }

    fn read(input: &mut Input<'_>, _: &Shape) -> Result<Self, SavedError> {
        Ok(Self {
            total: input.number()?,
            with_gaps: match input.position(2, "kind of fact")? {
                0 => None,
                _ => Some(input.number()?),
            },
            always_live: input.number()?,
            not_always_live: input.number()?,
        })
    }
}

/// A category: its name and its bytes by tile.
impl Record for (String, TileBytes) {
    const BYTES: usize = 2;

    fn write(&self, output: &mut Output) {
        output.text(&self.0);
        output.tile_bytes(&self.1);
    }

    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError> {
        let name = input.text()?.to_owned();
        Ok((name, input.tile_bytes(shape.target.num_tiles)?))
    }
}

impl Record for TileBytes {
    const BYTES: usize = 1;

    fn write(&self, output: &mut Output) {
        output.tile_bytes(self);
    }

    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError> {
        input.tile_bytes(shape.target.num_tiles)
    }
}

/// Name; category; bytes; set of bodies.
impl Record for NamedVariable {
    const BYTES: usize = 4;

    fn write(&self, output: &mut Output) {
        output.text(&self.name);
        output.text(&self.category);
        output.number(self.bytes);
        output.number(self.set);
    }

    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError> {
        Ok(Self {
            name: input.text()?.into(),
            category: input.text()?.into(),
            bytes: input.small()?,
            set: input.position(shape.sets, "set of bodies")?,
        })
    }
}

/// A warning.
impl Record for String {
    const BYTES: usize = 1;

    fn write(&self, output: &mut Output) {
        output.text(self);
    }

    fn read(input: &mut Input<'_>, _: &Shape) -> Result<Self, SavedError> {
        Ok(input.text()?.to_owned())
    }
}
