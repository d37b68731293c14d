//! Writes `debug.cbor`, one context after the other.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use ciborium::into_writer;

use super::context_fields::fields;
use super::plan::Plan;

/// Headers of CBOR: a map of two entries, an array without a length, and its end.
const MAP_OF_TWO: u8 = 0xa2;
const ARRAY: u8 = 0x9f;
const BREAK: u8 = 0xff;

/// Writes the contexts of `plan` as Poplar does: children before parents, the
/// string table last.
pub fn write(plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    file.write_all(&[MAP_OF_TWO])?;
    into_writer("contexts", &mut file)?;
    file.write_all(&[ARRAY])?;
    for (index, context) in plan.contexts.list.iter().enumerate().rev() {
        into_writer(&fields(plan, context, index as u32 + 1), &mut file)?;
    }
    file.write_all(&[BREAK])?;
    into_writer("stringTable", &mut file)?;
    into_writer(&plan.contexts.strings, &mut file)?;
    Ok(file.flush()?)
}
