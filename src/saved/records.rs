//! What lists hold, entry by entry: each is written and read here.

use super::SavedError;
use super::columns::{Input, Output};
use super::shape::Shape;
use crate::model::{
    CallSite, GroupCode, Label, NamedVariable, Operation, OperationGroup, OwnedKind, OwnedProgram,
    Piece, TensorKind,
};
use crate::profile::{RecordedTile, TileBytes};

/// An entry of a list.
pub(super) trait Record: Sized + Send {
    /// The bytes that one takes at least.
    const BYTES: usize;

    fn write(&self, output: &mut Output);

    /// Reads what [`Record::write`] wrote and checks what it refers to.
    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError>;
}

/// Body; what it is, a bit each; name; inputs; one more than its call, or 0.
impl Record for Operation {
    const BYTES: usize = 5;

    fn write(&self, output: &mut Output) {
        output.number(self.group);
        let facts = [
            self.is_tensor,
            self.is_anonymous,
            self.is_backward,
            self.is_update,
            self.is_nested,
        ];
        let bits = facts
            .iter()
            .rev()
            .fold(0u32, |bits, &fact| bits * 2 + u32::from(fact));
        output.number(bits);
        output.number(self.call.wrapping_add(1));
        output.text(&self.name);
        output.text(&self.inputs);
    }

    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError> {
        let body = input.position(shape.bodies, "body")?;
        let bits = input.position(1 << 5, "set of facts")?;
        let call = input.position(shape.calls + 1, "call")?;
        let is = |fact: u32| bits >> fact & 1 == 1;
        Ok(Self {
            group: body,
            name: input.text()?.into(),
            inputs: input.text()?.into(),
            is_tensor: is(0),
            is_anonymous: is(1),
            is_backward: is(2),
            is_update: is(3),
            is_nested: is(4),
            call: call.wrapping_sub(1),
        })
    }
}

/// Context; window; code; number of pieces, and of each the sets and code.
impl Record for OperationGroup {
    const BYTES: usize = 8;

    fn write(&self, output: &mut Output) {
        output.number(self.uid);
        match self.window {
            None => output.number(0u32),
            Some((first, last)) => {
                output.number(u64::from(first) + 1);
                output.number(last.wrapping_sub(first));
            }
        }
        write_code(&self.code, output);
        output.length(self.pieces.len());
        for piece in &self.pieces {
            write_ascending(&piece.sets, output);
            write_code(&piece.code, output);
        }
    }

    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError> {
        let uid = input.number()?;
        let window = read_window(input, shape.steps)?;
        let code = read_code(input, shape)?;
        let pieces = (0..input.count(6)?).map(|_| {
            let sets = read_ascending(input, shape.sets, "set of bodies")?;
            let code = read_code(input, shape)?;
            Ok(Piece { sets, code })
        });
        let pieces = pieces.collect::<Result<_, SavedError>>()?;
        Ok(Self {
            uid,
            window,
            code,
            pieces,
        })
    }
}

/// Vertex types with their tiles; state, exact memory of vertices, exchange
/// code and control code by tile.
fn write_code(code: &GroupCode, output: &mut Output) {
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

fn read_code(input: &mut Input<'_>, shape: &Shape) -> Result<GroupCode, SavedError> {
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
    Ok(GroupCode {
        vertex_types,
        vertex_state: input.tile_bytes(tiles)?,
        vertex_memory: input.tile_bytes(tiles)?,
        exchange_code: input.tile_bytes(tiles)?,
        control_code: input.tile_bytes(tiles)?,
    })
}

/// How many numbers, and each as the difference to the one before.
fn write_ascending(numbers: &[u32], output: &mut Output) {
    output.length(numbers.len());
    let mut last = 0;
    for &number in numbers {
        output.number(number - last);
        last = number;
    }
}

fn read_ascending(input: &mut Input<'_>, end: u32, of: &str) -> Result<Box<[u32]>, SavedError> {
    let mut last = 0u32;
    let mut numbers = Vec::new();
    for _ in 0..input.count(1)? {
        let next = last.checked_add(input.small()?).filter(|&next| next < end);
        let next = next.ok_or_else(|| input.problem(&format!("a {of} is not there")))?;
        numbers.push(next);
        last = next;
    }
    if !numbers.is_sorted_by(|a, b| a < b) {
        return Err(input.problem(&format!("a {of} comes twice")));
    }
    Ok(numbers.into())
}

/// What a weight is called: name; tensor; kind.
impl Record for Label {
    const BYTES: usize = 3;

    fn write(&self, output: &mut Output) {
        output.text(&self.name);
        output.text(&self.tensor);
        output.number(self.kind as u32);
    }

    fn read(input: &mut Input<'_>, _: &Shape) -> Result<Self, SavedError> {
        let (name, tensor) = (input.text()?.into(), input.text()?.into());
        let kind = input.position(TensorKind::ALL.len() as u32, "kind of tensor")?;
        let kind = TensorKind::ALL[kind as usize];
        Ok(Self { name, tensor, kind })
    }
}

/// A call of a function: one more than the call around it, or 0; one more than
/// its operation, or 0; function; sets of what is copied around it.
impl Record for CallSite {
    const BYTES: usize = 4;

    fn write(&self, output: &mut Output) {
        output.number(self.outer.wrapping_add(1));
        output.number(
            self.operation
                .map_or(0, |operation| u64::from(operation) + 1),
        );
        output.number(self.function);
        write_ascending(&self.around, output);
    }

    fn read(input: &mut Input<'_>, shape: &Shape) -> Result<Self, SavedError> {
        let outer = input.position(shape.calls + 1, "call")?;
        let operation = input.position(shape.operations.saturating_add(1), "operation")?;
        Ok(Self {
            outer: outer.wrapping_sub(1),
            operation: operation.checked_sub(1),
            function: input.small()?,
            around: read_ascending(input, shape.sets, "set of bodies")?,
        })
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
        output.number(self.group.map_or(0, |body| u64::from(body) + 1));
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
            group: body.map(|body| body as u32),
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
