//! Writes `debug.cbor`, one context after the other.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use ciborium::{Value, into_writer};
use serde::Serialize;

use super::context_fields::{fields, map};
use super::contexts::Context;
use super::plan::Plan;

/// Headers of CBOR: a map of two entries, an array without a length, and its end.
const MAP_OF_TWO: u8 = 0xa2;
const ARRAY: u8 = 0x9f;
const BREAK: u8 = 0xff;

/// Writes the contexts of `plan` as Poplar does: children before parents, the
/// string table last.
pub fn write(plan: &Plan, path: &Path) -> io::Result<()> {
    let mut writer = Writer {
        plan,
        file: BufWriter::with_capacity(1 << 20, File::create(path)?),
    };
    writer.file.write_all(&[MAP_OF_TWO])?;
    writer.value("contexts")?;
    writer.file.write_all(&[ARRAY])?;
    writer.contexts()?;
    writer.file.write_all(&[BREAK])?;
    let names = plan.contexts.strings.iter().map(String::as_str);
    writer.value("stringTable")?;
    writer.value(&names.chain(LOCATIONS).collect::<Vec<_>>())?;
    writer.file.flush()
}

/// Files and functions of source locations, which follow the names in the string table.
const LOCATIONS: [&str; 6] = [
    "/opt/src/poplibs/lib/poplin/MatMul.cpp",
    "matMulGrouped",
    "/opt/src/poplibs/lib/popops/ElementWise.cpp",
    "generateMappedOperations",
    "/opt/src/model/build.cpp",
    "growOp",
];

fn location(plan: &Plan, context: &Context) -> Value {
    let pair: u64 = (context.op.wrapping_add(context.name) % 3).into();
    let file = plan.contexts.strings.len() as u64 + 2 * pair;
    map(vec![
        ("fileName", Value::from(file)),
        ("functionName", Value::from(file + 1)),
        ("lineNumber", Value::from(20 + context.name % 900)),
    ])
}

struct Writer<'a> {
    plan: &'a Plan,
    file: BufWriter<File>,
}

impl Writer<'_> {
    /// Block after block: the leaves as they were made, then the rest from the
    /// innermost outwards. The framework's own contexts live longest.
    fn contexts(&mut self) -> io::Result<()> {
        let contexts = &self.plan.contexts;
        let mut first = 0;
        let blocks = contexts.blocks.iter();
        let block = |&end: &usize| std::mem::replace(&mut first, end)..end;
        let mut blocks: Vec<_> = blocks.map(block).collect();
        blocks.rotate_left(1);
        // The contexts of tensors and streams, which may have operations as parents.
        let framework = blocks.len() - 1;
        blocks[..framework].rotate_right(1);
        for block in blocks {
            let leaf = |id: &usize| contexts.list[*id].body.is_leaf();
            for id in block.clone().filter(leaf) {
                self.context(id)?;
            }
            for id in block.rev().filter(|id| !leaf(id)) {
                self.context(id)?;
            }
        }
        Ok(())
    }

    fn context(&mut self, index: usize) -> io::Result<()> {
        let plan = self.plan;
        let context = &plan.contexts.list[index];
        let mut fields = fields(plan, context, index as u32 + 1);
        fields.push(("location", location(plan, context)));
        self.value(&map(fields))
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> io::Result<()> {
        into_writer(value, &mut self.file).map_err(io::Error::other)
    }
}
